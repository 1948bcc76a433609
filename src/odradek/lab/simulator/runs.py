"""Shell: one seed of one scenario, run and judged.

A scenario is an async function that is given a `Run`: it makes its cluster, lets things happen and checks what must be
true. What it raises is what the seed found.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from odradek.kernel.machine.system.machine import real_machine

from .logs import logs_of
from .running import run_in_world
from .seeds import Seeds
from .trace import Trace
from .world import SECOND, SimulationError, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

LIMIT_S: Final = 2000
"""How long a run may last in virtual time."""


class NothingExercisedError(SimulationError):
    """A run in which nothing happened proves nothing."""


@attrs.define
class Run:
    """What a scenario is given.

    Attributes:
        world: Its time, its random sources.
        settings: Broker's settings that beat those of the scenario.
        coverage: What it exercised, counted; filled by the scenario.
    """

    world: World
    settings: Mapping[str, str]
    coverage: dict[str, int] = attrs.field(factory=dict)

    def count(self, what: str, number: int = 1) -> None:
        """Count something that was exercised."""
        self.coverage[what] = self.coverage.get(what, 0) + number

    def fail(self, error: Exception) -> None:
        """End the run by an error that nobody would let through from where it is found."""

        def end() -> None:
            raise error

        self.world.after(0, end)

    def require(self, *names: str) -> None:
        """See that these were exercised.

        Raises:
            NothingExercisedError: One was not.
        """
        for name in names:
            if not self.coverage.get(name):
                raise NothingExercisedError(f"the run exercised no {name}")


class Running(Protocol):
    """One run of a scenario that keeps what it knows in an object."""

    async def run(self) -> None:
        """Let everything happen, then check."""


def main_of(kind: Callable[[Run, trio.Nursery], Running]) -> Callable[[Run], Awaitable[None]]:
    """Return the function of a scenario whose runs are objects: each is made with a nursery for its brokers."""

    async def main(run: Run) -> None:
        async with trio.open_nursery() as nursery:
            await kind(run, nursery).run()

    return main


@attrs.frozen
class Scenario:
    """A scenario by its name.

    Attributes:
        name: How it is asked for.
        about: What it is, in a line.
        main: It.
        over_all: What all seeds together must have exercised.
    """

    name: str
    about: str
    main: Callable[[Run], Awaitable[None]]
    over_all: tuple[str, ...] = ()


@attrs.frozen
class Outcome:
    """What became of a seed.

    Attributes:
        seed: Which.
        failure: What is wrong; empty if nothing is.
        details: What helps to see why: log lines, the last events, tracebacks.
        trace_hash: The hash of everything that happened.
        simulated_s: How long it lasted in virtual time.
        wall_s: How long it took.
        coverage: What it exercised.
    """

    seed: int
    failure: str
    details: tuple[str, ...]
    trace_hash: str
    simulated_s: float
    wall_s: float
    coverage: Mapping[str, int]


def run_seed(
    scenario: Scenario,
    seed: int,
    settings: Mapping[str, str],
    *,
    on_event: Callable[[str], None] | None = None,
) -> Outcome:
    """Run one seed.

    Args:
        scenario: What happens.
        seed: Which, >= 0.
        settings: Broker's settings that beat those of the scenario.
        on_event: Given each event and each log line as it comes.
    """
    timer = real_machine().timer
    began = timer()
    world = World(Seeds(seed), Trace(on_event))
    run = Run(world, settings)
    failure = ""
    details: list[str] = []
    with logs_of(world, on_event) as logs:
        try:
            run_in_world(world, functools.partial(scenario.main, run), limit_ns=LIMIT_S * SECOND)
            if logs.tracebacks:
                failure = "something unexpected was logged"
        except Exception as error:
            leaves = list(leaves_of(error))
            failure = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves)
            details += [line for leaf in leaves for line in traceback_of(leaf)]
    if failure:
        details += [*logs.tracebacks, "-- the last log lines:", *logs.lines]
        details += ["-- the last events:", *world.trace.last_lines()]
    return Outcome(
        seed=seed,
        failure=failure,
        details=tuple(details),
        trace_hash=world.trace.digest,
        simulated_s=world.elapsed_ns / SECOND,
        wall_s=timer() - began,
        coverage=run.coverage,
    )


def leaves_of(error: Exception) -> Iterator[Exception]:
    """Iterate over the errors in a group of groups."""
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from leaves_of(each)
    else:
        yield error


def traceback_of(error: Exception) -> list[str]:
    """Return where an error comes from, unless it is what a check has found: that says all itself."""
    if isinstance(error, SimulationError):
        return []
    import traceback

    return traceback.format_exception(error)
