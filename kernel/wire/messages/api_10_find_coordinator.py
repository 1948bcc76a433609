"""Pure core: FindCoordinator, API key 10, versions 0-6."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
]


class FindCoordinatorRequest(Message, key=10, versions="0-6", flexible="3+"):
    """The request."""

    key: str = f.string("0-3")
    key_type: int = f.int8("1+")
    coordinator_keys: list[str] = f.strings("4+")


class Coordinator(Message):
    """An item of `FindCoordinatorResponse.coordinators`."""

    key: str = f.string()
    node_id: int = f.int32()
    host: str = f.string()
    port: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="4+", ignorable=True)


class FindCoordinatorResponse(Message, key=10, versions="0-6", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32("1+", ignorable=True)
    error_code: int = f.int16("0-3")
    error_message: str | None = f.string("1-3", nullable="1-3", ignorable=True)
    node_id: int = f.int32("0-3")
    host: str = f.string("0-3")
    port: int = f.int32("0-3")
    coordinators: list[Coordinator] = f.array(Coordinator, "4+")
