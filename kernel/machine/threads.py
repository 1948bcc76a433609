"""Shell: worker threads, and the work with files that meets them.

Real threads run beside the reactor's. Simulated ones run what they are given in one go, some virtual time later: so
whoever waits *in* a thread does it by `Threads.new_event`, and nowhere else.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple, Unpack

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

A = TypeVarTuple("A")
T = TypeVar("T")


class ThreadEvent(Protocol):
    """What a worker thread waits for: `threading.Event`, or its simulated twin."""

    def is_set(self) -> bool:
        """Say whether it has happened."""
        ...

    def set(self) -> None:
        """Let it happen."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until it has happened, or for `timeout` seconds; return whether it has."""
        ...


class Threads(Protocol):
    """The worker threads of a machine."""

    async def run_sync(
        self,
        function: Callable[[Unpack[A]], T],
        *args: *A,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run a function on a worker thread and return what it returns, or raise what it raises.

        Cancelled before a thread is free, nothing happens. Later the function goes on: it is waited for, or left to its
        thread where `abandon_on_cancel` says so.
        """
        ...

    def new_event(self) -> ThreadEvent:
        """Return an event that nothing has set."""
        ...


class SystemThreads:
    """trio's own worker threads."""

    run_sync = staticmethod(trio.to_thread.run_sync)
    new_event = staticmethod(threading.Event)


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
