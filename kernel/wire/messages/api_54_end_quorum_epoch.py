"""Pure core: EndQuorumEpoch, API key 54, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
]


class ReplicaInfo(Message):
    """An item of `PartitionData.preferred_candidates`."""

    candidate_id: int = f.int32()
    candidate_directory_id: UUID = f.uuid()


class PartitionData(Message):
    """An item of `TopicData.partitions`."""

    partition_index: int = f.int32()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32()
    preferred_successors: list[int] = f.int32s("0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = f.array(ReplicaInfo, "1+", ignorable=True)


class TopicData(Message):
    """An item of `EndQuorumEpochRequest.topics`."""

    topic_name: str = f.string()
    partitions: list[PartitionData] = f.array(PartitionData)


class LeaderEndpoint(Message):
    """An item of `EndQuorumEpochRequest.leader_endpoints`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class EndQuorumEpochRequest(Message, key=54, versions="0-1", flexible="1+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+", default=None)
    topics: list[TopicData] = f.array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = f.array(LeaderEndpoint, "1+", ignorable=True)


class ResponsePartitionData(Message):
    """An item of `ResponseTopicData.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32()


class ResponseTopicData(Message):
    """An item of `EndQuorumEpochResponse.topics`."""

    topic_name: str = f.string()
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData)


class NodeEndpoint(Message):
    """An item of `EndQuorumEpochResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.uint16()


class EndQuorumEpochResponse(Message, key=54, versions="0-1", flexible="1+"):
    """The response."""

    error_code: int = f.int16()
    topics: list[ResponseTopicData] = f.array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "1+", tag=0)
