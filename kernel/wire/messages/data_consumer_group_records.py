"""Pure core: records in `__consumer_offsets` of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ConsumerGroupCurrentMemberAssignmentKey",
    "ConsumerGroupCurrentMemberAssignmentValue",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupMetadataKey",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupPartitionMetadataKey",
    "ConsumerGroupPartitionMetadataValue",
    "ConsumerGroupRegularExpressionKey",
    "ConsumerGroupRegularExpressionValue",
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupTargetAssignmentMemberValue",
    "ConsumerGroupTargetAssignmentMetadataKey",
    "ConsumerGroupTargetAssignmentMetadataValue",
]


class ConsumerGroupCurrentMemberAssignmentKey(Message, key=8, versions="0"):
    """ConsumerGroupCurrentMemberAssignmentKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class TopicPartitions(Message):
    """Shared by several fields of `ConsumerGroupCurrentMemberAssignmentValue`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()
    assignment_epochs: list[int] | None = f.int32s(nullable="0+", default=None, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, key=8, versions="0", flexible="0+"):
    """ConsumerGroupCurrentMemberAssignmentValue: what a record says."""

    member_epoch: int = f.int32()
    previous_member_epoch: int = f.int32()
    state: int = f.int8()
    assigned_partitions: list[TopicPartitions] = f.array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = f.array(TopicPartitions)


class ConsumerGroupMemberMetadataKey(Message, key=5, versions="0"):
    """ConsumerGroupMemberMetadataKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class ClassicProtocol(Message):
    """An item of `ClassicMemberMetadata.supported_protocols`."""

    name: str = f.string()
    metadata: bytes = f.binary()


class ClassicMemberMetadata(Message):
    """The value of `ConsumerGroupMemberMetadataValue.classic_member_metadata`."""

    session_timeout_ms: int = f.int32()
    supported_protocols: list[ClassicProtocol] = f.array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, key=5, versions="0", flexible="0+"):
    """ConsumerGroupMemberMetadataValue: what a record says."""

    instance_id: str | None = f.string(nullable="0+")
    rack_id: str | None = f.string(nullable="0+")
    client_id: str = f.string()
    client_host: str = f.string()
    subscribed_topic_names: list[str] = f.strings()
    subscribed_topic_regex: str | None = f.string(nullable="0+")
    rebalance_timeout_ms: int = f.int32(default=-1)
    server_assignor: str | None = f.string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = f.struct(ClassicMemberMetadata, nullable="0+", tag=0)


class ConsumerGroupMetadataKey(Message, key=3, versions="0"):
    """ConsumerGroupMetadataKey: what a record is about."""

    group_id: str = f.string()


class ConsumerGroupMetadataValue(Message, key=3, versions="0", flexible="0+"):
    """ConsumerGroupMetadataValue: what a record says."""

    epoch: int = f.int32()
    metadata_hash: int = f.int64(tag=0)


class ConsumerGroupPartitionMetadataKey(Message, key=4, versions="0"):
    """ConsumerGroupPartitionMetadataKey: what a record is about."""

    group_id: str = f.string()


class PartitionMetadata(Message):
    """An item of `TopicMetadata.partition_metadata`."""

    partition: int = f.int32()
    racks: list[str] = f.strings()


class TopicMetadata(Message):
    """An item of `ConsumerGroupPartitionMetadataValue.topics`."""

    topic_id: UUID = f.uuid()
    topic_name: str = f.string()
    num_partitions: int = f.int32()
    partition_metadata: list[PartitionMetadata] = f.array(PartitionMetadata)


class ConsumerGroupPartitionMetadataValue(Message, key=4, versions="0", flexible="0+"):
    """ConsumerGroupPartitionMetadataValue: what a record says."""

    topics: list[TopicMetadata] = f.array(TopicMetadata)


class ConsumerGroupRegularExpressionKey(Message, key=16, versions="0"):
    """ConsumerGroupRegularExpressionKey: what a record is about."""

    group_id: str = f.string()
    regular_expression: str = f.string()


class ConsumerGroupRegularExpressionValue(Message, key=16, versions="0", flexible="0+"):
    """ConsumerGroupRegularExpressionValue: what a record says."""

    topics: list[str] = f.strings()
    version: int = f.int64()
    timestamp: int = f.int64()


class ConsumerGroupTargetAssignmentMemberKey(Message, key=7, versions="0"):
    """ConsumerGroupTargetAssignmentMemberKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class TopicPartition(Message):
    """An item of `ConsumerGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class ConsumerGroupTargetAssignmentMemberValue(Message, key=7, versions="0", flexible="0+"):
    """ConsumerGroupTargetAssignmentMemberValue: what a record says."""

    topic_partitions: list[TopicPartition] = f.array(TopicPartition)


class ConsumerGroupTargetAssignmentMetadataKey(Message, key=6, versions="0"):
    """ConsumerGroupTargetAssignmentMetadataKey: what a record is about."""

    group_id: str = f.string()


class ConsumerGroupTargetAssignmentMetadataValue(Message, key=6, versions="0", flexible="0+"):
    """ConsumerGroupTargetAssignmentMetadataValue: what a record says."""

    assignment_epoch: int = f.int32()
    assignment_timestamp: int = f.int64(tag=0, ignorable=True)
