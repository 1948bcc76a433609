"""The limits per trigger: the connector's arithmetic, waiting, and AvailableNow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.ranges import TopicPartition
from odradek.spark_plugin.reading.rate_limit import TriggerLimits, TriggerPlanner, limited

ROWS = [json.loads(line) for line in Path(__file__).with_name("connector_arithmetic.jsonl").read_text().splitlines()]
"""See `test_splitting.py`."""

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
SIZES = st.one_of(st.integers(-5, 20), st.integers(0, 1_000_000), st.integers(0, 2**55))


def read(offsets: dict[str, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(*(name.rpartition("-")[0], int(name.rpartition("-")[2]))): n for name, n in offsets.items()}


@pytest.mark.parametrize("row", [row["limit"] for row in ROWS if "limit" in row])
def test_a_limit_is_shared_as_spark_s_connector_shares_it(row: dict[str, Any]) -> None:
    ends = limited(row["limit"], read(row["start"]), read(row["latest"]), read(row["fresh"]))

    assert ends == read(row["expected"])


@given(st.integers(1, 2**50), st.lists(st.tuples(st.integers(10, 2**40), SIZES, st.booleans()), min_size=1, max_size=8))
def test_a_limit_keeps_its_bounds_and_always_moves_on(limit: int, given_sizes: list[tuple[int, int, bool]]) -> None:
    begins = {TopicPartition("t", number): begin for number, (begin, _, _) in enumerate(given_sizes)}
    until = {TopicPartition("t", number): begin + size for number, (begin, size, _) in enumerate(given_sizes)}
    start = {one: begin for one, begin in begins.items() if not given_sizes[one.partition][2]}
    fresh = {one: begin for one, begin in begins.items() if one not in start}

    ends = limited(limit, start, until, fresh)
    taken = {one: ends[one] - begins[one] for one in ends if until[one] > begins[one]}

    assert ends.keys() == until.keys()
    assert all(1 <= size <= until[one] - begins[one] for one, size in taken.items())
    assert all(ends[one] == until[one] for one in ends if one not in taken)
    assert sum(taken.values()) <= limit * (1 + 1e-9) + len(taken)


@given(st.integers(1, 1000), st.lists(st.integers(0, 3000), min_size=1, max_size=5))
def test_limited_batches_together_read_everything_once(limit: int, sizes: list[int]) -> None:
    latest = {TopicPartition("t", number): size for number, size in enumerate(sizes)}
    position = dict.fromkeys(latest, 0)
    batches = 0
    while position != latest:
        end = limited(limit, position, latest, {})
        assert all(position[one] <= end[one] <= latest[one] for one in latest)
        assert end != position
        position = end
        batches += 1

    assert batches <= sum(sizes)


def test_without_limits_a_batch_ends_at_the_latest() -> None:
    planner = TriggerPlanner(TriggerLimits())

    assert planner.end({P0: 1}, {P0: 9, P1: 4}, earliest={P1: 0}, now_ms=0) == {P0: 9, P1: 4}


def test_spark_may_ask_for_all_that_is_available() -> None:
    planner = TriggerPlanner(TriggerLimits(max_offsets=2, min_offsets=1))

    assert planner.end({P0: 1}, {P0: 9}, earliest={}, now_ms=0, is_limited=False) == {P0: 9}


def test_a_batch_waits_for_the_minimum_but_the_first_one_does_not() -> None:
    planner = TriggerPlanner(TriggerLimits(min_offsets=10, max_delay_ms=1000))
    start, few, many = {P0: 0}, {P0: 9}, {P0: 10}

    assert planner.end(start, few, earliest={}, now_ms=50_000) == few
    assert planner.end(start, few, earliest={}, now_ms=50_999) is start
    assert planner.end(start, many, earliest={}, now_ms=50_999) == many


def test_a_batch_waits_no_longer_than_the_delay() -> None:
    planner = TriggerPlanner(TriggerLimits(min_offsets=10, max_delay_ms=1000))
    start, few = {P0: 0}, {P0: 1}
    planner.end(start, few, earliest={}, now_ms=0)

    assert planner.end(start, few, earliest={}, now_ms=999) is start
    assert planner.end(start, few, earliest={}, now_ms=1000) == few
    assert planner.end(start, few, earliest={}, now_ms=1999) is start
    assert planner.end(start, few, earliest={}, now_ms=2000) == few


def test_both_limits_hold_together() -> None:
    planner = TriggerPlanner(TriggerLimits(min_offsets=10, max_offsets=12, max_delay_ms=1000))
    planner.end({P0: 0}, {P0: 0}, earliest={}, now_ms=0)

    assert planner.end({P0: 0}, {P0: 100}, earliest={}, now_ms=1) == {P0: 12}


def test_offsets_of_a_new_partition_count_from_its_start() -> None:
    planner = TriggerPlanner(TriggerLimits(min_offsets=10, max_delay_ms=1000))
    planner.end({P0: 0}, {P0: 0}, earliest={}, now_ms=0)

    assert planner.end({P0: 0}, {P0: 0, P1: 500}, earliest={P1: 495}, now_ms=1) == {P0: 0}
    assert planner.end({P0: 0}, {P0: 0, P1: 500}, earliest={P1: 490}, now_ms=1) == {P0: 0, P1: 500}


def test_available_now_ends_where_the_log_ended_when_it_began() -> None:
    planner = TriggerPlanner(TriggerLimits(max_offsets=10))
    planner.prepare_available_now({P0: 15})
    first = planner.end({P0: 0}, {P0: 20, P1: 7}, earliest={P1: 0}, now_ms=0)
    second = planner.end(first, {P0: 30, P1: 7}, earliest={P1: 0}, now_ms=0)
    third = planner.end(second, {P0: 30, P1: 7}, earliest={P1: 0}, now_ms=0)

    assert [first, second, third] == [{P0: 10}, {P0: 15}, {P0: 15}]
    assert planner.target == {P0: 15}


def test_available_now_does_not_wait_for_a_minimum() -> None:
    planner = TriggerPlanner(TriggerLimits(min_offsets=10))
    planner.prepare_available_now({P0: 15})
    planner.end({P0: 0}, {P0: 15}, earliest={}, now_ms=0)

    assert planner.end({P0: 14}, {P0: 99}, earliest={}, now_ms=0) == {P0: 15}


def test_available_now_ends_no_partition_before_it_begins() -> None:
    planner = TriggerPlanner(TriggerLimits(max_offsets=10))
    planner.prepare_available_now({P0: 15})
    start = {P0: 20, P1: 3}

    assert planner.end(start, {P0: 30, P1: 7}, earliest={}, now_ms=0) == start
    assert planner.end(start, {P0: 18, P1: 7}, earliest={}, now_ms=0) == {P0: 18, P1: 3}


def test_available_now_takes_what_became_of_the_log_meanwhile() -> None:
    planner = TriggerPlanner(TriggerLimits())
    planner.prepare_available_now({P0: 15, P1: 4, P2: 8})

    assert planner.end({P0: 0, P1: 0, P2: 0}, {P0: 15, P2: 3}, earliest={}, now_ms=0) == {P0: 15, P2: 3}
    assert "target=" in repr(planner)
