"""Long work in slices: others come in between, and what is short waits for nobody."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import trio
import trio.testing

from odradek.kernel.machine.turnstile import Slices, run_in_slices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator


def count(steps: int, made: list[int]) -> Generator[None, None, int]:
    for number in range(steps):
        made.append(number)
        yield
    return steps


def watched(work: Callable[[list[int]], Awaitable[None]]) -> list[int]:
    """Do some work; return how many steps were made when another task had its turn, each time that it had one."""
    made: list[int] = []
    seen: list[int] = []

    async def watch() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            seen.append(len(made))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await trio.lowlevel.checkpoint()
            seen.clear()
            await work(made)
            seen.append(len(made))
            nursery.cancel_scope.cancel()

    trio.run(main)
    return sorted(set(seen))


def test_between_two_slices_come_the_others() -> None:
    async def work(made: list[int]) -> None:
        assert await Slices(10).run(count(35, made)) == 35

    assert watched(work) == [10, 20, 30, 35]


def test_what_several_short_ones_do_counts_together() -> None:
    async def work(made: list[int]) -> None:
        slices = Slices(10)
        for _ in range(5):
            await slices.run(count(4, made))

    assert watched(work) == [8, 16, 20], "four steps each, and the end of each counts as one"


def test_what_is_short_waits_for_nobody() -> None:
    async def work(made: list[int]) -> None:
        with trio.testing.assert_no_checkpoints():
            await Slices(10).run(count(9, made))

    assert watched(work) == [9]


def test_two_that_are_long_share_one_slice_of_each_round() -> None:
    async def work(made: list[int]) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(run_in_slices, count(3000, made))

    seen = watched(work)
    assert [later - earlier for earlier, later in itertools.pairwise(seen)] == [1000] * 6
