"""Pure core: DescribeClientQuotas, API key 48, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
]


class ComponentData(Message):
    """An item of `DescribeClientQuotasRequest.components`."""

    entity_type: str = f.string()
    match_type: int = f.int8()
    match: str | None = f.string(nullable="0+")


class DescribeClientQuotasRequest(Message, key=48, versions="0-1", flexible="1+"):
    """The request."""

    components: list[ComponentData] = f.array(ComponentData)
    strict: bool = f.boolean()


class EntityData(Message):
    """An item of `EntryData.entity`."""

    entity_type: str = f.string()
    entity_name: str | None = f.string(nullable="0+")


class ValueData(Message):
    """An item of `EntryData.values`."""

    key: str = f.string()
    value: float = f.float64()


class EntryData(Message):
    """An item of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = f.array(EntityData)
    values: list[ValueData] = f.array(ValueData)


class DescribeClientQuotasResponse(Message, key=48, versions="0-1", flexible="1+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    entries: list[EntryData] | None = f.array(EntryData, nullable="0+")
