"""Shell: worker threads as events: what a thread would do is done in the one thread there is, when its time has come.

    run_sync ──(until a thread is free, and it begins)──> function() ──(as long as it took)──> the caller goes on

All of a function happens in one moment. How long it took is drawn, and longer if it waited for the disk.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, TypeVarTuple, Unpack

import outcome
import trio

from .seeds import SCHEDULING, between
from .world import MICROSECOND, MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.kernel.machine.threads import Silence

    from .disk import Disk
    from .world import World

A = TypeVarTuple("A")
T = TypeVar("T")
Item = TypeVar("Item")

BEGIN_NS_MAX: Final = MILLISECOND
WORK_NS_MAX: Final = 2 * MILLISECOND
THREADS: Final = 40
"""How many works are done at once where the caller says nothing, as in trio."""


class _Work:
    """One function on its way."""

    __slots__ = ("call", "raise_cancel", "task")

    def __init__(self, call: Callable[[], Any], task: trio.lowlevel.Task) -> None:
        self.call = call
        self.task: trio.lowlevel.Task | None = task
        self.raise_cancel: Callable[[], Any] | None = None


class Event:
    """See `kernel.machine.threads.ThreadEvent`: a work is done in one moment, so that waiting in it ends at once."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """Say whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Let it happen."""
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait no time at all; return whether it has happened."""
        assert self._is_set or timeout is not None, "a simulated work would wait for ever"
        return self._is_set


class Threads:
    """The threads of one process. Life: made, used, `end`."""

    def __init__(self, world: World, disk: Disk, name: str) -> None:
        """Make them.

        Args:
            world: Whose time it is.
            disk: What the works wait for.
            name: Whose threads they are.
        """
        self._world = world
        self._disk = disk
        self._random = world.seeds.stream(SCHEDULING, name)
        self._limiter = trio.CapacityLimiter(THREADS)
        self._works: dict[_Work, None] = {}
        self._put_off: list[_Work] | None = None
        self._is_dead = False

    async def run_sync(
        self,
        function: Callable[[Unpack[A]], T],
        /,
        *args: *A,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Have a function run, as `trio.to_thread.run_sync` does.

        If it is cancelled before a thread is free nothing happens; once begun it is waited for, or its outcome is
        dropped if `abandon_on_cancel` says so.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        limiter = limiter or self._limiter
        try:
            limiter.acquire_nowait()
        except trio.WouldBlock:  # a free one costs no turn
            await limiter.acquire()
        try:
            return await self._run(function, args, abandon_on_cancel=abandon_on_cancel)
        finally:
            limiter.release()

    async def _run(self, function: Callable[[Unpack[A]], T], args: tuple[*A], *, abandon_on_cancel: bool) -> T:
        context = contextvars.copy_context()
        work = _Work(lambda: context.run(function, *args), trio.lowlevel.current_task())
        self._works[work] = None
        self._world.after(between(self._random, MICROSECOND, BEGIN_NS_MAX), self._do, work)

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            work.raise_cancel = raise_cancel
            if abandon_on_cancel or self._is_dead:
                work.task = None
                return trio.lowlevel.Abort.SUCCEEDED
            return trio.lowlevel.Abort.FAILED

        result: T = await trio.lowlevel.wait_task_rescheduled(abort)
        return result

    def new_event(self) -> Event:
        """Return an event that nothing has set."""
        return Event()

    def map(self, function: Callable[[Item], T], items: Iterable[Item], *, count: int) -> list[T]:
        """Call a function with each item, in any order of the items.

        Returns:
            The results, in the order of the items.
        """
        taken = [*items]
        places = [*range(len(taken))]
        self._random.shuffle(places)
        results = {place: function(taken[place]) for place in places}
        return [results[place] for place in range(len(taken))]

    async def watch_run(self, on_silence: Callable[[Silence], None], *, pause_s: float, limit_s: float) -> NoReturn:
        """See `kernel.machine.threads.Threads.watch_run`: computing takes no time, so nobody is ever silent."""
        await trio.sleep_forever()

    def stand_still(self) -> None:
        """Let no work be done until `go_on`."""
        if self._put_off is None:
            self._put_off = []

    def go_on(self) -> None:
        """Do at this moment what was to be done meanwhile."""
        works, self._put_off = self._put_off or [], None
        for work in works:
            self._world.after(0, self._do, work)

    def _do(self, work: _Work) -> None:
        if self._is_dead:
            return
        if self._put_off is not None:
            self._put_off.append(work)
            return
        busy_ns = self._disk.busy_ns
        done = outcome.capture(work.call)
        waited_ns = self._disk.busy_ns - busy_ns
        if isinstance(done, outcome.Error) and not isinstance(done.error, Exception):
            raise done.error
        self._world.after(waited_ns + between(self._random, MICROSECOND, WORK_NS_MAX), self._finish, work, done)

    def _finish(self, work: _Work, done: outcome.Outcome[Any]) -> None:
        if work not in self._works:
            return
        del self._works[work]
        if work.task is not None:
            task, work.task = work.task, None
            trio.lowlevel.reschedule(task, done)

    def end(self) -> None:
        """Let no work be done any more; who waits for one and is cancelled waits no longer."""
        self._is_dead = True
        works, self._works = self._works, {}
        for work in works:
            if work.task is not None and work.raise_cancel is not None:
                task, work.task = work.task, None
                trio.lowlevel.reschedule(task, outcome.capture(work.raise_cancel))
