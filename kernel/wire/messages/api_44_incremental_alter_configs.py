"""Pure core: IncrementalAlterConfigs, API key 44, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


class AlterableConfig(Message):
    """An item of `AlterConfigsResource.configs`."""

    name: str = f.string()
    config_operation: int = f.int8()
    value: str | None = f.string(nullable="0+")


class AlterConfigsResource(Message):
    """An item of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    configs: list[AlterableConfig] = f.array(AlterableConfig)


class IncrementalAlterConfigsRequest(Message, key=44, versions="0-1", flexible="1+"):
    """The request."""

    resources: list[AlterConfigsResource] = f.array(AlterConfigsResource)
    validate_only: bool = f.boolean()


class AlterConfigsResourceResponse(Message):
    """An item of `IncrementalAlterConfigsResponse.responses`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    resource_type: int = f.int8()
    resource_name: str = f.string()


class IncrementalAlterConfigsResponse(Message, key=44, versions="0-1", flexible="1+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    responses: list[AlterConfigsResourceResponse] = f.array(AlterConfigsResourceResponse)
