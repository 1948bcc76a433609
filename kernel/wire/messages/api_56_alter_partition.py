"""Pure core: AlterPartition, API key 56, versions 2-3."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterPartitionRequest",
    "AlterPartitionResponse",
]


class BrokerState(Message):
    """An item of `PartitionData.new_isr_with_epochs`."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64(default=-1)


class PartitionData(Message):
    """An item of `TopicData.partitions`."""

    partition_index: int = f.int32()
    leader_epoch: int = f.int32()
    new_isr: list[int] = f.int32s("2")
    new_isr_with_epochs: list[BrokerState] = f.array(BrokerState, "3+")
    leader_recovery_state: int = f.int8()
    partition_epoch: int = f.int32()


class TopicData(Message):
    """An item of `AlterPartitionRequest.topics`."""

    topic_id: UUID = f.uuid(ignorable=True)
    partitions: list[PartitionData] = f.array(PartitionData)


class AlterPartitionRequest(Message, key=56, versions="2-3", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64(default=-1)
    topics: list[TopicData] = f.array(TopicData)


class ResponsePartitionData(Message):
    """An item of `ResponseTopicData.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32()
    isr: list[int] = f.int32s()
    leader_recovery_state: int = f.int8(ignorable=True)
    partition_epoch: int = f.int32()


class ResponseTopicData(Message):
    """An item of `AlterPartitionResponse.topics`."""

    topic_id: UUID = f.uuid(ignorable=True)
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData)


class AlterPartitionResponse(Message, key=56, versions="2-3", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    topics: list[ResponseTopicData] = f.array(ResponseTopicData)
