"""What one process of a simulated host has: a life that stands still and goes on, and clocks that are wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from odradek.lab.simulator.machine import HostClock, Process, SimulatedHost
from odradek.lab.simulator.network import Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import MILLISECOND, SECOND, World


def beside(life: Callable[[Process], Awaitable[None]], others: Callable[[Process], Awaitable[None]]) -> None:
    """Run a life of a process, and beside it what happens to it."""
    world = World(Seeds(1))

    async def main() -> None:
        process = SimulatedHost(world, Network(world), "host").start_process()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.run, lambda: life(process))
            await others(process)

    run_in_world(world, main)


def test_a_process_that_is_paused_sees_that_time_went_on_without_it() -> None:
    seen: list[float] = []

    async def count(_process: Process) -> None:
        for _ in range(4):
            await trio.sleep(1)
            seen.append(trio.current_time())

    async def pause(process: Process) -> None:
        start = trio.current_time()
        await trio.sleep(1.5)
        process.pause()
        await trio.sleep(10)
        assert len(seen) == 1
        process.resume()
        await trio.sleep(2.5)
        assert [time - start for time in seen] == [1, 11.5, 12.5, 13.5]

    beside(count, pause)


def test_what_happened_while_it_was_paused_it_sees_at_once_and_in_its_order() -> None:
    seen: list[str] = []
    came = trio.Event()

    async def wait(_process: Process) -> None:
        with trio.move_on_after(5):
            await came.wait()
            seen.append("came")
        with trio.move_on_after(0.5):
            await trio.sleep_forever()
        seen.append("late")

    async def pause(process: Process) -> None:
        await trio.sleep(1)
        process.pause()
        await trio.sleep(1)
        came.set()
        await trio.sleep(10)
        before = trio.current_time()
        process.resume()
        assert not seen
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert (seen, trio.current_time()) == (["came"], before)

    beside(wait, pause)

    assert seen == ["came", "late"]


def test_threads_of_a_paused_process_do_nothing_until_it_goes_on() -> None:
    seen: list[str] = []

    async def work(process: Process) -> None:
        await process.machine.threads.run_sync(seen.append, "done")
        seen.append("known")

    async def pause(process: Process) -> None:
        await trio.lowlevel.checkpoint()
        process.pause()
        await trio.sleep(10)
        assert not seen
        process.resume()
        process.pause()
        await trio.sleep(10)
        assert not seen
        process.resume()

    beside(work, pause)

    assert seen == ["done", "known"]


def test_a_paused_process_can_be_killed() -> None:
    seen: list[str] = []

    async def live(_process: Process) -> None:
        try:
            await trio.sleep_forever()
        finally:
            seen.append("over")

    async def kill(process: Process) -> None:
        await trio.sleep(1)
        process.pause()
        process.pause()
        await trio.sleep(1)
        process.kill()
        process.resume()

    beside(live, kill)

    assert seen == ["over"]


def test_a_clock_that_goes_wrong_jumps_only_where_it_is_told_to() -> None:
    world = World(Seeds(1))
    clock = HostClock(world)
    wall_ms, monotonic_ms = clock.now_ms(), clock.monotonic_ms()

    def passed() -> tuple[int, int]:
        return clock.now_ms() - wall_ms, clock.monotonic_ms() - monotonic_ms

    world.advance(world.now_ns + SECOND)
    clock.go_at(500)
    world.advance(world.now_ns + SECOND)
    assert passed() == (1500, 1500)
    clock.go_at(2000)
    assert passed() == (1500, 1500)
    world.advance(world.now_ns + SECOND)
    clock.skew_ms = -4000
    assert passed() == (-500, 3500)


def test_a_slow_clock_never_goes_back() -> None:
    world = World(Seeds(1))
    clock = HostClock(world)
    clock.go_at(700)
    shown = [(clock.now_ms(), clock.monotonic_ms())]
    for _ in range(200):
        world.advance(world.now_ns + MILLISECOND // 7)
        shown.append((clock.now_ms(), clock.monotonic_ms()))

    assert shown == sorted(shown)
    assert {wall_ms - monotonic_ms for wall_ms, monotonic_ms in shown} == {shown[0][0] - shown[0][1]}
