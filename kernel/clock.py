"""Shell: the two clocks that a broker needs, injected wherever time matters.

`now_ms` is the wall clock: it stamps records and may jump. `monotonic_ms` only measures durations: deadlines,
time-outs, the timing wheel. Cores take the numbers, never a clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where a shell reads time."""

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment of its own; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds since the machine's start."""
        return time.monotonic_ns() // 1_000_000


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
