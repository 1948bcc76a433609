"""Pure core: ConsumerGroupHeartbeat, API key 68, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
]


class TopicPartitions(Message):
    """An item of `ConsumerGroupHeartbeatRequest.topic_partitions`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class ConsumerGroupHeartbeatRequest(Message, key=68, versions="0-1", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    member_id: str = f.string()
    member_epoch: int = f.int32()
    instance_id: str | None = f.string(nullable="0+", default=None)
    rack_id: str | None = f.string(nullable="0+", default=None)
    rebalance_timeout_ms: int = f.int32(default=-1)
    subscribed_topic_names: list[str] | None = f.strings(nullable="0+", default=None)
    subscribed_topic_regex: str | None = f.string("1+", nullable="1+", default=None)
    server_assignor: str | None = f.string(nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = f.array(TopicPartitions, nullable="0+", default=None)


class ResponseTopicPartitions(Message):
    """Shared by several fields of `ConsumerGroupHeartbeatResponse`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class Assignment(Message):
    """The value of `ConsumerGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[ResponseTopicPartitions] = f.array(ResponseTopicPartitions)


class ConsumerGroupHeartbeatResponse(Message, key=68, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    member_id: str | None = f.string(nullable="0+", default=None)
    member_epoch: int = f.int32()
    heartbeat_interval_ms: int = f.int32()
    assignment: Assignment | None = f.struct(Assignment, nullable="0+")
