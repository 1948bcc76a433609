"""Pure core: DescribeGroups, API key 15, versions 0-6."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
]


class DescribeGroupsRequest(Message, key=15, versions="0-6", flexible="5+"):
    """The request."""

    groups: list[str] = f.strings()
    include_authorized_operations: bool = f.boolean("3+")


class DescribedGroupMember(Message):
    """An item of `DescribedGroup.members`."""

    member_id: str = f.string()
    group_instance_id: str | None = f.string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = f.string()
    client_host: str = f.string()
    member_metadata: bytes = f.binary()
    member_assignment: bytes = f.binary()


class DescribedGroup(Message):
    """An item of `DescribeGroupsResponse.groups`."""

    error_code: int = f.int16()
    error_message: str | None = f.string("6+", nullable="6+", default=None)
    group_id: str = f.string()
    group_state: str = f.string()
    protocol_type: str = f.string()
    protocol_data: str = f.string()
    members: list[DescribedGroupMember] = f.array(DescribedGroupMember)
    authorized_operations: int = f.int32("3+", default=-2147483648)


class DescribeGroupsResponse(Message, key=15, versions="0-6", flexible="5+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    groups: list[DescribedGroup] = f.array(DescribedGroup)
