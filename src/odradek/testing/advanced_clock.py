"""Shell: a clock that goes on at real speed and can be set forward: a broker's two clocks, and that of its trio run.

Tasks sleep by the same time that the broker measures by, so whoever is due after `advance` wakes; who is on the run
calls it, and trio looks at its deadlines anew before it sleeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.machine.clock import Clock


class AdvancedClock(trio.abc.Clock):
    """Given to `trio.run` as its clock, and to a broker's `Machine`; one after the other may use it."""

    def __init__(self, *, timer: Callable[[], float], wall: Clock) -> None:
        """Begin without a lead.

        Args:
            timer: The machine's monotonic time, in seconds.
            wall: Its wall clock is used.
        """
        self._timer = timer
        self._wall = wall
        self._lead_s = 0.0

    def __repr__(self) -> str:
        return f"<AdvancedClock, {self._lead_s:.3f} s ahead>"

    def advance(self, seconds: float) -> None:
        """Let so much pass at once, at least 0; called by a task of the run that it is the clock of."""
        assert seconds >= 0, "time does not go back"
        self._lead_s += seconds

    # ------------------------------------------------------------------------------------------------ as the broker's

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        return self._wall.now_ms() + int(self._lead_s * 1000)

    def monotonic_ms(self) -> int:
        """See `Clock.monotonic_ms`."""
        return int(self.current_time() * 1000)

    # -------------------------------------------------------------------------------------------------- as the run's

    def start_clock(self) -> None:
        """See `trio.abc.Clock.start_clock`: it runs already."""

    def current_time(self) -> float:
        """See `trio.abc.Clock.current_time`."""
        return self._timer() + self._lead_s

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """See `trio.abc.Clock.deadline_to_sleep_time`."""
        return deadline - self.current_time()
