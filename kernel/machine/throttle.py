"""Shell: keeps a worker from being faster than a rate, which may change while it works and while it waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .threads import ThreadEvent

_LOOK_S: Final = 0.5
"""How often one that waits looks at the rate."""
_SHORT_S: Final = 0.01
"""Less than this is not waited for; it is owed with the next bytes."""


class Throttle:
    """How fast a worker may be. Used by its thread alone, but for `stop`, which is called from any."""

    def __init__(
        self,
        bytes_per_second: Callable[[], float],
        clock: Callable[[], float],
        stopped: ThreadEvent,
        on_noted: Callable[[int], object] = lambda _size_bytes: None,
    ) -> None:
        """Make one.

        Args:
            bytes_per_second: The rate; with 0 nobody goes on until it is another.
            clock: Monotonic, in seconds.
            stopped: What the thread waits for, and `stop` sets.
            on_noted: Told by the thread of all bytes that it takes note of.
        """
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._stopped = stopped
        self._on_noted = on_noted
        self._owed_bytes = 0.0
        self._looked_at_s = clock()

    def note(self, size_bytes: int) -> None:
        """Take note of bytes that are read or written, and wait for as long as they should take; blocks.

        Time in which nothing was noted is not saved up. Returns at once when stopped.
        """
        self._on_noted(size_bytes)
        rest_s = self._rest_s(size_bytes)
        while rest_s > _SHORT_S and not self._stopped.is_set():
            self._stopped.wait(min(rest_s, _LOOK_S))
            rest_s = self._rest_s(0)

    def _rest_s(self, more_bytes: int) -> float:
        """Return how long what is owed should still take, as the rate is now."""
        rate, now_s = self._bytes_per_second(), self._clock()
        self._owed_bytes = max(0.0, self._owed_bytes - rate * (now_s - self._looked_at_s)) + more_bytes
        self._looked_at_s = now_s
        return self._owed_bytes / rate if rate else math.inf

    def stop(self) -> None:
        """Let whoever waits, and whoever would, go on."""
        self._stopped.set()
