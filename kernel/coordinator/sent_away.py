"""Pure core: who waited in a shard that coordinates no longer is told so, some at a time.

Thousands may wait, as all members of a group that rebalances. Their shard is gone at once; that they hear of it a
moment later is as if the network were slow.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ..purgatory.timing_wheel import CallTimer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..purgatory.timing_wheel import TimingWheel
    from .answers import Settlement

ANSWERS_AT_ONCE: Final = 50
"""So many waiters are told in one go: each answer is encoded and sent in some ten microseconds, a large one in more."""


class SentAway:
    """Those of one shard who are not told yet, in their order. Owned by the reactor's task; outlives its shard."""

    __slots__ = ("_monotonic_ms", "_settle", "_settlements", "_timer", "_wheel")

    def __init__(
        self, wheel: TimingWheel, monotonic_ms: Callable[[], int], settle: Callable[[Settlement], None]
    ) -> None:
        """Make it; nobody waits.

        Args:
            wheel: Where it waits for its turns.
            monotonic_ms: The wheel's clock.
            settle: Tells one; must not raise.
        """
        self._wheel = wheel
        self._monotonic_ms = monotonic_ms
        self._settle = settle
        self._settlements: deque[Settlement] = deque()
        self._timer = CallTimer(0, self._go_on)

    def tell(self, settlements: Iterable[Settlement]) -> None:
        """Tell some after all who wait already: at once as many as may be, and the others soon."""
        self._settlements += settlements
        if self._timer.slot is None:
            self._go_on()

    def tell_all(self) -> None:
        """Tell all who wait, at once: the broker ends."""
        self._timer.cancel_timer()
        while self._settlements:
            self._settle(self._settlements.popleft())

    def _go_on(self) -> None:
        left = ANSWERS_AT_ONCE
        while left > 0 and self._settlements:
            left -= 1
            self._settle(self._settlements.popleft())
        if self._settlements and self._timer.slot is None:
            self._timer.deadline_ms = self._monotonic_ms()
            self._wheel.add(self._timer)
