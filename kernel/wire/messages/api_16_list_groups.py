"""Pure core: ListGroups, API key 16, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ListGroupsRequest",
    "ListGroupsResponse",
]


class ListGroupsRequest(Message, key=16, versions="0-5", flexible="3+"):
    """The request."""

    states_filter: list[str] = f.strings("4+")
    types_filter: list[str] = f.strings("5+")


class ListedGroup(Message):
    """An item of `ListGroupsResponse.groups`."""

    group_id: str = f.string()
    protocol_type: str = f.string()
    group_state: str = f.string("4+", ignorable=True)
    group_type: str = f.string("5+", ignorable=True)


class ListGroupsResponse(Message, key=16, versions="0-5", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    error_code: int = f.int16()
    groups: list[ListedGroup] = f.array(ListedGroup)
