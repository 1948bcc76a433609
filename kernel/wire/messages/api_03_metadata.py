"""Pure core: Metadata, API key 3, versions 0-13."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "MetadataRequest",
    "MetadataResponse",
]


class MetadataRequestTopic(Message):
    """An item of `MetadataRequest.topics`."""

    topic_id: UUID = f.uuid("10+", ignorable=True)
    name: str | None = f.string(nullable="10+")


class MetadataRequest(Message, key=3, versions="0-13", flexible="9+"):
    """The request."""

    topics: list[MetadataRequestTopic] | None = f.array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = f.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = f.boolean("8-10")
    include_topic_authorized_operations: bool = f.boolean("8+")


class MetadataResponseBroker(Message):
    """An item of `MetadataResponse.brokers`."""

    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Message):
    """An item of `MetadataResponseTopic.partitions`."""

    error_code: int = f.int16()
    partition_index: int = f.int32()
    leader_id: int = f.int32()
    leader_epoch: int = f.int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = f.int32s()
    isr_nodes: list[int] = f.int32s()
    offline_replicas: list[int] = f.int32s("5+", ignorable=True)


class MetadataResponseTopic(Message):
    """An item of `MetadataResponse.topics`."""

    error_code: int = f.int16()
    name: str | None = f.string(nullable="12+")
    topic_id: UUID = f.uuid("10+", ignorable=True)
    is_internal: bool = f.boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = f.array(MetadataResponsePartition)
    topic_authorized_operations: int = f.int32("8+", default=-2147483648)


class MetadataResponse(Message, key=3, versions="0-13", flexible="9+"):
    """The response."""

    throttle_time_ms: int = f.int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = f.array(MetadataResponseBroker)
    cluster_id: str | None = f.string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = f.int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = f.array(MetadataResponseTopic)
    cluster_authorized_operations: int = f.int32("8-10", default=-2147483648)
    error_code: int = f.int16("13+", ignorable=True)
