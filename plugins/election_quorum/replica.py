"""Pure core: one replica of a partition whose voters elect their leader among themselves: KRaft's protocol.

| from | to | when |
| --- | --- | --- |
| unattached, voted | prospective | the election time-out is over |
| prospective | candidate, in the next epoch | a majority would vote for it |
| prospective | follower or unattached, as before | a majority would not, or the election time-out is over |
| candidate | leader | a majority has voted for it |
| candidate | prospective | the election time-out is over |
| leader | resigned | no majority fetches any more, or it gives up |
| resigned | unattached, in the next epoch | the election time-out is over |
| follower | prospective; observers unattached | the fetch time-out is over, or the leader is gone |
| unattached, voted, candidate | follower | the leader of its epoch is known |
| any | unattached or follower | a larger epoch is heard of, from anybody |

* Followers pull: the leader counts their fetches (`leadership.py`), and resigns when no majority fetches any more.
* What is promised is kept first: `Ready.hard_state` (`standing.py`) goes before all messages and roles of its `Ready`.
  Who begins again with its own vote does not stand on with it: late answers to its former life may be about pre-votes.
* A leader that begins again resigns: what it appended in its epoch may be lost, and must not be written anew in it.
* A follower whom the leader's machine refuses connections does not wait for its fetch time-out. Others find out by
  themselves; who has no answer of a leader in this epoch gives pre-votes, and one after the other stands.
* A voter that begins, and knows of no leader, does not wait for one: it asks for pre-votes soon, one after the other.
* Who may have lost the end of its log with the power may lack what it helped to commit. It says so with its vote
  (`ballots.py`), until a leader's epoch has begun in its log and it has all that this leader has told to be committed:
  what was committed before stands in front of the epoch's begin, and what it had acknowledged to the same leader is
  told by that one's high watermark. So does, until it has a record, who has given up all that it had and goes on where
  its leader's log begins: how new the last record before that was it does not know.
* An epoch has the voters by whom its leader was elected, for good, where the metadata names them. They have an epoch of
  their own, which goes with each request for a vote: who has voted for a candidate of some voters does not vote for one
  of older voters any more. A leader for whom newer ones are named stands anew, or resigns, once a majority of these has
  what is committed.
* Who is no voter, not yet or not any more, observes: it follows, and never stands. It gives its vote all the same, for
  the log in which it would read that it is a voter may lag.

*Source:* KIP-595, KIP-853, KIP-996; KafkaRaftClient and QuorumState of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    ZERO_ID,
    ElectionContext,
    ErrorCode,
    KRaftControlRecord,
    KRaftVersion,
    LeaderChange,
    QuorumVoter,
    Role,
)

from . import messages
from .ballots import Ballots, State
from .effects import Effects
from .leadership import Leadership
from .standing import NOBODY, Standing, decode_standing
from .timing import BEGUN_STEP_MS, Timeouts, Timer
from .voters import NOBODY as NO_VOTERS
from .voters import ReplicaKey, Voters

if TYPE_CHECKING:
    from collections.abc import Iterable

ROLES: Final = {
    State.PROSPECTIVE: Role.CANDIDATE,
    State.CANDIDATE: Role.CANDIDATE,
    State.LEADER: Role.LEADER,
}
"""What a broker is told; in every other state its replica follows somebody, or waits for somebody to follow."""
STANDING_STATES: Final = frozenset({State.PROSPECTIVE, State.CANDIDATE})
WAITING_STATES: Final = frozenset({State.UNATTACHED, State.VOTED})


class Replica:
    """The states of one replica, and the ways from one to another. Owned by the election.

    Invariants: `standing` only grows in its epoch; `leadership` is there exactly while the state is `LEADER`; `ballots`
    while it stands. Each way between states asks for `standing` to be kept before anything that follows from it.
    """

    def __init__(self, context: ElectionContext) -> None:
        self.me = ReplicaKey(context.broker_id, context.directory_id)
        self.partition = context.partition
        self.timeouts = Timeouts(context.config(), context.random)
        self.broker = context.broker
        self._log_end = context.log_end
        kept = context.hard_state
        self.standing = Standing() if kept is None else decode_standing(kept)
        self.effects = Effects(None if kept is None else self.standing)
        self.may_have_lost = context.may_have_lost or self.standing.may_have_lost
        self.voters_epoch = self.standing.voters_epoch
        self._is_new = kept is None
        self.named_leader = Standing()
        self.voters: Voters = NO_VOTERS
        self.state = State.UNATTACHED
        self.has_begun = False
        self.has_fetched = False
        self.is_hurried = False
        self.own_end = context.log_end_offset
        self.high_watermark = min(context.high_watermark, context.log_end_offset)
        self.ballots = Ballots(self.me)
        self.leadership: Leadership | None = None
        self.waiting = Timer()
        self.asking = Timer()
        self.checking = Timer()
        self.successors: tuple[ReplicaKey, ...] = ()
        self.unaware: tuple[ReplicaKey, ...] = ()

    # ------------------------------------------------------------------------------------------------- what is known

    @property
    def is_voter(self) -> bool:
        """Whether this replica has a vote."""
        return self.voters.has(self.me)

    @property
    def may_stand(self) -> bool:
        """Whether this replica may stand: a voter, or one that the newest voters left out, while that may be undone.

        If it has the record that leaves it out and a majority of the others has not, none of these can win against it,
        nor could it commit the record without their votes: it stands, counts without itself, and resigns when it is
        committed (Raft's dissertation, 4.2.2). A voter that has voted by newer voters than it knows waits for these.
        """
        if self.is_voter:
            return self.voters.epoch >= self.voters_epoch
        is_committed = self.voters.record is None or self.voters.offset < self.high_watermark
        return not is_committed and any(key.means(self.me) for key in self.voters.former)

    def last_record(self) -> messages.LastRecord:
        """Return where the log ends; one without epochs counts as one of epoch 0, as Kafka has it."""
        found = self._log_end()
        return messages.LastRecord(max(found.leader_epoch, 0), found.end_offset)

    @property
    def is_doubtful(self) -> bool:
        """Whether logs are not to be compared by this one: it may have lost its end, or how new that was."""
        found = self._log_end()
        return self.may_have_lost or found.leader_epoch < 0 < found.end_offset

    def begin(self) -> None:
        """Begin in what the former life left."""
        self.has_begun = True
        standing, last = self.standing, self.last_record()
        if standing.epoch < last.epoch:
            self._enter(State.UNATTACHED, Standing(last.epoch))
        elif standing.leader_id == self.me.broker_id:
            self._enter_resigned()
            self.successors = self.voters.others(self.me)  # who has most is not known: any order is better than none
            self.tell_resignation()
        elif standing.leader_id != NOBODY and self.voters.find(standing.leader_id) is not None:
            self._enter(State.FOLLOWER, standing)
        else:
            self._enter_waiting()
        self._wait()
        if self.is_voter and self.state in WAITING_STATES:
            place = next(place for place, key in enumerate(self.voters.keys) if key.means(self.me))
            self.waiting.start((place + 1) * BEGUN_STEP_MS)
        self._stand_alone()

    def change_voters(self, voters: Voters) -> None:
        """Take note of who votes from now on.

        Who remembers nothing may have been a replica before, and voted: by no newer voters than those that are named as
        it becomes one again.
        """
        if self._is_new and not self.has_begun:
            self.voters_epoch = voters.epoch
        might_stand, self.voters = self.may_stand, voters
        if not self.has_begun:
            self.begin()
            return
        if self.leadership is not None:
            if voters.record is not None:
                self.leadership.change_voters(voters)
                self.checking.start(self.timeouts.check_quorum_ms)
        elif self.may_stand != might_stand or (voters.record is None and self.state in STANDING_STATES):
            if self.state in STANDING_STATES:
                self._enter_waiting()
            self._wait()
            self._stand_alone()

    def catch_up(self, high_watermark: int) -> None:
        """Hear what the leader of this epoch has committed: who has it lacks nothing that it had acknowledged."""
        has_begun = self.state is State.FOLLOWER and self.last_record().epoch == self.standing.epoch
        if has_begun and high_watermark <= self.own_end:
            self.may_have_lost = False
            self.standing = attrs.evolve(self.standing, may_have_lost=False)
            self.effects.keep(self.standing)

    def _stand_alone(self) -> None:
        """Do not wait where there is nobody to wait for."""
        if self.is_voter and self.may_stand and not self.voters.others(self.me):
            self.stand()

    # --------------------------------------------------------------------------------------------- ways between states

    def _enter(self, state: State, standing: Standing) -> None:
        """Be in a state; what was asked in another is not asked any more."""
        self.state = state
        self.standing = attrs.evolve(standing, may_have_lost=self.may_have_lost, voters_epoch=self.voters_epoch)
        self.leadership = None
        self.asking.stop()
        self.checking.stop()
        role = ROLES.get(state, Role.FOLLOWER)
        leader_id = standing.leader_id if state in (State.LEADER, State.FOLLOWER) else NOBODY
        self.effects.enter(self.standing, role, leader_id)

    def _enter_waiting(self) -> None:
        """Know no leader to follow."""
        self._enter(State.UNATTACHED if self.standing.voted is None else State.VOTED, self.standing)

    def _wait(self) -> None:
        """Have the time begin after which this replica does not wait any longer: a voter stands then."""
        if self.state is State.FOLLOWER:
            self.waiting.start(self.timeouts.fetch_ms)
        elif self.may_stand or self.state is State.RESIGNED:
            self.waiting.start(self.timeouts.election_ms())
        else:
            self.waiting.stop()

    def unattach(self, epoch: int) -> None:
        """Wait for the leader of a larger epoch; who waited for one already does not wait longer for that."""
        is_patient = self.state in (State.LEADER, State.FOLLOWER) or not self.waiting.is_running
        self._enter(State.UNATTACHED, Standing(epoch))
        if is_patient or not self.may_stand:
            self._wait()

    def follow(self, epoch: int, leader_id: int) -> None:
        """Follow the leader of this epoch or of a larger one."""
        voted = self.standing.voted if epoch == self.standing.epoch else None
        self._enter(State.FOLLOWER, Standing(epoch, leader_id, voted))
        self.has_fetched = self.is_hurried = False
        self._wait()

    def own_up(self, epoch: int) -> None:
        """Hear that this replica leads an epoch that it knows nothing of: what it promised in it is forgotten."""
        self.standing = Standing(epoch)
        self._enter_resigned()
        self._wait()

    def grant(self, candidate: ReplicaKey, voters_epoch: int) -> None:
        """Give the vote of this epoch, and wait for its outcome."""
        if self.standing.voted is None:
            self.voters_epoch = max(self.voters_epoch, voters_epoch)
            voted = Standing(self.standing.epoch, self.standing.leader_id, candidate)
            if self.state is State.PROSPECTIVE and self.may_stand:
                self._enter_prospective(voted)
            else:
                self._enter(State.VOTED, voted)
            self._wait()

    def stand(self) -> None:
        """Ask whether a majority would vote for this replica (KIP-996)."""
        self.ballots = Ballots(self.me, is_doubtful=self.is_doubtful)
        self._enter_prospective(self.standing)
        self._wait()
        self.ask_votes()
        self.count_votes()

    def _enter_prospective(self, standing: Standing) -> None:
        self._enter(State.PROSPECTIVE, standing)
        self.asking.start(self.timeouts.ask_again_ms)

    def _be_candidate(self) -> None:
        self.ballots = Ballots(self.me, is_doubtful=self.is_doubtful)
        self.voters_epoch = max(self.voters_epoch, self.voters.epoch)
        self._enter(State.CANDIDATE, Standing(self.standing.epoch + 1, NOBODY, self.me))
        self._wait()
        self.asking.start(self.timeouts.ask_again_ms)
        self.ask_votes()
        self.count_votes()

    def ask_votes(self) -> None:
        """Ask whoever has not answered; a pre-vote also whoever would not have given it, for that may change."""
        last, is_pre_vote = self.last_record(), self.state is State.PROSPECTIVE
        asked = self.ballots.missing(self.voters) if is_pre_vote else self.ballots.unknown(self.voters)
        for voter in asked:
            request = messages.vote_request(
                self.partition,
                self.me,
                voter,
                self.standing.epoch,
                last,
                pre_vote=is_pre_vote,
                voters_epoch=self.voters.epoch,
            )
            self.effects.ask(voter.broker_id, request)

    def count_votes(self) -> None:
        """Go on if a majority agrees; a candidate that has lost waits for its time-out, for another may have won."""
        if self.ballots.is_won(self.voters):
            if self.state is State.PROSPECTIVE:
                self._be_candidate()
            else:
                self._lead()
        elif self.ballots.is_lost(self.voters) and self.state is State.PROSPECTIVE:
            self.give_way()

    def give_way(self) -> None:
        """End an election that was not won: a candidate asks again, who only asked goes back to wait."""
        if self.state is State.CANDIDATE:
            self.stand()
        elif self.standing.leader_id not in (NOBODY, self.me.broker_id):
            self.follow(self.standing.epoch, self.standing.leader_id)
        else:
            self._enter_waiting()
            self._wait()

    def _lead(self) -> None:
        granting = self.ballots.granting(self.voters)
        epoch_start = self.last_record().end_offset
        self.may_have_lost = False  # whoever won has what there is
        self._enter(State.LEADER, Standing(self.standing.epoch, self.me.broker_id))
        self.waiting.stop()
        self.leadership = Leadership(self.me, epoch_start, self.voters)
        self.effects.append(self._first_records(granting))
        self.checking.start(self.timeouts.check_quorum_ms)
        self.asking.start(self.timeouts.begin_epoch_ms)
        self.tell_leadership(self.voters.others(self.me))

    def _first_records(self, granting: Iterable[ReplicaKey]) -> tuple[KRaftControlRecord, ...]:
        """Return what an epoch begins with; what the founding left beside the log is written into it once."""
        record = self.voters.record
        change = LeaderChange(
            version=0 if record is None else 1,
            leader_id=self.me.broker_id,
            voters=_named(self.voters.keys, has_directories=record is not None),
            granting_voters=_named(granting, has_directories=record is not None),
        )
        if record is None or self.voters.offset >= 0:
            return (change,)
        return (change, KRaftVersion(version=0, k_raft_version=1), record)

    def tell_leadership(self, voters: Iterable[ReplicaKey]) -> None:
        """Tell voters that this replica leads."""
        for voter in voters:
            self.effects.ask(voter.broker_id, messages.begin_request(self.partition, voter, self.standing))

    def leads_as(self, leader_id: int, epoch: int) -> bool:
        """Return whether this replica is meant by a leader's name and epoch, and leads in it."""
        is_this = (leader_id, epoch) == (self.me.broker_id, self.standing.epoch)
        return is_this and self.leadership is not None

    def hand_over(self, successor: ReplicaKey, now_ms: int) -> ErrorCode:
        """Resign for one of the other voters, or return why not: who lacks records would not be voted for."""
        assert self.leadership is not None, "only a leader hands over"
        if not self.leadership.may_follow_on(successor, now_ms, self.timeouts.fetch_ms):
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        self.resign(first=successor)
        return ErrorCode.NONE

    def resign(self, first: ReplicaKey | None = None) -> None:
        """Lead no more in this epoch, and let the others know: who is to stand first, then whoever has most."""
        assert self.leadership is not None, "only a leader resigns"
        successors = tuple(key for key in self.leadership.successors() if self.voters.has(key))
        if first is not None:
            successors = tuple(sorted(successors, key=lambda key: not key.means(first)))
        self._enter_resigned()
        self._wait()
        self.successors = successors
        self.tell_resignation()

    def _enter_resigned(self) -> None:
        self._enter(State.RESIGNED, Standing(self.standing.epoch, self.me.broker_id))
        self.successors = ()
        self.unaware = self.voters.others(self.me)
        self.asking.start(self.timeouts.ask_again_ms)

    def tell_resignation(self) -> None:
        """Tell whoever has not answered that this replica leads no more."""
        request = messages.end_request(self.partition, self.standing, self.successors)
        for voter in self.unaware:
            self.effects.ask(voter.broker_id, request)

    # ------------------------------------------------------------------------------------------------------------ time

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        if self.leadership is not None:
            self._tick_leader(self.leadership, now_ms)
        elif self.waiting.is_due(now_ms):
            self._end_waiting()
        elif self.asking.is_due(now_ms):
            self.asking.start(self.timeouts.ask_again_ms)
            if self.state is State.RESIGNED:
                self.tell_resignation()
            else:
                self.ask_votes()

    def _tick_leader(self, leadership: Leadership, now_ms: int) -> None:
        leadership.forget_absent(now_ms)
        has_record = self.voters.record is not None
        has_left = has_record and not self.is_voter and self.voters.offset < self.high_watermark
        if has_left or (len(leadership.voters) > 1 and self.checking.is_due(now_ms)):
            self.resign()
        elif self._may_be_followed(leadership, now_ms):
            if self.is_voter:
                self._be_candidate()
            else:
                self.resign()
        elif self.asking.is_due(now_ms):
            self.asking.start(self.timeouts.begin_epoch_ms)
            self.tell_leadership(leadership.silent(now_ms, self.timeouts.begin_epoch_ms))

    def _may_be_followed(self, leadership: Leadership, now_ms: int) -> bool:
        """Return whether newer voters are named than those of this epoch, and an epoch of theirs could begin at once.

        The next may be named when that epoch's leader has committed a record of its own (`Ready.isr_change`).
        """
        if self.voters.epoch <= max(leadership.voters.epoch, self.voters_epoch - 1) or not self.has_committed:
            return False
        return leadership.could_be_led(self.voters, self.high_watermark, now_ms, self.timeouts.fetch_ms)

    @property
    def has_committed(self) -> bool:
        """Whether this replica leads, and something of its epoch is committed."""
        return self.leadership is not None and self.high_watermark > self.leadership.epoch_start

    def name_leader(self, leader_id: int, epoch: int) -> None:
        """Take note whom the metadata has for the leader: who has no vote hears of it so."""
        self.named_leader = Standing(epoch, leader_id)

    def _follow_named(self) -> bool:
        """Go on after the leader that the metadata names, as one without a vote; return whether there is one."""
        named = self.named_leader
        is_other = named.leader_id not in (NOBODY, self.me.broker_id)
        if self.is_voter or not is_other or named.epoch != self.standing.epoch:
            return False
        self.follow(named.epoch, named.leader_id)
        return True

    def _end_waiting(self) -> None:
        if self.state is State.RESIGNED:
            self.waiting.stop()
            self.unattach(self.standing.epoch + 1)
        elif self.may_stand:
            if self.state in STANDING_STATES:
                self.give_way()
            elif self.state is State.FOLLOWER and not self.is_hurried:
                self.hurry(self.place_behind_leader() * self.timeouts.silent_step_ms)
            else:
                self.stand()
        elif not self._follow_named():
            self.standing = Standing(self.standing.epoch, NOBODY, self.standing.voted)
            self._enter_waiting()
            self._wait()

    def place_behind_leader(self) -> int:
        """Return which of the voters this replica is when its leader is gone: they stand one after the other.

        All of them may find it out at once, as those do that heard it last with the same answer; then each would vote
        for itself, and wait for an election's time-out.
        """
        left = [key for key in self.voters.keys if key.broker_id != self.standing.leader_id]
        return next((place for place, key in enumerate(left) if key.means(self.me)), len(left))

    def hurry(self, length_ms: int) -> None:
        """Hear of a follower's leader that it is gone: give others a pre-vote, and stand after a while."""
        self.has_fetched, self.is_hurried = False, True
        if self.may_stand and length_ms == 0:
            self.stand()
        elif self.may_stand:
            self.waiting.start(length_ms)


def _named(keys: Iterable[ReplicaKey], *, has_directories: bool) -> list[QuorumVoter]:
    """Return voters as records name them."""
    return [
        QuorumVoter(voter_id=key.broker_id, voter_directory_id=key.directory_id if has_directories else ZERO_ID)
        for key in keys
    ]
