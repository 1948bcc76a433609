"""Pure core: CreateAcls, API key 30, versions 1-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "CreateAclsRequest",
    "CreateAclsResponse",
]


class AclCreation(Message):
    """An item of `CreateAclsRequest.creations`."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    resource_pattern_type: int = f.int8(default=3)
    principal: str = f.string()
    host: str = f.string()
    operation: int = f.int8()
    permission_type: int = f.int8()


class CreateAclsRequest(Message, key=30, versions="1-3", flexible="2+"):
    """The request."""

    creations: list[AclCreation] = f.array(AclCreation)


class AclCreationResult(Message):
    """An item of `CreateAclsResponse.results`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+")


class CreateAclsResponse(Message, key=30, versions="1-3", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[AclCreationResult] = f.array(AclCreationResult)
