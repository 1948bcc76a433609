"""Pure core: columns: those that a source has, which of them a query reads, and those that a sink writes.

| column of the source | type | |
| --- | --- | --- |
| `key`, `value` | binary | null where the record has none |
| `topic` | string | |
| `partition` | int | |
| `offset` | bigint | |
| `timestamp` | timestamp | of the record, or of the append, as `timestampType` says |
| `timestampType` | int | 0 CreateTime, 1 LogAppendTime |
| `headers` | array of key and value | with `includeHeaders`, or when it is asked for by name |
| `schemaId` | int | with `confluentWireFormat=strip` |

A schema that a user gives is a projection of these: any of them, in any order. What is left out is neither decoded nor
sent to the JVM. Schemas are given as names and types, as Spark writes types, so that nothing here needs pyspark.

*Source:* Spark's Kafka integration guide; `KafkaWriter` of its connector 4.2.0, by what it refuses.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from odradek.kernel.records.columns import Column

from .errors import SchemaError

__all__ = [
    "DEAD_LETTER_ORIGIN",
    "DEAD_LETTER_REASON",
    "FIELDS",
    "HEADERS",
    "SCHEMA_ID",
    "SINK_TYPES",
    "Projection",
    "SinkColumns",
    "dead_letter_columns",
    "projection_of",
    "sink_columns",
]

HEADERS: Final = "headers"
SCHEMA_ID: Final = "schemaId"
DEAD_LETTER_REASON: Final = "deadLetterReason"
DEAD_LETTER_ORIGIN: Final = "deadLetterOrigin"
_HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


@attrs.frozen
class Field:
    """A column of the source.

    Attributes:
        name: Its name.
        type: As Spark writes it.
        column: What has to be decoded for it; nothing for constants of a range.
    """

    name: str
    type: str
    column: Column


FIELDS: Final[Mapping[str, Field]] = {
    field.name: field
    for field in (
        Field("key", "binary", Column.KEY),
        Field("value", "binary", Column.VALUE),
        Field("topic", "string", Column(0)),
        Field("partition", "int", Column(0)),
        Field("offset", "bigint", Column.OFFSET),
        Field("timestamp", "timestamp", Column.TIMESTAMP),
        Field("timestampType", "int", Column.TIMESTAMP_TYPE),
        Field(HEADERS, _HEADERS_TYPE, Column.HEADERS),
        Field(SCHEMA_ID, "int", Column.VALUE),
    )
}
"""Every column there can be, in the order of a source without a schema. Each is nullable, as the connector has them."""

SINK_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "partition": ("int",),
    HEADERS: (_HEADERS_TYPE,),
    "timestamp": ("timestamp",),
}
"""What a sink takes, by the name of a column; every other column is let pass and not written."""

_DEAD_LETTER_TYPES: Final = {
    DEAD_LETTER_REASON: "string",
    DEAD_LETTER_ORIGIN: "struct<topic:string,partition:int,offset:bigint>",
}
_OTHER_SPELLINGS: Final = {"long": "bigint", "integer": "int"}


@attrs.frozen
class Projection:
    """Which columns a query reads, in its order. Can be pickled.

    Attributes:
        names: The columns' names, at least one.
        strips_wire_format: Whether a schema registry's 5 bytes are taken off `value`.
    """

    names: tuple[str, ...]
    strips_wire_format: bool = False

    @property
    def columns(self) -> Column:
        """What has to be decoded of each record."""
        wanted = Column(0)
        for name in self.names:
            wanted |= FIELDS[name].column
        return wanted

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        return ", ".join(f"{name} {FIELDS[name].type}" for name in self.names)


def projection_of(
    schema: Sequence[tuple[str, str]] | None,
    *,
    columns: Sequence[str] | None = None,
    include_headers: bool = False,
    strips_wire_format: bool = False,
) -> Projection:
    """Return the columns that a query reads.

    Args:
        schema: Names and types of what Spark expects: what a user gave, or what this said before. None when Spark asks.
        columns: As the option.
        include_headers: As the option.
        strips_wire_format: Whether `confluentWireFormat` is `strip`.

    Raises:
        SchemaError: A column is not there, is there twice, or has another type; or schema and `columns` differ.
    """
    absent = set() if strips_wire_format else {SCHEMA_ID}
    if columns is not None:
        _check_names(columns, absent, "option 'columns'")
    if schema is None:
        if not include_headers:
            absent = absent | {HEADERS}
        names = columns if columns is not None else [name for name in FIELDS if name not in absent]
        return Projection(tuple(names), strips_wire_format)
    given = [name for name, _ in schema]
    _check_names(given, absent, "the schema")
    for name, type_name in schema:
        expected = FIELDS[name].type
        if _plain(type_name) != expected:
            raise SchemaError(
                f"the schema has column '{name}' of type {type_name}; it is {expected}: cast it in the query, a source"
                " only leaves columns out"
            )
    if columns is not None and list(columns) != given:
        raise SchemaError(
            f"the schema has the columns {', '.join(given)}, and the option 'columns' {', '.join(columns)}: give one"
        )
    return Projection(tuple(given), strips_wire_format)


@attrs.frozen
class SinkColumns:
    """Which columns of a query are written, and what each is.

    Attributes:
        types: Name to type as Spark writes it, of those that are there; `value` always is.
        positions: Name to place among the columns of the query.
    """

    types: Mapping[str, str]
    positions: Mapping[str, int]

    def __contains__(self, name: str) -> bool:
        return name in self.types


def sink_columns(schema: Sequence[tuple[str, str]], *, topic: str | None) -> SinkColumns:
    """Return what is written of a query's columns.

    Args:
        schema: Names and types of the query's columns, as Spark writes types.
        topic: As the option; a column `topic` is then not looked at.

    Raises:
        SchemaError: There is no value or no topic, or a column has a type that a record does not take.
    """
    types: dict[str, str] = {}
    positions: dict[str, int] = {}
    for place, (name, type_name) in enumerate(schema):
        if name not in SINK_TYPES or (name == "topic" and topic is not None):
            continue
        if name in types:
            raise SchemaError(f"the column '{name}' is there twice")
        types[name], positions[name] = _plain(type_name), place
    given = [name for name, _ in schema]
    if topic is None and "topic" not in types:
        raise SchemaError(
            "topic option required when no 'topic' attribute is present: use the option 'topic' to set one for all"
            f" rows, or a column 'topic'.{_meant('topic', given)}"
        )
    if "value" not in types:
        raise SchemaError(
            f"Required attribute 'value' not found among {', '.join(given) or 'no columns'}.{_meant('value', given)}"
        )
    for name, type_name in types.items():
        if type_name not in SINK_TYPES[name]:
            raise SchemaError(
                f"{name} attribute unsupported type {type_name}. {name} must be a(n) {' or '.join(SINK_TYPES[name])}:"
                " cast the column, or drop it"
            )
    return SinkColumns(types, positions)


def dead_letter_columns(schema: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return where the columns are that say which rows of a query are dead letters.

    Args:
        schema: Names and types of the query's columns, as Spark writes types.

    Raises:
        SchemaError: There is none that says why, or one has another type, or is there twice.
    """
    found: dict[str, int] = {}
    for place, (name, type_name) in enumerate(schema):
        expected = _DEAD_LETTER_TYPES.get(name)
        if expected is None:
            continue
        if name in found:
            raise SchemaError(f"the column '{name}' is there twice")
        if _plain(type_name) != expected:
            raise SchemaError(f"the column '{name}' is of type {type_name}; it has to be {expected}")
        found[name] = place
    if DEAD_LETTER_REASON not in found:
        given = [name for name, _ in schema]
        raise SchemaError(
            f"the option 'deadLetterTopic' needs a column '{DEAD_LETTER_REASON}': why a row is a dead letter, null for"
            f" any other.{_meant(DEAD_LETTER_REASON, given)}"
        )
    return found


def _check_names(names: Sequence[str], absent: set[str], where: str) -> None:
    known = [name for name in FIELDS if name not in absent]
    if not names:
        raise SchemaError(f"{where} names no column; there are {', '.join(known)}")
    for name in names:
        if name == SCHEMA_ID and name in absent:
            raise SchemaError(f"{where} has a column '{name}', which there is with confluentWireFormat=strip only")
        if name not in FIELDS:
            raise SchemaError(f"{where} has a column '{name}'; there are {', '.join(known)}.{_meant(name, known)}")
    doubles = sorted({name for name in names if list(names).count(name) > 1})
    if doubles:
        raise SchemaError(f"{where} has a column twice: {', '.join(doubles)}")


def _meant(name: str, known: Sequence[str]) -> str:
    lower = {one.lower(): one for one in known if one != name}
    nearest = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return f" Did you mean '{lower[nearest[0]]}'?" if nearest else ""


def _plain(type_name: str) -> str:
    plain = type_name.strip().lower()
    return _OTHER_SPELLINGS.get(plain, plain)
