"""Pure core: LeaveGroup, API key 13, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "LeaveGroupRequest",
    "LeaveGroupResponse",
]


class MemberIdentity(Message):
    """An item of `LeaveGroupRequest.members`."""

    member_id: str = f.string()
    group_instance_id: str | None = f.string(nullable="3+", default=None)
    reason: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, key=13, versions="0-5", flexible="4+"):
    """The request."""

    group_id: str = f.string()
    member_id: str = f.string("0-2")
    members: list[MemberIdentity] = f.array(MemberIdentity, "3+")


class MemberResponse(Message):
    """An item of `LeaveGroupResponse.members`."""

    member_id: str = f.string()
    group_instance_id: str | None = f.string(nullable="3+")
    error_code: int = f.int16()


class LeaveGroupResponse(Message, key=13, versions="0-5", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    error_code: int = f.int16()
    members: list[MemberResponse] = f.array(MemberResponse, "3+")
