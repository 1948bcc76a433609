"""Pure core: what a partition becomes after something happened to it: replicas, who is in sync, who leads, the epochs.

One order for every change, whatever caused it: a reassignment that has become possible is completed; who left the
in-sync set is eligible or not; the election plugin chooses a leader, if there is need of one; the epochs follow.

Eligible leader replicas (KIP-966): the high watermark stands still while fewer than `min.insync.replicas` are in sync,
so who leaves the in-sync set meanwhile has all that is committed, and may lead when nobody is in sync any more. With
the feature the in-sync set may be empty; without it the last member stays in it.

Where replicas vote, nothing is chosen here: who leads, and in which epoch, leaders tell (`leader_announcements`). What
is decided is who of them lives; a leader that does not is none any more, in the same epoch, until one is announced.

*Source:* Kafka's `PartitionChangeBuilder`, as observed on 4.3.1; KIP-966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..contracts.election import ElectionReason, is_among_replicas
from ..metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from ..metadata.image import NO_LEADER, UNASSIGNED_DIRECTORY
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS
from ..types import LOST_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.election import ElectionFactory, PartitionState
    from ..metadata.image import BrokerImage, MetadataImage, TopicImage

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


@frozen
class PartitionRules:
    """What decides over the partitions of one topic.

    Attributes:
        factory: The topic's election.
        live: The brokers that may lead.
        min_insync_replicas: The topic's, at most its replication factor.
        has_eligible: Whether the feature of eligible leader replicas is on.
        may_lose: Whether a replica that is not in sync may lead when nobody else can.
        has_voters: Whether replicas choose their leader among themselves.
    """

    factory: ElectionFactory
    live: Collection[int]
    min_insync_replicas: int = 1
    has_eligible: bool = False
    may_lose: bool = False
    has_voters: bool = False


def has_eligible_replicas(image: MetadataImage) -> bool:
    """Return whether partitions have eligible leader replicas."""
    return image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def rules_of(
    image: MetadataImage, config: BrokerConfig, topic: TopicImage, factory: ElectionFactory, live: Collection[int]
) -> PartitionRules:
    """Return the rules of a topic's partitions.

    Args:
        image: The image.
        config: The controller's configuration with the image's dynamic layers.
        topic: The topic.
        factory: Its election.
        live: The brokers that may lead.
    """
    own = image.topic_config(topic.name)
    least = own.get(MIN_INSYNC_REPLICAS)
    replicas_count = len(topic.partitions[0].replicas) if topic.partitions else 1
    return PartitionRules(
        factory,
        live,
        min_insync_replicas=min(int(least) if least else config.get_int(MIN_INSYNC_REPLICAS), replicas_count),
        has_eligible=has_eligible_replicas(image),
        may_lose=may_lose_records(config, own.get(UNCLEAN_ELECTION)),
        has_voters=is_among_replicas(factory),
    )


def on_working_directories(
    rules: PartitionRules, image: MetadataImage, topic: TopicImage, partition: int
) -> PartitionRules:
    """Return the rules of one partition of a topic: whose replica lies in a directory that failed may not lead it."""
    failed = {
        replica
        for replica, directory in zip(topic.partitions[partition].replicas, topic.directories[partition], strict=True)
        if not directory_works(image.brokers.get(replica), directory)
    }
    if not failed:
        return rules
    return attrs.evolve(rules, live=[broker_id for broker_id in rules.live if broker_id not in failed])


def directory_works(broker: BrokerImage | None, directory: UUID) -> bool:
    """Return whether a directory of a broker works, as far as it is known: one that told of none has others, too."""
    if directory == LOST_DIRECTORY:
        return False
    if broker is None or not broker.log_dirs or directory in broker.log_dirs:
        return True
    return directory == UNASSIGNED_DIRECTORY and LOST_DIRECTORY not in broker.log_dirs


def may_lose_records(config: BrokerConfig, own: str | None) -> bool:
    """Return whether a topic allows unclean elections, by its own value of the key or the cluster's."""
    return config.get_bool(UNCLEAN_ELECTION) if own is None else own.lower() == "true"


def with_epochs(old: PartitionState, new: PartitionState, *, bump: bool = False) -> PartitionState:
    """Return the new state with the epochs that follow on the old one's.

    Args:
        old: What was.
        new: What is to be; its epochs do not count.
        bump: Whether the leader epoch grows although the leader stays.
    """
    leader_epoch = old.leader_epoch + (1 if bump or new.leader != old.leader else 0)
    return attrs.evolve(new, leader_epoch=leader_epoch, partition_epoch=old.partition_epoch + 1)


def elect(
    factory: ElectionFactory, state: PartitionState, live: Collection[int], reason: ElectionReason
) -> PartitionState:
    """Return the state with the leader that the plugin chooses, or with none."""
    chosen = factory.choose_leader(state, live, reason)
    return chosen if chosen is not None else attrs.evolve(state, leader=NO_LEADER)


def without_replicas(state: PartitionState, gone: Collection[int], rules: PartitionRules) -> PartitionState:
    """Return the state without some brokers in the in-sync set; the last member stays where nobody can be eligible."""
    isr = tuple(replica for replica in state.isr if replica not in gone)
    return attrs.evolve(state, isr=isr if isr or rules.has_eligible else state.isr)


