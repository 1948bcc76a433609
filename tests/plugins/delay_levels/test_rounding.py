"""What a delay is rounded up to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import InvalidValueError
from odradek.plugins.delay_levels.rounding import Rounding
from odradek.plugins.delay_levels.settings import DURATIONS, KEYS, LEVELS, LEVELS_KEY

NOW_MS = 1_700_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@pytest.mark.parametrize(
    ("delay_ms", "expected_ms"),
    [
        (1, 5 * SECOND),
        (5 * SECOND, 5 * SECOND),
        (5 * SECOND + 1, 10 * SECOND),
        (17 * SECOND, 30 * SECOND),
        (46 * MINUTE, HOUR),
        (2 * HOUR, 2 * HOUR),
        (3 * HOUR, 3 * HOUR),
        (2 * HOUR + 1, 2 * HOUR + 5 * SECOND),
        (5 * HOUR - 1, 5 * HOUR),
        (1_000 * HOUR, 1_000 * HOUR),
    ],
)
def test_a_delay_is_rounded_up_to_its_level_and_above_the_top_one_it_queues_again(
    delay_ms: int, expected_ms: int
) -> None:
    assert Rounding.of({LEVELS_KEY: LEVELS})(NOW_MS + delay_ms, NOW_MS) == NOW_MS + expected_ms


@given(
    levels_ms=st.lists(st.integers(1, 10**8), min_size=1, max_size=12),
    delay_ms=st.integers(1, 10**12),
    now_ms=st.integers(0, 2**62),
)
def test_nothing_is_early_nor_later_than_by_a_level(levels_ms: list[int], delay_ms: int, now_ms: int) -> None:
    due_ms = Rounding(levels_ms)(now_ms + delay_ms, now_ms)

    assert delay_ms <= due_ms - now_ms < delay_ms + max(levels_ms)
    assert (due_ms - now_ms) % max(levels_ms) in {0, *levels_ms}


def test_levels_may_stand_in_any_order() -> None:
    assert Rounding.of({LEVELS_KEY: ("1m", "1s")})(NOW_MS + 900, NOW_MS) == NOW_MS + SECOND


def test_a_level_that_nobody_can_read_is_left_out_and_without_any_it_is_the_seeds_levels() -> None:
    assert Rounding.of({LEVELS_KEY: ("soon", "0s", "7s")})(NOW_MS + 1, NOW_MS) == NOW_MS + 7 * SECOND
    for settings in ({}, {LEVELS_KEY: "5s"}, {LEVELS_KEY: ("soon",)}):
        assert Rounding.of(settings)(NOW_MS + 6 * SECOND, NOW_MS) == NOW_MS + 10 * SECOND


def test_at_the_end_of_time_it_is_not_later() -> None:
    assert Rounding([1_000])(2**63 - 1, 0) == 2**63 - 1


@pytest.mark.parametrize("value", [(), ("5",), ("0s",), ("5s", "0ms")])
def test_what_is_no_list_of_levels_is_refused(value: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValueError):
        DURATIONS.check(LEVELS_KEY, value)


def test_the_levels_of_the_key_are_valid() -> None:
    (key,) = KEYS

    DURATIONS.check(key.name, key.default)
