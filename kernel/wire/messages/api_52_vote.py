"""Pure core: Vote, API key 52, versions 0-2."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "VoteRequest",
    "VoteResponse",
]


class PartitionData(Message):
    """An item of `TopicData.partitions`."""

    partition_index: int = f.int32()
    replica_epoch: int = f.int32()
    replica_id: int = f.int32()
    replica_directory_id: UUID = f.uuid("1+", ignorable=True)
    voter_directory_id: UUID = f.uuid("1+", ignorable=True)
    last_offset_epoch: int = f.int32()
    last_offset: int = f.int64()
    pre_vote: bool = f.boolean("2+")
    # Ours, not Kafka's: by which voters a candidate for the lead of a topic counts; absent for the first ones.
    voters_epoch: int = f.int32("2+", tag=10_000, ignorable=True)


class TopicData(Message):
    """An item of `VoteRequest.topics`."""

    topic_name: str = f.string()
    partitions: list[PartitionData] = f.array(PartitionData)


class VoteRequest(Message, key=52, versions="0-2", flexible="0+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+", default=None)
    voter_id: int = f.int32("1+", default=-1, ignorable=True)
    topics: list[TopicData] = f.array(TopicData)


class ResponsePartitionData(Message):
    """An item of `ResponseTopicData.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32()
    vote_granted: bool = f.boolean()


class ResponseTopicData(Message):
    """An item of `VoteResponse.topics`."""

    topic_name: str = f.string()
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData)


class NodeEndpoint(Message):
    """An item of `VoteResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.uint16()


class VoteResponse(Message, key=52, versions="0-2", flexible="0+"):
    """The response."""

    error_code: int = f.int16()
    topics: list[ResponseTopicData] = f.array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "1+", tag=0)
