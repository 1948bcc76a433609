"""Filters that are pushed down to topics: what is read still has every row that passes, whatever the times are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.spark_plugin.reading.batch_reader import BatchReader
from odradek.spark_plugin.reading.filters import Filter
from odradek.spark_plugin.reading.read_task import read
from odradek.testing.running_broker import running_broker
from tests.spark_plugin.topic_kit import Kit, Record, Write, open_kit

BEGIN_MS = 1_600_000_000_000
SCHEMA = [("topic", "string"), ("partition", "int"), ("offset", "bigint"), ("timestamp", "timestamp")]
NAMES = [name for name, _ in SCHEMA]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": lambda have, value: have == value,
    "GreaterThan": lambda have, value: have > value,
    "GreaterThanOrEqual": lambda have, value: have >= value,
    "LessThan": lambda have, value: have < value,
    "LessThanOrEqual": lambda have, value: have <= value,
    "In": lambda have, value: have in value,
}


@attrs.frozen
class Topics:
    """Two topics whose records are in no order of their times, with all of their rows."""

    kit: Kit
    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def reader(self) -> BatchReader:
        options = {"kafka.bootstrap.servers": self.kit.bootstrap, "subscribe": ",".join(self.names)}
        return BatchReader.of(options, SCHEMA)


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    random = Random(6)
    with running_broker({"log.retention.ms": -1}) as broker, open_kit(broker.bootstrap) as kit:
        names = tuple(kit.new_topic(2) for _ in range(2))
        for name in names:
            for _ in range(25):
                times = [BEGIN_MS + random.randrange(40) for _ in range(random.randrange(1, 4))]
                kit.write(name, Write(random.randrange(2), tuple(Record(b"k", b"v", (), time) for time in times)))
        whole = Topics(kit, names, [])
        yield attrs.evolve(whole, rows=rows_of(whole.reader()))


def rows_of(reader: BatchReader) -> list[tuple[Any, ...]]:
    batches = [rows for task in reader.plan() for rows in read(task)]
    return [tuple(row[name] for name in NAMES) for rows in batches for row in rows.to_pylist()]


def pyspark_filter(one: Filter) -> object:
    """Return a filter that looks like pyspark's."""
    inner = type(one.name, (), {"attribute": (one.column,), "value": one.value})()
    return type("Not", (), {"child": inner})() if one.is_negated else inner


def passes(row: tuple[Any, ...], filters: list[Filter]) -> bool:
    have = dict(zip(NAMES, row, strict=True))
    return all(COMPARISONS[one.name](have[one.column], one.value) is not one.is_negated for one in filters)


TIMES = st.integers(-1_000, 41_000).map(
    lambda count: datetime.fromtimestamp(BEGIN_MS // 1_000, UTC) + timedelta(microseconds=count)
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["kit0-0", "kit0-1", "other"]),
    "partition": st.integers(0, 2),
    "offset": st.integers(0, 40),
    "timestamp": TIMES,
}


@st.composite
def filters(draw: st.DrawFn) -> list[Filter]:
    found = []
    for column in draw(st.lists(st.sampled_from(NAMES), max_size=3)):
        name = draw(st.sampled_from(sorted(COMPARISONS)))
        value = draw(st.lists(VALUES[column], max_size=3).map(tuple) if name == "In" else VALUES[column])
        found.append(Filter(name, column, value, draw(st.booleans())))
    return found


@settings(max_examples=60)
@given(given_filters=filters())
def test_every_row_that_passes_is_read(topics: Topics, given_filters: list[Filter]) -> None:
    reader = topics.reader()
    reader.push([pyspark_filter(one) for one in given_filters])
    rows = rows_of(reader)

    assert set(rows) <= set(topics.rows)
    assert [row for row in rows if passes(row, given_filters)] == [
        row for row in topics.rows if passes(row, given_filters)
    ]


def test_filters_leave_out_what_need_not_be_read(topics: Topics) -> None:
    first, _ = topics.names
    reader = topics.reader()
    reader.push([pyspark_filter(one) for one in (Filter("EqualTo", "topic", first), Filter("LessThan", "offset", 3))])

    assert rows_of(reader) == [row for row in topics.rows if row[0] == first and row[2] < 3]


def test_a_time_that_is_over_leaves_nothing_to_read(topics: Topics) -> None:
    reader = topics.reader()
    reader.push([pyspark_filter(Filter("GreaterThan", "timestamp", datetime(2030, 1, 1, tzinfo=UTC)))])

    assert reader.plan() == []
