"""Pure core: OffsetForLeaderEpoch, API key 23, versions 2-4."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
]


class OffsetForLeaderPartition(Message):
    """An item of `OffsetForLeaderTopic.partitions`."""

    partition: int = f.int32()
    current_leader_epoch: int = f.int32(default=-1, ignorable=True)
    leader_epoch: int = f.int32()


class OffsetForLeaderTopic(Message):
    """An item of `OffsetForLeaderEpochRequest.topics`."""

    topic: str = f.string()
    partitions: list[OffsetForLeaderPartition] = f.array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Message, key=23, versions="2-4", flexible="4+"):
    """The request."""

    replica_id: int = f.int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = f.array(OffsetForLeaderTopic)


class EpochEndOffset(Message):
    """An item of `OffsetForLeaderTopicResult.partitions`."""

    error_code: int = f.int16()
    partition: int = f.int32()
    leader_epoch: int = f.int32(default=-1, ignorable=True)
    end_offset: int = f.int64(default=-1)


class OffsetForLeaderTopicResult(Message):
    """An item of `OffsetForLeaderEpochResponse.topics`."""

    topic: str = f.string()
    partitions: list[EpochEndOffset] = f.array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Message, key=23, versions="2-4", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = f.array(OffsetForLeaderTopicResult)
