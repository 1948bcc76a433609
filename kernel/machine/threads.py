"""Shell: worker threads, and the work with files that meets them.

Real threads run beside the reactor's. Simulated ones run what they are given in one go, some virtual time later: so
whoever waits *in* a thread does it by `Threads.new_event`, and nowhere else.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

A = TypeVarTuple("A")
Item = TypeVar("Item")
T = TypeVar("T")


Lock = threading.Lock
"""One thread at a time; as simulated ones run one after the other, the same for them."""


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
        /,
        *args: *A,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run a function on a worker thread and return what it returns, or raise what it raises.

        Cancelled before a thread is free, nothing happens. Later the function goes on: it is waited for, or left to its
        thread where `abandon_on_cancel` says so.
        """
        ...

    def map(self, function: Callable[[Item], T], items: Iterable[Item], *, count: int) -> list[T]:
        """Call a function with each item on up to `count` threads beside each other; block until all is done.

        Threads may begin with the first items while the caller's thread still takes the others.

        Returns:
            The results, in the order of the items.
        """
        ...

    def new_event(self) -> ThreadEvent:
        """Return an event that nothing has set."""
        ...

    async def watch_run(self, on_silence: Callable[[Silence], None], *, pause_s: float, limit_s: float) -> NoReturn:
        """Have a thread ask this run for signs of life until cancelled; simulated threads watch nothing.

        Args:
            on_silence: Called by that thread when there was none.
            pause_s: How long it rests between two questions.
            limit_s: How long it waits for an answer.
        """
        ...


class Silence(Protocol):
    """A trio run that gives no sign of life; asked by the thread that watches it."""

    def frame(self) -> FrameType | None:
        """Return what the run is doing at this moment; None when it is over."""
        ...

    def wait(self, seconds: float) -> bool:
        """Block until the run gives a sign of life, or so long; return whether it did."""
        ...


class ThreadWork(Protocol):
    """Work in two halves, as `contracts.disk_work.DiskWork` is, which says more of them."""

    def run(self) -> None:
        """Do it, on a thread."""
        ...

    def finish(self, error: Exception | None) -> None:
        """Take the outcome, on the task that owns the work's maker."""
        ...


class Workers:
    """So many worker threads of a machine at once; others that are asked for wait their turn."""

    def __init__(self, threads: Threads, count: int) -> None:
        self._run_sync = threads.run_sync
        self._limiter = trio.CapacityLimiter(count)

    @property
    def busy_count(self) -> int:
        """How many work."""
        return self._limiter.borrowed_tokens

    def resize(self, count: int) -> None:
        """Have so many from now on; who works goes on."""
        self._limiter.total_tokens = count

    async def run_sync(self, function: Callable[[Unpack[A]], T], *args: *A, abandon_on_cancel: bool = False) -> T:
        """See `Threads.run_sync`."""
        return await self._run_sync(function, *args, limiter=self._limiter, abandon_on_cancel=abandon_on_cancel)

    async def do(self, work: ThreadWork, *, abandons: bool = False) -> None:
        """Run a work on a worker thread and finish it on the calling task, which owns the work's maker.

        If it is cancelled before a thread is free nothing happens; once begun, the work is waited for and finished, or
        left to its thread and never finished if `abandons` says so: for works whose outcome nobody misses.

        Raises:
            StorageError: See `DiskWork.finish`.
        """
        error: Exception | None = None
        try:
            await self.run_sync(work.run, abandon_on_cancel=abandons)
        except Exception as exc:  # `finish` tells it, with what it means
            error = exc
        work.finish(error)
