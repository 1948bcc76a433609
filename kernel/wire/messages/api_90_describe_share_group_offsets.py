"""Pure core: DescribeShareGroupOffsets, API key 90, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
]


class DescribeShareGroupOffsetsRequestTopic(Message):
    """An item of `DescribeShareGroupOffsetsRequestGroup.topics`."""

    topic_name: str = f.string()
    partitions: list[int] = f.int32s()


class DescribeShareGroupOffsetsRequestGroup(Message):
    """An item of `DescribeShareGroupOffsetsRequest.groups`."""

    group_id: str = f.string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = f.array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Message, key=90, versions="0-1", flexible="0+"):
    """The request."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = f.array(DescribeShareGroupOffsetsRequestGroup)


class DescribeShareGroupOffsetsResponsePartition(Message):
    """An item of `DescribeShareGroupOffsetsResponseTopic.partitions`."""

    partition_index: int = f.int32()
    start_offset: int = f.int64()
    leader_epoch: int = f.int32()
    lag: int = f.int64("1+", default=-1, ignorable=True)
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Message):
    """An item of `DescribeShareGroupOffsetsResponseGroup.topics`."""

    topic_name: str = f.string()
    topic_id: UUID = f.uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = f.array(DescribeShareGroupOffsetsResponsePartition)


class DescribeShareGroupOffsetsResponseGroup(Message):
    """An item of `DescribeShareGroupOffsetsResponse.groups`."""

    group_id: str = f.string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = f.array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Message, key=90, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = f.array(DescribeShareGroupOffsetsResponseGroup)
