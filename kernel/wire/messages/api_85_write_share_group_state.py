"""Pure core: WriteShareGroupState, API key 85, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
]


class StateBatch(Message):
    """An item of `PartitionData.state_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    delivery_state: int = f.int8()
    delivery_count: int = f.int16()


class PartitionData(Message):
    """An item of `WriteStateData.partitions`."""

    partition: int = f.int32()
    state_epoch: int = f.int32()
    leader_epoch: int = f.int32()
    start_offset: int = f.int64()
    delivery_complete_count: int = f.int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = f.array(StateBatch)


class WriteStateData(Message):
    """An item of `WriteShareGroupStateRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class WriteShareGroupStateRequest(Message, key=85, versions="0-1", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[WriteStateData] = f.array(WriteStateData)


class PartitionResult(Message):
    """An item of `WriteStateResult.partitions`."""

    partition: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class WriteStateResult(Message):
    """An item of `WriteShareGroupStateResponse.results`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionResult] = f.array(PartitionResult)


class WriteShareGroupStateResponse(Message, key=85, versions="0-1", flexible="0+"):
    """The response."""

    results: list[WriteStateResult] = f.array(WriteStateResult)
