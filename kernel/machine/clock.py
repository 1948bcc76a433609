"""Shell: the two clocks that a broker needs, injected wherever time matters.

`now_ms` is the wall clock: it stamps records and may jump. `monotonic_ms` only measures durations: deadlines,
time-outs, the timing wheel. Cores take the numbers, never a clock. Tasks sleep by trio's clock, so a broker measures by
it too (`TrioClock`): where a test puts in another, both follow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(Protocol):
    """Where a shell reads time."""

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment of its own; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks; where no trio runs, or only the wall clock is asked for."""

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds since the machine's start."""
        return time.monotonic_ns() // 1_000_000


class TrioClock(SystemClock):
    """The machine's wall clock, and the time of one trio run: which one, the first question for it decides.

    That question is one of the run's tasks; after it worker threads may ask too. Times of `monotonic_ms` are to be
    compared with each other only, not with `trio.current_time`, which begins elsewhere.
    """

    def __init__(self) -> None:
        """Wait for the first question."""
        self._now_ns: Callable[[], int] = self._begin

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment before the run; once asked by a task of it, by any thread."""
        return self._now_ns() // 1_000_000

    def _begin(self) -> int:
        clock = trio.lowlevel.current_clock()
        if is_trios_own(clock):
            self._now_ns = time.perf_counter_ns
        else:
            self._now_ns = lambda: round(clock.current_time() * 1_000_000_000)
        return self._now_ns()


def is_trios_own(clock: trio.abc.Clock) -> bool:
    """Return whether a run has no clock but trio's, whose time is `time.perf_counter` and a constant.

    Then the machine may be asked in its place, which takes half the time: requests ask (measured: 0.1 µs against 0.2).
    """
    return type(clock).__module__.startswith("trio._core.")


class ManualClock:
    """A clock that moves only when told; for tests and the simulator."""

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 5_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Return the monotonic clock, in milliseconds."""
        return self._monotonic_ms

    def advance(self, duration_ms: int) -> None:
        """Move both clocks forward by `duration_ms`, at least 0."""
        assert duration_ms >= 0, "time does not go back"
        self._now_ms += duration_ms
        self._monotonic_ms += duration_ms

    def jump(self, duration_ms: int) -> None:
        """Set the wall clock forward, or back below 0, as a person or a time server does; no time passes."""
        self._now_ms += duration_ms
