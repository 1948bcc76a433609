"""Pure core: AlterReplicaLogDirs, API key 34, versions 1-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
]


class AlterReplicaLogDirTopic(Message):
    """An item of `AlterReplicaLogDir.topics`."""

    name: str = f.string()
    partitions: list[int] = f.int32s()


class AlterReplicaLogDir(Message):
    """An item of `AlterReplicaLogDirsRequest.dirs`."""

    path: str = f.string()
    topics: list[AlterReplicaLogDirTopic] = f.array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, key=34, versions="1-2", flexible="2+"):
    """The request."""

    dirs: list[AlterReplicaLogDir] = f.array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Message):
    """An item of `AlterReplicaLogDirTopicResult.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class AlterReplicaLogDirTopicResult(Message):
    """An item of `AlterReplicaLogDirsResponse.results`."""

    topic_name: str = f.string()
    partitions: list[AlterReplicaLogDirPartitionResult] = f.array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Message, key=34, versions="1-2", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[AlterReplicaLogDirTopicResult] = f.array(AlterReplicaLogDirTopicResult)
