"""Pure core: what a leader knows of the others in its epoch: from their fetches, for followers pull.

A record is committed when a majority of the voters has it, and the leader's epoch with it: the first record of an epoch
is the leader's own, and nothing older is committed before that is, for until then another leader could still undo it
(Raft, 5.4.2). A leader whom no majority fetches from does not know whether it still leads.

*Source:* LeaderState of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ZERO_ID

from .voters import ReplicaKey

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from .voters import Voters

UNKNOWN: Final = -1
OBSERVER_MS_MAX: Final = 300_000
"""An observer that has not fetched for so long is forgotten."""
OBSERVERS_MAX: Final = 10_000
CAUGHT_UP_MS_MAX: Final = 3_600_000
"""Whoever had all records within this time may become a voter."""


class Progress:
    """How far a replica has come. Owned by the leadership."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "directory_id",
        "end",
        "fetched_ms",
        "has_fetched",
        "leader_end",
        "log_start",
    )

    def __init__(self) -> None:
        """Know nothing."""
        self.end = self.log_start = self.leader_end = self.fetched_ms = self.caught_up_ms = UNKNOWN
        self.broker_epoch = UNKNOWN
        self.has_fetched = False
        self.directory_id = ZERO_ID

    def fetched(self, end: int, log_start: int, leader_end: int, now_ms: int) -> None:
        """Take note of a fetch; one from where the log ended at the fetch before had caught up then. Hot."""
        if end >= leader_end:
            self.caught_up_ms = now_ms
        elif self.leader_end != UNKNOWN and end >= self.leader_end:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end, self.log_start, self.leader_end, self.fetched_ms = end, log_start, leader_end, now_ms
        self.has_fetched = True

    def __repr__(self) -> str:
        return f"<Progress to {self.end}>"


