"""Pure core: JoinGroup, API key 11, versions 0-9."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "JoinGroupRequest",
    "JoinGroupResponse",
]


class JoinGroupRequestProtocol(Message):
    """An item of `JoinGroupRequest.protocols`."""

    name: str = f.string()
    metadata: bytes = f.binary()


class JoinGroupRequest(Message, key=11, versions="0-9", flexible="6+"):
    """The request."""

    group_id: str = f.string()
    session_timeout_ms: int = f.int32()
    rebalance_timeout_ms: int = f.int32("1+", default=-1, ignorable=True)
    member_id: str = f.string()
    group_instance_id: str | None = f.string("5+", nullable="5+", default=None)
    protocol_type: str = f.string()
    protocols: list[JoinGroupRequestProtocol] = f.array(JoinGroupRequestProtocol)
    reason: str | None = f.string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Message):
    """An item of `JoinGroupResponse.members`."""

    member_id: str = f.string()
    group_instance_id: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = f.binary()


class JoinGroupResponse(Message, key=11, versions="0-9", flexible="6+"):
    """The response."""

    throttle_time_ms: int = f.int32("2+", ignorable=True)
    error_code: int = f.int16()
    generation_id: int = f.int32(default=-1)
    protocol_type: str | None = f.string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = f.string(nullable="7+")
    leader: str = f.string()
    skip_assignment: bool = f.boolean("9+")
    member_id: str = f.string()
    members: list[JoinGroupResponseMember] = f.array(JoinGroupResponseMember)
