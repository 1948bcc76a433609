"""Pure core: DescribeAcls, API key 29, versions 1-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeAclsRequest",
    "DescribeAclsResponse",
]


class DescribeAclsRequest(Message, key=29, versions="1-3", flexible="2+"):
    """The request."""

    resource_type_filter: int = f.int8()
    resource_name_filter: str | None = f.string(nullable="1+")
    pattern_type_filter: int = f.int8(default=3)
    principal_filter: str | None = f.string(nullable="1+")
    host_filter: str | None = f.string(nullable="1+")
    operation: int = f.int8()
    permission_type: int = f.int8()


class AclDescription(Message):
    """An item of `DescribeAclsResource.acls`."""

    principal: str = f.string()
    host: str = f.string()
    operation: int = f.int8()
    permission_type: int = f.int8()


class DescribeAclsResource(Message):
    """An item of `DescribeAclsResponse.resources`."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    pattern_type: int = f.int8(default=3)
    acls: list[AclDescription] = f.array(AclDescription)


class DescribeAclsResponse(Message, key=29, versions="1-3", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+")
    resources: list[DescribeAclsResource] = f.array(DescribeAclsResource)
