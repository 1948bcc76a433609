"""Shell: worker threads of which is known whether any of them works: for who waits until a broker is at rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar, TypeVarTuple, Unpack

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.kernel.machine.threads import Silence, ThreadEvent, Threads

A = TypeVarTuple("A")
Item = TypeVar("Item")
T = TypeVar("T")


class CountedThreads:
    """The worker threads of a machine, counted by the tasks that wait for them. Owned by one trio run.

    Attributes:
        busy_count: How many tasks wait for a thread now.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._one_is_done = trio.Event()
        self.busy_count = 0

    async def wait_for_one(self) -> None:
        """Wait until one more is done."""
        await self._one_is_done.wait()

    async def run_sync(
        self,
        function: Callable[[Unpack[A]], T],
        /,
        *args: *A,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """See `Threads.run_sync`."""
        self.busy_count += 1
        try:
            return await self._threads.run_sync(function, *args, limiter=limiter, abandon_on_cancel=abandon_on_cancel)
        finally:
            self.busy_count -= 1
            done, self._one_is_done = self._one_is_done, trio.Event()
            done.set()

    def map(self, function: Callable[[Item], T], items: Iterable[Item], *, count: int) -> list[T]:
        """See `Threads.map`."""
        return self._threads.map(function, items, count=count)

    def new_event(self) -> ThreadEvent:
        """See `Threads.new_event`."""
        return self._threads.new_event()

    async def watch_run(self, on_silence: Callable[[Silence], None], *, pause_s: float, limit_s: float) -> NoReturn:
        """See `Threads.watch_run`."""
        await self._threads.watch_run(on_silence, pause_s=pause_s, limit_s=limit_s)
