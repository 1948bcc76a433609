"""Pure core: how many bytes a second went lately, as Kafka counts what its replication throttles hold back.

*Source:* Rate, SampledStat and their windows in Kafka's metrics.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..contracts.services import ConfigView
    from ..machine.clock import Clock


class ByteRate:
    """An average over the last windows. Noted by one thread; asked by any."""

    def __init__(self, clock: Clock, *, windows_count: int = 11, window_ms: int = 1000) -> None:
        """Make one of which nothing went yet.

        Args:
            clock: The monotonic one.
            windows_count: Over how many windows is averaged, the one that is not over among them.
            window_ms: How long each is.
        """
        self._clock = clock
        self._windows_count = windows_count
        self._window_ms = window_ms
        self._windows: deque[list[int]] = deque()

    @classmethod
    def of(cls, config: ConfigView, keys: str, clock: Clock) -> ByteRate:
        """Return one whose windows a broker's configuration gives, by the keys that begin so."""
        return cls(
            clock,
            windows_count=config.get_int(f"{keys}.window.num"),
            window_ms=config.get_int(f"{keys}.window.size.seconds") * 1000,
        )

    def note(self, size_bytes: int) -> None:
        """Take note of bytes that went."""
        now_ms = self._clock.monotonic_ms()
        kept_ms = self._windows_count * self._window_ms
        while self._windows and now_ms - self._windows[0][0] >= kept_ms:
            self._windows.popleft()
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += size_bytes

    def bytes_a_second(self) -> float:
        """Return how much went lately, on average."""
        now_ms = self._clock.monotonic_ms()
        kept_ms = self._windows_count * self._window_ms
        windows = [window for window in tuple(self._windows) if now_ms - window[0] < kept_ms]
        if not windows:
            return 0.0
        elapsed_ms = max(now_ms - windows[0][0], (self._windows_count - 1) * self._window_ms)
        return sum(size_bytes for _, size_bytes in windows) * 1000 / elapsed_ms
