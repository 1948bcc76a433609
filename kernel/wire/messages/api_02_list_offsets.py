"""Pure core: ListOffsets, API key 2, versions 1-11."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ListOffsetsRequest",
    "ListOffsetsResponse",
]


class ListOffsetsPartition(Message):
    """An item of `ListOffsetsTopic.partitions`."""

    partition_index: int = f.int32()
    current_leader_epoch: int = f.int32("4+", default=-1, ignorable=True)
    timestamp: int = f.int64()


class ListOffsetsTopic(Message):
    """An item of `ListOffsetsRequest.topics`."""

    name: str = f.string()
    partitions: list[ListOffsetsPartition] = f.array(ListOffsetsPartition)


class ListOffsetsRequest(Message, key=2, versions="1-11", flexible="6+"):
    """The request."""

    replica_id: int = f.int32()
    isolation_level: int = f.int8("2+")
    topics: list[ListOffsetsTopic] = f.array(ListOffsetsTopic)
    timeout_ms: int = f.int32("10+", ignorable=True)


class ListOffsetsPartitionResponse(Message):
    """An item of `ListOffsetsTopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    timestamp: int = f.int64(default=-1)
    offset: int = f.int64(default=-1)
    leader_epoch: int = f.int32("4+", default=-1)


class ListOffsetsTopicResponse(Message):
    """An item of `ListOffsetsResponse.topics`."""

    name: str = f.string()
    partitions: list[ListOffsetsPartitionResponse] = f.array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, key=2, versions="1-11", flexible="6+"):
    """The response."""

    throttle_time_ms: int = f.int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = f.array(ListOffsetsTopicResponse)
