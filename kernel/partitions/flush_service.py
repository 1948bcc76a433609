"""Shell: makes logs durable on worker threads, many at once, and lets those who waited for it go on.

Two lanes, each with a thread of its own, so that nobody waits behind gigabytes that nobody asked for:

| lane | what | who waits |
|---|---|---|
| asked for | whole logs, as `flush.messages`, `flush.ms` and moves want it | producers |
| background | closed segments only | nobody |

In a lane one fsync runs at a time; whatever asks for one meanwhile goes together into the next round (group commit).
The outcome of each log is reported as soon as it is there, not when its round is over.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ..machine.threads import Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..contracts.disk_work import DiskWork
    from ..contracts.storage import PartitionLog
    from ..machine.threads import Threads
    from .replica import Replica
    from .staged_writes import StagedWrites


FLUSHES_MAX: Final = 200
"""How many flushes begin in one step, and may end in one: each takes some microseconds beside its fsync."""


class _Flush(NamedTuple):
    """A flush under way. A replica's log may be another one when it is over: the outcome is this one's."""

    replica: Replica
    log: PartitionLog
    work: DiskWork


class FlushService:
    """The two lanes. Owned by the broker's nursery; all but the fsyncs themselves runs on the reactor's task."""

    def __init__(self, writes: StagedWrites, threads: Threads) -> None:
        self._writes = writes
        self._threads = threads
        self._wanted = trio.Event()
        self._background: list[Replica] = []
        self._background_wanted = trio.Event()
        self.flushes_count = 0

    def wake(self) -> None:
        """Take note that the flush queue has an entry."""
        self._wanted.set()

    def flush_closed_segments(self, replicas: Sequence[Replica]) -> None:
        """Flush these replicas' closed segments some time soon."""
        self._background += replicas
        self._background_wanted.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Flush what is asked for, until cancelled: flushes under way are then waited for, and told."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve_asked_for, name="flushes asked for")
            nursery.start_soon(self._serve_background, name="background flushes")
            task_status.started()

    async def _serve_asked_for(self) -> None:
        worker = Workers(self._threads, 1)
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            queue, self._writes.flush_queue = self._writes.flush_queue, []
            await self._flush(queue, worker, closed_only=False)

    async def _serve_background(self) -> None:
        worker = Workers(self._threads, 1)
        while True:
            await self._background_wanted.wait()
            self._background_wanted = trio.Event()
            queue, self._background = self._background, []
            await self._flush(queue, worker, closed_only=True)

    async def _flush(self, queue: Iterable[Replica], worker: Workers, *, closed_only: bool) -> None:
        """Flush these replicas' logs, some at a time. Cancelled, it begins no more: those under way are waited for."""
        token = trio.lowlevel.current_trio_token()
        replicas = iter(dict.fromkeys(queue))
        while some := [*islice(replicas, FLUSHES_MAX)]:
            await trio.lowlevel.checkpoint()  # what was begun is run
            if flushes := [*self._begin(some, closed_only=closed_only)]:
                await worker.run_sync(self._run_all, flushes, token)

    def _begin(self, replicas: Iterable[Replica], *, closed_only: bool) -> Iterator[_Flush]:
        for replica in replicas:
            # Since it was asked for, its log may have been closed, to be moved or deleted.
            if replica.offline_reason is None:
                try:
                    yield _Flush(replica, replica.log, replica.log.begin_flush(closed_only=closed_only))
                except Exception as error:  # whatever a storage raises is its partition's matter alone
                    self._writes.note_flushed(replica, replica.log, error)

    def _run_all(self, flushes: Sequence[_Flush], token: trio.lowlevel.TrioToken) -> None:
        """Sync one log after the other, on a worker thread."""
        for flush in flushes:
            error: Exception | None = None
            try:
                flush.work.run()
            except Exception as exc:  # `finish` tells it
                error = exc
            token.run_sync_soon(self._finish, flush, error)

    def _finish(self, flush: _Flush, error: Exception | None) -> None:
        self.flushes_count += 1
        outcome: Exception | None = None
        try:
            flush.work.finish(error)
        except Exception as exc:  # told with it
            outcome = exc
        self._writes.note_flushed(flush.replica, flush.log, outcome)
