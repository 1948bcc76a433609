"""Pure core: time as a stepper has it, from `tick` alone: a timer begins to run with the tick after it was started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from odradek.kernel.api import ConfigView

ELECTION_TIMEOUT_KEY: Final = "controller.quorum.election.timeout.ms"
FETCH_TIMEOUT_KEY: Final = "controller.quorum.fetch.timeout.ms"
BACKOFF_KEY: Final = "controller.quorum.election.backoff.max.ms"
REFUSED_STEP_MS: Final = 50
"""By so much those who see their leader's machine refuse connections stand one after the other: votes do not split."""


class Timer:
    """Something that is due after a time. Owned by the election."""

    __slots__ = ("_deadline_ms", "_length_ms")

    def __init__(self) -> None:
        """Make one that does not run."""
        self._length_ms: int | None = None
        self._deadline_ms: int | None = None

    def start(self, length_ms: int) -> None:
        """Have it be due in so many milliseconds; it begins anew if it ran."""
        self._length_ms, self._deadline_ms = length_ms, None

    def stop(self) -> None:
        """Have it never be due."""
        self._length_ms = self._deadline_ms = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped."""
        return self._length_ms is not None

    def is_due(self, now_ms: int) -> bool:
        """Let time pass, and return whether its time is over."""
        if self._length_ms is None:
            return False
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + self._length_ms
        return now_ms >= self._deadline_ms


class Timeouts:
    """How long a voter waits, and for what. Reads settings as they are now."""

    __slots__ = ("_config", "_random")

    def __init__(self, config: Callable[[], ConfigView], random: random.Random) -> None:
        """Take the settings and chance."""
        self._config, self._random = config, random

    def election_ms(self) -> int:
        """Return the time to wait for a leader or for votes: random, so that voters stand one after the other."""
        length_ms = self._config().get_int(ELECTION_TIMEOUT_KEY)
        return length_ms + self._random.randrange(length_ms) if length_ms else 0

    def fetch_ms(self) -> int:
        """Return how long a follower waits for an answer of its leader."""
        return self._config().get_int(FETCH_TIMEOUT_KEY)

    def check_quorum_ms(self) -> int:
        """Return how long a leader leads without the fetches of a majority: one and a half of their time-outs."""
        return self.fetch_ms() * 3 // 2

    def begin_epoch_ms(self) -> int:
        """Return how often a leader tells who does not fetch that it leads."""
        return self.fetch_ms() // 2

    def ask_again_ms(self) -> int:
        """Return after how long a vote that nobody answered is asked again: it may be lost."""
        return max(self._config().get_int(ELECTION_TIMEOUT_KEY) // 4, 1)

    def successor_ms(self, position: int, count: int) -> int:
        """Return how long a successor waits before it stands: the first not at all, each other twice as long.

        Args:
            position: Its place among the successors, `count` for one that is not among them.
            count: How many there are.
        """
        if position == 0:
            return 0
        longest_ms = self._config().get_int(BACKOFF_KEY)
        first_ms = longest_ms >> (count - 1) if count else longest_ms
        return min(longest_ms, first_ms << (position - 1))
