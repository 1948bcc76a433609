"""Pure core: the circuit breaker of a retry topic: where too much is about to die, nothing dies for a while.

A poison record fails whatever is done, now and then one. Where a service is down that consumers call, everything fails,
and the dead letters are no place for it. So it is counted, within a window, how many records failed for the first time,
and of how many the attempts were over:

    deaths >= minimum and deaths > share * first failures     open: what would die waits a window, and is given back

What is spared fails once more while the outage lasts, is counted as a death again, and is spared again; when it is
over, it succeeds, nothing is left to count, and the breaker is closed. Nobody has to do anything. As it comes back when
the window is over that it was counted in, the breaker stays open for one window more: the first that come back are to
find it so.

Poison records that were spared meanwhile come back, too, and where there are `minimum` of them they would have each
other spared for ever. So a record is spared for a day at most, and dies then.

The counts are lost with the leader, and nothing else is: whether a record is dead or waits is decided once, in the
batch that is appended. A new leader has to see `minimum` deaths before it spares any.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..config.delay_checks import BreakerSettings

SLICES: Final = 10
"""The window moves on by a tenth of itself."""
SPARED_MS_MAX: Final = 24 * 60 * 60 * 1000
"""So long, window by window, a record is spared at most."""


class Breaker:
    """Counts one partition's failures. Any thread may ask it, without a lock: at worst one is counted too little.

    Attributes:
        spared_count: How many records were spared.
        is_told_open: What was last said of it: kept here by who says it.
    """

    def __init__(self, settings: BreakerSettings, spared_count: int = 0) -> None:
        """Begin with an empty window.

        Args:
            settings: When it opens.
            spared_count: How many were spared before.
        """
        self.settings = settings
        self.spared_count = spared_count
        self.is_told_open = False
        self._open_until_ms = -1
        self._slice_ms = max(1, settings.window_ms // SLICES)
        self._numbers = [-1] * SLICES
        self._first = [0] * SLICES
        self._deaths = [0] * SLICES

    def __repr__(self) -> str:
        return f"<Breaker: {sum(self._deaths)} deaths of {sum(self._first)} records, {self.spared_count} spared>"

    def note_first(self, now_ms: int) -> None:
        """Count a record that failed for the first time."""
        self._first[self._slot(now_ms)] += 1

    def spare_ms(self, now_ms: int, spared_times: int = 0) -> int | None:
        """Count a record whose attempts are over; return how long it waits nevertheless, None where it is to die.

        Args:
            now_ms: The wall clock.
            spared_times: How often it was spared before.
        """
        window_ms = self.settings.window_ms
        if (spared_times + 1) * window_ms > SPARED_MS_MAX:
            return None
        self._deaths[self._slot(now_ms)] += 1
        if self._are_too_many(now_ms):
            self._open_until_ms = now_ms + 2 * window_ms
        if not self.is_open(now_ms):
            return None
        self.spared_count += 1
        return window_ms

    def is_open(self, now_ms: int) -> bool:
        """Return whether nothing dies."""
        return now_ms < self._open_until_ms <= now_ms + 2 * self.settings.window_ms  # else the clock was set back

    def _are_too_many(self, now_ms: int) -> bool:
        first, deaths = self.counts(now_ms)
        return deaths >= self.settings.minimum and deaths > self.settings.share * first

    def counts(self, now_ms: int) -> tuple[int, int]:
        """Return how many records failed for the first time in the window, and of how many the attempts were over."""
        newest = now_ms // self._slice_ms  # what is above was counted before the clock was set back
        slots = [slot for slot in range(SLICES) if newest - SLICES < self._numbers[slot] <= newest]
        return sum(self._first[slot] for slot in slots), sum(self._deaths[slot] for slot in slots)

    def _slot(self, now_ms: int) -> int:
        number = now_ms // self._slice_ms
        slot = number % SLICES
        if self._numbers[slot] != number:
            self._first[slot] = self._deaths[slot] = 0
            self._numbers[slot] = number
        return slot
