"""When a quiet broker does what it does now and then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.purgatory.timing_wheel import until_beat_ms

TIMES = st.integers(0, 1 << 40)
PERIODS = st.integers(1, 60_000)


@given(TIMES, PERIODS)
def test_a_beat_comes_within_a_period_and_is_the_same_for_all_before_it(now_ms: int, period_ms: int) -> None:
    left_ms = until_beat_ms(now_ms, period_ms)

    assert 0 < left_ms <= period_ms
    assert until_beat_ms(now_ms + left_ms - 1, period_ms) == 1


@given(TIMES, PERIODS, st.integers(1, 8))
def test_longer_periods_meet_shorter_ones(now_ms: int, period_ms: int, times: int) -> None:
    assert (now_ms + until_beat_ms(now_ms, times * period_ms)) % period_ms == 0
