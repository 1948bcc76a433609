"""Pure core: when a vote is given, and how votes are counted.

| who is asked | gives its vote | gives a pre-vote (KIP-996) |
| --- | --- | --- |
| unattached, prospective | once in an epoch; to nobody new where its leader is known | yes |
| follower | again to whom it had given it before it knew its leader | until the leader has answered a fetch |
| candidate, resigned | to nobody: it was its own | yes |
| leader | to nobody | to nobody |

Only to who has a log that is long enough, but for a vote given before: one whose last epoch is larger than the
own, or the same, and its end no smaller.

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

    __slots__ = ("_granted", "_refused")

    def __init__(self, own: ReplicaKey) -> None:
        """Begin with one's own vote."""
        self._granted = {own.broker_id}
        self._refused: set[int] = set()

    def record(self, broker_id: int, *, is_granted: bool) -> None:
        """Take note of an answer."""
        (self._granted if is_granted else self._refused).add(broker_id)

    def granting(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has given its vote."""
        return tuple(key for key in voters.keys if key.broker_id in self._granted)

    def unknown(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has not answered."""
        return tuple(key for key in voters.keys if key.broker_id not in self._granted | self._refused)

    def missing(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """Return who has not given its vote."""
        return tuple(key for key in voters.keys if key.broker_id not in self._granted)

    def is_won(self, voters: Voters) -> bool:
        """Return whether more than half have given theirs."""
        return len(self.granting(voters)) >= voters.majority

    def is_lost(self, voters: Voters) -> bool:
        """Return whether too many have refused theirs."""
        return len(self.granting(voters)) + len(self.unknown(voters)) < voters.majority

    def __repr__(self) -> str:
        return f"<Ballots granted {sorted(self._granted)}, refused {sorted(self._refused - self._granted)}>"
