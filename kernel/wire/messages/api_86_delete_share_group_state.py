"""Pure core: DeleteShareGroupState, API key 86, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
]


class PartitionData(Message):
    """An item of `DeleteStateData.partitions`."""

    partition: int = f.int32()


class DeleteStateData(Message):
    """An item of `DeleteShareGroupStateRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class DeleteShareGroupStateRequest(Message, key=86, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[DeleteStateData] = f.array(DeleteStateData)


class PartitionResult(Message):
    """An item of `DeleteStateResult.partitions`."""

    partition: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class DeleteStateResult(Message):
    """An item of `DeleteShareGroupStateResponse.results`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionResult] = f.array(PartitionResult)


class DeleteShareGroupStateResponse(Message, key=86, versions="0", flexible="0+"):
    """The response."""

    results: list[DeleteStateResult] = f.array(DeleteStateResult)
