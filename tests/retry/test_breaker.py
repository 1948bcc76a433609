"""A circuit breaker opens where too much dies within a window, spares what would die, and closes by itself."""

from __future__ import annotations

import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.delay_checks import BreakerSettings
from odradek.kernel.contracts.append_stage import Diverted
from odradek.kernel.delay.companion import Companion, read_companion
from odradek.kernel.records.batch import read_header
from odradek.kernel.retry.breaker import SLICES, SPARED_MS_MAX, Breaker
from odradek.kernel.retry.headers import ATTEMPT, SPARED, read_failure, retried_headers
from odradek.kernel.retry.stage import RetryStage
from odradek.plugins.retry.levels import Levels

from .failed_batches import ATTEMPTS, NOW_MS, OWNER, Failed, produced

WINDOW_MS = 10_000
MINIMUM = 3
HALF = BreakerSettings(0.5, WINDOW_MS, MINIMUM)


def breaker(first: int, settings: BreakerSettings = HALF) -> Breaker:
    found = Breaker(settings)
    for _ in range(first):
        found.note_first(NOW_MS)
    return found


def spared(found: Breaker, count: int, now_ms: int = NOW_MS) -> list[int | None]:
    return [found.spare_ms(now_ms) for _ in range(count)]


def test_below_the_minimum_records_die_whatever_their_share() -> None:
    assert spared(breaker(0), MINIMUM - 1) == [None] * (MINIMUM - 1)


def test_above_the_share_what_would_die_waits_for_a_window() -> None:
    assert spared(breaker(first=8), 6) == [None] * 4 + [WINDOW_MS] * 2


def test_at_the_share_records_die() -> None:
    assert spared(breaker(first=20), 10) == [None] * 10


def test_with_the_whole_share_it_opens_where_more_die_than_begin_to_fail() -> None:
    assert spared(breaker(4, BreakerSettings(1.0, WINDOW_MS, MINIMUM)), 5) == [None] * 4 + [WINDOW_MS]


def test_it_closes_a_window_after_what_was_spared_last_came_back() -> None:
    found = breaker(0)
    spared(found, 10)

    assert found.is_open(NOW_MS + WINDOW_MS)
    assert found.is_open(NOW_MS + 2 * WINDOW_MS - 1)
    assert not found.is_open(NOW_MS + 2 * WINDOW_MS)
    assert spared(found, 1, NOW_MS + 2 * WINDOW_MS) == [None]
    assert found.spared_count == 8


def test_a_few_that_fail_again_do_not_keep_it_open() -> None:
    found = breaker(0)
    spared(found, 10)

    assert spared(found, MINIMUM - 1, NOW_MS + WINDOW_MS) == [WINDOW_MS] * (MINIMUM - 1)
    assert spared(found, MINIMUM - 1, NOW_MS + 2 * WINDOW_MS) == [None] * (MINIMUM - 1)


def test_it_closes_when_the_share_falls() -> None:
    found = breaker(0)
    spared(found, MINIMUM)
    assert found.is_open(NOW_MS)

    for _ in range(2 * MINIMUM):
        found.note_first(NOW_MS + 1)
    assert not found.is_open(NOW_MS + 2 * WINDOW_MS)


def test_what_was_counted_before_the_clock_was_set_back_counts_no_more() -> None:
    found = breaker(0)
    spared(found, 10, NOW_MS + 3_600_000)

    assert found.counts(NOW_MS) == (0, 0)
    assert not found.is_open(NOW_MS)
    assert spared(found, MINIMUM - 1) == [None] * (MINIMUM - 1)


def test_an_outage_longer_than_the_window_keeps_it_open() -> None:
    """What was spared comes back after a window, all at once, and fails once more: none of it dies."""
    found = breaker(0)
    spared(found, 10)
    now_ms = NOW_MS
    for _ in range(50):
        now_ms += WINDOW_MS + WINDOW_MS // 2
        assert spared(found, 10, now_ms) == [WINDOW_MS] * 10


