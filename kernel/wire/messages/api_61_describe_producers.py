"""Pure core: DescribeProducers, API key 61, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeProducersRequest",
    "DescribeProducersResponse",
]


class TopicRequest(Message):
    """An item of `DescribeProducersRequest.topics`."""

    name: str = f.string()
    partition_indexes: list[int] = f.int32s()


class DescribeProducersRequest(Message, key=61, versions="0", flexible="0+"):
    """The request."""

    topics: list[TopicRequest] = f.array(TopicRequest)


class ProducerState(Message):
    """An item of `PartitionResponse.active_producers`."""

    producer_id: int = f.int64()
    producer_epoch: int = f.int32()
    last_sequence: int = f.int32(default=-1)
    last_timestamp: int = f.int64(default=-1)
    coordinator_epoch: int = f.int32()
    current_txn_start_offset: int = f.int64(default=-1)


class PartitionResponse(Message):
    """An item of `TopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    active_producers: list[ProducerState] = f.array(ProducerState)


class TopicResponse(Message):
    """An item of `DescribeProducersResponse.topics`."""

    name: str = f.string()
    partitions: list[PartitionResponse] = f.array(PartitionResponse)


class DescribeProducersResponse(Message, key=61, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    topics: list[TopicResponse] = f.array(TopicResponse)
