"""Pure core: DescribeTopicPartitions, API key 75, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
]


class TopicRequest(Message):
    """An item of `DescribeTopicPartitionsRequest.topics`."""

    name: str = f.string()


class Cursor(Message):
    """The value of `DescribeTopicPartitionsRequest.cursor`."""

    topic_name: str = f.string()
    partition_index: int = f.int32()


class DescribeTopicPartitionsRequest(Message, key=75, versions="0", flexible="0+"):
    """The request."""

    topics: list[TopicRequest] = f.array(TopicRequest)
    response_partition_limit: int = f.int32(default=2000)
    cursor: Cursor | None = f.struct(Cursor, nullable="0+")


class DescribeTopicPartitionsResponsePartition(Message):
    """An item of `DescribeTopicPartitionsResponseTopic.partitions`."""

    error_code: int = f.int16()
    partition_index: int = f.int32()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32(default=-1, ignorable=True)
    replica_nodes: list[int] = f.int32s()
    isr_nodes: list[int] = f.int32s()
    eligible_leader_replicas: list[int] | None = f.int32s(nullable="0+", default=None)
    last_known_elr: list[int] | None = f.int32s(nullable="0+", default=None)
    offline_replicas: list[int] = f.int32s(ignorable=True)


class DescribeTopicPartitionsResponseTopic(Message):
    """An item of `DescribeTopicPartitionsResponse.topics`."""

    error_code: int = f.int16()
    name: str | None = f.string(nullable="0+")
    topic_id: UUID = f.uuid(ignorable=True)
    is_internal: bool = f.boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = f.array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = f.int32(default=-2147483648)


class ResponseCursor(Message):
    """The value of `DescribeTopicPartitionsResponse.next_cursor`."""

    topic_name: str = f.string()
    partition_index: int = f.int32()


class DescribeTopicPartitionsResponse(Message, key=75, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = f.array(DescribeTopicPartitionsResponseTopic)
    next_cursor: ResponseCursor | None = f.struct(ResponseCursor, nullable="0+")
