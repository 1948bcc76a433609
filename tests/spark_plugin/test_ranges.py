"""Ranges: what they say of themselves."""

from __future__ import annotations

import pytest

from odradek.spark_plugin.ranges import OffsetRange, TopicPartition, total_size


def test_a_range_knows_its_size_and_its_partition() -> None:
    one = OffsetRange("orders", 3, 10, 25)

    assert (one.size, one.topic_partition, str(one)) == (15, TopicPartition("orders", 3), "orders-3 [10, 25)")


@pytest.mark.parametrize(("start", "end"), [(5, 4), (-1, 3), (-2, -1)])
def test_a_range_that_is_none_is_a_bug(start: int, end: int) -> None:
    with pytest.raises(AssertionError, match="a range that is none"):
        OffsetRange("orders", 0, start, end)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 100, (10, 25)), (12, 20, (12, 20)), (0, 5, (10, 10)), (30, 40, (25, 25)), (20, 12, (20, 20))],
)
def test_an_intersection_lies_inside_the_range(start: int, end: int, expected: tuple[int, int]) -> None:
    cut = OffsetRange("orders", 0, 10, 25).intersection(start, end)

    assert (cut.start, cut.end) == expected


def test_sizes_add_up() -> None:
    assert total_size([OffsetRange("a", 0, 0, 5), OffsetRange("a", 1, 7, 7), OffsetRange("b", 0, 1, 4)]) == 8
