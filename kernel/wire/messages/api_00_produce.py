"""Pure core: Produce, API key 0, versions 3-13."""

from __future__ import annotations

from uuid import UUID

from ...types import Buffer
from .. import fields as f
from ..message import Message

__all__ = [
    "ProduceRequest",
    "ProduceResponse",
]


class PartitionProduceData(Message):
    """An item of `TopicProduceData.partition_data`."""

    index: int = f.int32()
    records: Buffer | None = f.records(nullable="3+")


class TopicProduceData(Message):
    """An item of `ProduceRequest.topic_data`."""

    name: str = f.string("3-12", ignorable=True)
    topic_id: UUID = f.uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = f.array(PartitionProduceData)


class ProduceRequest(Message, key=0, versions="3-13", flexible="9+"):
    """The request."""

    transactional_id: str | None = f.string(nullable="3+", default=None)
    acks: int = f.int16()
    timeout_ms: int = f.int32()
    topic_data: list[TopicProduceData] = f.array(TopicProduceData)


class BatchIndexAndErrorMessage(Message):
    """An item of `PartitionProduceResponse.record_errors`."""

    batch_index: int = f.int32()
    batch_index_error_message: str | None = f.string(nullable="8+", default=None)


class LeaderIdAndEpoch(Message):
    """The value of `PartitionProduceResponse.current_leader`."""

    leader_id: int = f.int32(default=-1)
    leader_epoch: int = f.int32(default=-1)


class PartitionProduceResponse(Message):
    """An item of `TopicProduceResponse.partition_responses`."""

    index: int = f.int32()
    error_code: int = f.int16()
    base_offset: int = f.int64()
    log_append_time_ms: int = f.int64(default=-1, ignorable=True)
    log_start_offset: int = f.int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = f.array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = f.string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = f.struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Message):
    """An item of `ProduceResponse.responses`."""

    name: str = f.string("3-12", ignorable=True)
    topic_id: UUID = f.uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = f.array(PartitionProduceResponse)


class NodeEndpoint(Message):
    """An item of `ProduceResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string(nullable="10+", default=None)


class ProduceResponse(Message, key=0, versions="3-13", flexible="9+"):
    """The response."""

    responses: list[TopicProduceResponse] = f.array(TopicProduceResponse)
    throttle_time_ms: int = f.int32(ignorable=True)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint, "10+", tag=0)
