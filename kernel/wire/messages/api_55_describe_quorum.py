"""Pure core: DescribeQuorum, API key 55, versions 0-2."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
]


class PartitionData(Message):
    """An item of `TopicData.partitions`."""

    partition_index: int = f.int32()


class TopicData(Message):
    """An item of `DescribeQuorumRequest.topics`."""

    topic_name: str = f.string()
    partitions: list[PartitionData] = f.array(PartitionData)


class DescribeQuorumRequest(Message, key=55, versions="0-2", flexible="0+"):
    """The request."""

    topics: list[TopicData] = f.array(TopicData)


class ReplicaState(Message):
    """Shared by several fields of `DescribeQuorumResponse`."""

    replica_id: int = f.int32()
    replica_directory_id: UUID = f.uuid("2+")
    log_end_offset: int = f.int64()
    last_fetch_timestamp: int = f.int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = f.int64("1+", default=-1, ignorable=True)


class ResponsePartitionData(Message):
    """An item of `ResponseTopicData.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string("2+", nullable="2+", ignorable=True)
    leader_id: int = f.int32()
    leader_epoch: int = f.int32()
    high_watermark: int = f.int64()
    current_voters: list[ReplicaState] = f.array(ReplicaState)
    observers: list[ReplicaState] = f.array(ReplicaState)


class ResponseTopicData(Message):
    """An item of `DescribeQuorumResponse.topics`."""

    topic_name: str = f.string()
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData)


class Listener(Message):
    """An item of `Node.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class Node(Message):
    """An item of `DescribeQuorumResponse.nodes`."""

    node_id: int = f.int32()
    listeners: list[Listener] = f.array(Listener)


class DescribeQuorumResponse(Message, key=55, versions="0-2", flexible="0+"):
    """The response."""

    error_code: int = f.int16()
    error_message: str | None = f.string("2+", nullable="2+", ignorable=True)
    topics: list[ResponseTopicData] = f.array(ResponseTopicData)
    nodes: list[Node] = f.array(Node, "2+")
