"""Pure core: DescribeConfigs, API key 32, versions 1-4."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
]


class DescribeConfigsResource(Message):
    """An item of `DescribeConfigsRequest.resources`."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    configuration_keys: list[str] | None = f.strings(nullable="1+")


class DescribeConfigsRequest(Message, key=32, versions="1-4", flexible="4+"):
    """The request."""

    resources: list[DescribeConfigsResource] = f.array(DescribeConfigsResource)
    include_synonyms: bool = f.boolean()
    include_documentation: bool = f.boolean("3+")


class DescribeConfigsSynonym(Message):
    """An item of `DescribeConfigsResourceResult.synonyms`."""

    name: str = f.string()
    value: str | None = f.string(nullable="1+")
    source: int = f.int8()


class DescribeConfigsResourceResult(Message):
    """An item of `DescribeConfigsResult.configs`."""

    name: str = f.string()
    value: str | None = f.string(nullable="1+")
    read_only: bool = f.boolean()
    config_source: int = f.int8(default=-1, ignorable=True)
    is_sensitive: bool = f.boolean()
    synonyms: list[DescribeConfigsSynonym] = f.array(DescribeConfigsSynonym, ignorable=True)
    config_type: int = f.int8("3+", ignorable=True)
    documentation: str | None = f.string("3+", nullable="3+", ignorable=True)


class DescribeConfigsResult(Message):
    """An item of `DescribeConfigsResponse.results`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+")
    resource_type: int = f.int8()
    resource_name: str = f.string()
    configs: list[DescribeConfigsResourceResult] = f.array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message, key=32, versions="1-4", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[DescribeConfigsResult] = f.array(DescribeConfigsResult)