class Leadership:
    """The others, as the leader of one epoch sees them. Owned by the election.

    Attributes:
        epoch_start: Where the leader's log ended when its epoch began: its first record is there or behind.
        followers: The other voters.
        observers: Who fetches and has no vote.
        voters: Who votes; where the metadata names them they are those by whom this leader was elected, for good.
    """

    __slots__ = ("_is_voter", "_majority", "_me", "epoch_start", "followers", "observers", "voters")

    def __init__(self, me: ReplicaKey, epoch_start: int, voters: Voters) -> None:
        """Begin to lead."""
        self._me, self.epoch_start = me, epoch_start
        self.followers: dict[ReplicaKey, Progress] = {}
        self.observers: dict[ReplicaKey, Progress] = {}
        self.change_voters(voters)

    def change_voters(self, voters: Voters) -> None:
        """Take note of other voters; what is known of a replica stays known."""
        known = {**self.observers, **self.followers}
        self.voters = voters
        self._majority, self._is_voter = voters.majority, voters.has(self._me)
        for key, progress in tuple(known.items()):  # whom the log names now by the directory that he fetches into
            named = ReplicaKey(key.broker_id, progress.directory_id)
            if key.directory_id == ZERO_ID and voters.has(named):
                known[named] = known.pop(key)
        self.followers = {key: known.pop(key, Progress()) for key in voters.others(self._me)}
        self.observers = {key: progress for key, progress in known.items() if progress.fetched_ms != UNKNOWN}

    def fetched(
        self, replica: ReplicaKey, broker_epoch: int, end: int, log_start: int, leader_end: int, now_ms: int
    ) -> bool:
        """Take note of a fetch, and return whether it was a voter's. Hot.

        A late one of a former process is nobody's: the one now may have less.
        """
        for key, follower in self.followers.items():
            if key.means(replica):
                if broker_epoch < follower.broker_epoch:
                    return False
                follower.broker_epoch = broker_epoch
                follower.fetched(end, log_start, leader_end, now_ms)
                follower.directory_id = replica.directory_id
                return True
        if replica in self.observers or len(self.observers) < OBSERVERS_MAX:
            self.observers.setdefault(replica, Progress()).fetched(end, log_start, leader_end, now_ms)
        return False

    def hears_a_majority(self) -> bool:
        """Return whether a majority of the voters, this leader with them if it is one, has fetched in this round."""
        heard = sum(follower.has_fetched for follower in self.followers.values())
        return heard + self._is_voter >= self._majority

    def is_followed_by_all(self) -> bool:
        """Return whether all other voters, of which there are some, fetch, and nobody else does."""
        return (
            bool(self.followers)
            and not self.observers
            and all(follower.fetched_ms != UNKNOWN for follower in self.followers.values())
        )

    def begin_round(self) -> None:
        """Begin to look anew who fetches."""
        for follower in self.followers.values():
            follower.has_fetched = False

    def committed(self, own_end: int) -> int:
        """Return the offset below which a majority and this leader have everything, something of this epoch with it.

        `UNKNOWN` while nothing of this epoch is there: what is older is committed with that (Raft's figure 8).

        Args:
            own_end: Where the leader's own log ends; it is counted only where the leader has a vote.
        """
        ends = [follower.end for follower in self.followers.values()]
        if self._is_voter:
            ends.append(own_end)
        ends.sort(reverse=True)
        found = min(ends[self._majority - 1], own_end) if len(ends) >= self._majority else UNKNOWN
        return found if found > self.epoch_start else UNKNOWN

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, whoever has most first; of those that have the same, in the voters' order."""
        return tuple(sorted(self.followers, key=lambda key: -self.followers[key].end))

    def may_follow_on(self, replica: ReplicaKey, now_ms: int, within_ms: int) -> bool:
        """Return whether a voter had all records within this time: then it has them again in a moment."""
        for key, follower in self.followers.items():
            if key.means(replica):
                return follower.caught_up_ms != UNKNOWN and now_ms - follower.caught_up_ms <= within_ms
        return False

    def directories(self) -> dict[int, uuid.UUID]:
        """Return in which directory each of the voters keeps the log, as their fetches say, and this leader."""
        found = {key.broker_id: known.directory_id for key, known in self.followers.items()}
        return {**found, self._me.broker_id: self._me.directory_id}

    def silent(self, now_ms: int, for_ms: int) -> Iterator[ReplicaKey]:
        """Iterate over the voters who have not fetched for so long, or never."""
        for key, follower in self.followers.items():
            if follower.fetched_ms == UNKNOWN or now_ms - follower.fetched_ms >= for_ms:
                yield key

    def has_caught_up(self, replica: ReplicaKey, now_ms: int) -> bool:
        """Return whether an observer is near enough to the end to have a vote."""
        known = self.observers.get(replica)
        return known is not None and known.caught_up_ms != UNKNOWN and now_ms - known.fetched_ms <= CAUGHT_UP_MS_MAX

    def could_be_led(self, voters: Voters, offset: int, now_ms: int, within_ms: int) -> bool:
        """Return whether a majority of other voters, this leader with them if it is one, has what is committed.

        Who has not fetched for so long does not count.

        Args:
            voters: Whom the metadata names now.
            offset: The high watermark.
            now_ms: The monotonic clock.
            within_ms: How long.
        """
        there = sum(self._has(key, offset, now_ms, within_ms) for key in voters.others(self._me))
        return there + voters.has(self._me) >= voters.majority

    def caught_up(self, offset: int, now_ms: int, within_ms: int) -> Iterator[int]:
        """Iterate over the brokers of observers that have what is committed."""
        for key in self.observers:
            if self._has(key, offset, now_ms, within_ms):
                yield key.broker_id

    def _has(self, named: ReplicaKey, offset: int, now_ms: int, within_ms: int) -> bool:
        return any(
            named.means(ReplicaKey(key.broker_id, known.directory_id if key in self.followers else key.directory_id))
            and known.end >= offset
            and now_ms - known.fetched_ms <= within_ms
            for key, known in (*self.followers.items(), *self.observers.items())
            if known.fetched_ms != UNKNOWN
        )

    def forget_absent(self, now_ms: int) -> None:
        """Forget observers that do not fetch any more."""
        absent = [key for key, known in self.observers.items() if now_ms - known.fetched_ms > OBSERVER_MS_MAX]
        for key in absent:
            del self.observers[key]
