"""Pure core: AlterClientQuotas, API key 49, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
]


class EntityData(Message):
    """An item of `EntryData.entity`."""

    entity_type: str = f.string()
    entity_name: str | None = f.string(nullable="0+")


class OpData(Message):
    """An item of `EntryData.ops`."""

    key: str = f.string()
    value: float = f.float64()
    remove: bool = f.boolean()


class EntryData(Message):
    """An item of `AlterClientQuotasRequest.entries`."""

    entity: list[EntityData] = f.array(EntityData)
    ops: list[OpData] = f.array(OpData)


class AlterClientQuotasRequest(Message, key=49, versions="0-1", flexible="1+"):
    """The request."""

    entries: list[EntryData] = f.array(EntryData)
    validate_only: bool = f.boolean()


class ResponseEntityData(Message):
    """An item of `ResponseEntryData.entity`."""

    entity_type: str = f.string()
    entity_name: str | None = f.string(nullable="0+")


class ResponseEntryData(Message):
    """An item of `AlterClientQuotasResponse.entries`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    entity: list[ResponseEntityData] = f.array(ResponseEntityData)


class AlterClientQuotasResponse(Message, key=49, versions="0-1", flexible="1+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    entries: list[ResponseEntryData] = f.array(ResponseEntryData)
