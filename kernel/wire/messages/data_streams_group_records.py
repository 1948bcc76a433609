"""Pure core: records in `__consumer_offsets` of streams groups (KIP-1071)."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "StreamsGroupCurrentMemberAssignmentKey",
    "StreamsGroupCurrentMemberAssignmentValue",
    "StreamsGroupMemberMetadataKey",
    "StreamsGroupMemberMetadataValue",
    "StreamsGroupMetadataKey",
    "StreamsGroupMetadataValue",
    "StreamsGroupTargetAssignmentMemberKey",
    "StreamsGroupTargetAssignmentMemberValue",
    "StreamsGroupTargetAssignmentMetadataKey",
    "StreamsGroupTargetAssignmentMetadataValue",
    "StreamsGroupTopologyKey",
    "StreamsGroupTopologyValue",
]


class StreamsGroupCurrentMemberAssignmentKey(Message, key=22, versions="0"):
    """StreamsGroupCurrentMemberAssignmentKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class TaskIds(Message):
    """Shared by several fields of `StreamsGroupCurrentMemberAssignmentValue`."""

    subtopology_id: str = f.string()
    partitions: list[int] = f.int32s()
    assignment_epochs: list[int] | None = f.int32s(nullable="0+", default=None, tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Message, key=22, versions="0", flexible="0+"):
    """StreamsGroupCurrentMemberAssignmentValue: what a record says."""

    member_epoch: int = f.int32()
    previous_member_epoch: int = f.int32()
    state: int = f.int8()
    active_tasks: list[TaskIds] = f.array(TaskIds)
    standby_tasks: list[TaskIds] = f.array(TaskIds)
    warmup_tasks: list[TaskIds] = f.array(TaskIds)
    active_tasks_pending_revocation: list[TaskIds] = f.array(TaskIds)
    standby_tasks_pending_revocation: list[TaskIds] = f.array(TaskIds)
    warmup_tasks_pending_revocation: list[TaskIds] = f.array(TaskIds)


class StreamsGroupMemberMetadataKey(Message, key=19, versions="0"):
    """StreamsGroupMemberMetadataKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class Endpoint(Message):
    """Shared by several fields of `StreamsGroupMemberMetadataValue`."""

    host: str = f.string()
    port: int = f.uint16()


class KeyValue(Message):
    """Shared by several fields of `StreamsGroupMemberMetadataValue`."""

    key: str = f.string()
    value: str = f.string()


class StreamsGroupMemberMetadataValue(Message, key=19, versions="0", flexible="0+"):
    """StreamsGroupMemberMetadataValue: what a record says."""

    instance_id: str | None = f.string(nullable="0+")
    rack_id: str | None = f.string(nullable="0+")
    client_id: str = f.string()
    client_host: str = f.string()
    rebalance_timeout_ms: int = f.int32(default=-1)
    topology_epoch: int = f.int32()
    process_id: str = f.string()
    user_endpoint: Endpoint | None = f.struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] = f.array(KeyValue)


class StreamsGroupMetadataKey(Message, key=17, versions="0"):
    """StreamsGroupMetadataKey: what a record is about."""

    group_id: str = f.string()


class LastAssignmentConfig(Message):
    """Shared by several fields of `StreamsGroupMetadataValue`."""

    key: str = f.string()
    value: str = f.string()


class StreamsGroupMetadataValue(Message, key=17, versions="0", flexible="0+"):
    """StreamsGroupMetadataValue: what a record says."""

    epoch: int = f.int32()
    metadata_hash: int = f.int64()
    validated_topology_epoch: int = f.int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = f.array(
        LastAssignmentConfig, nullable="0+", default=None, tag=1
    )


class StreamsGroupTargetAssignmentMemberKey(Message, key=21, versions="0"):
    """StreamsGroupTargetAssignmentMemberKey: what a record is about."""

    group_id: str = f.string()
    member_id: str = f.string()


class StreamsGroupTargetAssignmentMemberValueTaskIds(Message):
    """Shared by several fields of `StreamsGroupTargetAssignmentMemberValue`."""

    subtopology_id: str = f.string()
    partitions: list[int] = f.int32s()


class StreamsGroupTargetAssignmentMemberValue(Message, key=21, versions="0", flexible="0+"):
    """StreamsGroupTargetAssignmentMemberValue: what a record says."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = f.array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = f.array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = f.array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )


class StreamsGroupTargetAssignmentMetadataKey(Message, key=20, versions="0"):
    """StreamsGroupTargetAssignmentMetadataKey: what a record is about."""

    group_id: str = f.string()


class StreamsGroupTargetAssignmentMetadataValue(Message, key=20, versions="0", flexible="0+"):
    """StreamsGroupTargetAssignmentMetadataValue: what a record says."""

    assignment_epoch: int = f.int32()
    assignment_timestamp: int = f.int64(tag=0, ignorable=True)


class StreamsGroupTopologyKey(Message, key=23, versions="0"):
    """StreamsGroupTopologyKey: what a record is about."""

    group_id: str = f.string()


class TopicConfig(Message):
    """Shared by several fields of `StreamsGroupTopologyValue`."""

    key: str = f.string()
    value: str = f.string()


class TopicInfo(Message):
    """Shared by several fields of `StreamsGroupTopologyValue`."""

    name: str = f.string()
    partitions: int = f.int32()
    replication_factor: int = f.int16()
    topic_configs: list[TopicConfig] = f.array(TopicConfig)


class CopartitionGroup(Message):
    """An item of `Subtopology.copartition_groups`."""

    source_topics: list[int] = f.int16s()
    source_topic_regex: list[int] = f.int16s()
    repartition_source_topics: list[int] = f.int16s()


class Subtopology(Message):
    """An item of `StreamsGroupTopologyValue.subtopologies`."""

    subtopology_id: str = f.string()
    source_topics: list[str] = f.strings()
    source_topic_regex: list[str] = f.strings()
    state_changelog_topics: list[TopicInfo] = f.array(TopicInfo)
    repartition_sink_topics: list[str] = f.strings()
    repartition_source_topics: list[TopicInfo] = f.array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = f.array(CopartitionGroup)


class StreamsGroupTopologyValue(Message, key=23, versions="0", flexible="0+"):
    """StreamsGroupTopologyValue: what a record says."""

    epoch: int = f.int32()
    subtopologies: list[Subtopology] = f.array(Subtopology)
