"""Pure core: records in `__consumer_offsets` of committed offsets and of classic groups."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "GroupMetadataKey",
    "GroupMetadataValue",
    "LegacyOffsetCommitKey",
    "LegacyOffsetCommitValue",
    "OffsetCommitKey",
    "OffsetCommitValue",
]


class GroupMetadataKey(Message, key=2, versions="0"):
    """GroupMetadataKey: what a record is about."""

    group: str = f.string()


class MemberMetadata(Message):
    """Shared by several fields of `GroupMetadataValue`."""

    member_id: str = f.string()
    group_instance_id: str | None = f.string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = f.string()
    client_host: str = f.string()
    rebalance_timeout: int = f.int32("1+", default=-1, ignorable=True)
    session_timeout: int = f.int32()
    subscription: bytes = f.binary()
    assignment: bytes = f.binary()


class GroupMetadataValue(Message, key=2, versions="0-4", flexible="4+"):
    """GroupMetadataValue: what a record says."""

    protocol_type: str = f.string()
    generation: int = f.int32()
    protocol: str | None = f.string(nullable="0+")
    leader: str | None = f.string(nullable="0+")
    current_state_timestamp: int = f.int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = f.array(MemberMetadata)


class LegacyOffsetCommitKey(Message, key=0, versions="0"):
    """LegacyOffsetCommitKey: what a record is about."""

    group: str = f.string()
    topic: str = f.string()
    partition: int = f.int32()


class LegacyOffsetCommitValue(Message, key=0, versions="0"):
    """LegacyOffsetCommitValue: what a record says."""

    offset: int = f.int64()
    metadata: str = f.string()
    commit_timestamp: int = f.int64()


class OffsetCommitKey(Message, key=1, versions="0"):
    """OffsetCommitKey: what a record is about."""

    group: str = f.string()
    topic: str = f.string()
    partition: int = f.int32()


class OffsetCommitValue(Message, key=1, versions="0-4", flexible="4+"):
    """OffsetCommitValue: what a record says."""

    offset: int = f.int64()
    leader_epoch: int = f.int32("3+", default=-1, ignorable=True)
    metadata: str = f.string()
    commit_timestamp: int = f.int64()
    expire_timestamp: int = f.int64("1", default=-1, ignorable=True)
    topic_id: UUID = f.uuid("4+", tag=0, ignorable=True)
