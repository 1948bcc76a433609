"""Shell: looks every half `replica.lag.time.max.ms` whether followers keep up: time passes for leaders' elections.

For those of replicas that vote it passes elsewhere (`voting_replicas.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..machine.turnstile import take_turn
from ..partitions.quiet_followers import tell_heard

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.clock import Clock
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas

REPLICAS_PER_TURN: Final = 200
PAUSE_MS_MIN: Final = 10


class InSyncChecks:
    """Life: made, `run` as a service. Owned by the broker."""

    def __init__(self, replicas: Replicas, clock: Clock, lag_ms_max: Callable[[], int]) -> None:
        """Make it.

        Args:
            replicas: This broker's.
            clock: The monotonic one.
            lag_ms_max: Returns `replica.lag.time.max.ms`.
        """
        self._replicas = replicas
        self._clock = clock
        self._lag_ms_max = lag_ms_max

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look until cancelled."""
        task_status.started()
        while True:
            await self.check()
            await trio.sleep(max(self._lag_ms_max() / 2, PAUSE_MS_MIN) / 1000)

    async def check(self) -> None:
        """Let time pass for every partition that this broker leads and others follow."""
        for number, replica in enumerate(list(self._replicas), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if replica.is_leader and replica.voting is None and _has_followers(replica):
                self._tick(replica)
        await trio.lowlevel.checkpoint()

    def _tick(self, replica: Replica) -> None:
        high_watermark = replica.high_watermark
        try:
            tell_heard(replica)
            replica.tick(self._clock.monotonic_ms())
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self._replicas.fail(replica, error)
            return
        if replica.high_watermark != high_watermark:
            self._replicas.progressed((replica,))


def _has_followers(replica: Replica) -> bool:
    return replica.state is not None and len(replica.state.replicas) > 1
