"""Mistakes that somebody might make with a quorum, or in it: a model that finds none of them checks nothing.

Each is planted for the length of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import attrs

from odradek.kernel.wire.messages.api_52_vote import VoteResponse
from odradek.plugins.election_quorum import changing, machine
from odradek.plugins.election_quorum.ballots import Ballots, State
from odradek.plugins.election_quorum.leadership import Leadership
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.messages import LastRecord
from odradek.plugins.election_quorum.replica import Replica
from odradek.plugins.election_quorum.standing import NOBODY, Standing
from odradek.plugins.election_quorum.voter_changes import Situation, decide
from odradek.plugins.election_quorum.voters import ReplicaKey, Voters
from tests.plugins.election_quorum.nodes import Fetched, Node, Sent, over_the_wire

Plant = Callable[[], AbstractContextManager[object]]


def instead(owner: Any, name: str, mistake: Any) -> Plant:
    """Plant something in place of a method or a function."""
    return lambda: patch.object(owner, name, mistake)


# -- around the election: what a broker might do wrong ----------------------------------------------------------------


def forgets(self: Node, hard_state: bytes) -> None:
    """Keep nothing."""


@contextmanager
def tells_before_it_keeps() -> Iterator[None]:
    """Send what a hard state is to be kept for, and die before it is: every other vote, and twenty times in all."""
    carry_out, times = Node.carry_out, count(1)

    def hasty(self: Node, crash: str = "") -> None:
        ready = self.election.ready()
        votes = ready is not None and any(isinstance(each.message, VoteResponse) for each in ready.messages)
        if ready is not None and votes and ready.hard_state is not None and (number := next(times)) % 2 and number < 40:
            for message in ready.messages:
                self._send(Sent(self.broker_id, message.broker_id, over_the_wire(message.message)))
            crash = "before"
        carry_out(self, crash)

    with patch.object(Node, "carry_out", hasty):
        yield


def flushes_never(self: Node) -> None:
    """Let what is in memory count."""
    self.election.local_append(len(self.log))


@contextmanager
def truncates_never() -> Iterator[None]:
    """Append behind what the leader has not."""
    take_fetched = Node.take_fetched

    def stubborn(self: Node, source: int, answer: Fetched) -> None:
        take_fetched(self, source, answer._replace(diverging=None, offset=len(self.log)))

    with patch.object(Node, "take_fetched", stubborn):
        yield


@contextmanager
def counts_what_diverges() -> Iterator[None]:
    """Let a fetch count whose log is another."""
    answer_fetch = Node.answer_fetch

    def trusting(self: Node, source: int, request: Any) -> Fetched:
        if self.leads_in(request.epoch):
            self.election.follower_fetch(source, -1, request.offset, 0, self.clock_ms, request.directory_id)
        return answer_fetch(self, source, request)

    with patch.object(Node, "answer_fetch", trusting):
        yield


# -- in the election -------------------------------------------------------------------------------------------------


def votes_for_any_log(self: QuorumElection, part: Any) -> bool:
    """Give votes without a look at the log."""
    part.last_offset_epoch, part.last_offset = 10**6, 10**6
    return _vote(self, part)


_vote = QuorumElection._vote


def votes_by_length(self: QuorumElection, part: Any) -> bool:
    """Compare logs by their length alone."""
    own = self._replica.last_record()
    part.last_offset_epoch = own.epoch
    return _vote(self, part)


def votes_for_everybody(state: State, standing: Standing, candidate: object, *, is_long_enough: bool) -> bool:
    """Give votes as often as somebody asks."""
    return is_long_enough and state not in (State.LEADER, State.CANDIDATE) and standing.leader_id == NOBODY


def commits_earlier_epochs(self: Leadership, own_end: int) -> int:
    """Commit what a majority has, whoever wrote it (Raft's figure 8)."""
    self.epoch_start = -1
    return _committed(self, own_end)


_committed = Leadership.committed


def counts_a_minority(self: Leadership, own_end: int) -> int:
    """Commit what one voter less than a majority has."""
    ends = sorted([own_end, *(follower.end for follower in self.followers.values())], reverse=True)
    found = ends[max(self._majority - 2, 0)]
    return found if found > self.epoch_start else -1


def counts_observers(self: Leadership, own_end: int) -> int:
    """Count whoever fetches."""
    ends = [own_end, *(known.end for known in (*self.followers.values(), *self.observers.values()))]
    ends.sort(reverse=True)
    found = ends[self._majority - 1]
    return found if found > self.epoch_start else -1


def wins_with_half(self: Ballots, voters: Voters) -> bool:
    """Win with half of the votes."""
    return 2 * len(self.granting(voters)) >= len(voters)


def takes_every_vote_for_certain(self: Ballots, broker_id: int, *, is_granted: bool, is_doubtful: bool = False) -> None:
    """Count the vote of who may have lost the end of its log."""
    _record(self, broker_id, is_granted=is_granted)


_record = Ballots.record


def is_certain_at_once(self: Replica, high_watermark: int) -> None:
    """Take a log for whole when any leader is heard of."""
    self.may_have_lost = False
    self.standing = attrs.evolve(self.standing, may_have_lost=False)


def leads_on(self: Replica) -> None:
    """Lead on in the epoch in which the former life led."""
    kept = self.standing
    if kept.leader_id == self.me.broker_id and kept.epoch >= self.last_record().epoch:
        self.has_begun = True
        self._lead()
        self.effects._append = ()
    else:
        _begin(self)


_begin = Replica.begin


def takes_a_pre_vote_for_a_vote(self: Replica) -> None:
    """Stand on with one's own vote, as of the former life."""
    _begin(self)
    if self.standing.voted == self.me and self.state is State.VOTED:
        self._enter(State.CANDIDATE, self.standing)
        self.asking.start(1)


def believes_late_votes(self: QuorumElection, event: Any) -> Any:
    """Count votes of earlier epochs."""
    part = event.message.topics[0].partitions[0] if event.message.topics else None
    return part if _believe(self, event) is not None or (part is not None and not part.error_code) else None


_believe = QuorumElection._believe


def changes_at_once(request: Any, situation: Situation) -> Any:
    """Make a change while another is not committed."""
    return decide(request, situation._replace(is_changing=False))


def changes_early(request: Any, situation: Situation) -> Any:
    """Make a change before anything of the epoch is committed."""
    return decide(request, situation._replace(has_committed=True, is_changing=False))


def ends_anywhere(self: Replica) -> LastRecord:
    """Tell voters of a longer log than there is."""
    found = self._log_end()
    return LastRecord(max(found.leader_epoch, 0), found.end_offset + 2)


def means_the_broker(self: ReplicaKey, replica: ReplicaKey) -> bool:
    """Take whatever a broker has on its disk now for the voter that it was."""
    return self.broker_id == replica.broker_id


SABOTAGES: Mapping[str, Plant] = {
    "a vote without keeping it, and twice after a restart": instead(Node, "keep", forgets),
    "votes are told before they are kept": tells_before_it_keeps,
    "a follower acknowledges what it has not flushed": instead(Node, "flush", flushes_never),
    "a follower does not truncate": truncates_never,
    "a fetch of a diverging log counts": counts_what_diverges,
    "votes for any log": instead(QuorumElection, "_vote", votes_for_any_log),
    "votes by the length of logs alone": instead(QuorumElection, "_vote", votes_by_length),
    "votes twice in an epoch": instead(machine, "may_grant_vote", votes_for_everybody),
    "commits records of earlier epochs by counting": instead(Leadership, "committed", commits_earlier_epochs),
    "counts a minority": instead(Leadership, "committed", counts_a_minority),
    "counts observers": instead(Leadership, "committed", counts_observers),
    "wins with half of the votes": instead(Ballots, "is_won", wins_with_half),
    "counts votes by logs that may have lost their end": instead(Ballots, "record", takes_every_vote_for_certain),
    "a log that lost its end counts before it has caught up": instead(Replica, "catch_up", is_certain_at_once),
    "a leader leads on after a restart": instead(Replica, "begin", leads_on),
    "late pre-votes count as votes after a restart": instead(Replica, "begin", takes_a_pre_vote_for_a_vote),
    "late votes count": instead(QuorumElection, "_believe", believes_late_votes),
    "two changes of voters at once": instead(changing, "decide", changes_at_once),
    "a change of voters before the epoch has committed": instead(changing, "decide", changes_early),
    "a disk that was replaced votes": instead(ReplicaKey, "means", means_the_broker),
    "logs are said to be longer than they are": instead(Replica, "last_record", ends_anywhere),
}

FOUND_BY_SCRIPTS: Mapping[str, str] = {
    "commits records of earlier epochs by counting": "figure_8",
    "late pre-votes count as votes after a restart": "pre_vote_of_a_former_life",
    "votes are told before they are kept": "vote_kept_first",
}
"""Mistakes that need a rare chain of events, and the script that has it."""
NOT_BY_MODEL = frozenset(FOUND_BY_SCRIPTS) - {"commits records of earlier epochs by counting"}
"""Those for which the model would need thousands of seeds."""
