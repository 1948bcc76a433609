"""Pure core: what the timers of a shard were refused with since it last wrote: told once, tried ever more slowly.

A rack that loses power takes clients and a replica of the topic with it: thousands of sessions end, and nothing of
that can be written. Each would say so, and decide anew, twice a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..errors import ErrorCode, KafkaError

RETRY_PAUSE_MS_MAX: Final = 5_000
"""The longest pause: so late at most is done what may be written again."""


class Refusals:
    """Owned by its shard."""

    __slots__ = ("_codes", "_since_ms")

    def __init__(self) -> None:
        """Nothing was refused yet."""
        self._codes: set[ErrorCode] = set()
        self._since_ms = 0

    def note(self, error: KafkaError, now_ms: int) -> bool:
        """Take note of a refusal at a time, by the monotonic clock; return whether it is the first of its kind."""
        if not self._codes:
            self._since_ms = now_ms
        is_new = error.code not in self._codes
        self._codes.add(error.code)
        return is_new

    def pause_ms(self, now_ms: int, pause_ms_min: int) -> int:
        """Return after how long to try again: twice as late each time."""
        return min(max(now_ms - self._since_ms, pause_ms_min), RETRY_PAUSE_MS_MAX)

    def has_written(self) -> None:
        """Begin anew: what the shard decides is written again."""
        self._codes.clear()
