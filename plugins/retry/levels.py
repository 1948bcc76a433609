"""Pure core: the policy by levels: each attempt waits as long as its level says, the last level for all that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .settings import ATTEMPTS, ATTEMPTS_KEY, DURATIONS, LEVELS, LEVELS_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Levels:
    """A `RetryPolicy`. Immutable."""

    def __init__(self, levels_ms: Sequence[int], attempts: int) -> None:
        """Make it.

        Args:
            levels_ms: How long the first, second, ... attempt waits; not empty.
            attempts: How many there are.
        """
        self._levels_ms = tuple(levels_ms)
        self._attempts = attempts

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Levels:
        """Make the policy of a topic; a level that nobody can read is left out, where one was set unchecked."""
        levels, attempts = settings.get(LEVELS_KEY), settings.get(ATTEMPTS_KEY)
        texts = levels if isinstance(levels, tuple) else LEVELS
        found = [ms for text in texts if (ms := DURATIONS.ms_of(str(text))) is not None]
        return cls(found or [0], attempts if isinstance(attempts, int) else ATTEMPTS)

    def delay_ms(self, attempt: int, drawn: float) -> int | None:
        """See `RetryPolicy.delay_ms`; nothing is left to chance."""
        if attempt > self._attempts:
            return None
        return self._levels_ms[min(attempt, len(self._levels_ms)) - 1]
