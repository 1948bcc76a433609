"""Pure core: SyncGroup, API key 14, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "SyncGroupRequest",
    "SyncGroupResponse",
]


class SyncGroupRequestAssignment(Message):
    """An item of `SyncGroupRequest.assignments`."""

    member_id: str = f.string()
    assignment: bytes = f.binary()


class SyncGroupRequest(Message, key=14, versions="0-5", flexible="4+"):
    """The request."""

    group_id: str = f.string()
    generation_id: int = f.int32()
    member_id: str = f.string()
    group_instance_id: str | None = f.string("3+", nullable="3+", default=None)
    protocol_type: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = f.array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, key=14, versions="0-5", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    error_code: int = f.int16()
    protocol_type: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = f.binary()
