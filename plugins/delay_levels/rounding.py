"""Pure core: what a delay is rounded up to.

levels 5s 10s 30s ... 2h

17 s   ->  30 s
5 h   ->  2 h, again 2 h, and 1 h
3 h   ->  2 h, and 1 h
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from .settings import DURATIONS, LEVELS, LEVELS_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

END_OF_TIME_MS: Final = 2**63 - 1


class Rounding:
    """Makes due times. Immutable: any thread may call it."""

    def __init__(self, levels_ms: Iterable[int]) -> None:
        """Make it.

        Args:
            levels_ms: In any order; at least one, each > 0.
        """
        self._levels_ms = sorted(levels_ms)

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Rounding:
        """Make that of a topic; a level that nobody can read is left out, where one was set unchecked."""
        levels = settings.get(LEVELS_KEY)
        found = cls._read(levels) if isinstance(levels, tuple) else []
        return cls(found or cls._read(LEVELS))

    @staticmethod
    def _read(levels: Iterable[object]) -> list[int]:
        return [ms for level in levels if (ms := DURATIONS.ms_of(str(level)))]

    def __call__(self, due_ms: int, now_ms: int) -> int:
        """Return when a record is due that asks for a time, `now_ms` or later: then, or at the end of a level."""
        levels_ms = self._levels_ms
        rounds, rest_ms = divmod(due_ms - now_ms, levels_ms[-1])
        if not rest_ms:
            return due_ms
        level_ms = levels_ms[bisect_left(levels_ms, rest_ms)]
        return min(now_ms + rounds * levels_ms[-1] + level_ms, END_OF_TIME_MS)
