"""Pure core: how fast clients go on: what they send is what a run costs, and between accidents it finds little."""

from __future__ import annotations

from typing import Final

from .world import SECOND

CALM_NS: Final = 2 * SECOND
"""How long a client pauses at most where nothing happens."""


class Pace:
    """Hasty for some turns after each time that something happens, calm otherwise."""

    def __init__(self, turns: int, pause_ns_max: int) -> None:
        """Be calm.

        Args:
            turns: How many hasty turns all clients together have after something has happened, >= 0.
            pause_ns_max: How long they pause at most after each of these.
        """
        self._turns = turns
        self._pause_ns_max = pause_ns_max
        self._left = 0

    def hurry(self) -> None:
        """Something happens."""
        self._left = self._turns

    def pause_ns_max(self) -> int:
        """Return how long a client pauses at most after the turn that it has just had."""
        self._left -= 1
        return self._pause_ns_max if self._left >= 0 else CALM_NS
