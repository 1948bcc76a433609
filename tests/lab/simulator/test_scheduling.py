"""trio's order of tasks depends on the seed alone, by two names that are private to trio."""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio

from odradek.lab.simulator import scheduling
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.scheduling import deterministic_scheduling
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, SimulationError, World

TASKS = 12


def order_of_tasks(seed: int) -> list[int]:
    """Return in which order tasks went on that were woken by everything that trio keeps in sets."""
    seen: list[int] = []
    event = trio.Event()

    async def task(number: int) -> None:
        seen.append(number)
        await event.wait()
        seen.append(number)
        await trio.sleep(1)
        seen.append(number)
        try:
            await trio.sleep_forever()
        finally:
            seen.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(TASKS):
                nursery.start_soon(task, number)
            await trio.sleep(1)
            event.set()
            await trio.sleep(2)
            nursery.cancel_scope.cancel()

    run_in_world(World(Seeds(seed)), main)
    return seen


def test_a_seed_gives_one_order_and_seeds_give_several() -> None:
    orders = [order_of_tasks(seed) for seed in range(8)]

    assert orders == [order_of_tasks(seed) for seed in range(8)]
    assert len({tuple(order) for order in orders}) == 8
    assert all(sorted(order) == sorted([*range(TASKS)] * 4) for order in orders)


def test_a_run_in_another_thread_does_not_disturb_the_order() -> None:
    orders = [order_of_tasks(seed) for seed in range(8)]
    is_running, is_over = threading.Event(), threading.Event()

    async def turn() -> None:
        async with trio.open_nursery() as nursery:
            while not is_over.is_set():
                for _ in range(3):
                    nursery.start_soon(trio.lowlevel.checkpoint)
                is_running.set()
                await trio.lowlevel.checkpoint()

    other = threading.Thread(target=trio.run, args=(turn,))
    other.start()
    is_running.wait()
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        beside = [order_of_tasks(seed) for seed in range(8)]
    finally:
        sys.setswitchinterval(interval_s)
        is_over.set()
        other.join()

    assert beside == orders


def test_the_order_is_the_same_in_another_process_whatever_the_hash_seed() -> None:
    script = "from tests.lab.simulator.test_scheduling import order_of_tasks; print(order_of_tasks(5))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("0", "1", "4711")
    }

    assert printed == {f"{order_of_tasks(5)}\n"}


def test_a_shuffled_batch_has_first_been_sorted_by_trio() -> None:
    """Or sets, ordered by where objects lie, would show through."""

    class Watching(random.Random):
        batches: ClassVar[list[list[int]]] = []

        def shuffle(self, x: Any) -> None:
            self.batches.append([task._counter for task in x])

    async def main() -> None:
        event = trio.Event()
        async with trio.open_nursery() as nursery:
            for _ in range(TASKS):
                nursery.start_soon(event.wait)
            await trio.lowlevel.checkpoint()
            event.set()

    source = Watching(1)
    with deterministic_scheduling(source):
        trio.run(main)

    assert max(map(len, source.batches)) >= TASKS
    assert all(batch == sorted(batch) for batch in source.batches)


def test_trios_own_order_is_back_afterwards() -> None:
    module = importlib.import_module(scheduling.MODULE)
    before = [getattr(module, name) for name in (scheduling.SWITCH, scheduling.SOURCE)]
    order_of_tasks(1)

    assert [getattr(module, name) for name in (scheduling.SWITCH, scheduling.SOURCE)] == before


@pytest.mark.parametrize("name", [scheduling.SWITCH, scheduling.SOURCE])
def test_a_trio_without_the_private_names_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(importlib.import_module(scheduling.MODULE), name)

    with pytest.raises(RuntimeError, match=f"cannot be simulated with: .* has no {name}"):
        order_of_tasks(1)


def test_sleeping_takes_virtual_time_alone() -> None:
    world = World(Seeds(1))

    async def main() -> float:
        before = trio.current_time()
        await trio.sleep(3600)
        return trio.current_time() - before

    assert run_in_world(world, main) == pytest.approx(3600)
    assert world.elapsed_ns == pytest.approx(3600 * SECOND, abs=10)


