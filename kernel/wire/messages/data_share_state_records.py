"""Pure core: records in `__share_group_state` (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ShareSnapshotKey",
    "ShareSnapshotValue",
    "ShareUpdateKey",
    "ShareUpdateValue",
]


class ShareSnapshotKey(Message, key=0, versions="0"):
    """ShareSnapshotKey: what a record is about."""

    group_id: str = f.string()
    topic_id: UUID = f.uuid()
    partition: int = f.int32()


class StateBatch(Message):
    """An item of `ShareSnapshotValue.state_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    delivery_state: int = f.int8()
    delivery_count: int = f.int16()


class ShareSnapshotValue(Message, key=0, versions="0", flexible="0+"):
    """ShareSnapshotValue: what a record says."""

    snapshot_epoch: int = f.int32()
    state_epoch: int = f.int32()
    leader_epoch: int = f.int32()
    start_offset: int = f.int64()
    delivery_complete_count: int = f.int32(default=-1, tag=0)
    create_timestamp: int = f.int64()
    write_timestamp: int = f.int64()
    state_batches: list[StateBatch] = f.array(StateBatch)


class ShareUpdateKey(Message, key=1, versions="0"):
    """ShareUpdateKey: what a record is about."""

    group_id: str = f.string()
    topic_id: UUID = f.uuid()
    partition: int = f.int32()


class ShareUpdateValueStateBatch(Message):
    """An item of `ShareUpdateValue.state_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    delivery_state: int = f.int8()
    delivery_count: int = f.int16()


class ShareUpdateValue(Message, key=1, versions="0", flexible="0+"):
    """ShareUpdateValue: what a record says."""

    snapshot_epoch: int = f.int32()
    leader_epoch: int = f.int32()
    start_offset: int = f.int64()
    delivery_complete_count: int = f.int32(default=-1, tag=0)
    state_batches: list[ShareUpdateValueStateBatch] = f.array(ShareUpdateValueStateBatch)
