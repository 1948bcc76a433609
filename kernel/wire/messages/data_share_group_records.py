"""Pure core: records in `__consumer_offsets` of share groups (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ShareGroupCurrentMemberAssignmentKey",
    "ShareGroupCurrentMemberAssignmentValue",
    "ShareGroupMemberMetadataKey",
    "ShareGroupMemberMetadataValue",
    "ShareGroupMetadataKey",
    "ShareGroupMetadataValue",
    "ShareGroupStatePartitionMetadataKey",
    "ShareGroupStatePartitionMetadataValue",
    "ShareGroupTargetAssignmentMemberKey",
    "ShareGroupTargetAssignmentMemberValue",
    "ShareGroupTargetAssignmentMetadataKey",
    "ShareGroupTargetAssignmentMetadataValue",
]


class ShareGroupCurrentMemberAssignmentKey(Message, key=14, versions="0"):
    """ShareGroupCurrentMemberAssignmentKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class TopicPartitions(Message):
    """Shared by several fields of `ShareGroupCurrentMemberAssignmentValue`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class ShareGroupCurrentMemberAssignmentValue(Message, key=14, versions="0", flexible="0+"):
    """ShareGroupCurrentMemberAssignmentValue: what a record says."""

    member_epoch: int = f.int32()
    previous_member_epoch: int = f.int32()
    state: int = f.int8()
    assigned_partitions: list[TopicPartitions] = f.array(TopicPartitions)


class ShareGroupMemberMetadataKey(Message, key=10, versions="0"):
    """ShareGroupMemberMetadataKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class ShareGroupMemberMetadataValue(Message, key=10, versions="0", flexible="0+"):
    """ShareGroupMemberMetadataValue: what a record says."""

    rack_id: str | None = f.string(nullable="0+")
    client_id: str = f.string()
    client_host: str = f.string()
    subscribed_topic_names: list[str] = f.strings()


class ShareGroupMetadataKey(Message, key=11, versions="0"):
    """ShareGroupMetadataKey: what a record is about."""

    group_id: str = f.string()


class ShareGroupMetadataValue(Message, key=11, versions="0", flexible="0+"):
    """ShareGroupMetadataValue: what a record says."""

    epoch: int = f.int32()
    metadata_hash: int = f.int64()


class ShareGroupStatePartitionMetadataKey(Message, key=15, versions="0"):
    """ShareGroupStatePartitionMetadataKey: what a record is about."""

    group_id: str = f.string()


class TopicPartitionsInfo(Message):
    """Shared by several fields of `ShareGroupStatePartitionMetadataValue`."""

    topic_id: UUID = f.uuid()
    topic_name: str = f.string()
    partitions: list[int] = f.int32s()


class TopicInfo(Message):
    """Shared by several fields of `ShareGroupStatePartitionMetadataValue`."""

    topic_id: UUID = f.uuid()
    topic_name: str = f.string()


class ShareGroupStatePartitionMetadataValue(Message, key=15, versions="0", flexible="0+"):
    """ShareGroupStatePartitionMetadataValue: what a record says."""

    initializing_topics: list[TopicPartitionsInfo] = f.array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = f.array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = f.array(TopicInfo)


class ShareGroupTargetAssignmentMemberKey(Message, key=13, versions="0"):
    """ShareGroupTargetAssignmentMemberKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class TopicPartition(Message):
    """An item of `ShareGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: UUID = f.uuid()
    partitions: list[int] = f.int32s()


class ShareGroupTargetAssignmentMemberValue(Message, key=13, versions="0", flexible="0+"):
    """ShareGroupTargetAssignmentMemberValue: what a record says."""

    topic_partitions: list[TopicPartition] = f.array(TopicPartition)


class ShareGroupTargetAssignmentMetadataKey(Message, key=12, versions="0"):
    """ShareGroupTargetAssignmentMetadataKey: what a record is about."""

    group_id: str = f.string()


class ShareGroupTargetAssignmentMetadataValue(Message, key=12, versions="0", flexible="0+"):
    """ShareGroupTargetAssignmentMetadataValue: what a record says."""

    assignment_epoch: int = f.int32()
    assignment_timestamp: int = f.int64(tag=0, ignorable=True)
