"""Pure core: FetchSnapshot, API key 59, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message
from ..records import Records

__all__ = [
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
]


class SnapshotId(Message):
    """The value of `PartitionSnapshot.snapshot_id`."""

    end_offset: int = f.int64()
    epoch: int = f.int32()


class PartitionSnapshot(Message):
    """An item of `TopicSnapshot.partitions`."""

    partition: int = f.int32()
    current_leader_epoch: int = f.int32()
    snapshot_id: SnapshotId = f.struct(SnapshotId)
    position: int = f.int64()
    replica_directory_id: UUID = f.uuid("1+", tag=0, ignorable=True)


class TopicSnapshot(Message):
    """An item of `FetchSnapshotRequest.topics`."""

    name: str = f.string()
    partitions: list[PartitionSnapshot] = f.array(PartitionSnapshot)


class FetchSnapshotRequest(Message, key=59, versions="0-1", flexible="0+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+", default=None, tag=0)
    replica_id: int = f.int32(default=-1)
    max_bytes: int = f.int32(default=2147483647)
    topics: list[TopicSnapshot] = f.array(TopicSnapshot)


class ResponseSnapshotId(Message):
    """The value of `ResponsePartitionSnapshot.snapshot_id`."""

    end_offset: int = f.int64()
    epoch: int = f.int32()


class LeaderIdAndEpoch(Message):
    """The value of `ResponsePartitionSnapshot.current_leader`."""

    leader_id: int = f.int32()
    leader_epoch: int = f.int32()


class ResponsePartitionSnapshot(Message):
    """An item of `ResponseTopicSnapshot.partitions`."""

    index: int = f.int32()
    error_code: int = f.int16()
    snapshot_id: ResponseSnapshotId = f.struct(ResponseSnapshotId)
    current_leader: LeaderIdAndEpoch | None = f.struct(LeaderIdAndEpoch, tag=0)
    size: int = f.int64()
    position: int = f.int64()
    unaligned_records: Records = f.records()


class ResponseTopicSnapshot(Message):
    """An item of `FetchSnapshotResponse.topics`."""

    name: str = f.string()
    partitions: list[ResponsePartitionSnapshot] = f.array(ResponsePartitionSnapshot)


class NodeEndpoint(Message):
    """An item of `FetchSnapshotResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.uint16()


class FetchSnapshotResponse(Message, key=59, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    error_code: int = f.int16()
    topics: list[ResponseTopicSnapshot] = f.array(ResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "1+", tag=0)
