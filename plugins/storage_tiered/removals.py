"""Pure core: what a broker has to remove from the store, and when a visit or a removal that failed is tried again.

| why | who removes | what |
| --- | --- | --- |
| the topic was deleted | every broker that had it: its id never comes back | everything |
| the topic is not tiered any more | who leads it, under its leader epoch | what was sent; an empty manifest stays |

A topic of the second kind may be tiered again, and somebody sends to it then. So only the leader acts, and the manifest
it puts makes a later leader's stop it; whoever does not lead waits until the store says that it is done, or until it is
tiered again here: what is not needed then expires with the log's start.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from random import Random

    from odradek.kernel.api import ConfigView


@attrs.frozen
class RetryPauses:
    """How long to wait after a failure; the keys `remote.log.manager.task.retry.*`.

    Attributes:
        first_ms: After the first of a row.
        last_ms: At most.
        jitter: By which part of it a pause may be shorter or longer.
    """

    first_ms: int
    last_ms: int
    jitter: float

    @classmethod
    def of(cls, config: ConfigView) -> RetryPauses:
        """Take them from the broker's configuration."""
        return cls(
            config.get_int("remote.log.manager.task.retry.backoff.ms"),
            config.get_int("remote.log.manager.task.retry.backoff.max.ms"),
            config.get_float("remote.log.manager.task.retry.jitter"),
        )


@attrs.define
class Track:
    """What is known of the visits to a log, or of the tries to remove something.

    Attributes:
        claimed_epoch: The leader epoch under which its manifest was taken over, -1 for none.
        fenced_epoch: The leader epoch under which this broker was found to be deposed.
        failures: How many visits failed in a row.
        due_ms: When the next one is due, by the monotonic clock.
        collected_ms: When garbage was looked for last.
        is_busy: Whether one is under way.
        told: What was said about it last.
    """

    claimed_epoch: int = -1
    fenced_epoch: int = -1
    failures: int = 0
    due_ms: int = 0
    collected_ms: int = 0
    is_busy: bool = False
    told: str = ""

    def try_later(self, *, now_ms: int, pauses: RetryPauses, random: Random) -> None:
        """Set the next try: twice as late as the one before, up to a limit, and a little off so that not all meet.

        Args:
            now_ms: By the monotonic clock.
            pauses: How long.
            random: How far off.
        """
        pause_ms = min(pauses.last_ms, pauses.first_ms << min(self.failures, 20))
        spread = int(pause_ms * pauses.jitter)
        self.failures += 1
        self.due_ms = now_ms + pause_ms + random.randrange(-spread, spread + 1)


@attrs.define(eq=False)
class Removal:
    """What of one partition is to be removed.

    Attributes:
        is_switched_off: Whether its topic lives on without a tier; otherwise it was deleted.
        track: Of the tries.
        is_wanted: False once the topic is tiered again, while a try is under way.
    """

    is_switched_off: bool
    track: Track = attrs.field(factory=Track)
    is_wanted: bool = True
    _unknown_since_ms: int = attrs.field(default=-1, init=False)

    def is_for_good(self, *, is_known: bool, now_ms: int, grace_ms: int) -> bool:
        """Say whether everything may go: its topic was deleted, or has been missing in the metadata for long.

        Args:
            is_known: Whether the metadata has the topic now. At a start they may be older than what they were.
            now_ms: By the monotonic clock.
            grace_ms: For how long it has to be missing.
        """
        if is_known:
            self._unknown_since_ms = -1
        elif self._unknown_since_ms < 0:
            self._unknown_since_ms = now_ms
        is_long_gone = self._unknown_since_ms >= 0 and now_ms - self._unknown_since_ms >= grace_ms
        return not self.is_switched_off or is_long_gone
