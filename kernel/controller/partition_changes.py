"""Pure core: who leads a partition after something happened: an election was asked for, a broker came, went or stops.

The election plugin chooses; what is here raises the epochs and writes the records. `leader_epoch` grows whenever the
leader changes or may have lost records, `partition_epoch` with every change.

*Source:* Kafka's `PartitionChangeBuilder` and `ReplicationControlManager.electLeaders`, as observed on 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import ElectionReason
from ..errors import ErrorCode, KafkaError
from ..metadata.election_answers import elections_failed
from ..metadata.record_makers import changed_partition_record
from ..wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator

    from ..config.broker import BrokerConfig
    from ..contracts.election import ElectionFactory, PartitionState
    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps

NO_LEADER: Final = -1

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
_NOT_NEEDED: Final = "Leader election not needed for topic partition."


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
    for name, partition in _wanted(image, request):
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


def _wanted(image: MetadataImage, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for topic in image.topics_by_name.values():
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
    chosen = rules.election(topic.election).choose_leader(state, live, reason)
    if chosen is None or chosen.leader == state.leader:
        raise KafkaError(*_FAILURES[reason])
    return changed_partition_record(topic, partition, with_epochs(state, chosen))


def broker_gone(
    image: MetadataImage, rules: ControllerRules, broker_id: int, reason: ElectionReason
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that take a broker out of the leadership and the in-sync replicas of all its partitions.

    Yields after each partition.

    Args:
        image: The image with the broker still alive or not.
        rules: The controller's collaborators.
        broker_id: The broker that is fenced, unregistered or stops.
        reason: OFFLINE or CONTROLLED_SHUTDOWN.
    """
    live = [broker for broker in image.live_brokers() if broker != broker_id]

    def change(factory: ElectionFactory, state: PartitionState) -> PartitionState | None:
        if state.leader != broker_id and broker_id not in state.isr:
            return None
        # The last in-sync replica stays in the set: it alone has every record, and may lead when it is back.
        isr = tuple(replica for replica in state.isr if replica != broker_id) or state.isr
        without = attrs.evolve(state, isr=isr)
        changed = elect(factory, without, live, reason) if state.leader == broker_id else without
        return None if changed == state else with_epochs(state, changed)

    return (yield from _change_all(image, rules, broker_id, change))


def broker_back(
    image: MetadataImage, rules: ControllerRules, broker_id: int, *, restarted: bool
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that give leaders to partitions which had none and a replica on this broker.

    Yields after each partition.

    Args:
        image: The image before the broker is back.
        rules: The controller's collaborators.
        broker_id: The broker.
        restarted: Whether it is another process than before: then the partitions that it led get a new leader epoch,
            as it may have lost records that were not flushed.
    """
    live = sorted({*image.live_brokers(), broker_id})

    def change(factory: ElectionFactory, state: PartitionState) -> PartitionState | None:
        if state.leader == broker_id:
            return with_epochs(state, state, bump=True) if restarted else None
        if state.leader != NO_LEADER:
            return None
        chosen = factory.choose_leader(state, live, ElectionReason.OFFLINE)
        return None if chosen is None or chosen.leader == NO_LEADER else with_epochs(state, chosen)

    return (yield from _change_all(image, rules, broker_id, change))


def _change_all(
    image: MetadataImage,
    rules: ControllerRules,
    broker_id: int,
    change: Callable[[ElectionFactory, PartitionState], PartitionState | None],
) -> Generator[None, None, list[MetadataRecord]]:
    """Return the records of what `change` makes of each partition with a replica on a broker, by topic name.

    A topic whose election no active plugin offers stays as it is: its brokers keep it offline.
    """
    records: list[MetadataRecord] = []
    for _, topic in sorted(image.topics_by_name.items()):
        factory = rules.elections.get(topic.election)
        if factory is not None:
            records += yield from _change_topic(topic, broker_id, factory, change)
    return records


def _change_topic(
    topic: TopicImage,
    broker_id: int,
    factory: ElectionFactory,
    change: Callable[[ElectionFactory, PartitionState], PartitionState | None],
) -> Generator[None, None, list[MetadataRecord]]:
    records: list[MetadataRecord] = []
    for index, state in enumerate(topic.partitions):
        yield
        if broker_id in state.replicas:
            changed = change(factory, state)
            if changed is not None:
                records.append(changed_partition_record(topic, index, changed))
    return records
