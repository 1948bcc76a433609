"""Pure core: OffsetFetch, API key 9, versions 1-10."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchResponse",
]


class OffsetFetchRequestTopic(Message):
    """An item of `OffsetFetchRequest.topics`."""

    name: str = f.string()
    partition_indexes: list[int] = f.int32s()


class OffsetFetchRequestTopics(Message):
    """An item of `OffsetFetchRequestGroup.topics`."""

    name: str = f.string("8-9", ignorable=True)
    topic_id: UUID = f.uuid("10+", ignorable=True)
    partition_indexes: list[int] = f.int32s()


class OffsetFetchRequestGroup(Message):
    """An item of `OffsetFetchRequest.groups`."""

    group_id: str = f.string()
    member_id: str | None = f.string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = f.int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = f.array(OffsetFetchRequestTopics, nullable="8+")


class OffsetFetchRequest(Message, key=9, versions="1-10", flexible="6+"):
    """The request."""

    group_id: str = f.string("1-7")
    topics: list[OffsetFetchRequestTopic] | None = f.array(OffsetFetchRequestTopic, "1-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = f.array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = f.boolean("7+")


class OffsetFetchResponsePartition(Message):
    """An item of `OffsetFetchResponseTopic.partitions`."""

    partition_index: int = f.int32()
    committed_offset: int = f.int64()
    committed_leader_epoch: int = f.int32("5+", default=-1, ignorable=True)
    metadata: str | None = f.string(nullable="1-7")
    error_code: int = f.int16()


class OffsetFetchResponseTopic(Message):
    """An item of `OffsetFetchResponse.topics`."""

    name: str = f.string()
    partitions: list[OffsetFetchResponsePartition] = f.array(OffsetFetchResponsePartition)


class OffsetFetchResponsePartitions(Message):
    """An item of `OffsetFetchResponseTopics.partitions`."""

    partition_index: int = f.int32()
    committed_offset: int = f.int64()
    committed_leader_epoch: int = f.int32(default=-1, ignorable=True)
    metadata: str | None = f.string(nullable="8+")
    error_code: int = f.int16()


class OffsetFetchResponseTopics(Message):
    """An item of `OffsetFetchResponseGroup.topics`."""

    name: str = f.string("8-9", ignorable=True)
    topic_id: UUID = f.uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = f.array(OffsetFetchResponsePartitions)


class OffsetFetchResponseGroup(Message):
    """An item of `OffsetFetchResponse.groups`."""

    group_id: str = f.string()
    topics: list[OffsetFetchResponseTopics] = f.array(OffsetFetchResponseTopics)
    error_code: int = f.int16()


class OffsetFetchResponse(Message, key=9, versions="1-10", flexible="6+"):
    """The response."""

    throttle_time_ms: int = f.int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = f.array(OffsetFetchResponseTopic, "1-7")
    error_code: int = f.int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = f.array(OffsetFetchResponseGroup, "8+")
