"""Pure core: DeleteRecords, API key 21, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
]


class DeleteRecordsPartition(Message):
    """An item of `DeleteRecordsTopic.partitions`."""

    partition_index: int = f.int32()
    offset: int = f.int64()


class DeleteRecordsTopic(Message):
    """An item of `DeleteRecordsRequest.topics`."""

    name: str = f.string()
    partitions: list[DeleteRecordsPartition] = f.array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, key=21, versions="0-2", flexible="2+"):
    """The request."""

    topics: list[DeleteRecordsTopic] = f.array(DeleteRecordsTopic)
    timeout_ms: int = f.int32()


class DeleteRecordsPartitionResult(Message):
    """An item of `DeleteRecordsTopicResult.partitions`."""

    partition_index: int = f.int32()
    low_watermark: int = f.int64()
    error_code: int = f.int16()


class DeleteRecordsTopicResult(Message):
    """An item of `DeleteRecordsResponse.topics`."""

    name: str = f.string()
    partitions: list[DeleteRecordsPartitionResult] = f.array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, key=21, versions="0-2", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    topics: list[DeleteRecordsTopicResult] = f.array(DeleteRecordsTopicResult)
