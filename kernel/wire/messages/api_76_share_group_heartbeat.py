"""Pure core: ShareGroupHeartbeat, API key 76, versions 1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
]


class ShareGroupHeartbeatRequest(Message, key=76, versions="1", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    member_id: str = f.string()
    member_epoch: int = f.int32()
    rack_id: str | None = f.string(nullable="1+", default=None)
    subscribed_topic_names: list[str] | None = f.strings(nullable="1+", default=None)


class TopicPartitions(Message):
    """Shared by several fields of `ShareGroupHeartbeatResponse`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class Assignment(Message):
    """The value of `ShareGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[TopicPartitions] = f.array(TopicPartitions)


class ShareGroupHeartbeatResponse(Message, key=76, versions="1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    member_id: str | None = f.string(nullable="1+", default=None)
    member_epoch: int = f.int32()
    heartbeat_interval_ms: int = f.int32()
    assignment: Assignment | None = f.struct(Assignment, nullable="1+")
