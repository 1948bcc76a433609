"""Shell: keeps the copy of a moving log from being faster than `replica.alter.log.dirs.io.max.bytes.per.second`.

*Source:* KIP-113; the rate is asked anew while a copy waits, so a change acts at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S: Final = 0.5
"""How often a copy that waits looks at the rate."""
_SHORT_S: Final = 0.01
"""Less than this is not waited for; it is owed with the next piece."""


class MovePace:
    """What a copy may still do. Used by the thread that copies; `stop` is called from any."""

    def __init__(
        self,
        bytes_per_second: Callable[[], float],
        monotonic_ms: Callable[[], int],
        wait: Callable[[float], object] | None = None,
    ) -> None:
        """Make one.

        Args:
            bytes_per_second: The rate; with 0 nothing is copied until it is another.
            monotonic_ms: The clock; asked by the thread that copies, too.
            wait: Blocks for so many seconds, or until `stop`.
        """
        self._bytes_per_second = bytes_per_second
        self._monotonic_ms = monotonic_ms
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._owed_bytes = 0.0
        self._looked_at_ms = monotonic_ms()

    def note(self, size_bytes: int) -> None:
        """Wait until so many more bytes may be copied; return at once when stopped. Blocks."""
        self._look()
        self._owed_bytes += size_bytes
        while not self._stopped.is_set():
            rate = self._look()
            rest_s = self._owed_bytes / rate if rate else _LOOK_S
            if rest_s < _SHORT_S:
                return
            self._wait(min(rest_s, _LOOK_S))

    def _look(self) -> float:
        """Return the rate, and take off what was owed as much as could be copied at it since the last look."""
        rate, now_ms = self._bytes_per_second(), self._monotonic_ms()
        self._owed_bytes = max(0.0, self._owed_bytes - rate * (now_ms - self._looked_at_ms) / 1000)
        self._looked_at_ms = now_ms
        return rate

    def stop(self) -> None:
        """Let whoever waits, and whoever would, go on."""
        self._stopped.set()
