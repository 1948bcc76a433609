"""Pure core: ElectLeaders, API key 43, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ElectLeadersRequest",
    "ElectLeadersResponse",
]


class TopicPartitions(Message):
    """An item of `ElectLeadersRequest.topic_partitions`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class ElectLeadersRequest(Message, key=43, versions="0-2", flexible="2+"):
    """The request."""

    election_type: int = f.int8("1+")
    topic_partitions: list[TopicPartitions] | None = f.array(TopicPartitions, nullable="0+")
    timeout_ms: int = f.int32(default=60000)


class PartitionResult(Message):
    """An item of `ReplicaElectionResult.partition_result`."""

    partition_id: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")


class ReplicaElectionResult(Message):
    """An item of `ElectLeadersResponse.replica_election_results`."""

    topic: str = f.string()
    partition_result: list[PartitionResult] = f.array(PartitionResult)


class ElectLeadersResponse(Message, key=43, versions="0-2", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16("1+")
    replica_election_results: list[ReplicaElectionResult] = f.array(ReplicaElectionResult)
