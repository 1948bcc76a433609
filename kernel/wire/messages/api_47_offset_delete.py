"""Pure core: OffsetDelete, API key 47, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
]


class OffsetDeleteRequestPartition(Message):
    """An item of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: int = f.int32()


class OffsetDeleteRequestTopic(Message):
    """An item of `OffsetDeleteRequest.topics`."""

    name: str = f.string()
    partitions: list[OffsetDeleteRequestPartition] = f.array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Message, key=47, versions="0"):
    """The request."""

    group_id: str = f.string()
    topics: list[OffsetDeleteRequestTopic] = f.array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Message):
    """An item of `OffsetDeleteResponseTopic.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class OffsetDeleteResponseTopic(Message):
    """An item of `OffsetDeleteResponse.topics`."""

    name: str = f.string()
    partitions: list[OffsetDeleteResponsePartition] = f.array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Message, key=47, versions="0"):
    """The response."""

    error_code: int = f.int16()
    throttle_time_ms: int = f.int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = f.array(OffsetDeleteResponseTopic)
