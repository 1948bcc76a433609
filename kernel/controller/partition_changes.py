"""Pure core: who leads a partition after something happened: an election was asked for, a broker came, went or stops.

The election plugin chooses; `partition_states` says what else follows, and what is here writes the records.
`leader_epoch` grows whenever the leader changes or may have lost records, `partition_epoch` with every change.

*Source:* Kafka's `PartitionChangeBuilder` and `ReplicationControlManager.electLeaders`, as observed on 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import ElectionReason, is_among_replicas
from ..errors import ErrorCode, KafkaError
from ..metadata.election_answers import elections_failed
from ..metadata.image import NO_LEADER
from ..metadata.record_makers import changed_partition_record
from ..wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from .partition_states import (
    elected_state,
    next_state,
    on_working_directories,
    rules_of,
    with_epochs,
    without_replicas,
)
from .partition_walks import partitions_in_steps, unbalanced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.election import PartitionState
    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord
    from .partition_states import PartitionRules
    from .rules import ControllerRules, Steps

ELECTIONS_MAX: Final = 1000
"""How many leaders one operation moves of itself; their records go into one batch."""

_REASONS: Final = {0: ElectionReason.PREFERRED, 1: ElectionReason.UNCLEAN}
_FAILURES: Final = {
    ElectionReason.PREFERRED: (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "The preferred leader was not available.",
    ),
    ElectionReason.UNCLEAN: (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}
_VOTERS_CHOOSE: Final = {
    ElectionReason.PREFERRED: "The replicas of this partition choose their leader among themselves, by majority vote.",
    ElectionReason.UNCLEAN: (
        "The replicas of this partition choose their leader among themselves, by majority vote: who lacks committed "
        "records cannot win, so there is no unclean election. It is led again when a majority of them is there."
    ),
}
_NOT_NEEDED: Final = "Leader election not needed for topic partition."


def elect_leaders(
    image: MetadataImage, rules: ControllerRules, request: ElectLeadersRequest
) -> Steps[ElectLeadersResponse]:
    """Elect leaders for partitions, or for all that need it."""
    if request.topic_partitions == []:
        return CoordinatorResult((), ElectLeadersResponse())  # whatever the type is: nobody asks for it
    reason = _REASONS.get(request.election_type)
    if reason is None:
        message = f"Unknown election type {request.election_type}"
        return CoordinatorResult((), elections_failed(request, ErrorCode.INVALID_REQUEST, message))
    config = rules.config_at(image)
    live = image.live_brokers()
    records: list[MetadataRecord] = []
    results = {topic.topic: ReplicaElectionResult(topic=topic.topic) for topic in request.topic_partitions or ()}
    for name, partition in _wanted(image, rules, request):
        yield
        result = results.setdefault(name, ReplicaElectionResult(topic=name))
        answer = PartitionResult(partition_id=partition, error_message=None)
        try:
            records.append(_elect_one(image, rules, config, live, name, partition, reason))
        except KafkaError as error:
            if request.topic_partitions is None and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                continue
            answer.error_code, answer.error_message = error.code, error.detail
        result.partition_result.append(answer)
    return CoordinatorResult(records, ElectLeadersResponse(replica_election_results=list(results.values())))


def _wanted(image: MetadataImage, rules: ControllerRules, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    """Iterate over what is asked for; of all partitions, those whose leaders are chosen here."""
    if request.topic_partitions is None:
        for topic in image.topics_by_name.values():
            factory = rules.elections.get(topic.election)
            if factory is None or not is_among_replicas(factory):
                for index in range(len(topic.partitions)):
                    yield topic.name, index
        return
    for asked in request.topic_partitions:
        for index in asked.partitions:
            yield asked.topic, index


def _elect_one(
    image: MetadataImage,
    rules: ControllerRules,
    config: BrokerConfig,
    live: list[int],
    name: str,
    partition: int,
    reason: ElectionReason,
) -> MetadataRecord:
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= partition < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition}")
    state = topic.partitions[partition]
    is_settled = state.leader != NO_LEADER if reason is ElectionReason.UNCLEAN else state.leader == state.replicas[0]
    if is_settled:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    topic_rules = rules_of(image, config, topic, rules.election(topic.election), live)
    changed = elected_state(state, on_working_directories(topic_rules, image, topic, partition), reason)
    if changed is None:
        code, message = _FAILURES[reason]
        raise KafkaError(code, _VOTERS_CHOOSE[reason] if topic_rules.has_voters else message)
    return changed_partition_record(topic, partition, changed)


def broker_gone(
    image: MetadataImage,
    rules: ControllerRules,
    broker_id: int,
    reason: ElectionReason,
    *,
    may_have_lost: bool = False,
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that take a broker out of the leadership and the in-sync replicas of all its partitions.

    Yields after each partition, and now and then among those of others.

    Args:
        image: The image with the broker still alive or not.
        rules: The controller's collaborators.
        broker_id: The broker that is fenced, unregistered or stops.
        reason: OFFLINE or CONTROLLED_SHUTDOWN.
        may_have_lost: Whether it may have lost records, as after an unclean shutdown: then it is not eligible either.
    """
    gone = (broker_id,)
    lost = gone if may_have_lost else ()

    def change(topic_rules: PartitionRules, state: PartitionState) -> PartitionState | None:
        wanted = (
            _without(state, broker_id, topic_rules) if may_have_lost else without_replicas(state, gone, topic_rules)
        )
        if wanted == state and state.leader != broker_id:
            return None
        return next_state(state, wanted, topic_rules, reason, lost=lost)

    live = [broker for broker in image.live_brokers() if broker != broker_id]
    return (yield from _change_all(image, rules, broker_id, live, change))


