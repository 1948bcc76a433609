"""Pure core: Fetch, API key 1, versions 4-18."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message
from ..records import Records

__all__ = [
    "FetchRequest",
    "FetchResponse",
]


class ReplicaState(Message):
    """The value of `FetchRequest.replica_state`."""

    replica_id: int = f.int32(default=-1)
    replica_epoch: int = f.int64(default=-1)


class FetchPartition(Message):
    """An item of `FetchTopic.partitions`."""

    partition: int = f.int32()
    current_leader_epoch: int = f.int32("9+", default=-1, ignorable=True)
    fetch_offset: int = f.int64()
    last_fetched_epoch: int = f.int32("12+", default=-1)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = f.int32()
    replica_directory_id: UUID = f.uuid("17+", tag=0, ignorable=True)
    high_watermark: int = f.int64("18+", default=9223372036854775807, tag=1, ignorable=True)


class FetchTopic(Message):
    """An item of `FetchRequest.topics`."""

    topic: str = f.string("4-12", ignorable=True)
    topic_id: UUID = f.uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = f.array(FetchPartition)


class ForgottenTopic(Message):
    """An item of `FetchRequest.forgotten_topics_data`."""

    topic: str = f.string("7-12", ignorable=True)
    topic_id: UUID = f.uuid("13+", ignorable=True)
    partitions: list[int] = f.int32s()


class FetchRequest(Message, key=1, versions="4-18", flexible="12+"):
    """The request."""

    cluster_id: str | None = f.string("12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: int = f.int32("4-14", default=-1)
    replica_state: ReplicaState | None = f.struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = f.int32()
    min_bytes: int = f.int32()
    max_bytes: int = f.int32(default=2147483647, ignorable=True)
    isolation_level: int = f.int8(ignorable=True)
    session_id: int = f.int32("7+", ignorable=True)
    session_epoch: int = f.int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = f.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = f.array(ForgottenTopic, "7+")
    rack_id: str = f.string("11+", ignorable=True)


class EpochEndOffset(Message):
    """The value of `PartitionData.diverging_epoch`."""

    epoch: int = f.int32(default=-1)
    end_offset: int = f.int64(default=-1)


class LeaderIdAndEpoch(Message):
    """The value of `PartitionData.current_leader`."""

    leader_id: int = f.int32(default=-1)
    leader_epoch: int = f.int32(default=-1)


class SnapshotId(Message):
    """The value of `PartitionData.snapshot_id`."""

    end_offset: int = f.int64(default=-1)
    epoch: int = f.int32(default=-1)


class AbortedTransaction(Message):
    """An item of `PartitionData.aborted_transactions`."""

    producer_id: int = f.int64()
    first_offset: int = f.int64()


class PartitionData(Message):
    """An item of `FetchableTopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    high_watermark: int = f.int64()
    last_stable_offset: int = f.int64(default=-1, ignorable=True)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = f.struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = f.struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId | None = f.struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = f.array(AbortedTransaction, nullable="4+", ignorable=True)
    preferred_read_replica: int = f.int32("11+", default=-1)
    records: Records | None = f.records(nullable="4+")


class FetchableTopicResponse(Message):
    """An item of `FetchResponse.responses`."""

    topic: str = f.string("4-12", ignorable=True)
    topic_id: UUID = f.uuid("13+", ignorable=True)
    partitions: list[PartitionData] = f.array(PartitionData)


class NodeEndpoint(Message):
    """An item of `FetchResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string(nullable="16+", default=None)


class FetchResponse(Message, key=1, versions="4-18", flexible="12+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    error_code: int = f.int16("7+", ignorable=True)
    session_id: int = f.int32("7+")
    responses: list[FetchableTopicResponse] = f.array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "16+", tag=0)
