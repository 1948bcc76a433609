"""Pure core: walks over the groups of a shard, a slice at a time, so that others are served in between.

A *step* is a group, or an offset of one. A slice ends with the group in which it has come to `SLICE_STEPS`: a group is
looked at by one operation, as by a request about it, and by a long one where it has very many offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .group import Effects
from .records import offset_tombstone

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from odradek.kernel.api import CoordinatorSteps, TimerKey

    from .group import ShardContext
    from .records import GroupRecord

SLICE_STEPS: Final = 64
"""All shards of a broker may walk at once: some 50 of these have to be short together."""


def tombstones_in_steps(group_id: str, keys: Iterable[tuple[str, int]]) -> Generator[None, None, list[GroupRecord]]:
    """Return the tombstones of committed offsets, by topic and partition, one a step."""
    made = []
    for topic, partition in keys:
        made.append(offset_tombstone(group_id, topic, partition))
        yield
    return made


class Walk:
    """A walk that is made again and again. Owned by its shard; what it finds is written at the end of each slice."""

    def __init__(
        self,
        context: ShardContext,
        key: TimerKey,
        visit: Callable[[str, int, Effects], Generator[None, None, int]],
        done: Callable[[], None],
    ) -> None:
        """Make it; nothing is under way.

        Args:
            context: The shard's.
            key: Of the timer between two slices.
            visit: Takes the id of a group that was there when the walk began, the time, and what is decided in this
                slice; returns how many offsets it looked at.
            done: Called when all were visited.
        """
        self._timers = context.timers
        self._key = key
        self._visit = visit
        self._done = done
        self._left: Iterator[str] = iter(())

    def begin(self, group_ids: Iterable[str], now_ms: int) -> Generator[None, None, Effects]:
        """Walk over groups from the first one on, and return what the first slice decided."""
        self._left = iter(tuple(group_ids))
        return self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> Generator[None, None, Effects]:
        effects, steps = Effects(), 0
        for group_id in self._left:
            steps += 1 + (yield from self._visit(group_id, now_ms, effects))
            if steps >= SLICE_STEPS:
                self._timers.schedule(self._key, 0, self._next_slice)
                return effects
        self._done()
        return effects

    def _next_slice(self, now_ms: int) -> CoordinatorSteps:
        effects = yield from self._go_on(now_ms)
        return effects.result(None, is_atomic=False)
