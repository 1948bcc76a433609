"""Pure core: DeleteAcls, API key 31, versions 1-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteAclsRequest",
    "DeleteAclsResponse",
]


class DeleteAclsFilter(Message):
    """An item of `DeleteAclsRequest.filters`."""

    resource_type_filter: int = f.int8()
    resource_name_filter: str | None = f.string(nullable="1+")
    pattern_type_filter: int = f.int8(default=3)
    principal_filter: str | None = f.string(nullable="1+")
    host_filter: str | None = f.string(nullable="1+")
    operation: int = f.int8()
    permission_type: int = f.int8()


class DeleteAclsRequest(Message, key=31, versions="1-3", flexible="2+"):
    """The request."""

    filters: list[DeleteAclsFilter] = f.array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Message):
    """An item of `DeleteAclsFilterResult.matching_acls`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+")
    resource_type: int = f.int8()
    resource_name: str = f.string()
    pattern_type: int = f.int8(default=3)
    principal: str = f.string()
    host: str = f.string()
    operation: int = f.int8()
    permission_type: int = f.int8()


class DeleteAclsFilterResult(Message):
    """An item of `DeleteAclsResponse.filter_results`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+")
    matching_acls: list[DeleteAclsMatchingAcl] = f.array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Message, key=31, versions="1-3", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    filter_results: list[DeleteAclsFilterResult] = f.array(DeleteAclsFilterResult)
