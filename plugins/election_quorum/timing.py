"""Pure core: time as a stepper has it, from `tick` alone: a timer begins to run with the tick after it was started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

    from odradek.kernel.api import ConfigView

ELECTION_TIMEOUT_KEY: Final = "controller.quorum.election.timeout.ms"
FETCH_TIMEOUT_KEY: Final = "controller.quorum.fetch.timeout.ms"
BACKOFF_KEY: Final = "controller.quorum.election.backoff.max.ms"
REFUSED_STEP_MS: Final = 50
"""By so much those who see their leader's machine refuse connections stand one after the other: votes do not split."""

SILENT_STEP_MS: Final = 50
"""By so much those whose leader is silent for too long stand one after the other; at most a tenth of a time-out."""

BEGUN_STEP_MS: Final = 100
"""By so much voters that begin, and know of no leader, ask for pre-votes one after the other; its followers refuse."""

TELL_STEP_MS: Final = 100
"""How often a leader tells the controller what it is to know of voters that change, until it does."""


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
    """How long a voter waits, and for what. Settings are read once: nobody can change them while a broker runs.

    Attributes:
        fetch_ms: How long a follower waits for an answer of its leader.
        silent_step_ms: By so much longer each voter waits than the one before it.
        check_quorum_ms: How long a leader leads without the fetches of a majority: one and a half of their time-outs.
        begin_epoch_ms: How often a leader tells who does not fetch that it leads.
        ask_again_ms: After how long a vote that nobody answered is asked again: it may be lost.
    """

    __slots__ = (
        "_election_ms",
        "_longest_backoff_ms",
        "_random",
        "ask_again_ms",
        "begin_epoch_ms",
        "check_quorum_ms",
        "fetch_ms",
        "silent_step_ms",
    )

    def __init__(self, config: ConfigView, random: random.Random) -> None:
        """Take the settings and chance."""
        self._random = random
        self._election_ms = config.get_int(ELECTION_TIMEOUT_KEY)
        self._longest_backoff_ms = config.get_int(BACKOFF_KEY)
        self.fetch_ms = config.get_int(FETCH_TIMEOUT_KEY)
        self.silent_step_ms = min(SILENT_STEP_MS, self.fetch_ms // 10)
        self.check_quorum_ms = self.fetch_ms * 3 // 2
        self.begin_epoch_ms = self.fetch_ms // 2
        self.ask_again_ms = max(self._election_ms // 4, 1)

    def election_ms(self) -> int:
        """Return the time to wait for a leader or for votes: random, so that voters stand one after the other."""
        return self._election_ms + self._random.randrange(self._election_ms) if self._election_ms else 0

    def successor_ms(self, position: int, count: int) -> int:
        """Return how long a successor waits before it stands: the first not at all, each other twice as long.

        Args:
            position: Its place among the successors, `count` for one that is not among them.
            count: How many there are.
        """
        if position == 0:
            return 0
        longest_ms = self._longest_backoff_ms
        first_ms = longest_ms >> (count - 1) if count else longest_ms
        return min(longest_ms, first_ms << (position - 1))
