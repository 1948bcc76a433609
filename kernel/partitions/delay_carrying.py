"""Shell: has what waits in segments that retention is about to take carried forward, so that these can go.

    retention wants all below N gone ──> what waits there is appended again, a piece at a time
                                          └─> the piece is committed ──> the log starts behind where it was

So a crash, or another leader, at any moment finds what waits in one of both places, and the ledger counts it once
(`kernel/delay/carried`). Followers hear where the log starts, and carry nothing.

A log in two tiers (`contracts/tiering`) keeps all that waits in its local part: that alone is read at a start, and
copied by followers. So a segment that is to leave the disk for the store is, in this, one that is to go::

    the tier asks what may leave below N ──> all, where nothing waits there; else as far as nothing does, and
                                             what waits is carried, and the tier asks again at its next visit

The log's start stays. Who follows lets its own segments leave, as far as it has seen what waited there carried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError
from ..machine.turnstile import run_in_slices
from .delay_recovery import keeps_waiting, kept_end

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
        """Have what waits in a replica carried forward, and its log start at an offset, as far as may be.

        Args:
            replica: Which: one that leads, or is in two tiers; one without a ledger is left alone.
            below: Whole batches lie below this offset, all of them committed.
        """
        known = self._under_way.get(replica)
        if known is not None and known.goes_on:
            known.below = max(known.below, below)
        elif replica.delays is not None:
            self._under_way[replica] = self.begin(replica, below)
            self._has_work.set()

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        """Return up to where segments of a tiered log, which the store has, may leave the local disk.

        Args:
            topic: Its name.
            partition: Its number.
            below: What is to leave.

        Returns:
            At most `below`, 0 while this broker has no such replica. None where no records of its topic wait: all may
            leave. Else what waits is to lie in local segments alone, and what keeps some of them here is soon
            elsewhere; and the local log is to begin at a segment's end in the store, so that a follower which begins
            there (`TieredLog.begin_at_store`) lacks nothing of what its leader has local.
        """
        replica = self._replicas.find(topic, partition)
        if replica is None:
            return 0
        tiered, ledger = replica.tiered_log, replica.delays
        if tiered is None or not keeps_waiting(replica):
            return None
        if ledger is None or replica.offline_reason is not None:
            return tiered.local_log_start_offset  # it is not known yet what waits
        kept = kept_end(replica)
        below = min(below, kept)
        needed = (ledger.needed_from(kept), ledger.last_delivery_offset if ledger.has_note_below(below) else None)
        free = min(offset for offset in (below, *needed) if offset is not None)
        ledger.start_advanced(free)
        if free < below:
            self.ask(replica, below)
        return min(below, ledger.start_offset)

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
