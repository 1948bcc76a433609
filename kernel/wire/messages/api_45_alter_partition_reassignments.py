"""Pure core: AlterPartitionReassignments, API key 45, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
]


class ReassignablePartition(Message):
    """An item of `ReassignableTopic.partitions`."""

    partition_index: int = f.int32()
    replicas: list[int] | None = f.int32s(nullable="0+", default=None)


class ReassignableTopic(Message):
    """An item of `AlterPartitionReassignmentsRequest.topics`."""

    name: str = f.string()
    partitions: list[ReassignablePartition] = f.array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, key=45, versions="0-1", flexible="0+"):
    """The request."""

    timeout_ms: int = f.int32(default=60000)
    allow_replication_factor_change: bool = f.boolean("1+", default=True)
    topics: list[ReassignableTopic] = f.array(ReassignableTopic)


class ReassignablePartitionResponse(Message):
    """An item of `ReassignableTopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")


class ReassignableTopicResponse(Message):
    """An item of `AlterPartitionReassignmentsResponse.responses`."""

    name: str = f.string()
    partitions: list[ReassignablePartitionResponse] = f.array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Message, key=45, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    allow_replication_factor_change: bool = f.boolean("1+", default=True, ignorable=True)
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    responses: list[ReassignableTopicResponse] = f.array(ReassignableTopicResponse)
