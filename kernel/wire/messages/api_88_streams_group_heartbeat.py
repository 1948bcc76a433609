"""Pure core: StreamsGroupHeartbeat, API key 88, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
]


class KeyValue(Message):
    """Shared by several fields of `StreamsGroupHeartbeatRequest`."""

    key: str = f.string()
    value: str = f.string()


class TopicInfo(Message):
    """Shared by several fields of `StreamsGroupHeartbeatRequest`."""

    name: str = f.string()
    partitions: int = f.int32()
    replication_factor: int = f.int16()
    topic_configs: list[KeyValue] = f.array(KeyValue)


class CopartitionGroup(Message):
    """An item of `Subtopology.copartition_groups`."""

    source_topics: list[int] = f.int16s()
    source_topic_regex: list[int] = f.int16s()
    repartition_source_topics: list[int] = f.int16s()


class Subtopology(Message):
    """An item of `Topology.subtopologies`."""

    subtopology_id: str = f.string()
    source_topics: list[str] = f.strings()
    source_topic_regex: list[str] = f.strings()
    state_changelog_topics: list[TopicInfo] = f.array(TopicInfo)
    repartition_sink_topics: list[str] = f.strings()
    repartition_source_topics: list[TopicInfo] = f.array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = f.array(CopartitionGroup)


class Topology(Message):
    """The value of `StreamsGroupHeartbeatRequest.topology`."""

    epoch: int = f.int32()
    subtopologies: list[Subtopology] = f.array(Subtopology)


class TaskIds(Message):
    """Shared by several fields of `StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = f.string()
    partitions: list[int] = f.int32s()


class Endpoint(Message):
    """Shared by several fields of `StreamsGroupHeartbeatRequest`."""

    host: str = f.string()
    port: int = f.uint16()


class TaskOffset(Message):
    """Shared by several fields of `StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = f.string()
    partition: int = f.int32()
    offset: int = f.int64()


class StreamsGroupHeartbeatRequest(Message, key=88, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    member_id: str = f.string()
    member_epoch: int = f.int32()
    endpoint_information_epoch: int = f.int32()
    instance_id: str | None = f.string(nullable="0+", default=None)
    rack_id: str | None = f.string(nullable="0+", default=None)
    rebalance_timeout_ms: int = f.int32(default=-1)
    topology: Topology | None = f.struct(Topology, nullable="0+")
    active_tasks: list[TaskIds] | None = f.array(TaskIds, nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = f.array(TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = f.array(TaskIds, nullable="0+", default=None)
    process_id: str | None = f.string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = f.struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] | None = f.array(KeyValue, nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = f.array(TaskOffset, nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = f.array(TaskOffset, nullable="0+", default=None)
    shutdown_application: bool = f.boolean()


class Status(Message):
    """Shared by several fields of `StreamsGroupHeartbeatResponse`."""

    status_code: int = f.int8()
    status_detail: str = f.string()


class ResponseTaskIds(Message):
    """Shared by several fields of `StreamsGroupHeartbeatResponse`."""

    subtopology_id: str = f.string()
    partitions: list[int] = f.int32s()


class ResponseEndpoint(Message):
    """Shared by several fields of `StreamsGroupHeartbeatResponse`."""

    host: str = f.string()
    port: int = f.uint16()


class TopicPartition(Message):
    """Shared by several fields of `StreamsGroupHeartbeatResponse`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class EndpointToPartitions(Message):
    """An item of `StreamsGroupHeartbeatResponse.partitions_by_user_endpoint`."""

    user_endpoint: ResponseEndpoint = f.struct(ResponseEndpoint)
    active_partitions: list[TopicPartition] = f.array(TopicPartition)
    standby_partitions: list[TopicPartition] = f.array(TopicPartition)


class StreamsGroupHeartbeatResponse(Message, key=88, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    member_id: str = f.string()
    member_epoch: int = f.int32()
    heartbeat_interval_ms: int = f.int32()
    acceptable_recovery_lag: int = f.int32()
    task_offset_interval_ms: int = f.int32()
    status: list[Status] | None = f.array(Status, nullable="0+")
    active_tasks: list[ResponseTaskIds] | None = f.array(ResponseTaskIds, nullable="0+", default=None)
    standby_tasks: list[ResponseTaskIds] | None = f.array(ResponseTaskIds, nullable="0+", default=None)
    warmup_tasks: list[ResponseTaskIds] | None = f.array(ResponseTaskIds, nullable="0+", default=None)
    endpoint_information_epoch: int = f.int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = f.array(
        EndpointToPartitions, nullable="0+", default=None
    )
