"""Pure core: AlterConfigs, API key 33, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResponse",
]


class AlterableConfig(Message):
    """An item of `AlterConfigsResource.configs`."""

    name: str = f.string()
    value: str | None = f.string(nullable="0+")


class AlterConfigsResource(Message):
    """An item of `AlterConfigsRequest.resources`."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    configs: list[AlterableConfig] = f.array(AlterableConfig)


class AlterConfigsRequest(Message, key=33, versions="0-2", flexible="2+"):
    """The request."""

    resources: list[AlterConfigsResource] = f.array(AlterConfigsResource)
    validate_only: bool = f.boolean()


class AlterConfigsResourceResponse(Message):
    """An item of `AlterConfigsResponse.responses`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    resource_type: int = f.int8()
    resource_name: str = f.string()


class AlterConfigsResponse(Message, key=33, versions="0-2", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    responses: list[AlterConfigsResourceResponse] = f.array(AlterConfigsResourceResponse)
