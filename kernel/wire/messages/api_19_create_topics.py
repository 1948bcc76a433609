"""Pure core: CreateTopics, API key 19, versions 2-7."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "CreateTopicsRequest",
    "CreateTopicsResponse",
]


class CreatableReplicaAssignment(Message):
    """An item of `CreatableTopic.assignments`."""

    partition_index: int = f.int32()
    broker_ids: list[int] = f.int32s()


class CreatableTopicConfig(Message):
    """An item of `CreatableTopic.configs`."""

    name: str = f.string()
    value: str | None = f.string(nullable="2+")


class CreatableTopic(Message):
    """An item of `CreateTopicsRequest.topics`."""

    name: str = f.string()
    num_partitions: int = f.int32()
    replication_factor: int = f.int16()
    assignments: list[CreatableReplicaAssignment] = f.array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = f.array(CreatableTopicConfig)


class CreateTopicsRequest(Message, key=19, versions="2-7", flexible="5+"):
    """The request."""

    topics: list[CreatableTopic] = f.array(CreatableTopic)
    timeout_ms: int = f.int32(default=60000)
    validate_only: bool = f.boolean()


class CreatableTopicConfigs(Message):
    """An item of `CreatableTopicResult.configs`."""

    name: str = f.string()
    value: str | None = f.string(nullable="5+")
    read_only: bool = f.boolean()
    config_source: int = f.int8(default=-1, ignorable=True)
    is_sensitive: bool = f.boolean()


class CreatableTopicResult(Message):
    """An item of `CreateTopicsResponse.topics`."""

    name: str = f.string()
    topic_id: UUID = f.uuid("7+", ignorable=True)
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="2+", ignorable=True)
    topic_config_error_code: int = f.int16("5+", tag=0, ignorable=True)
    num_partitions: int = f.int32("5+", default=-1, ignorable=True)
    replication_factor: int = f.int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = f.array(CreatableTopicConfigs, "5+", nullable="5+", ignorable=True)


class CreateTopicsResponse(Message, key=19, versions="2-7", flexible="5+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    topics: list[CreatableTopicResult] = f.array(CreatableTopicResult)
