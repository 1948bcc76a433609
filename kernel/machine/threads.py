"""Shell: where work with files meets worker threads."""

from __future__ import annotations

from typing import Protocol

import trio


class ThreadWork(Protocol):
    """Work in two halves, as `contracts.disk_work.DiskWork` is, which says more of them."""

    def run(self) -> None:
        """Do it, on a thread."""
        ...

    def finish(self, error: Exception | None) -> None:
        """Take the outcome, on the task that owns the work's maker."""
        ...


async def do_on_thread(work: ThreadWork, limiter: trio.CapacityLimiter, *, abandons: bool = False) -> None:
    """Run a work on a worker thread and finish it on the calling task, which owns the work's maker.

    If it is cancelled before a thread is free nothing happens; once begun, the work is waited for and finished, or left
    to its thread and never finished if `abandons` says so: for works whose outcome nobody misses.

    Raises:
        StorageError: See `DiskWork.finish`.
    """
    error: Exception | None = None
    try:
        await trio.to_thread.run_sync(work.run, limiter=limiter, abandon_on_cancel=abandons)
    except Exception as exc:  # `finish` tells it, with what it means
        error = exc
    work.finish(error)
