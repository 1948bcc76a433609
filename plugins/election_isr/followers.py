"""Pure core: what a leader knows of its followers, from their fetches."""

from __future__ import annotations

from typing import Final

NEVER: Final = -(1 << 62)
"""A time before every time."""
UNKNOWN: Final = -1


class Follower:
    """One follower, as its leader sees it in this epoch. Owned by the election.

    Attributes:
        end: Where its log ends, `UNKNOWN` until it has fetched.
        log_start: Where its log starts, `UNKNOWN` until it has told.
        broker_epoch: Of the incarnation that has fetched.
    """

    __slots__ = ("_caught_up_ms", "_fetched_ms", "_leader_end", "broker_epoch", "end", "log_start")

    def __init__(self, *, is_in_sync: bool) -> None:
        """Begin to know a follower; one that is in sync counts as caught up at the first time that is seen."""
        self.end = self.log_start = self.broker_epoch = UNKNOWN
        self._caught_up_ms: int | None = None if is_in_sync else NEVER
        self._fetched_ms = NEVER
        self._leader_end = UNKNOWN

    def fetched(self, broker_epoch: int, end: int, log_start: int, leader_end: int, now_ms: int) -> None:
        """Take note of a fetch. Hot.

        A follower that asks from where the log ended at its last fetch had caught up then: it always lags by what came
        since, and is not slow for that.

        *Source:* Replica.updateFetchStateOrThrow of Kafka 4.3.
        """
        if end >= leader_end:
            self._caught_up_ms = now_ms
        elif end >= self._leader_end:
            known = self._caught_up_ms
            self._caught_up_ms = now_ms if known is None else max(known, self._fetched_ms)
        self.broker_epoch, self.end, self.log_start = broker_epoch, end, log_start
        self._leader_end, self._fetched_ms = leader_end, now_ms

    def note_time(self, now_ms: int) -> None:
        """Have its time begin if it has not."""
        if self._caught_up_ms is None:
            self._caught_up_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Return whether it has everything, or had within the time that a follower may lag."""
        return self.end == leader_end or self._caught_up_ms is None or now_ms - self._caught_up_ms <= lag_ms_max

    def __repr__(self) -> str:
        return f"<Follower of epoch {self.broker_epoch}, [{self.log_start}, {self.end})>"
