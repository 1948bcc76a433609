"""Shell: a trio run whose time is a world's: it passes only when no task can run.

trio asks its clock how long to sleep only when nothing is runnable. The clock of a simulated run answers "not at all",
and meanwhile has let the next thing happen: an event of the world, or the next deadline of trio's own.
"""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from .scheduling import deterministic_scheduling
from .seeds import SCHEDULING
from .world import SECOND, SimulationError, nanoseconds_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from .world import World

T = TypeVar("T")

PASSES_WITHOUT_TIME_MAX: Final = 50_000
"""How often trio may look for runnable tasks before somebody is held to wait for time to pass without letting it."""
PASSES_PER_COLLECTION: Final = 100_000
"""How often garbage is collected: by count, since objects with finalizers must go at the same moment in each run."""


class WorldClock(trio.abc.Clock):
    """The clock of one simulated run.

    What cannot be raised into a task (an event that fails, time that cannot go on) is kept as `failure` and ends the
    run by `scope`.

    Attributes:
        failure: Why the run cannot go on; None as long as it can.
        scope: Cancelled when it cannot.
    """

    def __init__(self, world: World, limit_ns: int | None) -> None:
        """Make one.

        Args:
            world: Whose time it is.
            limit_ns: How long the run may last in virtual time; None for no limit.
        """
        self._world = world
        self._end_ns = None if limit_ns is None else world.now_ns + limit_ns
        self._last_ns = -1
        self._passes_without_time = 0
        self._passes_count = 0
        self._is_done = False
        self.failure: Exception | None = None
        self.scope = trio.CancelScope()

    def start_clock(self) -> None:
        """See `trio.abc.Clock`."""

    def current_time(self) -> float:
        """See `trio.abc.Clock`. trio itself asks once in each of its passes."""
        world = self._world
        if world.now_ns != self._last_ns:
            self._last_ns = world.now_ns
            self._passes_without_time = 0
        self._passes_without_time += 1
        self._passes_count += 1
        if self._passes_without_time % PASSES_WITHOUT_TIME_MAX == 0:
            self._give_up("a task goes on and on without letting time pass")
        if self._passes_count % PASSES_PER_COLLECTION == 0:
            gc.collect()
        return world.now_ns / SECOND

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """See `trio.abc.Clock`: lets the next thing happen."""
        world = self._world
        if self._is_done:
            return math.inf  # trio puts its own things away, and wakes itself for it by a real socket
        try:
            has_next = world.advance(nanoseconds_at(deadline))
        except Exception as error:  # a bug of the simulator, or what a check of it found: it is the run's
            self._fail(error)
            return 0
        if not has_next:
            self._give_up("nobody will ever go on: all tasks wait, and nothing is going to happen")
        elif self._end_ns is not None and world.now_ns > self._end_ns:
            self._end_ns = None
            self._give_up(f"it did not end within {world.elapsed_ns / SECOND:.0f} s of virtual time")
        return 0

    def done(self) -> None:
        """Let no more time pass: the run's task has ended."""
        self._is_done = True

    def _fail(self, error: Exception) -> None:
        """End the run by an error, unless it is ending by another one."""
        if self.failure is None:
            self.failure = error
            self.scope.cancel()

    def _give_up(self, what: str) -> None:
        """End a run that cannot go on; one that was told to end, and cannot even do that, is broken off."""
        error = SimulationError(what)
        if self.failure is not None:
            raise error
        self._fail(error)


def run_in_world(world: World, main: Callable[[], Awaitable[T]], *, limit_ns: int | None = None) -> T:
    """Run a task, with all that it starts, on a world's time.

    Args:
        world: Whose time, and whose order of tasks.
        main: The task.
        limit_ns: How long it may last in virtual time.

    Returns:
        What it returns.

    Raises:
        SimulationError: Nothing was going to happen any more before it ended, or time was up.
        Exception: What it, or an event, raises.
    """
    clock = WorldClock(world, limit_ns)
    results: list[T] = []

    async def root() -> None:
        try:
            with clock.scope:
                results.append(await main())
        finally:
            clock.done()

    with deterministic_scheduling(world.seeds.stream(SCHEDULING)), _collecting_by_count():
        trio.run(root, clock=clock)
    if clock.failure is not None:
        raise clock.failure
    return results[0]


@contextmanager
def _collecting_by_count() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
