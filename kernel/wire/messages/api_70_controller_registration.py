"""Pure core: ControllerRegistration, API key 70, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
]


class Listener(Message):
    """An item of `ControllerRegistrationRequest.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()
    security_protocol: int = f.int16()


class Feature(Message):
    """An item of `ControllerRegistrationRequest.features`."""

    name: str = f.string()
    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class ControllerRegistrationRequest(Message, key=70, versions="0", flexible="0+"):
    """The request."""

    controller_id: int = f.int32()
    incarnation_id: UUID = f.uuid()
    zk_migration_ready: bool = f.boolean()
    listeners: list[Listener] = f.array(Listener)
    features: list[Feature] = f.array(Feature)


class ControllerRegistrationResponse(Message, key=70, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
