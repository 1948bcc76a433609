"""Shell: work that is too long for the reactor's task, done on worker threads in the order in which it came.

For what computes rather than waits for a disk: judging a batch of a million records, looking through one. A few
threads, so that no more than a few large batches are unpacked at any time, and one that takes seconds does not hold up
all others::

    reactor's task   begin(work) ──> queue ──> work.run() on a thread ──> work.finish(error) on the reactor's task

Who begins a work holds its connection meanwhile, so there are never more works than connections.
"""

from __future__ import annotations

import logging
import math
from typing import Final

import trio

from ..machine.threads import Threads, ThreadWork, Workers

log = logging.getLogger(__name__)

THREADS: Final = 2
"""How many works are done at once."""


class LongWork:
    """The queue and its threads. Owned by the broker's nursery; `begin` is called on the reactor's task."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._send, self._receive = trio.open_memory_channel[ThreadWork](math.inf)
        self.begun_count = 0

    def begin(self, work: ThreadWork) -> None:
        """Have a work run on a thread, then finished on the reactor's task."""
        self.begun_count += 1
        self._send.send_nowait(work)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do what is begun, until cancelled: works under way are then waited for and finished, others never run."""
        async with trio.open_nursery() as nursery:
            for _ in range(THREADS):
                nursery.start_soon(self._serve, name="long work")
            task_status.started()

    async def _serve(self) -> None:
        worker = Workers(self._threads, 1)
        async for work in self._receive:
            try:
                await worker.do(work)
            except Exception:  # a work tells who waits for it; what it could not tell is a bug of its own
                log.exception("%r could not be finished", work)
