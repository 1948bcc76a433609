"""Pure core: GetTelemetrySubscriptions, API key 71, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
]


class GetTelemetrySubscriptionsRequest(Message, key=71, versions="0", flexible="0+"):
    """The request."""

    client_instance_id: UUID = f.uuid()


class GetTelemetrySubscriptionsResponse(Message, key=71, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    client_instance_id: UUID = f.uuid()
    subscription_id: int = f.int32()
    accepted_compression_types: list[int] = f.int8s()
    push_interval_ms: int = f.int32()
    telemetry_max_bytes: int = f.int32()
    delta_temporality: bool = f.boolean()
    requested_metrics: list[str] = f.strings()
