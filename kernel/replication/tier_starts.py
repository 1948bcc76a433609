"""Shell: followers whose leader has what they lack in the remote store alone: they begin where the store's part ends.

    OFFSET_MOVED_TO_TIERED_STORAGE ─> where does the leader's local log begin? ─> `TierStarts.ask`
    worker thread: manifest, producers' snapshot, transaction indexes          other partitions are fetched meanwhile
    the log is given up, begins empty at the end of a segment ─> producers are read ─> fetched from there

*Source:* KIP-405, KIP-1023; TierStateMachine of Kafka 4.3.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ..errors import KafkaError, OdradekError
from ..machine.threads import Workers
from ..partitions.delay_recovery import keeps_waiting
from ..partitions.following import begin_at_store, rebuild_after_cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.replica_lifecycle import ReplicaLifecycle
    from .settings import FetcherSettings

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""How many followers ask the store at the same time."""


class _Wanted(NamedTuple):
    replica: Replica
    offset: int
    done: Callable[[str | None], None]


class TierStarts:
    """Life: made, `ask`, `run` as a service. Owned by the broker; all on the reactor's task but what asks the store."""

    def __init__(self, lifecycle: ReplicaLifecycle, threads: Threads, clock: Clock) -> None:
        """Make it.

        Args:
            lifecycle: Has replicas served again whose producers were read.
            threads: Where the store is asked.
            clock: The wall clock.
        """
        self._lifecycle = lifecycle
        self._clock = clock
        self._worker = Workers(threads, AT_ONCE)
        self._send, self._receive = trio.open_memory_channel[_Wanted](float("inf"))

    def ask(self, replica: Replica, offset: int, done: Callable[[str | None], None]) -> None:
        """Have a follower's log begin at the store's part.

        Args:
            replica: Whose.
            offset: Where it is to begin, or behind.
            done: Called once, later: with None when it was done, else with the reason, empty where that passes by
                itself. Never called if the broker ends.
        """
        self._send.send_nowait(_Wanted(replica, offset, done))

    @staticmethod
    def begins_at_end(replica: Replica, settings: FetcherSettings) -> bool:
        """Return whether a follower that begins at the store begins at its end: a new one of which no record waits.

        What waits lies in all that its leader has local.
        """
        return settings.begins_at_tiers_end and not replica.log.log_end_offset and not keeps_waiting(replica)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Begin what is asked for, some at once, until cancelled: a log that has begun anew then is whole."""
        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE):
                nursery.start_soon(self._serve, name=f"beginnings at the store {number}")
            task_status.started()

    async def _serve(self) -> None:
        async for wanted in self._receive:
            try:
                reason = await self._begin(wanted.replica, wanted.offset)
            except Exception as error:  # a bug of the tier's plugin: its partition waits, the others go on
                log.exception("%s does not begin at the remote store", wanted.replica.partition)
                reason = repr(error)
            wanted.done(reason)

    async def _begin(self, replica: Replica, offset: int) -> str | None:
        tiered = replica.tiered_log
        if tiered is None:
            return "its leader has it in a remote store, and its topic is not tiered here"
        stands = _where(replica)
        start = tiered.begin_at_store(offset, is_exact=keeps_waiting(replica))
        try:
            await self._worker.run_sync(start.run)
            for work in start.begin_keeping():
                await self._worker.do(work)
            if _where(replica) != stands or replica.tiered_log is not tiered:
                return ""
            begin_at_store(replica, start)
        except KafkaError as error:  # it leads by now, or its log failed, which was told
            return error.code.name
        except (OdradekError, OSError) as error:
            return f"what it lacks cannot be had from the remote store: {error}"
        log.info(
            "%s follows from offset %d on; what is below is in the store", replica.partition, replica.log.log_end_offset
        )
        await rebuild_after_cut(self._lifecycle, replica, self._clock.now_ms())
        return None


def _where(replica: Replica) -> tuple[str | None, bool, int, int]:
    """Return what must not have changed while the store was asked."""
    return replica.offline_reason, replica.is_leader, replica.leader_epoch, replica.log.log_end_offset
