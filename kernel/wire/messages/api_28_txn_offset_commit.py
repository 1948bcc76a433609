"""Pure core: TxnOffsetCommit, API key 28, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
]


class TxnOffsetCommitRequestPartition(Message):
    """An item of `TxnOffsetCommitRequestTopic.partitions`."""

    partition_index: int = f.int32()
    committed_offset: int = f.int64()
    committed_leader_epoch: int = f.int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = f.string(nullable="0+")


class TxnOffsetCommitRequestTopic(Message):
    """An item of `TxnOffsetCommitRequest.topics`."""

    name: str = f.string()
    partitions: list[TxnOffsetCommitRequestPartition] = f.array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, key=28, versions="0-5", flexible="3+"):
    """The request."""

    transactional_id: str = f.string()
    group_id: str = f.string()
    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    generation_id: int = f.int32("3+", default=-1)
    member_id: str = f.string("3+")
    group_instance_id: str | None = f.string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = f.array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Message):
    """An item of `TxnOffsetCommitResponseTopic.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class TxnOffsetCommitResponseTopic(Message):
    """An item of `TxnOffsetCommitResponse.topics`."""

    name: str = f.string()
    partitions: list[TxnOffsetCommitResponsePartition] = f.array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, key=28, versions="0-5", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    topics: list[TxnOffsetCommitResponseTopic] = f.array(TxnOffsetCommitResponseTopic)
