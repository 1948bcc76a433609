"""Columns: projections of a source, what a sink takes."""

from __future__ import annotations

import pickle

import pytest

from odradek.kernel.records.columns import Column
from odradek.spark_plugin.errors import SchemaError
from odradek.spark_plugin.schema import FIELDS, projection_of, sink_columns

HEADERS_TYPE = "array<struct<key:string,value:binary>>"
PLAIN = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
VALUE = ("value", "binary")


@pytest.mark.parametrize(
    ("include_headers", "strips", "expected"),
    [
        (False, False, PLAIN),
        (True, False, (*PLAIN, "headers")),
        (False, True, (*PLAIN, "schemaId")),
        (True, True, (*PLAIN, "headers", "schemaId")),
    ],
)
def test_without_a_schema_every_column_is_read(include_headers: bool, strips: bool, expected: tuple[str, ...]) -> None:
    projection = projection_of(None, include_headers=include_headers, strips_wire_format=strips)

    assert projection.names == expected


def test_the_schema_is_that_of_spark_s_connector() -> None:
    assert projection_of(None, include_headers=True).ddl == (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,"
        " headers array<struct<key:string,value:binary>>"
    )


@pytest.mark.parametrize(
    ("schema", "names", "columns"),
    [
        ([VALUE], ("value",), Column.VALUE),
        ([("offset", "bigint"), VALUE], ("offset", "value"), Column.OFFSET | Column.VALUE),
        ([("offset", "LONG")], ("offset",), Column.OFFSET),
        ([("partition", "INTEGER")], ("partition",), Column(0)),
        ([("topic", "string"), ("partition", "int")], ("topic", "partition"), Column(0)),
        ([("timestamp", "timestamp"), ("timestampType", "int")], ("timestamp", "timestampType"), Column(8 | 16)),
        ([("headers", HEADERS_TYPE), ("key", "binary")], ("headers", "key"), Column.HEADERS | Column.KEY),
    ],
)
def test_a_schema_is_a_projection(schema: list[tuple[str, str]], names: tuple[str, ...], columns: Column) -> None:
    projection = projection_of(schema)

    assert (projection.names, projection.columns) == (names, columns)
    assert pickle.loads(pickle.dumps(projection)) == projection


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([("payload", "binary")], "the schema has a column 'payload'; there are key, value, topic"),
        ([("Value", "binary")], "Did you mean 'value'?"),
        ([("timestamp_type", "int")], "Did you mean 'timestampType'?"),
        ([("value", "string")], "column 'value' of type string; it is binary: cast it in the query"),
        ([("offset", "int")], "column 'offset' of type int; it is bigint"),
        ([("timestamp", "timestamp_ntz")], "it is timestamp"),
        ([("headers", "map<string,binary>")], f"it is {HEADERS_TYPE}"),
        ([VALUE, VALUE], "the schema has a column twice: value"),
        ([("schemaId", "int")], "which there is with confluentWireFormat=strip only"),
        ([], "the schema names no column"),
    ],
)
def test_a_schema_that_is_no_projection_is_refused(schema: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(SchemaError) as refused:
        projection_of(schema)

    assert message in str(refused.value)


def test_the_option_columns_is_the_same_as_a_schema() -> None:
    assert projection_of(None, columns=("value", "headers")).names == ("value", "headers")
    assert projection_of([VALUE], columns=("value",)).names == ("value",)
    assert projection_of([("schemaId", "int"), VALUE], strips_wire_format=True).strips_wire_format
    with pytest.raises(SchemaError, match="columns value, and the option 'columns' key, value: give"):
        projection_of([VALUE], columns=("key", "value"))
    with pytest.raises(SchemaError, match="option 'columns' has a column 'x'"):
        projection_of(None, columns=("x",))
    with pytest.raises(SchemaError, match="option 'columns' names no column"):
        projection_of(None, columns=())


def test_every_column_of_the_source_is_read_with_its_own_type() -> None:
    schema = [(field.name, field.type) for field in FIELDS.values()]

    assert projection_of(schema, strips_wire_format=True).names == tuple(FIELDS)


@pytest.mark.parametrize(
    ("schema", "topic", "expected"),
    [
        ([VALUE], "t", {"value": "binary"}),
        ([("value", "string"), ("key", "binary")], "t", {"value": "string", "key": "binary"}),
        ([VALUE, ("topic", "string")], None, {"value": "binary", "topic": "string"}),
        ([VALUE, ("topic", "int")], "t", {"value": "binary"}),
        (
            [VALUE, ("partition", "int"), ("headers", HEADERS_TYPE), ("timestamp", "timestamp"), ("other", "double")],
            "t",
            {"value": "binary", "partition": "int", "headers": HEADERS_TYPE, "timestamp": "timestamp"},
        ),
    ],
)
def test_a_sink_writes(schema: list[tuple[str, str]], topic: str | None, expected: dict[str, str]) -> None:
    columns = sink_columns(schema, topic=topic)

    assert columns.types == expected
    assert all(schema[columns.positions[name]][0] == name for name in expected)
    assert "value" in columns
    assert "other" not in columns


@pytest.mark.parametrize(
    ("schema", "topic", "message"),
    [
        ([VALUE], None, "topic option required when no 'topic' attribute is present"),
        ([VALUE, ("Topic", "string")], None, "Did you mean 'Topic'?"),
        ([("key", "binary")], "t", "Required attribute 'value' not found among key."),
        ([], "t", "Required attribute 'value' not found among no columns."),
        ([("Value", "binary")], "t", "Did you mean 'Value'?"),
        ([("value", "int")], "t", "value attribute unsupported type int. value must be a(n) string or binary"),
        ([VALUE, ("key", "bigint")], "t", "key attribute unsupported type bigint. key must be a(n) string or binary"),
        ([VALUE, ("topic", "binary")], None, "topic attribute unsupported type binary. topic must be a(n) string"),
        (
            [VALUE, ("partition", "bigint")],
            "t",
            "partition attribute unsupported type bigint. partition must be a(n) int",
        ),
        ([VALUE, ("headers", "string")], "t", f"headers must be a(n) {HEADERS_TYPE}"),
        ([VALUE, ("timestamp", "bigint")], "t", "timestamp must be a(n) timestamp: cast the column, or drop it"),
        ([VALUE, VALUE], "t", "the column 'value' is there twice"),
    ],
)
def test_what_a_record_does_not_take_is_refused(schema: list[tuple[str, str]], topic: str | None, message: str) -> None:
    with pytest.raises(SchemaError) as refused:
        sink_columns(schema, topic=topic)

    assert message in str(refused.value)
