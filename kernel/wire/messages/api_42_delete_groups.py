"""Pure core: DeleteGroups, API key 42, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
]


class DeleteGroupsRequest(Message, key=42, versions="0-2", flexible="2+"):
    """The request."""

    groups_names: list[str] = f.strings()


class DeletableGroupResult(Message):
    """An item of `DeleteGroupsResponse.results`."""

    group_id: str = f.string()
    error_code: int = f.int16()


class DeleteGroupsResponse(Message, key=42, versions="0-2", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[DeletableGroupResult] = f.array(DeletableGroupResult)
