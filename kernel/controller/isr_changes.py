"""Pure core: AlterPartition: a partition's leader asks for another in-sync set; the answer says what it is now.

Each partition is answered for itself, in this order:

| refused | because |
| --- | --- |
| UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION | there is no such partition (any more) |
| NOT_CONTROLLER | the leader knows a later epoch than this controller: it asked an old one |
| FENCED_LEADER_EPOCH | the partition has a leader epoch after the asker's |
| INVALID_REQUEST | the asker does not lead it; the set lacks the leader, or has a broker twice or without a replica |
| INVALID_UPDATE_VERSION | the partition changed since: the leader is to wait for the metadata |
| INELIGIBLE_REPLICA | a broker in it is fenced, about to stop (KIP-841), or another process by now (KIP-903) |

Where replicas vote, a leader does not ask, but tells that it leads (`leader_announcements`).

A set with which a reassignment is done ends it, and may give the partition another leader: it is made, and the asker is
told NEW_LEADER_ELECTED.

*Source:* KIP-497; ReplicationControlManager.alterPartition of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import NO_BROKER_EPOCH, ElectionReason
from ..errors import ErrorCode, KafkaError
from ..metadata.record_makers import changed_partition_record
from ..wire.messages.api_56_alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from .partition_states import next_state, on_working_directories, rules_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..contracts.election import PartitionState
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from ..wire.messages.api_56_alter_partition import AlterPartitionRequest, PartitionData
    from .rules import ControllerRules, Steps


def alter_partition(
    image: MetadataImage, rules: ControllerRules, request: AlterPartitionRequest
) -> Steps[AlterPartitionResponse]:
    """Change the in-sync sets that a leader asks for."""
    known = image.brokers.get(request.broker_id)
    if known is None or known.broker_epoch != request.broker_epoch:
        return CoordinatorResult((), AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    records: list[MetadataRecord] = []
    seen: set[tuple[UUID, int]] = set()
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            yield
            answer = ResponsePartitionData(partition_index=asked.partition_index)
            answers.append(answer)
            place = (topic.topic_id, asked.partition_index)
            if place in seen:
                answer.error_code = ErrorCode.INVALID_REQUEST
                continue
            seen.add(place)
            try:
                records += _alter(image, rules, request.broker_id, topic.topic_id, asked, answer)
            except KafkaError as error:
                answer.error_code = error.code
        topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=answers))
    return CoordinatorResult(records, AlterPartitionResponse(topics=topics))


def _alter(
    image: MetadataImage,
    rules: ControllerRules,
    broker_id: int,
    topic_id: UUID,
    asked: PartitionData,
    answer: ResponsePartitionData,
) -> list[MetadataRecord]:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    index = asked.partition_index
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    state = topic.partitions[index]
    topic_rules = rules_of(image, rules.config_at(image), topic, rules.election(topic.election), image.live_brokers())
    topic_rules = on_working_directories(topic_rules, image, topic, index)
    if topic_rules.has_voters:
        from .leader_announcements import announced_state  # only where replicas vote

        following = announced_state(state, broker_id, asked, topic_rules)
    else:
        broker_epochs = _wanted(asked)
        _check(state, broker_id, asked)
        _check_members(image, state, asked, broker_epochs)
        wanted = attrs.evolve(state, isr=tuple(broker_epochs))
        following = next_state(state, wanted, topic_rules, ElectionReason.REASSIGNMENT)
    records: list[MetadataRecord] = []
    if following is not None:
        records.append(changed_partition_record(topic, index, following))
    changed = following or state
    if changed.leader != broker_id:
        answer.error_code = ErrorCode.NEW_LEADER_ELECTED
        return records
    answer.leader_id, answer.leader_epoch = changed.leader, changed.leader_epoch
    answer.isr, answer.partition_epoch = list(changed.isr), changed.partition_epoch
    return records


def _wanted(asked: PartitionData) -> dict[int, int]:
    """Return the epochs of the brokers that the set is to have, in its order.

    Raises:
        KafkaError: INVALID_REQUEST: one is named twice.
    """
    named = [(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs]
    named += [(broker_id, NO_BROKER_EPOCH) for broker_id in asked.new_isr]  # version 2
    broker_epochs = dict(named)
    if len(broker_epochs) != len(named):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return broker_epochs


def _check(state: PartitionState, broker_id: int, asked: PartitionData) -> None:
    """See that the asker leads the partition as it is now.

    Raises:
        KafkaError: It does not.
    """
    if asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < state.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != state.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < state.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _check_members(
    image: MetadataImage, state: PartitionState, asked: PartitionData, broker_epochs: Mapping[int, int]
) -> None:
    """See that a set may be the partition's in-sync set.

    Raises:
        KafkaError: It may not.
    """
    is_possible = state.leader in broker_epochs and broker_epochs.keys() <= set(state.replicas)
    if not is_possible or asked.leader_recovery_state:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for broker_id, broker_epoch in broker_epochs.items():
        known = image.brokers.get(broker_id)
        if known is None or not known.is_live or broker_epoch not in (NO_BROKER_EPOCH, known.broker_epoch):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
