"""Shell: lets time pass for a broker that serves: from one moment at which something is due to the next.

::

    at rest -> set the clock forward to what is due first -> whoever is connected has just spoken -> at rest -> ...

At rest means: no task can run, no thread works. So what becomes due happens in its order, and is carried out when
`PassingTime.advance` returns. A step is at least a hundredth of the whole, however much is due meanwhile: a broker that
looks for something to do every second looks a hundred times in a week, and what is due within a step comes at its end,
in its order, as on a machine that is busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
import trio.testing

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.kernel.network.server import NetworkServer

    from .advanced_clock import AdvancedClock
    from .counted_threads import CountedThreads
    from .presence import Presence

STEPS_MAX: Final = 100
STEP_ROUNDS_MAX: Final = 50
END_ROUNDS_MAX: Final = 1_000
"""How often the broker may find something to do after a step, and at the end: a client may never stop asking."""
WAIT_S_MAX: Final = 1.0
"""How long one such round may take: a disk may hang."""
STEP_CALM: Final = 2
END_CALM: Final = 5
"""How many rounds without any work are rest: what wakes the reactor is no task of trio's."""


class PassingTime:
    """Advances the clock of one broker's run. Owned by that run."""

    def __init__(self, clock: AdvancedClock, threads: CountedThreads, presence: Presence) -> None:
        self._clock = clock
        self._threads = threads
        self._presence = presence

    async def advance(self, duration_ms: int, silent: Collection[str], network: NetworkServer) -> None:
        """Let time pass, and return when what became due is done. If cancelled, the rest of it does not pass.

        Args:
            duration_ms: How much, at least 0.
            silent: By their names the clients and members that are not heard meanwhile; see `Presence.silence`.
            network: The broker's.

        Raises:
            ValueError: See `Presence.silence`.
        """
        self._presence.silence(silent)
        try:
            left_s = duration_ms / 1000
            shortest_s = left_s / STEPS_MAX
            await self.rest(STEP_CALM, STEP_ROUNDS_MAX)
            while left_s > 0:
                due_s = trio.lowlevel.current_statistics().seconds_to_next_deadline
                step_s = min(left_s, max(due_s, shortest_s))
                self._clock.advance(step_s)
                self._presence.keep(network)
                left_s -= step_s
                await self.rest(STEP_CALM, STEP_ROUNDS_MAX)
            await self.rest(END_CALM, END_ROUNDS_MAX)
        finally:
            self._presence.hear_all()

    async def rest(self, calm: int, rounds_max: int) -> None:
        """Wait until there is nothing to do so often in succession. If cancelled, it has waited for less."""
        quiet = 0
        for _ in range(rounds_max):
            with trio.move_on_after(WAIT_S_MAX):
                await trio.testing.wait_all_tasks_blocked()
                if not self._threads.busy_count:
                    quiet += 1
                    if quiet == calm:
                        return
                    continue
                await self._threads.wait_for_one()
            quiet = 0
