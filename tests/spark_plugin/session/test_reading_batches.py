"""Spark reads topics as batches: the rows that a consumer reads, by options, schema and filters."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing.running_broker import RunningBroker
from tests.spark_plugin.topic_kit import CODECS, COLUMNS, Kit, Record, Row, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICROSECONDS = "unix_micros(timestamp) AS timestamp"


@pytest.fixture(scope="module")
def rich_topic(kit: Kit) -> str:
    """Return a topic with every codec, headers, nulls, and transactions of both ends, in many segments."""
    topic = kit.new_topic(2)
    records = (
        Record(b"key", b"value", (("name", b"x"), ("name", None), ("", b"")), 1_600_000_000_123),
        Record(None, None),
        Record(b"", b"", (), 0),
        Record(b"\x00\xff", b"large" * 50),
    )
    for number, codec in enumerate(CODECS):
        for is_committed in (None, True, False):
            kit.write(topic, Write(number % 2, records, codec, is_committed))
    return topic


def rows_of(frame: DataFrame) -> list[Row]:
    """Return every column of every row, by partition and offset."""
    plain = [MICROSECONDS if name == "timestamp" else name for name in COLUMNS]
    found = []
    for row in frame.orderBy("partition", "offset").selectExpr(*plain).collect():
        cells: dict[str, Any] = row.asDict(recursive=True)
        cells["key"], cells["value"] = (cell if cell is None else bytes(cell) for cell in (row.key, row.value))
        for header in cells["headers"] or ():
            header["value"] = None if header["value"] is None else bytes(header["value"])
        found.append(tuple(cells[name] for name in COLUMNS))
    return found


@pytest.mark.usefixtures("spark")
def test_spark_finds_the_format_of_what_is_installed(read: Callable[..., DataFrame], rich_topic: str) -> None:
    import pyspark_odradek

    files = {Path(str(file.locate())).resolve() for file in distribution("odradek").files or ()}
    module = Path(str(pyspark_odradek.__file__)).resolve()

    assert module in files or "site-packages" not in module.parts  # a wheel's, as in `tox -e spark`, or a checkout's
    assert read(rich_topic).columns == [name for name in COLUMNS if name != "headers"]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_what_a_consumer_reads(
    read: Callable[..., DataFrame], kit: Kit, rich_topic: str, isolation: str
) -> None:
    frame = read(rich_topic, {"includeHeaders": "true", "kafka.isolation.level": isolation, "minPartitions": 5})

    assert rows_of(frame) == kit.consumed(rich_topic, is_read_committed=isolation == "read_committed")


def test_every_column_is_nullable_and_typed_as_the_connectors(read: Callable[..., DataFrame], rich_topic: str) -> None:
    schema = read(rich_topic, {"includeHeaders": "true"}).schema

    assert [(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields] == [
        ("key", "binary", True),
        ("value", "binary", True),
        ("topic", "string", True),
        ("partition", "int", True),
        ("offset", "bigint", True),
        ("timestamp", "timestamp", True),
        ("timestampType", "int", True),
        ("headers", "array<struct<key:string,value:binary>>", True),
    ]


def test_a_schema_of_the_users_is_a_projection(read: Callable[..., DataFrame], kit: Kit) -> None:
    topic = kit.new_topic(2)
    kit.fill(topic, 25, partition=1)

    by_schema = read(topic, schema="offset LONG, value BINARY").orderBy("offset").collect()
    by_option = read(topic, {"columns": "offset,value"}).orderBy("offset").collect()

    assert [(row.offset, bytes(row.value)) for row in by_schema] == [(n, b"value %d" % n) for n in range(25)]
    assert by_option == by_schema
    assert read(topic, schema="partition INT").count() == 25


def test_filters_trim_what_is_read_where_spark_pushes_them_down(
    spark: SparkSession, read: Callable[..., DataFrame], kit: Kit
) -> None:
    topic = kit.new_topic(2)
    kit.fill(topic, 40, partition=0)
    kit.fill(topic, 40, partition=1)
    condition = "partition = 1 AND offset >= 10 AND offset < 30"
    unfiltered = read(topic).where(condition)
    key = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(key, "true")
    try:
        filtered = read(topic).where(condition)
        tasks, count, whole = filtered.rdd.getNumPartitions(), filtered.count(), read(topic).count()
    finally:
        spark.conf.unset(key)

    assert (tasks, count, whole) == (1, 20, 80)
    assert (unfiltered.rdd.getNumPartitions(), unfiltered.count()) == (2, 20)


def test_a_view_is_made_by_sql(spark: SparkSession, broker: RunningBroker, kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 12)

    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW numbers USING odradek OPTIONS "
        f"(`kafka.bootstrap.servers` '{broker.bootstrap}', subscribe '{topic}', "
        f"""startingOffsets '{{"{topic}":{{"0":2}}}}')"""
    )

    assert spark.sql("SELECT count(*), min(offset) FROM numbers").collect()[0][:] == (10, 2)


def test_nothing_to_read_is_no_rows(read: Callable[..., DataFrame], kit: Kit) -> None:
    assert read(kit.new_topic()).collect() == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"assign": '{"x":[0]}'}, "Only one of the following options must be specified"),
        ({"startingOffsets": "erliest"}, "Expected e.g."),
        ({"minPartitions": "0"}, "minPartitions"),
        ({"kafka.auto.offset.reset": "latest"}, "auto.offset.reset"),
    ],
)
def test_a_wrong_option_fails_at_load(read: Callable[..., DataFrame], options: dict[str, str], text: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=re.escape(text)):
        read("t", options)


def test_what_is_wrong_with_the_cluster_is_told_when_the_query_is_planned(
    read: Callable[..., DataFrame], kit: Kit
) -> None:
    existing = kit.new_topic()
    frame = read(existing + "x")

    with pytest.raises(Exception, match=f"no such topic: '{existing}x'") as told:
        frame.count()

    assert f"similar: {existing}" in str(told.value)


def test_a_column_that_there_is_not_is_refused(read: Callable[..., DataFrame], kit: Kit) -> None:
    frame = read(kit.new_topic(), schema="offset LONG, valeu BINARY")

    with pytest.raises(Exception, match=r"valeu.*value"):
        frame.collect()
