"""Pure core: Heartbeat, API key 12, versions 0-4."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
]


class HeartbeatRequest(Message, key=12, versions="0-4", flexible="4+"):
    """The request."""

    group_id: str = f.string()
    generation_id: int = f.int32()
    member_id: str = f.string()
    group_instance_id: str | None = f.string("3+", nullable="3+", default=None)


class HeartbeatResponse(Message, key=12, versions="0-4", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    error_code: int = f.int16()
