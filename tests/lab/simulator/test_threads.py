"""Worker threads as events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from odradek.kernel.machine.files import CREATE
from odradek.lab.simulator.disk import Disk
from odradek.lab.simulator.files import Files
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.threads import Threads
from odradek.lab.simulator.world import World

BEGUN_S = 1e-9
"""So long that a task has asked for its work, and that no work was done."""


def with_threads(work: Callable[[Threads, Disk], Awaitable[None]]) -> World:
    world = World(Seeds(1))
    disk = Disk(world, "host")

    async def main() -> None:
        await work(Threads(world, disk, "host"), disk)

    run_in_world(world, main)
    return world


def fail() -> None:
    raise ValueError("of the function")


def test_a_function_takes_time_and_returns_what_it_returns() -> None:
    async def work(threads: Threads, _disk: Disk) -> None:
        before = trio.current_time()
        assert await threads.run_sync(divmod, 7, 2) == (3, 1)
        assert trio.current_time() > before
        with pytest.raises(ValueError, match="of the function"):
            await threads.run_sync(fail)

    with_threads(work)


def test_works_overtake_each_other() -> None:
    seen: list[int] = []

    async def work(threads: Threads, _disk: Disk) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(threads.run_sync, seen.append, number)

    with_threads(work)

    assert sorted(seen) == [*range(10)] != seen


def test_who_waits_for_the_disk_waits_longer() -> None:
    async def work(threads: Threads, disk: Disk) -> None:
        files = Files(disk, {})
        fd = files.open(Path("/a"), CREATE)
        before, busy_ns = trio.current_time(), disk.busy_ns
        await threads.run_sync(files.fsync, fd)
        assert trio.current_time() - before > (disk.busy_ns - busy_ns) / 1e9 > 0

    with_threads(work)


def test_a_limiter_holds_others_back() -> None:
    async def work(threads: Threads, _disk: Disk) -> None:
        limiter = trio.CapacityLimiter(1)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(lambda: threads.run_sync(int, limiter=limiter))
            await trio.sleep(BEGUN_S)
            assert limiter.statistics().borrowed_tokens <= 1

    with_threads(work)


@pytest.mark.parametrize("abandons", [True, False])
def test_a_cancelled_work_is_done_all_the_same(abandons: bool) -> None:
    seen: list[str] = []

    async def work(threads: Threads, _disk: Disk) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: threads.run_sync(seen.append, "done", abandon_on_cancel=abandons))
                await trio.sleep(BEGUN_S)
                scope.cancel()
        seen.append("left")
        await trio.sleep(1)

    with_threads(work)

    assert seen == (["left", "done"] if abandons else ["done", "left"])


@pytest.mark.parametrize("is_cancelled_first", [True, False])
def test_no_work_is_done_after_the_end(is_cancelled_first: bool) -> None:
    seen: list[str] = []

    async def work(threads: Threads, _disk: Disk) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(threads.run_sync, seen.append, "done")
                await trio.sleep(BEGUN_S)
                if is_cancelled_first:
                    scope.cancel()
                    await trio.lowlevel.cancel_shielded_checkpoint()
                threads.end()
                scope.cancel()
        await trio.sleep(1)

    with_threads(work)

    assert not seen


def test_many_are_called_in_any_order_and_answer_in_theirs() -> None:
    seen: list[int] = []

    def negated(item: int) -> int:
        seen.append(item)
        return -item

    async def work(threads: Threads, _disk: Disk) -> None:
        assert threads.map(negated, range(10), count=3) == [-item for item in range(10)]

    with_threads(work)

    assert sorted(seen) == [*range(10)] != seen


def test_an_event_is_waited_for_without_time() -> None:
    async def work(threads: Threads, _disk: Disk) -> None:
        event = threads.new_event()
        assert not event.wait(5)
        event.set()
        assert event.is_set()
        assert event.wait()

    with_threads(work)
