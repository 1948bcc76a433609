"""Time that is advanced in a trio run: tasks wake in their order, and threads are waited for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Event
from typing import Any, cast

import trio

from odradek.kernel.machine.system.machine import real_machine
from odradek.testing.advanced_clock import AdvancedClock
from odradek.testing.counted_threads import CountedThreads
from odradek.testing.passing_time import STEPS_MAX, PassingTime

HOUR_MS = 3_600_000


class NobodyThere:
    """The presence of a run without clients."""

    def __init__(self) -> None:
        self.kept_at_s: list[float] = []
        self.silent: Collection[str] = ()

    def silence(self, names: Collection[str]) -> None:
        self.silent = names

    def hear_all(self) -> None:
        self.silent = ()

    def keep(self, network: object) -> None:
        self.kept_at_s.append(trio.current_time())


class Run:
    """A trio run whose time a test lets pass, and what happened when, in whole seconds from its beginning."""

    def __init__(self) -> None:
        machine = real_machine()
        self.clock = AdvancedClock(timer=machine.timer, wall=machine.clock)
        self.threads = CountedThreads(machine.threads)
        self.presence = NobodyThere()
        self.time = PassingTime(self.clock, self.threads, cast("Any", self.presence))
        self.began_s = self.clock.current_time()
        self.happened: list[tuple[int, str]] = []

    def note(self, what: str) -> None:
        self.happened.append((int(self.clock.current_time() - self.began_s), what))

    async def advance(self, duration_ms: int) -> None:
        await self.time.advance(duration_ms, (), cast("Any", None))


def run(main: Callable[[Run, trio.Nursery], Any]) -> Run:
    """Run an asynchronous function, and end its tasks with it."""
    made = Run()

    async def end_with_it() -> None:
        async with trio.open_nursery() as nursery:
            await main(made, nursery)
            nursery.cancel_scope.cancel()

    trio.run(end_with_it, clock=made.clock)
    return made


def test_what_is_due_happens_at_its_time_and_is_done_afterwards() -> None:
    async def sleep(made: Run, *pauses_s: float) -> None:
        for pause_s in pauses_s:
            await trio.sleep(pause_s)
            made.note(f"after {pause_s}")

    async def main(made: Run, nursery: trio.Nursery) -> None:
        nursery.start_soon(sleep, made, 600, 1)
        nursery.start_soon(sleep, made, 300, 900)
        await made.advance(HOUR_MS)
        made.note("an hour")

    assert run(main).happened == [
        (300, "after 300"),
        (600, "after 600"),
        (636, "after 1"),  # a step is a hundredth of the whole
        (1200, "after 900"),
        (3600, "an hour"),
    ]


def test_who_looks_every_moment_looks_as_often_as_there_are_steps() -> None:
    async def look(made: Run) -> None:
        while True:
            await trio.sleep(0.25)
            made.note("a look")

    async def main(made: Run, nursery: trio.Nursery) -> None:
        nursery.start_soon(look, made)
        await made.advance(1_000 * HOUR_MS)

    made = run(main)

    assert STEPS_MAX - 1 <= len(made.happened) <= STEPS_MAX + 1
    assert len(made.presence.kept_at_s) == STEPS_MAX


def test_threads_are_waited_for_and_what_follows_from_them() -> None:
    async def work(made: Run) -> None:
        await trio.sleep(60)
        for number in range(3):
            await made.threads.run_sync(Event().wait, 0.02)
            made.note(f"work {number}")

    async def main(made: Run, nursery: trio.Nursery) -> None:
        nursery.start_soon(work, made)
        await made.advance(60_000)
        made.note("a minute")

    assert [what for _, what in run(main).happened] == ["work 0", "work 1", "work 2", "a minute"]


def test_nothing_passes_in_no_time() -> None:
    async def main(made: Run, nursery: trio.Nursery) -> None:
        await made.advance(0)
        made.note("nothing")

    made = run(main)

    assert made.happened == [(0, "nothing")]
    assert made.presence.kept_at_s == []
