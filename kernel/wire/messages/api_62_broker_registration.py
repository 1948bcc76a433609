"""Pure core: BrokerRegistration, API key 62, versions 0-4."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
]


class Listener(Message):
    """An item of `BrokerRegistrationRequest.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()
    security_protocol: int = f.int16()


class Feature(Message):
    """An item of `BrokerRegistrationRequest.features`."""

    name: str = f.string()
    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class BrokerRegistrationRequest(Message, key=62, versions="0-4", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()
    cluster_id: str = f.string()
    incarnation_id: UUID = f.uuid()
    listeners: list[Listener] = f.array(Listener)
    features: list[Feature] = f.array(Feature)
    rack: str | None = f.string(nullable="0+")
    is_migrating_zk_broker: bool = f.boolean("1+")
    log_dirs: list[UUID] = f.uuids("2+", ignorable=True)
    previous_broker_epoch: int = f.int64("3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, key=62, versions="0-4", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    broker_epoch: int = f.int64(default=-1)
