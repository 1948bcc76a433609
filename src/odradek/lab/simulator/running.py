"""Shell: a trio run whose time is a world's: it passes only when no task can run.

trio asks its clock how long to sleep only when nothing is runnable. The clock of a simulated run answers "not at all",
and meanwhile has let the next thing happen: an event of the world, or the next deadline of trio's own.

Ctrl-C ends a run in the same way as an event that fails: a KeyboardInterrupt that Python raises wherever it happens to
be would be taken for what a broker did. A second one breaks the run off.
"""

from __future__ import annotations

import gc
import math
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import trio

from .scheduling import ask_no_system, deterministic_scheduling, runnable_now
from .seeds import SCHEDULING
from .world import SECOND, SimulationError, nanoseconds_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from .world import World

T = TypeVar("T")

ASKED_WITHOUT_TIME_MAX: Final = 50_000
"""How often the time may be asked for before somebody is held to wait for it to pass without letting it."""
ASKED_PER_COLLECTION: Final = 100_000
"""How often garbage is collected: by count, since objects with finalizers must go at the same moment in each run."""


class WorldClock(trio.abc.Clock):
    """The clock of one simulated run.

    What cannot be raised into a task (an event that fails, time that cannot go on, Ctrl-C) is kept as `failure` and
    ends the run by `scope`.

    Attributes:
        failure: Why the run cannot go on; None as long as it can.
        broken_off: Why it was not even able to end; None if it was.
        scope: Cancelled when it cannot go on.
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
        self._now_s = 0.0
        self._asked_count = 0
        self._collects_at = ASKED_PER_COLLECTION
        self._stuck_at = self._looks_at = ASKED_WITHOUT_TIME_MAX
        self._is_done = False
        self._is_interrupted = False
        self.failure: Exception | KeyboardInterrupt | None = None
        self.broken_off: SimulationError | None = None
        self.scope = trio.CancelScope()
        self._is_anybody_runnable: Callable[[], bool]

    def start_clock(self) -> None:
        """See `trio.abc.Clock`."""
        self._is_anybody_runnable = runnable_now()
        ask_no_system()

    def current_time(self) -> float:
        """See `trio.abc.Clock`. trio itself asks once in each of its passes, and tasks whenever they like."""
        now_ns = self._world.now_ns
        if now_ns != self._last_ns:
            self._last_ns = now_ns
            self._now_s = now_ns / SECOND
            self._stuck_at = self._asked_count + ASKED_WITHOUT_TIME_MAX
        self._asked_count += 1
        if self._asked_count >= self._looks_at or self._is_interrupted:
            self._look()
        return self._now_s

    def _look(self) -> None:
        """Do what is due by count, or because somebody is tired of waiting."""
        if self._is_interrupted:
            self._interrupted()
        count = self._asked_count
        if count >= self._collects_at:
            self._collects_at = count + ASKED_PER_COLLECTION
            gc.collect()
        is_stuck = count >= self._stuck_at
        if is_stuck:
            self._stuck_at = count + ASKED_WITHOUT_TIME_MAX
        self._looks_at = min(self._collects_at, self._stuck_at)
        if is_stuck:
            self._give_up("a task goes on and on without letting time pass")

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """See `trio.abc.Clock`: lets things happen until somebody can run, as if trio had looked after each."""
        if self._is_done:
            return math.inf  # trio puts its own things away, and wakes itself for it by a real socket
        deadline_ns = nanoseconds_at(deadline)
        while self._let_next_happen(deadline_ns) and not self._is_anybody_runnable():
            if self.current_time() >= deadline or self._is_anybody_runnable():  # Ctrl-C is heard of in between
                break
        return 0

    def _let_next_happen(self, deadline_ns: int | None) -> bool:
        """Let the next thing happen; return whether the run goes on."""
        world = self._world
        try:
            has_next = world.advance(deadline_ns)
        except Exception as error:  # a bug of the simulator, or what a check of it found: it is the run's
            self._fail(error)
            return False
        if not has_next:
            self._give_up("nobody will ever go on: all tasks wait, and nothing is going to happen")
            return False
        if self._end_ns is not None and world.now_ns > self._end_ns:
            self._end_ns = None
            self._give_up(f"it did not end within {world.elapsed_ns / SECOND:.0f} s of virtual time")
            return False
        return True

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
        if self.failure is not None:
            self._break_off(what)
        self._fail(SimulationError(what))

    def _break_off(self, what: str) -> NoReturn:
        """Leave trio, which is where it calls its clock: it takes that for an error of its own."""
        self.broken_off = SimulationError(f"it was to end, and cannot: {what}")
        raise self.broken_off

    def interrupt(self, *_signal: object) -> None:
        """Take note of SIGINT, which may come between any two steps of anything."""
        self._is_interrupted = True

    def _interrupted(self) -> None:
        self._is_interrupted = False
        if isinstance(self.failure, KeyboardInterrupt):
            self._break_off("somebody is tired of waiting for it")
        self.failure = KeyboardInterrupt()
        self.scope.cancel()


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
        KeyboardInterrupt: SIGINT came.
        Exception: What it, or an event, raises. A group of that and a SimulationError: it could not even end then.
    """
    clock = WorldClock(world, limit_ns)
    results: list[T] = []

    async def root() -> None:
        try:
            with clock.scope:
                results.append(await main())
        finally:
            clock.done()

    with deterministic_scheduling(world.seeds.stream(SCHEDULING)), _collecting_by_count(), _interrupting(clock):
        try:
            trio.run(root, clock=clock)
        except Exception:
            if not isinstance(clock.failure, KeyboardInterrupt) and clock.broken_off is None:
                raise
    if clock.broken_off is not None and isinstance(clock.failure, Exception):
        raise ExceptionGroup("a run that was to end was broken off", [clock.failure, clock.broken_off])
    if clock.failure is not None:
        raise clock.failure
    return results[0]


@contextmanager
def _interrupting(clock: WorldClock) -> Iterator[None]:
    """Have SIGINT noted by the clock, unless somebody else takes it; signals come to the main thread alone."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_ours:
            signal.signal(signal.SIGINT, clock.interrupt)
    except ValueError:  # this is not the main thread
        is_ours = False
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _collecting_by_count() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