@given(st.lists(st.tuples(st.integers(0, 3 * WINDOW_MS), st.booleans()), max_size=200))
def test_what_is_counted_is_what_came_within_the_window(events: list[tuple[int, bool]]) -> None:
    found = Breaker(BreakerSettings(1.0, WINDOW_MS, 1_000))
    events.sort()
    for after_ms, is_first in events:
        now_ms = NOW_MS + after_ms
        found.note_first(now_ms) if is_first else found.spare_ms(now_ms)
        slice_ms = WINDOW_MS // SLICES
        oldest_ms = (now_ms // slice_ms - SLICES + 1) * slice_ms
        within = [is_first for at, is_first in events if oldest_ms <= NOW_MS + at <= now_ms]
        first, deaths = found.counts(now_ms)

        assert first <= sum(within)
        assert deaths <= len(within) - sum(within)
    assert sum(found.counts(NOW_MS + 3 * WINDOW_MS)) == sum(
        NOW_MS + at >= ((NOW_MS + 3 * WINDOW_MS) // (WINDOW_MS // SLICES) - SLICES + 1) * (WINDOW_MS // SLICES)
        for at, _ in events
    )


# ------------------------------------------------------------------------------ in the stage of a retry topic


def companion_of(stage: RetryStage, *records: Failed) -> Companion:
    diverted = stage.accept(memoryview(produced(records)))
    assert isinstance(diverted, Diverted)
    found = read_companion(diverted.before, read_header(diverted.before))
    assert found is not None
    return found


@pytest.fixture
def stage() -> RetryStage:
    return RetryStage(
        OWNER,
        Levels([100], ATTEMPTS),
        now_ms=lambda: NOW_MS,
        chance=random.Random(0),
        breaker=Breaker(HALF),
        place="retry-0",
    )


OVER = Failed(b"over", attempts=ATTEMPTS)


def test_what_is_spared_waits_for_a_window_and_says_so(stage: RetryStage) -> None:
    found = companion_of(stage, *[OVER] * MINIMUM)
    headers = [dict(record.headers) for _, record in found.records()]

    assert [entry.is_dead for entry in found.entries] == [True] * (MINIMUM - 1) + [False]
    assert found.entries[-1].due_ms == NOW_MS + WINDOW_MS
    assert (headers[-1][ATTEMPT], headers[-1][SPARED]) == (b"%d" % (ATTEMPTS + 1), b"1")
    assert all(SPARED not in each for each in headers[:-1])


def test_what_its_consumer_gives_up_dies_whatever_else_does(stage: RetryStage) -> None:
    companion_of(stage, *[OVER] * MINIMUM)

    assert companion_of(stage, Failed(b"given up", is_dead=True)).entries[0].is_dead


def test_what_has_attempts_left_waits_as_ever(stage: RetryStage) -> None:
    companion_of(stage, *[OVER] * MINIMUM)
    found = companion_of(stage, Failed(b"first"))
    ((entry, record),) = found.records()

    assert entry.due_ms == NOW_MS + 100
    assert SPARED not in dict(record.headers)


def test_what_was_spared_for_a_day_dies_though_others_keep_it_open(stage: RetryStage) -> None:
    """Poison records, of which there were enough, would come back for ever, and keep each other from dying."""
    companion_of(stage, *[OVER] * MINIMUM)
    times = SPARED_MS_MAX // WINDOW_MS
    again = Failed(b"again", attempts=ATTEMPTS + times, more=((SPARED, b"%d" % (times - 1)),))
    poison = Failed(b"poison", attempts=ATTEMPTS + times, more=((SPARED, b"%d" % times),))
    found = companion_of(stage, again, poison)
    headers = [dict(record.headers) for _, record in found.records()]

    assert [entry.is_dead for entry in found.entries] == [False, True]
    assert headers[0][SPARED] == b"%d" % times
    assert SPARED not in headers[1]


@pytest.mark.parametrize("window_ms", [WINDOW_MS, SPARED_MS_MAX // 3 + 1, SPARED_MS_MAX // 2 + 1, SPARED_MS_MAX])
def test_no_record_is_spared_for_more_than_a_day_however_long_the_window(window_ms: int) -> None:
    found = Breaker(BreakerSettings(0.5, window_ms, minimum=1))
    waited_ms = times = 0
    while (more_ms := found.spare_ms(NOW_MS, times)) is not None:
        waited_ms += more_ms
        times += 1

    assert SPARED_MS_MAX - window_ms < waited_ms <= SPARED_MS_MAX


def test_the_mark_of_what_was_spared_goes_when_it_fails_again() -> None:
    headers = ((ATTEMPT, b"4"), (SPARED, b"1"))

    assert retried_headers(headers, read_failure(headers), 5) == [(ATTEMPT, b"5")]


def test_that_it_opens_and_closes_is_told_once_each(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = NOW_MS
    stage = RetryStage(
        OWNER,
        Levels([100], ATTEMPTS),
        now_ms=lambda: now_ms,
        chance=random.Random(0),
        breaker=Breaker(HALF),
        place="retry-0",
    )
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        companion_of(stage, *[OVER] * MINIMUM)
    now_ms += 2 * WINDOW_MS
    for _ in range(2):
        companion_of(stage, Failed(b"first"))
    opened, closed = caplog.messages

    assert "dead letters of topic 'orders' and group 'billing' are paused in retry-0" in opened
    assert "paused no more in retry-0; 4 records were spared" in closed
