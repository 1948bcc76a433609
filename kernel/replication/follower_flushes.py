"""Shell: flushes what a fetcher took, where the topic wants that before it counts, beside its fetches.

One fsync after the other in each log directory, so that a slow disk holds up nothing of the others. A replica that
waits for one is asked for no more meanwhile (`fetch_planning.wanted_now`), and all others are: it costs no leader its
followers. One that votes is asked for now and then from what it has flushed: its leader counts who asks, and it stands
itself when nobody answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..machine.threads import Workers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.staged_writes import StagedWrites

LANES_MAX: Final = 8
"""In how many log directories one fetcher's followers are flushed at once; more take turns."""


def wants_flush(replica: Replica) -> bool:
    """Return whether a follower's log has what is not kept yet as its topic wants it: to ask on would say it is."""
    is_served = replica.offline_reason is None and not replica.is_leader
    return is_served and replica.appended_offset < replica.log.log_end_offset


class FollowerFlushes:
    """Life: made, `run` beside the fetches, `ask` and `wait` by the fetcher. Owned by it."""

    def __init__(self, writes: StagedWrites, threads: Threads) -> None:
        """Make it, with nothing to flush.

        Args:
            writes: Told of what was flushed, or why it was not.
            threads: Flush.
        """
        self._writes = writes
        self._workers = Workers(threads, LANES_MAX)
        self._asked: dict[Replica, str] = {}  # and in which log directory
        self._lanes: dict[str, dict[Replica, None]] = {}
        self._under_way: set[Replica] = set()
        self._is_over = False
        self._wanted = trio.Event()
        self._flushed = trio.Event()

    def __repr__(self) -> str:
        return f"<FollowerFlushes: {len(self._asked)} to flush, {len(self._under_way)} under way>"

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to flush."""
        return bool(self._asked)

    def ask(self, replicas: Iterable[Replica]) -> list[Replica]:
        """Have those flushed that want it; return who was not asked for before."""
        behind = [
            replica for replica in replicas if replica.appended_offset < replica.log.log_end_offset
        ]  # most have none
        new = [replica for replica in behind if replica not in self._asked and wants_flush(replica)]
        for replica in new:
            log_dir = self._asked[replica] = replica.log.log_dir
            self._lanes.setdefault(log_dir, {})[replica] = None
        if new:
            self._wanted.set()
        return new

    def forget(self, replica: Replica) -> None:
        """Do not flush for a replica any more; what is under way goes on."""
        if replica in self._asked and replica not in self._under_way:
            del self._lanes[self._asked.pop(replica)][replica]

    async def wait(self, replicas: Iterable[Replica], duration_ms: int) -> None:
        """Wait until these are flushed, but no longer than that; whether they are is theirs to say."""
        with trio.move_on_after(duration_ms / 1000):
            for replica in replicas:
                while replica in self._asked:
                    await self._flushed.wait()

    def end(self) -> None:
        """Have `run` end, which has nothing to flush any more."""
        self._is_over = True
        self._wanted.set()

    async def run(self) -> None:
        """Flush until `end`. Cancelled: flushes under way are waited for, and told."""
        running: set[str] = set()
        async with trio.open_nursery() as nursery:
            while not self._is_over:
                self._wanted = trio.Event()
                for log_dir in [each for each in self._lanes if each not in running]:
                    running.add(log_dir)
                    nursery.start_soon(self._run_lane, log_dir, running, name=f"flushes of followers in {log_dir}")
                await self._wanted.wait()
        self._is_over = False

    async def _run_lane(self, log_dir: str, running: set[str]) -> None:
        """Flush in one log directory until nothing is asked for there."""
        lane = self._lanes[log_dir]
        while lane:
            replica = next(iter(lane))
            self._under_way.add(replica)
            await self._flush(replica)
            self._under_way.remove(replica)
            del lane[replica], self._asked[replica]
            self._flushed.set()
            self._flushed = trio.Event()
        del self._lanes[log_dir]
        running.remove(log_dir)

    async def _flush(self, replica: Replica) -> None:
        await trio.lowlevel.checkpoint()  # what was staged beside it is written
        if not wants_flush(replica):  # by now: flushes that the broker was asked for count as well
            return
        log, failure = replica.log, None
        try:
            await self._workers.do(log.begin_flush())
        except Exception as error:  # whatever a storage raises is its partition's matter alone
            failure = error
        self._writes.note_flushed(replica, log, failure)
