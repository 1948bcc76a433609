"""Shell: the turnstile: work that is long is done in slices, and one slice of all there is comes in each round.

All of a broker runs on one thread, so whoever computes for long holds up every client. Long work is therefore cut
into slices of `SLICE_STEPS` steps, about a millisecond, and `take_turn` stands between them. It lets one task through
in each pass of trio's loop: however many requests are long at a time, between two looks at the sockets there is one
slice.

Work that is written as a generator, which yields after each step, runs under `run_in_slices`, so that a pure core may
be long without knowing of tasks. `Slices` runs several, one after the other, of which most are short: what is short is
done without waiting for anybody.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Generator

R = TypeVar("R")

SLICE_STEPS: Final = 1000
"""How many steps are made before others come. A step takes a microsecond or a few: an item decoded, a row written."""

_lock: Final = trio.lowlevel.RunVar[trio.StrictFIFOLock]("odradek turnstile")


async def take_turn() -> None:
    """Let everybody else come first, and of those who wait here the others in the order in which they came."""
    try:
        lock = _lock.get()
    except LookupError:
        lock = trio.StrictFIFOLock()
        _lock.set(lock)
    async with lock:
        await trio.lowlevel.checkpoint()


async def run_in_slices(steps: Generator[None, None, R]) -> R:
    """Run a generator to its end and return what it returns. If it is cancelled, the generator is closed.

    The first slice waits for its turn as well: who begins much at once is no better off than who goes on.
    """
    while True:
        await take_turn()
        try:
            for _ in range(SLICE_STEPS):
                next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


class Slices:
    """Runs generators one after the other, as `run_in_slices` does, but the first slice at once. Owned by one task.

    What several short ones did counts together, so that 500 of them are not one long slice.
    """

    __slots__ = ("_left", "_slice_steps")

    def __init__(self, slice_steps: int = SLICE_STEPS) -> None:
        """Begin with a whole slice.

        Args:
            slice_steps: How many steps a slice has, >= 1; fewer where a step takes longer.
        """
        self._slice_steps = self._left = slice_steps

    async def run(self, steps: Generator[None, None, R]) -> R:
        """Run a generator to its end and return what it returns. If it is cancelled, the generator is left where it is.

        It counts as a step, however short it is.
        """
        while True:
            try:
                while self._left > 0:
                    self._left -= 1
                    next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            await take_turn()
            self._left = self._slice_steps


def run_at_once(steps: Generator[None, None, R]) -> R:
    """Run a generator to its end in one go: where nobody is held up by it, or it is known to be short."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result
