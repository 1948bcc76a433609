"""Pure core: AssignReplicasToDirs, API key 73, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse",
]


class PartitionData(Message):
    """An item of `TopicData.partitions`."""

    partition_index: int = f.int32()


class TopicData(Message):
    """An item of `DirectoryData.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class DirectoryData(Message):
    """An item of `AssignReplicasToDirsRequest.directories`."""

    id: UUID = f.uuid()
    topics: list[TopicData] = f.array(TopicData)


class AssignReplicasToDirsRequest(Message, key=73, versions="0", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64(default=-1)
    directories: list[DirectoryData] = f.array(DirectoryData)


class ResponsePartitionData(Message):
    """An item of `ResponseTopicData.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class ResponseTopicData(Message):
    """An item of `ResponseDirectoryData.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[ResponsePartitionData] = f.array(ResponsePartitionData)


class ResponseDirectoryData(Message):
    """An item of `AssignReplicasToDirsResponse.directories`."""

    id: UUID = f.uuid()
    topics: list[ResponseTopicData] = f.array(ResponseTopicData)


class AssignReplicasToDirsResponse(Message, key=73, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    directories: list[ResponseDirectoryData] = f.array(ResponseDirectoryData)
