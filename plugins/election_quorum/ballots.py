"""Pure core: when a vote is given, and how votes are counted.

| who is asked | gives its vote | gives a pre-vote (KIP-996) |
| --- | --- | --- |
| unattached, prospective | once in an epoch; to nobody new where its leader is known | yes |
| follower | again to whom it had given it before it knew its leader | until the leader has answered a fetch |
| candidate, resigned | to nobody: it was its own | yes |
| leader | to nobody | to nobody |

Only to who has a log that is long enough, but for a vote given before: one whose last epoch is larger than the
own, or the same, and its end no smaller.

A voter that may have lost the end of its log, with the power, or does not know how new it is, says so with its vote:
what it compares by may be too short. Such votes are none of a majority. They count where every voter has given its own,
and whoever voted before where the voters have just changed: then there is no longer log.

*Source:* KIP-595, KIP-996; `canGrantVote` of Kafka 4.3's states.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .standing import Standing
    from .voters import ReplicaKey, Voters


class State(Enum):
    """What a replica is in its quorum, by Kafka's names; `Role` is what its broker makes of it."""

    UNATTACHED = "unattached"
    VOTED = "voted"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


VOTED_FOR_ITSELF = frozenset({State.CANDIDATE, State.LEADER, State.RESIGNED})


def may_grant_pre_vote(state: State, *, is_long_enough: bool, has_fetched: bool) -> bool:
    """Return whether one would vote for who asks, without doing so.

    Args:
        state: Of who is asked.
        is_long_enough: The asking replica's log is.
        has_fetched: The leader has answered a fetch since it is known.
    """
    hears_a_leader = state is State.LEADER or (state is State.FOLLOWER and has_fetched)
    return is_long_enough and not hears_a_leader


def may_grant_vote(state: State, standing: Standing, candidate: ReplicaKey, *, is_long_enough: bool) -> bool:
    """Return whether the vote of the candidate's epoch may go to it."""
    if state in VOTED_FOR_ITSELF:
        return False
    if standing.voted is not None:
        return standing.voted.means(candidate)
    return standing.leader_id < 0 and is_long_enough


class Ballots:
    """The votes of one election. Owned by who stands in it; a vote that was given stays given."""

    __slots__ = ("_doubtful", "_granted", "_refused")

    def __init__(self, own: ReplicaKey, *, is_doubtful: bool = False) -> None:
        """Begin with one's own vote."""
        self._granted: set[int] = set()
        self._doubtful: set[int] = set()
        self._refused: set[int] = set()
        self.record(own.broker_id, is_granted=True, is_doubtful=is_doubtful)

    def record(self, broker_id: int, *, is_granted: bool, is_doubtful: bool = False) -> None:
        """Take note of an answer; a voter is in doubt that may have lost the end of its log."""
        if not is_granted:
            self._refused.add(broker_id)
        elif is_doubtful:
            self._doubtful.add(broker_id)
        else:
            self._granted.add(broker_id)

    def granting(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has given its vote, in doubt or not."""
        return tuple(key for key in voters.keys if key.broker_id in self._granted | self._doubtful)

    def _certain(self, voters: Voters) -> int:
        return sum(key.broker_id in self._granted for key in voters.keys)

    def unknown(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has not answered."""
        answered = self._granted | self._doubtful | self._refused
        return tuple(key for key in self._needed(voters) if key.broker_id not in answered)

    def missing(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has not given its vote."""
        return tuple(key for key in self._needed(voters) if key.broker_id not in self._granted)

    def _needed(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        return voters.in_doubt if self._doubtful else voters.keys

    def is_won(self, voters: Voters) -> bool:
        """Return whether more than half have given theirs without a doubt, or all have, and all former voters."""
        given = self._granted | self._doubtful
        has_all = len(voters) > 0 and all(key.broker_id in given for key in voters.in_doubt)
        return has_all or self._certain(voters) >= voters.majority

    def is_lost(self, voters: Voters) -> bool:
        """Return whether too many have refused theirs."""
        refusing = self._refused - self._granted - self._doubtful
        has_refusal = any(key.broker_id in refusing for key in self._needed(voters))
        unknown = sum(key in voters.keys for key in self.unknown(voters))
        return has_refusal and self._certain(voters) + unknown < voters.majority

    def __repr__(self) -> str:
        doubtful = f", in doubt {sorted(self._doubtful)}" if self._doubtful else ""
        return f"<Ballots granted {sorted(self._granted)}, refused {sorted(self._refused - self._granted)}{doubtful}>"
