"""Pure core: PushTelemetry, API key 72, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "PushTelemetryRequest",
    "PushTelemetryResponse",
]


class PushTelemetryRequest(Message, key=72, versions="0", flexible="0+"):
    """The request."""

    client_instance_id: UUID = f.uuid()
    subscription_id: int = f.int32()
    terminating: bool = f.boolean()
    compression_type: int = f.int8()
    metrics: bytes = f.binary()


class PushTelemetryResponse(Message, key=72, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
