"""Pure core: ReadShareGroupState, API key 84, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
]


class PartitionData(Message):
    """An item of `ReadStateData.partitions`."""

    partition: int = f.int32()
    leader_epoch: int = f.int32()


class ReadStateData(Message):
    """An item of `ReadShareGroupStateRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class ReadShareGroupStateRequest(Message, key=84, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[ReadStateData] = f.array(ReadStateData)


class StateBatch(Message):
    """An item of `PartitionResult.state_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    delivery_state: int = f.int8()
    delivery_count: int = f.int16()


class PartitionResult(Message):
    """An item of `ReadStateResult.partitions`."""

    partition: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    state_epoch: int = f.int32()
    start_offset: int = f.int64()
    state_batches: list[StateBatch] = f.array(StateBatch)


class ReadStateResult(Message):
    """An item of `ReadShareGroupStateResponse.results`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionResult] = f.array(PartitionResult)


class ReadShareGroupStateResponse(Message, key=84, versions="0", flexible="0+"):
    """The response."""

    results: list[ReadStateResult] = f.array(ReadStateResult)
