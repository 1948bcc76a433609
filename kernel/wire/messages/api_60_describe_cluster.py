"""Pure core: DescribeCluster, API key 60, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeClusterRequest",
    "DescribeClusterResponse",
]


class DescribeClusterRequest(Message, key=60, versions="0-2", flexible="0+"):
    """The request."""

    include_cluster_authorized_operations: bool = f.boolean()
    endpoint_type: int = f.int8("1+", default=1)
    include_fenced_brokers: bool = f.boolean("2+")


class DescribeClusterBroker(Message):
    """An item of `DescribeClusterResponse.brokers`."""

    broker_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    rack: str | None = f.string(nullable="0+", default=None)
    is_fenced: bool = f.boolean("2+")


class DescribeClusterResponse(Message, key=60, versions="0-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    endpoint_type: int = f.int8("1+", default=1)
    cluster_id: str = f.string()
    controller_id: int = f.int32(default=-1)
    brokers: list[DescribeClusterBroker] = f.array(DescribeClusterBroker)
    cluster_authorized_operations: int = f.int32(default=-2147483648)
