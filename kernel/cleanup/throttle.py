"""Shell: keeps a worker from reading and writing faster than `log.cleaner.io.max.bytes.per.second`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SLICE_S: Final = 0.1
"""How often the rate is looked at."""


class Throttle:
    """Sleeps now and then. Owned by one worker."""

    def __init__(self, bytes_per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        """Make one.

        Args:
            bytes_per_second: The rate.
            clock: Monotonic, in seconds.
            sleep: Blocks for so many seconds.
        """
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._bytes = 0
        self._limit = bytes_per_second * _SLICE_S
        self._begun = clock()

    def note(self, size_bytes: int) -> None:
        """Take note of bytes that were read or written, and sleep if they were too many for the time."""
        self._bytes += size_bytes
        if self._bytes < self._limit:
            return
        rest = self._bytes / self._rate - (self._clock() - self._begun)
        if rest > 0:
            self._sleep(rest)
        self._bytes, self._begun = 0, self._clock()
