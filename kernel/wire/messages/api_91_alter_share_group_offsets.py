"""Pure core: AlterShareGroupOffsets, API key 91, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsResponse",
]


class AlterShareGroupOffsetsRequestPartition(Message):
    """An item of `AlterShareGroupOffsetsRequestTopic.partitions`."""

    partition_index: int = f.int32()
    start_offset: int = f.int64()


class AlterShareGroupOffsetsRequestTopic(Message):
    """An item of `AlterShareGroupOffsetsRequest.topics`."""

    topic_name: str = f.string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = f.array(AlterShareGroupOffsetsRequestPartition)


class AlterShareGroupOffsetsRequest(Message, key=91, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = f.array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponsePartition(Message):
    """An item of `AlterShareGroupOffsetsResponseTopic.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Message):
    """An item of `AlterShareGroupOffsetsResponse.responses`."""

    topic_name: str = f.string()
    topic_id: UUID = f.uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = f.array(AlterShareGroupOffsetsResponsePartition)


class AlterShareGroupOffsetsResponse(Message, key=91, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = f.array(AlterShareGroupOffsetsResponseTopic)