def test_who_is_woken_has_a_turn_before_the_next_event() -> None:
    world = World(Seeds(1))
    order: list[str] = []

    async def main() -> None:
        woken = trio.Event()
        token = trio.lowlevel.current_trio_token()
        world.after(10, order.append, "nobody is woken")
        world.after(20, woken.set)
        world.after(30, token.run_sync_soon, order.append, "asked for by a thread")
        world.after(40, order.append, "nobody is woken")
        world.after(2 * SECOND, order.append, "behind a deadline")
        await woken.wait()
        order.append("woken")
        await trio.sleep(1)
        order.append("has slept")
        await trio.sleep(2)

    run_in_world(world, main)

    assert order == [
        "nobody is woken",
        "woken",
        "asked for by a thread",
        "nobody is woken",
        "has slept",
        "behind a deadline",
    ]


def test_an_event_comes_between_two_deadlines() -> None:
    world = World(Seeds(1))
    seen: list[str] = []

    async def main() -> None:
        world.after(2 * SECOND, seen.append, "event")
        await trio.sleep(1)
        seen.append("task")
        await trio.sleep(2)
        seen.append("task")

    run_in_world(world, main)

    assert seen == ["task", "event", "task"]


def test_a_run_in_which_nothing_can_happen_any_more_fails() -> None:
    with pytest.raises(SimulationError, match="nobody will ever go on"):
        run_in_world(World(Seeds(1)), trio.sleep_forever)


def test_a_run_that_outlasts_its_time_fails() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110 - nothing is waited for
            await trio.sleep(1)

    with pytest.raises(SimulationError, match="did not end within 61 s of virtual time"):
        run_in_world(World(Seeds(1)), main, limit_ns=60 * SECOND)


def test_a_task_that_never_lets_time_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.lab.simulator.running.ASKED_WITHOUT_TIME_MAX", 100)

    async def main() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    with pytest.raises(SimulationError, match="without letting time pass"):
        run_in_world(World(Seeds(1)), main)


def test_what_an_event_raises_ends_the_run() -> None:
    world = World(Seeds(1))

    def fail() -> None:
        raise ValueError("found by a check")

    world.after(1, fail)
    with pytest.raises(ValueError, match="found by a check"):
        run_in_world(world, trio.sleep_forever)


def test_the_first_of_several_events_that_raise_ends_the_run_in_peace() -> None:
    world = World(Seeds(1))
    is_closed = False

    def fail(number: int) -> None:
        raise SimulationError(f"found by check {number}")

    async def main() -> None:
        nonlocal is_closed
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            is_closed = True

    for number in range(3):
        world.after(1, fail, number)
    with pytest.raises(SimulationError, match="found by check 0"):
        run_in_world(world, main)
    assert is_closed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # tasks that nobody can end are dropped
def test_a_run_that_cannot_even_end_says_why_it_was_to_end_and_what_keeps_it() -> None:
    async def main() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()

    def fail() -> None:
        raise ValueError("found by a check")

    def run() -> list[str]:
        world = World(Seeds(1))
        world.after(1, fail)
        with pytest.raises(ExceptionGroup) as caught:
            run_in_world(world, main)
        return [f"{type(each).__name__}: {each}" for each in caught.value.exceptions]

    told = run()
    gc.collect()

    assert told == [
        "ValueError: found by a check",
        "SimulationError: it was to end, and cannot: nobody will ever go on: all tasks wait, and nothing is going to "
        "happen",
    ]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have SIGINT raised as Python does by itself, wherever tests run: what a shell starts behind `&` ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_run_in_peace_and_is_nothing_that_a_task_did() -> None:
    world = World(Seeds(1))
    ended: list[str] = []

    async def main() -> None:
        try:
            await trio.sleep(2)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            ended.append("in peace")
            raise

    world.after(SECOND, signal.raise_signal, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_in_world(world, main)

    assert ended == ["in peace"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_what_is_told_of_a_run_whatever_it_ended_by() -> None:
    world = World(Seeds(1))

    async def main() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("cannot be closed")

    world.after(SECOND, signal.raise_signal, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_in_world(world, main)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # tasks that nobody can end are dropped
@pytest.mark.usefixtures("ctrl_c")
def test_a_second_ctrl_c_breaks_a_run_off() -> None:
    async def main() -> None:
        with trio.CancelScope(shield=True):
            while True:  # noqa: ASYNC110 - nothing is waited for
                await trio.sleep(1)

    def run() -> int:
        world = World(Seeds(1))
        for second in (5, 9):
            world.after(second * SECOND, signal.raise_signal, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            run_in_world(world, main)
        return world.elapsed_ns // SECOND

    lasted_s = run()
    gc.collect()

    assert lasted_s == 9
