"""Pure core: OffsetCommit, API key 8, versions 2-10."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitResponse",
]


class OffsetCommitRequestPartition(Message):
    """An item of `OffsetCommitRequestTopic.partitions`."""

    partition_index: int = f.int32()
    committed_offset: int = f.int64()
    committed_leader_epoch: int = f.int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = f.string(nullable="2+")


class OffsetCommitRequestTopic(Message):
    """An item of `OffsetCommitRequest.topics`."""

    name: str = f.string("2-9", ignorable=True)
    topic_id: UUID = f.uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = f.array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, key=8, versions="2-10", flexible="8+"):
    """The request."""

    group_id: str = f.string()
    generation_id_or_member_epoch: int = f.int32(default=-1, ignorable=True)
    member_id: str = f.string(ignorable=True)
    group_instance_id: str | None = f.string("7+", nullable="7+", default=None)
    retention_time_ms: int = f.int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = f.array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Message):
    """An item of `OffsetCommitResponseTopic.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class OffsetCommitResponseTopic(Message):
    """An item of `OffsetCommitResponse.topics`."""

    name: str = f.string("2-9", ignorable=True)
    topic_id: UUID = f.uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = f.array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, key=8, versions="2-10", flexible="8+"):
    """The response."""

    throttle_time_ms: int = f.int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = f.array(OffsetCommitResponseTopic)
