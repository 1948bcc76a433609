"""Pure core: UnregisterBroker, API key 64, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
]


class UnregisterBrokerRequest(Message, key=64, versions="0", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()


class UnregisterBrokerResponse(Message, key=64, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
