"""Pure core: ShareAcknowledge, API key 79, versions 1-2."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
]


class AcknowledgementBatch(Message):
    """An item of `AcknowledgePartition.acknowledgement_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    acknowledge_types: list[int] = f.int8s()


class AcknowledgePartition(Message):
    """An item of `AcknowledgeTopic.partitions`."""

    partition_index: int = f.int32()
    acknowledgement_batches: list[AcknowledgementBatch] = f.array(AcknowledgementBatch)


class AcknowledgeTopic(Message):
    """An item of `ShareAcknowledgeRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[AcknowledgePartition] = f.array(AcknowledgePartition)


class ShareAcknowledgeRequest(Message, key=79, versions="1-2", flexible="0+"):
    """The request."""

    group_id: str | None = f.string(nullable="1+", default=None)
    member_id: str | None = f.string(nullable="1+")
    share_session_epoch: int = f.int32()
    is_renew_ack: bool = f.boolean("2+")
    topics: list[AcknowledgeTopic] = f.array(AcknowledgeTopic)


class LeaderIdAndEpoch(Message):
    """The value of `PartitionData.current_leader`."""

    leader_id: int = f.int32()
    leader_epoch: int = f.int32()


class PartitionData(Message):
    """An item of `ShareAcknowledgeTopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Message):
    """An item of `ShareAcknowledgeResponse.responses`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class NodeEndpoint(Message):
    """An item of `ShareAcknowledgeResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string(nullable="1+", default=None)


class ShareAcknowledgeResponse(Message, key=79, versions="1-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    acquisition_lock_timeout_ms: int = f.int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = f.array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint)