def directories_gone(
    image: MetadataImage, rules: ControllerRules, broker_id: int, directories: Collection[UUID]
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that take a broker out of the leadership and the in-sync replicas of what lay in directories.

    Yields after each partition, and now and then among those of others.

    Args:
        image: The image in which the broker has lost them already.
        rules: The controller's collaborators.
        broker_id: The broker.
        directories: Those that failed.

    *Source:* KIP-858; Kafka's `ReplicationControlManager.handleDirectoriesOffline`.
    """

    def change(partition_rules: PartitionRules, state: PartitionState) -> PartitionState | None:
        wanted = without_replicas(state, (broker_id,), partition_rules)
        if wanted == state and state.leader != broker_id:
            return None
        return next_state(state, wanted, partition_rules, ElectionReason.OFFLINE)

    live = [broker for broker in image.live_brokers() if broker != broker_id]
    return (yield from _change_all(image, rules, broker_id, live, change, directories))


def _without(state: PartitionState, broker_id: int, rules: PartitionRules) -> PartitionState:
    """Return the state in which a broker is neither in sync nor eligible."""
    eligible = tuple(other for other in state.eligible_leader_replicas if other != broker_id)
    return without_replicas(attrs.evolve(state, eligible_leader_replicas=eligible), (broker_id,), rules)


def broker_back(
    image: MetadataImage, rules: ControllerRules, broker_id: int, *, restarted: bool, may_have_lost: bool = False
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that give leaders to partitions which had none and a replica on this broker.

    Yields after each partition, and now and then among those of others.

    Args:
        image: The image before the broker is back, or with its new registration.
        rules: The controller's collaborators.
        broker_id: The broker.
        restarted: Whether it is another process than before: then the partitions that it led get a new leader epoch,
            as it may have lost records that were not flushed.
        may_have_lost: Whether it did not stop cleanly: others that are in sync or eligible have more than it, and lead
            as soon as they are there.
    """

    def change(topic_rules: PartitionRules, state: PartitionState) -> PartitionState | None:
        if topic_rules.has_voters:
            return next_state(state, state, topic_rules, ElectionReason.OFFLINE)
        if may_have_lost and any(other != broker_id for other in (*state.isr, *state.eligible_leader_replicas)):
            return next_state(
                state, _without(state, broker_id, topic_rules), topic_rules, ElectionReason.OFFLINE, lost=(broker_id,)
            )
        if broker_id not in topic_rules.live and broker_id in {*state.isr, state.leader}:
            # The directory is gone in which its log was: it may be there again, or the log begins anew in another.
            return next_state(
                state, without_replicas(state, (broker_id,), topic_rules), topic_rules, ElectionReason.OFFLINE
            )
        if state.leader == broker_id:
            return with_epochs(state, state, bump=True) if restarted else None
        if state.leader != NO_LEADER:
            return None
        return elected_state(state, topic_rules, ElectionReason.OFFLINE)

    live = sorted({*image.live_brokers(), broker_id})
    return (yield from _change_all(image, rules, broker_id, live, change))


def balance_leaders(image: MetadataImage, rules: ControllerRules) -> Steps[bool]:
    """Elect preferred leaders where another one leads; the response tells whether some are left for the next time."""
    live = image.live_brokers()
    config = rules.config_at(image)
    records: list[MetadataRecord] = []
    for found in unbalanced(image):
        yield
        if found is None:
            continue
        topic, index = found
        factory = rules.elections.get(topic.election)
        if factory is None:
            continue
        topic_rules = on_working_directories(rules_of(image, config, topic, factory, live), image, topic, index)
        changed = elected_state(topic.partitions[index], topic_rules, ElectionReason.PREFERRED)
        if changed is not None:
            records.append(changed_partition_record(topic, index, changed))
        if len(records) >= ELECTIONS_MAX:
            return CoordinatorResult(records, True)
    return CoordinatorResult(records, False)


def _change_all(
    image: MetadataImage,
    rules: ControllerRules,
    broker_id: int,
    live: Collection[int],
    change: Callable[[PartitionRules, PartitionState], PartitionState | None],
    directories: Collection[UUID] | None = None,
) -> Generator[None, None, list[MetadataRecord]]:
    """Return the records of what `change` makes of each partition with a replica on a broker.

    With `directories`, only of those whose replica lies in one of them.
    A topic whose election no active plugin offers stays as it is: its brokers keep it offline.
    """
    records: list[MetadataRecord] = []
    config = rules.config_at(image)
    last: tuple[TopicImage, PartitionRules] | None = None
    for found in partitions_in_steps(image, lambda state: broker_id in state.replicas):
        yield
        if found is None:
            continue
        topic, index = found
        factory = rules.elections.get(topic.election)
        if factory is None or not _is_meant(topic, index, broker_id, directories):
            continue
        if last is None or last[0] is not topic:
            last = topic, rules_of(image, config, topic, factory, live)
        changed = change(on_working_directories(last[1], image, topic, index), topic.partitions[index])
        if changed is not None:
            records.append(changed_partition_record(topic, index, changed))
    return records


def _is_meant(topic: TopicImage, index: int, broker_id: int, directories: Collection[UUID] | None) -> bool:
    if directories is None:
        return True
    place = topic.partitions[index].replicas.index(broker_id)
    return topic.directories[index][place] in directories
