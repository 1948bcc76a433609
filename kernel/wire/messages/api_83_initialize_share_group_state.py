"""Pure core: InitializeShareGroupState, API key 83, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
]


class PartitionData(Message):
    """An item of `InitializeStateData.partitions`."""

    partition: int = f.int32()
    state_epoch: int = f.int32()
    start_offset: int = f.int64()


class InitializeStateData(Message):
    """An item of `InitializeShareGroupStateRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class InitializeShareGroupStateRequest(Message, key=83, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[InitializeStateData] = f.array(InitializeStateData)


class PartitionResult(Message):
    """An item of `InitializeStateResult.partitions`."""

    partition: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class InitializeStateResult(Message):
    """An item of `InitializeShareGroupStateResponse.results`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionResult] = f.array(PartitionResult)


class InitializeShareGroupStateResponse(Message, key=83, versions="0", flexible="0+"):
    """The response."""

    results: list[InitializeStateResult] = f.array(InitializeStateResult)
