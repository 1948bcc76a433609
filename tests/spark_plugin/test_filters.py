"""Filters: what they take away, and that they never take away what matches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.ranges import OffsetRange, TopicPartition
from odradek.spark_plugin.reading.filters import Filter, push

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
NOON_MS = 1_795_348_800_000
RANGES = [OffsetRange("a", 0, 10, 20), OffsetRange("a", 1, 0, 5), OffsetRange("b", 0, 100, 200)]


def left(*filters: Filter, first: dict[TopicPartition, int] | None = None) -> list[tuple[str, int, int]]:
    return [(str(one.topic_partition), one.start, one.end) for one in push(filters).applied(RANGES, first)]


ALL = [("a-0", 10, 20), ("a-1", 0, 5), ("b-0", 100, 200)]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Filter("EqualTo", "topic", "a"), ALL[:2]),
        (Filter("EqualNullSafe", "topic", "b"), ALL[2:]),
        (Filter("EqualTo", "topic", "a", is_negated=True), ALL[2:]),
        (Filter("In", "topic", ("b", "c")), ALL[2:]),
        (Filter("In", "topic", ("a",), is_negated=True), ALL[2:]),
        (Filter("StringStartsWith", "topic", "b"), ALL[2:]),
        (Filter("StringEndsWith", "topic", "x"), []),
        (Filter("StringContains", "topic", "a"), ALL[:2]),
        (Filter("GreaterThan", "topic", "a"), ALL[2:]),
        (Filter("EqualTo", "partition", 0), [ALL[0], ALL[2]]),
        (Filter("GreaterThanOrEqual", "partition", 1), ALL[1:2]),
        (Filter("LessThan", "partition", 1), [ALL[0], ALL[2]]),
        (Filter("In", "partition", (1, 7)), ALL[1:2]),
        (Filter("EqualTo", "offset", 15), [("a-0", 15, 16)]),
        (Filter("EqualNullSafe", "offset", 4), [("a-1", 4, 5)]),
        (Filter("GreaterThan", "offset", 18), [("a-0", 19, 20), ("b-0", 100, 200)]),
        (Filter("GreaterThanOrEqual", "offset", 150), [("b-0", 150, 200)]),
        (Filter("LessThan", "offset", 12), [("a-0", 10, 12), ("a-1", 0, 5)]),
        (Filter("LessThanOrEqual", "offset", 100), [*ALL[:2], ("b-0", 100, 101)]),
        (Filter("In", "offset", (3, 11)), [("a-0", 10, 12), ("a-1", 3, 5)]),
        (Filter("EqualTo", "offset", -7), []),
        (Filter("IsNull", "offset"), []),
        (Filter("IsNull", "topic"), []),
        (Filter("IsNotNull", "partition", is_negated=True), []),
        # what says nothing about where to read
        (Filter("IsNotNull", "offset"), ALL),
        (Filter("IsNull", "offset", is_negated=True), ALL),
        (Filter("IsNull", "key"), ALL),
        (Filter("IsNotNull", "value"), ALL),
        (Filter("EqualTo", "offset", 15, is_negated=True), ALL),
        (Filter("EqualTo", "offset", None), ALL),
        (Filter("In", "offset", ()), ALL),
        (Filter("In", "offset", (1, None)), ALL),
        (Filter("EqualTo", "topic", None), ALL),
        (Filter("EqualTo", "partition", "0"), ALL),
        (Filter("In", "partition", (1, None)), ALL),
        (Filter("EqualTo", "value", b"x"), ALL),
        (Filter("LessThan", "timestamp", NOON), ALL),
        (Filter("StringContains", "offset", "1"), ALL),
    ],
)
def test_a_filter_leaves(one: Filter, expected: list[tuple[str, int, int]]) -> None:
    assert left(one) == expected


def test_filters_have_to_be_true_together() -> None:
    assert left(
        Filter("EqualTo", "topic", "a"), Filter("GreaterThan", "offset", 3), Filter("LessThan", "offset", 12)
    ) == [("a-0", 10, 12), ("a-1", 4, 5)]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Filter("GreaterThanOrEqual", "timestamp", NOON), NOON_MS),
        (Filter("GreaterThanOrEqual", "timestamp", NOON + timedelta(microseconds=1)), NOON_MS + 1),
        (Filter("GreaterThan", "timestamp", NOON), NOON_MS + 1),
        (Filter("GreaterThan", "timestamp", NOON + timedelta(microseconds=999)), NOON_MS + 1),
        (Filter("EqualTo", "timestamp", NOON), NOON_MS),
        (Filter("EqualNullSafe", "timestamp", NOON), NOON_MS),
        (Filter("In", "timestamp", (NOON + timedelta(days=1), NOON)), NOON_MS),
        (Filter("EqualTo", "timestamp", NOON.astimezone(timezone(timedelta(hours=9)))), NOON_MS),
        (Filter("GreaterThan", "timestamp", NOON, is_negated=True), None),
        (Filter("LessThanOrEqual", "timestamp", NOON), None),
        (Filter("EqualTo", "timestamp", NOON.replace(tzinfo=None)), None),
        (Filter("EqualTo", "timestamp", None), None),
        (Filter("GreaterThan", "timestamp", datetime(1960, 1, 1, tzinfo=UTC)), None),
    ],
)
def test_a_time_is_a_lower_bound_or_none(one: Filter, expected: int | None) -> None:
    assert push([one]).timestamp_low_ms == expected


def test_the_later_of_two_bounds_counts() -> None:
    later = Filter("GreaterThanOrEqual", "timestamp", NOON + timedelta(seconds=1))
    earlier = Filter("GreaterThanOrEqual", "timestamp", NOON)

    assert push([later, earlier]).timestamp_low_ms == push([earlier, later]).timestamp_low_ms == NOON_MS + 1000


def test_a_range_begins_where_its_time_does() -> None:
    first = {TopicPartition("a", 0): 14, TopicPartition("a", 1): -1, TopicPartition("b", 0): 7}

    assert left(first=first) == [("a-0", 14, 20), ("b-0", 100, 200)]


def test_filters_of_pyspark_become_plain_ones() -> None:
    datasource: Any = pytest.importorskip("pyspark.sql.datasource")

    assert [
        Filter.of(given)
        for given in (
            datasource.EqualTo(("offset",), 7),
            datasource.In(("topic",), ("a", "b")),
            datasource.Not(datasource.StringStartsWith(("topic",), "x")),
            datasource.IsNull(("key",)),
            datasource.Not(datasource.IsNull(("key",))),
            datasource.EqualTo(("headers", "key"), 7),
            object(),
        )
    ] == [
        Filter("EqualTo", "offset", 7),
        Filter("In", "topic", ("a", "b")),
        Filter("StringStartsWith", "topic", "x", is_negated=True),
        Filter("IsNull", "key"),
        Filter("IsNull", "key", is_negated=True),
        None,
        None,
    ]
    assert push([None]).applied(RANGES) == RANGES


COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["a", "b", "c"]),
    "partition": st.integers(0, 2),
    "offset": st.integers(0, 30),
    "timestamp": st.integers(0, 40).map(lambda count: NOON + timedelta(microseconds=250 * count)),
}
NAMES = ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "In")


@st.composite
def any_filter(draw: st.DrawFn) -> Filter:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    name = draw(st.sampled_from(NAMES))
    value = COLUMNS[column] if name != "In" else st.lists(COLUMNS[column], max_size=3).map(tuple)
    return Filter(name, column, draw(value), draw(st.booleans()))


def is_true(one: Filter, row: dict[str, Any]) -> bool:
    have = row[one.column]
    answers: dict[str, Callable[[], bool]] = {
        "EqualTo": lambda: have == one.value,
        "EqualNullSafe": lambda: have == one.value,
        "GreaterThan": lambda: have > one.value,
        "GreaterThanOrEqual": lambda: have >= one.value,
        "LessThan": lambda: have < one.value,
        "LessThanOrEqual": lambda: have <= one.value,
        "In": lambda: have in one.value,
    }
    return answers[one.name]() is not one.is_negated


@given(
    st.lists(any_filter(), max_size=3),
    st.lists(st.integers(0, 10), min_size=1, max_size=30),
    st.sampled_from(["a", "b"]),
    st.integers(0, 1),
)
def test_no_record_that_matches_is_ever_taken_away(
    filters: list[Filter], times: list[int], topic: str, number: int
) -> None:
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": number, "offset": offset, "timestamp": NOON + timedelta(milliseconds=time)}
        for offset, time in enumerate(times)
    ]
    pushed = push(filters)
    first = {}
    if pushed.timestamp_low_ms is not None:
        late = [offset for offset, time in enumerate(times) if NOON_MS + time >= pushed.timestamp_low_ms]
        first = {TopicPartition(topic, number): min(late, default=-1)}
    kept = pushed.applied([OffsetRange(topic, number, 0, len(times))], first)

    wanted = [row["offset"] for row in rows if all(is_true(one, row) for one in filters)]

    assert all(any(one.start <= offset < one.end for one in kept) for offset in wanted)
