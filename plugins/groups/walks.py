"""Pure core: walks over the groups of a shard, a slice at a time, so that others are served in between.

A *step* is a group, or an offset of one. A slice ends with the group in which it has come to `SLICE_STEPS`: a group is
looked at in one piece, as a request about it would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .group import Effects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.kernel.api import CoordinatorResult, TimerKey

    from .group import ShardContext
    from .records import GroupRecord

SLICE_STEPS: Final = 64
"""All shards of a broker may walk at once: some 50 of these have to be short together."""


class Walk:
    """A walk that is made again and again. Owned by its shard; what it finds is written at the end of each slice."""

    def __init__(
        self,
        context: ShardContext,
        key: TimerKey,
        visit: Callable[[str, int, Effects], int],
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

    def begin(self, group_ids: Iterable[str], now_ms: int) -> Effects:
        """Walk over groups from the first one on, and return what the first slice decided."""
        self._left = iter(tuple(group_ids))
        return self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> Effects:
        effects, steps = Effects(), 0
        for group_id in self._left:
            steps += 1 + self._visit(group_id, now_ms, effects)
            if steps >= SLICE_STEPS:
                self._timers.schedule(self._key, 0, self._next_slice)
                return effects
        self._done()
        return effects

    def _next_slice(self, now_ms: int) -> CoordinatorResult[GroupRecord, None]:
        return self._go_on(now_ms).result(None, is_atomic=False)
