"""Pure core: ListConfigResources, API key 74, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
]


class ListConfigResourcesRequest(Message, key=74, versions="0-1", flexible="0+"):
    """The request."""

    resource_types: list[int] = f.int8s("1+")


class ConfigResource(Message):
    """An item of `ListConfigResourcesResponse.config_resources`."""

    resource_name: str = f.string()
    resource_type: int = f.int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, key=74, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    config_resources: list[ConfigResource] = f.array(ConfigResource)
