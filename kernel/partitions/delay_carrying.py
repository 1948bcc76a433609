"""Shell: has what waits in segments that retention is about to take carried forward, so that these can go.

    retention wants all below N gone ──> what waits there is appended again, a piece at a time
                                          └─> the piece is committed ──> the log starts behind where it was

So a crash, or another leader, at any moment finds what waits in one of both places, and the ledger counts it once
(`kernel/delay/carried`). Followers hear where the log starts, and carry nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError
from ..machine.turnstile import run_in_slices

if TYPE_CHECKING:
    from ..machine.clock import Clock
    from .delay_pieces import Carrying
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

PAUSE_S: Final = 0.1
"""Between two pieces, or two looks whether one is committed."""


class DelayCarrying:
    """A task of the delivery's; works between turns of the reactor, on the same thread.

    Attributes:
        carried_count: How many records it has had appended again.
    """

    def __init__(self, *, replicas: Replicas, writes: StagedWrites, clock: Clock) -> None:
        self._replicas = replicas
        self._writes = writes
        self._clock = clock
        self._under_way: dict[Replica, Carrying] = {}
        self._has_work = trio.Event()
        self.carried_count = 0

    def ask(self, replica: Replica, below: int) -> None:
        """Have what waits in a replica that leads carried forward, and its log start at an offset, as far as may be.

        Args:
            replica: Which; one without a ledger is left alone.
            below: Whole batches lie below this offset, all of them committed.
        """
        known = self._under_way.get(replica)
        if known is not None and known.is_led:
            known.below = max(known.below, below)
        elif replica.delays is not None:
            self._under_way[replica] = self.begin(replica, below)
            self._has_work.set()

    def begin(self, replica: Replica, below: int) -> Carrying:
        """Return what carries forward what waits in a replica, once somebody runs it; see `ask`."""
        from .delay_pieces import Carrying  # a broker without delayed records does not pay for it

        return Carrying(replica, below, writes=self._writes, clock=self._clock, changed=self._replicas.changed)

    async def run(self) -> None:
        """Carry until cancelled: what was not carried then stays where it is."""
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            while self._under_way:
                for carrying in list(self._under_way.values()):
                    goes_on = await self._step(carrying)
                    if not goes_on and self._under_way.get(carrying.replica) is carrying:
                        del self._under_way[carrying.replica]
                await trio.sleep(PAUSE_S)

    async def _step(self, carrying: Carrying) -> bool:
        replica, known_count = carrying.replica, carrying.carried_count
        try:
            return await run_in_slices(carrying.step())
        except KafkaError:
            return False  # it leads no more, or its disk failed, which was told
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            if replica.offline_reason is None:
                self._replicas.fail(replica, error)
            return False
        finally:
            self.carried_count += carrying.carried_count - known_count
