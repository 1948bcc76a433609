"""Pure core: BrokerHeartbeat, API key 63, versions 0-2."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
]


class BrokerHeartbeatRequest(Message, key=63, versions="0-2", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64(default=-1)
    current_metadata_offset: int = f.int64()
    want_fence: bool = f.boolean()
    want_shut_down: bool = f.boolean()
    offline_log_dirs: list[UUID] = f.uuids("1+", tag=0)
    cordoned_log_dirs: list[UUID] | None = f.uuids("2+", nullable="2+", default=None, tag=1)


class BrokerHeartbeatResponse(Message, key=63, versions="0-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    is_caught_up: bool = f.boolean()
    is_fenced: bool = f.boolean(default=True)
    should_shut_down: bool = f.boolean()
