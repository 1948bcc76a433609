"""Pure core: StreamsGroupDescribe, API key 89, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
]


class StreamsGroupDescribeRequest(Message, key=89, versions="0", flexible="0+"):
    """The request."""

    group_ids: list[str] = f.strings()
    include_authorized_operations: bool = f.boolean()


class KeyValue(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    key: str = f.string()
    value: str = f.string()


class TopicInfo(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    name: str = f.string()
    partitions: int = f.int32()
    replication_factor: int = f.int16()
    topic_configs: list[KeyValue] = f.array(KeyValue)


class Subtopology(Message):
    """An item of `Topology.subtopologies`."""

    subtopology_id: str = f.string()
    source_topics: list[str] = f.strings()
    repartition_sink_topics: list[str] = f.strings()
    state_changelog_topics: list[TopicInfo] = f.array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = f.array(TopicInfo)


class Topology(Message):
    """The value of `DescribedGroup.topology`."""

    epoch: int = f.int32()
    subtopologies: list[Subtopology] | None = f.array(Subtopology, nullable="0+", default=None)


class Endpoint(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    host: str = f.string()
    port: int = f.uint16()


class TaskOffset(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    subtopology_id: str = f.string()
    partition: int = f.int32()
    offset: int = f.int64()


class TaskIds(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    subtopology_id: str = f.string()
    partitions: list[int] = f.int32s()


class Assignment(Message):
    """Shared by several fields of `StreamsGroupDescribeResponse`."""

    active_tasks: list[TaskIds] = f.array(TaskIds)
    standby_tasks: list[TaskIds] = f.array(TaskIds)
    warmup_tasks: list[TaskIds] = f.array(TaskIds)


class Member(Message):
    """An item of `DescribedGroup.members`."""

    member_id: str = f.string()
    member_epoch: int = f.int32()
    instance_id: str | None = f.string(nullable="0+", default=None)
    rack_id: str | None = f.string(nullable="0+", default=None)
    client_id: str = f.string()
    client_host: str = f.string()
    topology_epoch: int = f.int32()
    process_id: str = f.string()
    user_endpoint: Endpoint | None = f.struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] = f.array(KeyValue)
    task_offsets: list[TaskOffset] = f.array(TaskOffset)
    task_end_offsets: list[TaskOffset] = f.array(TaskOffset)
    assignment: Assignment = f.struct(Assignment)
    target_assignment: Assignment = f.struct(Assignment)
    is_classic: bool = f.boolean()


class DescribedGroup(Message):
    """An item of `StreamsGroupDescribeResponse.groups`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    group_id: str = f.string()
    group_state: str = f.string()
    group_epoch: int = f.int32()
    assignment_epoch: int = f.int32()
    topology: Topology | None = f.struct(Topology, nullable="0+")
    members: list[Member] = f.array(Member)
    authorized_operations: int = f.int32(default=-2147483648)


class StreamsGroupDescribeResponse(Message, key=89, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    groups: list[DescribedGroup] = f.array(DescribedGroup)
