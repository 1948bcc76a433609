"""Shell: time for a client that blocks: how late it is, and waiting; injected, so that tests wait for nothing.

.. versionadded:: 0.1
"""

from __future__ import annotations

import time
from typing import Protocol


class PausingClock(Protocol):
    """Where the client reads time, and how it waits."""

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment of its own; never goes back."""
        ...

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        ...

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after so many milliseconds, >= 0."""
        ...


class SystemPausingClock:
    """The machine's own clock, and real sleep."""

    def monotonic_ms(self) -> int:
        """Return milliseconds since the machine's start."""
        return time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after so many milliseconds."""
        time.sleep(duration_ms / 1_000)