def next_state(
    old: PartitionState,
    wanted: PartitionState,
    rules: PartitionRules,
    reason: ElectionReason,
    *,
    lost: Collection[int] = (),
) -> PartitionState | None:
    """Return the state that follows when replicas or the in-sync set are to be as in `wanted`; None: it is the same.

    Args:
        old: What is.
        wanted: The same with other replicas, another in-sync set or another reassignment; its epochs do not count.
        rules: What decides.
        reason: Why a leader is chosen, if there is need of one.
        lost: Brokers that may have lost records: they are not eligible.
    """
    if rules.has_voters:
        return voters_state(old, wanted, rules)
    settled = with_completed_reassignment(wanted)
    new = _with_last_known(old, _led(_with_eligible(old, settled, rules, lost), rules, reason), rules)
    if new == old:
        return None
    # A leader whose replicas became fewer begins a new epoch, so that it forgets those that it had.
    return with_epochs(old, new, bump=any(replica not in new.replicas for replica in old.replicas))


def voters_state(old: PartitionState, wanted: PartitionState, rules: PartitionRules) -> PartitionState | None:
    """Return the state that follows where replicas vote; None: it is the same.

    Args:
        old: What is.
        wanted: The same with other replicas, or with the leader and epoch that were announced; `isr` does not count: it
            says which voters live.
        rules: What decides.
    """
    counting = {*(wanted.voters or wanted.replicas), *wanted.former_voters}
    living = tuple(replica for replica in wanted.replicas if replica in rules.live and replica in counting)
    has_leader = wanted.leader in rules.live and wanted.leader in wanted.replicas
    leader = wanted.leader if has_leader else NO_LEADER
    new = attrs.evolve(wanted, leader=leader, isr=living, eligible_leader_replicas=(), last_known_elr=())
    return None if new == old else attrs.evolve(new, partition_epoch=old.partition_epoch + 1)


def elected_state(state: PartitionState, rules: PartitionRules, reason: ElectionReason) -> PartitionState | None:
    """Return the state with another leader, None when nobody may lead, or who leads already."""
    chosen = rules.factory.choose_leader(state, rules.live, _allowed(rules, reason))
    if chosen is None or chosen.leader in {NO_LEADER, state.leader}:
        return None
    return with_epochs(state, attrs.evolve(chosen, last_known_elr=()))


def _allowed(rules: PartitionRules, reason: ElectionReason) -> ElectionReason:
    may_be_unclean = reason in {ElectionReason.OFFLINE, ElectionReason.CONTROLLED_SHUTDOWN}
    return ElectionReason.UNCLEAN if rules.may_lose and may_be_unclean else reason


def wanted_replicas(state: PartitionState) -> tuple[int, ...]:
    """Return the replicas that the partition is to have in the end."""
    return tuple(replica for replica in state.replicas if replica not in state.removing_replicas)


def with_completed_reassignment(state: PartitionState) -> PartitionState:
    """Return the state without the replicas that a reassignment removes, once enough of those that stay are in sync.

    Those that it adds have to be; where it adds fewer than it removes, all that stay: else a replica that is not in
    sync could take the place of one that is. Who is both added and removed, as the plan changed, is not waited for.
    """
    if not (state.adding_replicas or state.removing_replicas):
        return state
    kept = wanted_replicas(state)
    isr = tuple(replica for replica in state.isr if replica in kept)
    adding = [replica for replica in state.adding_replicas if replica in kept]
    awaited = kept if len(adding) < len(state.removing_replicas) else adding
    if not isr or any(replica not in isr for replica in awaited):
        return state
    return attrs.evolve(state, replicas=kept, isr=isr, adding_replicas=(), removing_replicas=())


def _with_eligible(
    old: PartitionState, state: PartitionState, rules: PartitionRules, lost: Collection[int]
) -> PartitionState:
    if not rules.has_eligible or len(state.isr) >= rules.min_insync_replicas:
        return attrs.evolve(state, eligible_leader_replicas=())
    eligible = tuple(
        replica
        for replica in dict.fromkeys((*old.eligible_leader_replicas, *old.isr))
        if replica in state.replicas and replica not in state.isr and replica not in lost
    )
    return attrs.evolve(state, eligible_leader_replicas=eligible)


def _led(state: PartitionState, rules: PartitionRules, reason: ElectionReason) -> PartitionState:
    """Return the state with a leader, chosen if the present one may not go on."""
    if state.leader in state.isr and state.leader in rules.live:
        return state
    return elect(rules.factory, state, rules.live, _allowed(rules, reason))


def _with_last_known(old: PartitionState, state: PartitionState, rules: PartitionRules) -> PartitionState:
    """Return the state with its last leader: kept from the moment when nobody is in sync until somebody leads."""
    if not rules.has_eligible or state.leader != NO_LEADER:
        last: tuple[int, ...] = ()
    elif not state.isr and old.isr and old.leader != NO_LEADER:
        last = (old.leader,)
    else:
        last = old.last_known_elr
    return attrs.evolve(state, last_known_elr=last)
