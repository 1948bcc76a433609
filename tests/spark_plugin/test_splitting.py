"""Cutting ranges into pieces: the connector's arithmetic, bytes, and what holds of any cut."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.ranges import OffsetRange, TopicPartition, total_size
from odradek.spark_plugin.reading.splitting import (
    split,
    split_by_bytes,
    split_by_records,
    split_to_reach,
    warning_of_small_pieces,
)

ROWS = [json.loads(line) for line in Path(__file__).with_name("connector_arithmetic.jsonl").read_text().splitlines()]
"""What `KafkaOffsetRangeCalculator.getRanges` and `KafkaMicroBatchStream.rateLimit` of Spark's connector 4.2.0 answered
to random questions, called from Java on 2026-11-22 (kafka-clients 3.9.2, the classes of Spark 4.3.0)."""

SIZES = st.one_of(st.integers(0, 20), st.integers(0, 1_000_000), st.integers(0, 2**60))
RANGES = st.lists(st.tuples(st.integers(0, 2**40), SIZES), max_size=6).map(
    lambda pairs: [OffsetRange("t", number, start, start + size) for number, (start, size) in enumerate(pairs)]
)


@pytest.mark.parametrize("row", [row["split"] for row in ROWS if "split" in row])
def test_ranges_are_cut_where_spark_s_connector_cuts_them(row: dict[str, Any]) -> None:
    pieces = split([OffsetRange(*one) for one in row["ranges"]], min_partitions=row["min"], max_records=row["max"])

    assert [[one.topic, one.partition, one.start, one.end] for one in pieces] == row["expected"]


def assert_the_same_offsets(ranges: list[OffsetRange], pieces: list[OffsetRange]) -> None:
    """Nothing is lost, nothing is there twice, nothing is empty, and the order is that of the ranges."""
    assert all(piece.size for piece in pieces)
    joined: list[OffsetRange] = []
    for piece in pieces:
        if joined and joined[-1].topic_partition == piece.topic_partition:
            assert joined[-1].end == piece.start
            joined[-1] = OffsetRange(piece.topic, piece.partition, joined[-1].start, piece.end)
        else:
            joined.append(piece)

    assert joined == [one for one in ranges if one.size]


@given(RANGES, st.integers(1, 300))
def test_pieces_to_reach_a_number_are_the_ranges_cut(ranges: list[OffsetRange], wanted: int) -> None:
    pieces = split_to_reach(ranges, wanted)

    assert_the_same_offsets(ranges, pieces)
    assert len(pieces) <= max(len(ranges), wanted + len(ranges))


@given(RANGES, st.integers(1, 500))
def test_pieces_by_records_keep_the_limit_and_are_nearly_equal(ranges: list[OffsetRange], count: int) -> None:
    limit = max([1, *(-(-one.size // count) for one in ranges)])

    pieces = split_by_records(ranges, limit)

    assert_the_same_offsets(ranges, pieces)
    assert all(piece.size <= limit for piece in pieces)
    for one, other in pairwise(pieces):
        if one.topic_partition == other.topic_partition:
            assert abs(one.size - other.size) <= 1


@st.composite
def marked_ranges(draw: st.DrawFn) -> tuple[OffsetRange, list[tuple[int, int]]]:
    start = draw(st.integers(0, 1000))
    steps = draw(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), min_size=1, max_size=30))
    marks, offset, size = [(start, 0)], start, 0
    for wide, heavy in steps:
        offset, size = offset + wide, size + heavy
        marks.append((offset, size))
    low = draw(st.integers(start, offset))
    return OffsetRange("t", 0, low, draw(st.integers(low, offset + 100))), marks


@given(marked_ranges(), st.integers(1, 20_000))
def test_pieces_by_bytes_are_the_range_cut_and_keep_the_limit(
    marked: tuple[OffsetRange, list[tuple[int, int]]], max_bytes: int
) -> None:
    one, marks = marked

    pieces = split_by_bytes(one, marks, max_bytes)

    assert_the_same_offsets([one], pieces)
    for piece in pieces:
        assert piece.size == 1 or bytes_in(piece, marks) <= max_bytes * 1.000001


def bytes_in(piece: OffsetRange, marks: list[tuple[int, int]]) -> float:
    """Count the bytes offset by offset, each with its share of the piece between two marks."""
    total = 0.0
    for (low, before), (high, after) in pairwise(marks):
        last = (low, high) == (marks[-2][0], marks[-1][0])
        inside = max(0, (piece.end if last else min(piece.end, high)) - max(piece.start, low))
        total += inside * (after - before) / (high - low)
    return total


def test_a_cut_by_bytes_falls_on_a_mark_where_one_is_near() -> None:
    marks = [(0, 0), (90, 1000), (200, 2000), (310, 3000), (400, 4000)]

    pieces = split_by_bytes(OffsetRange("t", 0, 0, 400), marks, 2000)

    assert [(piece.start, piece.end) for piece in pieces] == [(0, 200), (200, 400)]


def test_a_cut_by_bytes_with_nothing_but_the_ends_of_a_log_spreads_the_bytes_evenly() -> None:
    pieces = split_by_bytes(OffsetRange("t", 0, 100, 400), [(0, 0), (400, 4000)], 1000)

    assert [(piece.start, piece.end) for piece in pieces] == [(100, 200), (200, 300), (300, 400)]


@pytest.mark.parametrize("marks", [[], [(0, 0)], [(0, 0), (0, 0)], [(5, 10), (400, 10)]])
def test_a_range_without_known_bytes_stays_whole(marks: list[tuple[int, int]]) -> None:
    one = OffsetRange("t", 0, 0, 400)

    assert split_by_bytes(one, marks, 1) == [one]


def test_each_option_cuts_what_the_one_before_left() -> None:
    ranges = [OffsetRange("a", 0, 0, 1000), OffsetRange("a", 1, 0, 0), OffsetRange("b", 0, 50, 60)]
    marks = {TopicPartition("a", 0): [(0, 0), (1000, 10_000)]}

    assert len(split(ranges)) == 2
    assert len(split(ranges, max_bytes=5000, marks=marks)) == 3
    assert len(split(ranges, max_bytes=5000, marks=marks, max_records=250)) == 5
    assert len(split(ranges, max_bytes=5000, marks=marks, max_records=250, min_partitions=9)) == 9


@given(RANGES, st.none() | st.integers(1, 50), st.none() | st.integers(1, 2**60), st.integers(1, 2**30))
def test_any_options_keep_every_offset_once(
    ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None, max_bytes: int
) -> None:
    if max_records is not None and total_size(ranges) // max_records > 5000:
        max_records = total_size(ranges) // 5000
    marks = {one.topic_partition: [(0, 0), (max(one.end, 1), max_bytes * 7)] for one in ranges}

    pieces = split(ranges, min_partitions=min_partitions, max_records=max_records, max_bytes=max_bytes, marks=marks)

    assert_the_same_offsets(ranges, pieces)


def test_pieces_that_cost_more_than_their_records_are_warned_of() -> None:
    ranges = [OffsetRange("t", 0, 0, 1_000_000)]

    assert warning_of_small_pieces(ranges, split(ranges, min_partitions=20)) is None
    assert warning_of_small_pieces([OffsetRange("t", 0, 0, 10)], [OffsetRange("t", 0, 0, 10)]) is None
    assert "into 21 tasks of about 47619 each" in str(warning_of_small_pieces(ranges, split(ranges, min_partitions=21)))
