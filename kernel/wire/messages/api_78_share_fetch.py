"""Pure core: ShareFetch, API key 78, versions 1-2."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message
from ..records import Records

__all__ = [
    "ShareFetchRequest",
    "ShareFetchResponse",
]


class AcknowledgementBatch(Message):
    """An item of `FetchPartition.acknowledgement_batches`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    acknowledge_types: list[int] = f.int8s()


class FetchPartition(Message):
    """An item of `FetchTopic.partitions`."""

    partition_index: int = f.int32()
    acknowledgement_batches: list[AcknowledgementBatch] = f.array(AcknowledgementBatch)


class FetchTopic(Message):
    """An item of `ShareFetchRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[FetchPartition] = f.array(FetchPartition)


class ForgottenTopic(Message):
    """An item of `ShareFetchRequest.forgotten_topics_data`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class ShareFetchRequest(Message, key=78, versions="1-2", flexible="0+"):
    """The request."""

    group_id: str | None = f.string(nullable="1+", default=None)
    member_id: str | None = f.string(nullable="1+")
    share_session_epoch: int = f.int32()
    max_wait_ms: int = f.int32()
    min_bytes: int = f.int32()
    max_bytes: int = f.int32(default=2147483647)
    max_records: int = f.int32()
    batch_size: int = f.int32()
    share_acquire_mode: int = f.int8("2+", ignorable=True)
    is_renew_ack: bool = f.boolean("2+")
    topics: list[FetchTopic] = f.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = f.array(ForgottenTopic)


class LeaderIdAndEpoch(Message):
    """The value of `PartitionData.current_leader`."""

    leader_id: int = f.int32()
    leader_epoch: int = f.int32()


class AcquiredRecords(Message):
    """An item of `PartitionData.acquired_records`."""

    first_offset: int = f.int64()
    last_offset: int = f.int64()
    delivery_count: int = f.int16()


class PartitionData(Message):
    """An item of `ShareFetchableTopicResponse.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    acknowledge_error_code: int = f.int16()
    acknowledge_error_message: str | None = f.string(nullable="1+", default=None)
    current_leader: LeaderIdAndEpoch = f.struct(LeaderIdAndEpoch)
    records: Records = f.records()
    acquired_records: list[AcquiredRecords] = f.array(AcquiredRecords)


class ShareFetchableTopicResponse(Message):
    """An item of `ShareFetchResponse.responses`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class NodeEndpoint(Message):
    """An item of `ShareFetchResponse.node_endpoints`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string(nullable="1+", default=None)


class ShareFetchResponse(Message, key=78, versions="1-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    acquisition_lock_timeout_ms: int = f.int32()
    responses: list[ShareFetchableTopicResponse] = f.array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = f.array(NodeEndpoint)
