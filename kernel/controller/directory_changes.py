"""Pure core: in which log directory each broker's replicas lie, as the brokers tell it.

A controller that knows it can take exactly those replicas for lost whose directory failed. A new partition's directory
is known beforehand where a broker has only one; otherwise, and after a move, the broker tells.

*Source:* KIP-858, AssignReplicasToDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import ElectionReason, is_among_replicas
from ..errors import ErrorCode
from ..metadata.features import has_cordons
from ..metadata.image import NO_LEADER, UNASSIGNED_DIRECTORY
from ..metadata.record_makers import broker_record, partition_record
from ..types import LOST_DIRECTORY
from ..wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from .brokers import find_broker
from .partition_changes import directories_gone
from .partition_states import (
    directory_works,
    elected_state,
    next_state,
    on_working_directories,
    rules_of,
    with_epochs,
    without_replicas,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence
    from uuid import UUID

    from ..contracts.election import PartitionState
    from ..metadata.image import BrokerImage, MetadataImage
    from ..metadata.records import MetadataRecord
    from ..wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsRequest
    from .rules import ControllerRules, Steps


def assign_replicas_to_dirs(
    image: MetadataImage, rules: ControllerRules, request: AssignReplicasToDirsRequest
) -> Steps[AssignReplicasToDirsResponse]:
    """Take note of the directories of a broker's replicas; each partition is answered for itself.

    A replica in none (`LOST_DIRECTORY`), or in one that the broker has no more, leads nothing and is not in sync.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`.
    """
    find_broker(image, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    answers = []
    for directory in request.directories:
        answer = ResponseDirectoryData(id=directory.id)
        answers.append(answer)
        for asked in directory.topics:
            told = ResponseTopicData(topic_id=asked.topic_id)
            answer.topics.append(told)
            for partition in asked.partitions:
                yield
                index = partition.partition_index
                code, record = _assign(image, rules, request.broker_id, asked.topic_id, index, directory.id)
                records += record
                told.partitions.append(ResponsePartitionData(partition_index=index, error_code=code))
    return CoordinatorResult(records, AssignReplicasToDirsResponse(directories=answers))


def _assign(
    image: MetadataImage, rules: ControllerRules, broker_id: int, topic_id: UUID, index: int, directory: UUID
) -> tuple[ErrorCode, Sequence[MetadataRecord]]:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, ()
    if not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ()
    state = topic.partitions[index]
    if broker_id not in state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, ()
    broker, before = image.brokers.get(broker_id), directory_of(image, topic_id, index, broker_id)
    is_lost = not directory_works(broker, directory)
    if before == directory and not is_lost:
        return ErrorCode.NONE, ()
    known, place = topic.directories[index], state.replicas.index(broker_id)
    changed = (*known[:place], directory, *known[place + 1 :])
    following: PartitionState | None = None
    factory = rules.elections.get(topic.election)
    has_voters = factory is not None and is_among_replicas(factory)
    # Where its directory is gone, a replica has begun anew in another: it may have nothing of what made it eligible.
    is_anew = before != LOST_DIRECTORY and not is_lost and not directory_works(broker, before)
    is_unfit = is_anew and broker_id in state.eligible_leader_replicas
    if factory is not None and (is_lost or is_unfit or has_voters or state.leader == NO_LEADER):
        moved = attrs.evolve(topic, directories=(*topic.directories[:index], changed, *topic.directories[index + 1 :]))
        live, config = image.live_brokers(), rules.config_at(image)
        topic_rules = rules_of(image, config, topic, factory, live)
        own_rules = on_working_directories(topic_rules, image, moved, index)
        if is_lost or has_voters:
            wanted = without_replicas(state, (broker_id,), own_rules)
            following = next_state(state, wanted, own_rules, ElectionReason.OFFLINE)
        elif is_unfit:
            following = next_state(state, state, own_rules, ElectionReason.OFFLINE, lost=(broker_id,))
        else:  # perhaps nobody leads as the directory that it had before failed
            following = elected_state(state, own_rules, ElectionReason.OFFLINE)
    if before == directory and following is None:
        return ErrorCode.NONE, ()
    return ErrorCode.NONE, (partition_record(topic_id, index, following or with_epochs(state, state), changed),)


def own_directories_failed(
    image: MetadataImage, rules: ControllerRules, broker_id: int, broker_epoch: int, failed: Collection[UUID]
) -> Steps[None]:
    """Take note of directories of the controller's own node, which sends no heartbeats; see `directories_failed`.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`.
    """
    broker = find_broker(image, broker_id, broker_epoch)
    records = yield from directories_failed(image, rules, broker, failed)
    return CoordinatorResult(records, None)


def directories_failed(
    image: MetadataImage, rules: ControllerRules, broker: BrokerImage, failed: Collection[UUID]
) -> Generator[None, None, list[MetadataRecord]]:
    """Return records that take directories from a broker, and what lay in them from its lead; none of known news.

    Yields after each partition.
    """
    lost = frozenset(failed).intersection(broker.log_dirs)
    if not lost:
        return []
    left = tuple(each for each in broker.log_dirs if each not in lost)
    # Without any it would be one that told of none, of whose directories nothing is known.
    changed = attrs.evolve(broker, log_dirs=left or (LOST_DIRECTORY,))
    after = attrs.evolve(image, brokers={**image.brokers, broker.broker_id: changed})
    gone = lost if left else lost | {UNASSIGNED_DIRECTORY}  # wherever it is, it is in none that works
    moved = yield from directories_gone(after, rules, broker.broker_id, gone)
    return [*moved, broker_record(changed)]


def own_directories_cordoned(
    image: MetadataImage, broker_id: int, broker_epoch: int, cordoned: Collection[UUID]
) -> CoordinatorResult[MetadataRecord, None]:
    """Take note of which directories of the controller's own node are cordoned; see `directories_cordoned`.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`.
    """
    return CoordinatorResult(directories_cordoned(image, find_broker(image, broker_id, broker_epoch), cordoned), None)


def directories_cordoned(
    image: MetadataImage, broker: BrokerImage, cordoned: Collection[UUID] | None
) -> list[MetadataRecord]:
    """Return the record that says which directories of a broker get no new replicas; none of known news.

    Nothing is taken note of while `metadata.version` has no place for it.

    Args:
        image: The current image.
        broker: The broker.
        cordoned: All of its directories that are cordoned; None where it does not say.

    *Source:* KIP-1066.
    """
    if cordoned is None or not has_cordons(image.features) or set(cordoned) == set(broker.cordoned_log_dirs):
        return []
    return [broker_record(attrs.evolve(broker, cordoned_log_dirs=tuple(cordoned)))]


def directory_of(image: MetadataImage, topic_id: UUID, partition: int, broker_id: int) -> UUID:
    """Return the directory that the metadata has for a broker's replica; `UNASSIGNED_DIRECTORY` when it has none."""
    topic = image.topics_by_id.get(topic_id)
    if topic is None or partition >= len(topic.partitions):
        return UNASSIGNED_DIRECTORY
    known = dict(zip(topic.partitions[partition].replicas, topic.directories[partition], strict=True))
    return known.get(broker_id, UNASSIGNED_DIRECTORY)
