"""Pure core: the election contract over a replica of a quorum (`replica.py`): inputs in, answers and effects out.

What comes from others is checked as Kafka's controllers check it, and refused with their codes; a response is believed
as far as it tells a larger epoch, or the leader of this one. What cannot be so, as two leaders of one epoch, is refused
or passed over, and changes nothing here.

*Source:* KIP-595, KIP-853, KIP-996; KafkaRaftClient of Kafka 4.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.api import (
    NO_EPOCH,
    ZERO_ID,
    ElectionContext,
    ElectionInput,
    ErrorCode,
    FetchEnded,
    IsrChange,
    KRaftVoters,
    LeadershipGivenUp,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    PeerRefused,
    Ready,
    Role,
    TriedVoters,
    VotersChanged,
)
from odradek.kernel.wire.messages.api_52_vote import VoteRequest, VoteResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.messages.api_82_update_raft_voter import UpdateRaftVoterRequest

from . import messages
from .ballots import State, may_grant_pre_vote, may_grant_vote
from .changing import Changing
from .replica import ROLES, STANDING_STATES, WAITING_STATES, Replica
from .standing import NOBODY, Standing
from .timing import REFUSED_STEP_MS, TELL_STEP_MS, Timer
from .voters import ReplicaKey, Voters

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Mapping


IN_DOUBT: Final = ErrorCode.INELIGIBLE_REPLICA
"""What a voter says with a vote that it gives by a log whose end it may have lost."""


class QuorumElection:
    """The election of one replica among voters. Owned by the replica.

    Invariants: `high_watermark <= log end offset`, and it only grows but for a truncation; followers count while this
    replica leads. Effects stand in `ready`; the high watermark of the hot calls is returned.
    """

    def __init__(self, context: ElectionContext) -> None:
        """Make the machine of one replica.

        Raises:
            CorruptionError: What the former life left cannot be understood.
        """
        self._replica = Replica(context)
        self._changing = Changing(self._replica)
        self._partition = context.partition
        self._leaders_high_watermark = -1
        self._now_ms = 0
        self._named: PartitionState | None = None
        self._telling = Timer()
        self._telling.start(0)
        self._takes: Final[Mapping[type, Callable[[Any], None]]] = {
            MetadataChanged: self._take_replicas,
            VotersChanged: self._take_voters,
            PeerMessage: self._take_message,
            FetchEnded: self._take_fetch_ended,
            PeerRefused: self._take_refused,
            LeadershipGivenUp: self._take_given_up,
        }
        self._messages: Final[Mapping[type, Callable[[PeerMessage], None]]] = {
            VoteRequest: partial(self._on_partition, self._on_vote_request),
            VoteResponse: self._on_vote_response,
            BeginQuorumEpochRequest: partial(self._on_partition, self._on_begin_request),
            BeginQuorumEpochResponse: self._on_begin_response,
            EndQuorumEpochRequest: partial(self._on_partition, self._on_end_request),
            EndQuorumEpochResponse: self._on_end_response,
            DescribeQuorumRequest: self._on_describe_request,
            AddRaftVoterRequest: self._on_change_request,
            RemoveRaftVoterRequest: self._on_change_request,
            UpdateRaftVoterRequest: self._on_change_request,
            KRaftVoters: self._changing.name_voters,
            TriedVoters: self._changing.try_voters,
        }

    @property
    def state(self) -> State:
        """What the replica is in its quorum."""
        return self._replica.state

    @property
    def standing(self) -> Standing:
        """Its epoch, leader and vote."""
        return self._replica.standing

    @property
    def role(self) -> Role:
        """See `Election.role`."""
        return ROLES.get(self._replica.state, Role.FOLLOWER)

    @property
    def leader_epoch(self) -> int:
        """See `Election.leader_epoch`; the epoch counts from its begin, before its leader is known."""
        return self._replica.standing.epoch if self._replica.has_begun else NO_EPOCH

    @property
    def high_watermark(self) -> int:
        """See `Election.high_watermark`."""
        return self._replica.high_watermark

    @property
    def isr(self) -> Collection[int]:
        """See `Election.isr`: the voters' brokers; of a leader, of those of its epoch."""
        leadership = self._replica.leadership
        voters = self._replica.voters if leadership is None else leadership.voters
        return tuple(key.broker_id for key in voters.keys)

    # ---------------------------------------------------------------------------------------------------- hot calls

    def local_append(self, log_end_offset: int) -> int:
        """See `Election.local_append`."""
        replica = self._replica
        replica.own_end = log_end_offset
        if log_end_offset < replica.high_watermark:
            replica.high_watermark = log_end_offset
        elif replica.leadership is not None:
            self._count()
        elif self._leaders_high_watermark > replica.high_watermark:
            self.leader_high_watermark(self._leaders_high_watermark)
        return replica.high_watermark

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        """See `Election.follower_fetch`; controllers that are no brokers have no broker epoch."""
        replica, leadership = self._replica, self._replica.leadership
        known = replica.broker(broker_id)
        is_former = known is not None and NO_EPOCH < broker_epoch < known.broker_epoch
        if leadership is None or broker_id == replica.me.broker_id or is_former:
            return replica.high_watermark
        self._now_ms = now_ms
        fetching = ReplicaKey(broker_id, directory_id)
        if leadership.fetched(fetching, broker_epoch, fetch_offset, log_start_offset, replica.own_end, now_ms):
            if leadership.hears_a_majority():
                leadership.begin_round()
                replica.checking.start(replica.timeouts.check_quorum_ms)
            self._count()
        return replica.high_watermark

    def leader_high_watermark(self, offset: int) -> int:
        """See `Election.leader_high_watermark`; what is committed stays so, known to a new leader or not."""
        replica = self._replica
        if replica.leadership is None:
            self._leaders_high_watermark = offset
            replica.high_watermark = max(replica.high_watermark, min(offset, replica.own_end))
            if replica.may_have_lost:
                replica.catch_up(offset)
        return replica.high_watermark

    def _count(self) -> None:
        replica = self._replica
        assert replica.leadership is not None, "only a leader counts"
        committed = replica.leadership.committed(replica.own_end)
        if committed > replica.high_watermark:
            replica.high_watermark = committed
            self._changing.settle()

    def can_acknowledge(self) -> bool:
        """See `Election.can_acknowledge`: a leader's records wait for a majority, however many voters live."""
        return self._replica.leadership is not None

    def low_watermark(self, log_start_offset: int) -> int:
        """See `Election.low_watermark`."""
        lowest = log_start_offset
        leadership = self._replica.leadership
        for key, follower in leadership.followers.items() if leadership is not None else ():
            known = self._replica.broker(key.broker_id)
            if known is not None and not known.is_fenced:
                lowest = min(lowest, follower.log_start)
        return lowest

    # ------------------------------------------------------------------------------------------------------- inputs

    def step(self, event: ElectionInput) -> None:
        """See `Election.step`; that an in-sync set was changed is news of another election."""
        high_watermark = self._replica.high_watermark
        take = self._takes.get(type(event))
        if take is not None:
            if not self._replica.has_begun and not isinstance(event, MetadataChanged | VotersChanged):
                self._replica.begin()
            take(event)
            self._end_input(high_watermark)

    def tick(self, now_ms: int) -> None:
        """See `Election.tick`."""
        if self._replica.has_begun:
            high_watermark = self._replica.high_watermark
            self._now_ms = now_ms
            self._replica.tick(now_ms)
            self._changing.tick(now_ms)
            self._tell_controller(now_ms)
            self._end_input(high_watermark)

    def calm_ms(self) -> int:
        """See `partitions.voting`: so long a follower waits for its leader; a leader, before it tells the silent."""
        replica, leadership = self._replica, self._replica.leadership
        is_changing = self._named is not None and _is_changing(self._named)
        if replica.effects.has_any() or self._changing.is_under_way or (leadership is not None and is_changing):
            return 0
        if leadership is not None:
            return replica.timeouts.begin_epoch_ms if leadership.is_followed_by_all() else 0
        is_following = replica.state is State.FOLLOWER and replica.has_fetched
        return replica.timeouts.fetch_ms if is_following else 0

    @property
    def is_hurried(self) -> bool:
        """See `partitions.voting`: its leader is gone, and its turn to stand comes soon."""
        return self._replica.is_hurried and self._replica.state is State.FOLLOWER

    def _end_input(self, high_watermark: int) -> None:
        replica = self._replica
        if replica.leadership is not None:
            self._count()
            self._leaders_high_watermark = -1
        self._changing.settle()
        if replica.high_watermark != high_watermark:
            replica.effects.commit(replica.high_watermark)

    def _take_replicas(self, event: MetadataChanged) -> None:
        """Where the log names no voters, the metadata does; also where it does not any more, as it was cut."""
        replica, state = self._replica, event.state
        if replica.voters.record is not None and replica.voters.offset < replica.own_end:
            return
        self._named = state
        voters = Voters.of_replicas(state.voters or state.replicas, state.voters_epoch, state.former_voters)
        if voters != replica.voters or not replica.has_begun:
            replica.change_voters(voters)
        replica.name_leader(state.leader, state.leader_epoch)
        if not replica.is_voter and state.leader not in (NOBODY, replica.me.broker_id):
            self._learn(state.leader, state.leader_epoch)

    def _tell_controller(self, now_ms: int) -> None:
        """Tell who has elected this leader, and who else has caught up, while voters change or are to change.

        Told is an epoch that has a committed record: nobody can win any more whom older voters would vote for.
        """
        replica, named = self._replica, self._named
        leadership = replica.leadership
        if leadership is None or named is None or not _is_changing(named) or not replica.has_committed:
            self._telling.start(0)
        elif self._telling.is_due(now_ms):
            self._telling.start(TELL_STEP_MS)
            caught_up = set(leadership.caught_up(replica.high_watermark, now_ms, replica.timeouts.fetch_ms))
            isr = (*self.isr, *(each for each in named.replicas if each in caught_up and each not in self.isr))
            replica.effects.tell_controller(IsrChange(isr, replica.standing.epoch, leadership.voters.epoch))

    def _take_voters(self, event: VotersChanged) -> None:
        self._replica.change_voters(Voters.of_record(event.record, event.offset, event.former))
        self._changing.appended(event)

    def _take_message(self, event: PeerMessage) -> None:
        take = self._messages.get(type(event.message))
        if take is not None:
            take(event)

    def _take_fetch_ended(self, event: FetchEnded) -> None:
        replica = self._replica
        if event.leader_epoch != NO_EPOCH:
            self._learn(event.leader_id, event.leader_epoch)
        is_leaders = event.broker_id == replica.standing.leader_id
        is_of_this_epoch = event.leader_epoch in (NO_EPOCH, replica.standing.epoch)
        if event.error is ErrorCode.NONE and replica.state is State.FOLLOWER and is_leaders and is_of_this_epoch:
            replica.has_fetched = True
            replica.is_hurried = False
            replica.waiting.start(replica.timeouts.fetch_ms)

    def _take_refused(self, event: PeerRefused) -> None:
        replica = self._replica
        if replica.state is State.FOLLOWER and event.broker_id == replica.standing.leader_id:
            if not replica.is_hurried:
                replica.hurry(replica.place_behind_leader() * REFUSED_STEP_MS)
        elif replica.state is State.PROSPECTIVE and event.broker_id != replica.me.broker_id:
            replica.ballots.record(event.broker_id, is_granted=False)
            replica.count_votes()

    def _take_given_up(self, _event: LeadershipGivenUp) -> None:
        if self._replica.leadership is not None and self._replica.leadership.followers:
            self._replica.resign()

    # ----------------------------------------------------------------------------------------------------- requests

    def _learn(self, leader_id: int, epoch: int) -> bool:
        """Take note of an epoch and its leader, and return whether they can be so."""
        replica, standing = self._replica, self._replica.standing
        if epoch < standing.epoch:
            return True
        if leader_id == replica.me.broker_id:
            if epoch > standing.epoch:
                replica.own_up(epoch)
            return replica.standing.leader_id == leader_id
        if epoch > standing.epoch:
            if leader_id == NOBODY:
                replica.unattach(epoch)
            else:
                replica.follow(epoch, leader_id)
        elif leader_id != NOBODY:
            if standing.leader_id not in (NOBODY, leader_id):
                return False
            if standing.leader_id == NOBODY or replica.state in WAITING_STATES:
                replica.follow(epoch, leader_id)
        return True

    def _answer(self, asked: PeerMessage, error: ErrorCode = ErrorCode.NONE, **more: object) -> None:
        response = messages.answer(asked.message, self._partition, self._replica.standing, error, **more)
        self._replica.effects.answer(asked, response)

    def _is_meant(self, voter_id: int, directory_id: uuid.UUID) -> bool:
        """Return whether who asks means this replica, and not one whose place it has taken."""
        me = self._replica.me
        return ReplicaKey(me.broker_id if voter_id == NOBODY else voter_id, directory_id).means(me)

    def _on_partition(self, take: Callable[[PeerMessage, Any, Any], None], asked: PeerMessage) -> None:
        """Have a request taken by its part for this quorum's partition; one without it is refused."""
        part = messages.part_of(asked.message, self._partition)
        if part is None:
            self._replica.effects.answer(asked, messages.refusal(asked.message, ErrorCode.INVALID_REQUEST))
        else:
            take(asked, asked.message, part)

    def _on_vote_request(self, asked: PeerMessage, request: Any, part: Any) -> None:
        error = self._wrong_vote_request(part)
        if error is ErrorCode.NONE:
            if part.replica_epoch > self._replica.standing.epoch:
                self._replica.unattach(part.replica_epoch)
            if not self._is_meant(request.voter_id, part.voter_directory_id):
                error = ErrorCode.INVALID_VOTER_KEY
        is_granted = error is ErrorCode.NONE and self._vote(part)
        self._answer(asked, IN_DOUBT if is_granted and self._replica.is_doubtful else error, vote_granted=is_granted)

    def _wrong_vote_request(self, part: Any) -> ErrorCode:
        """Return why a request for a vote cannot be meant; nobody has records of the epoch in which it stands."""
        last_epoch_max = part.replica_epoch if part.pre_vote else part.replica_epoch - 1
        if part.last_offset < 0 or not 0 <= part.last_offset_epoch <= last_epoch_max:
            return ErrorCode.INVALID_REQUEST
        if part.replica_epoch < self._replica.standing.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if messages.is_from_nobody(part.replica_id) else ErrorCode.NONE

    def _vote(self, part: Any) -> bool:
        replica = self._replica
        asking = messages.LastRecord(part.last_offset_epoch, part.last_offset)
        is_long_enough = asking >= replica.last_record()
        if part.voters_epoch < replica.voters_epoch:
            return False  # it counts by voters that others have followed on, who need not overlap with the next
        if part.pre_vote:
            return may_grant_pre_vote(replica.state, is_long_enough=is_long_enough, has_fetched=replica.has_fetched)
        candidate = ReplicaKey(part.replica_id, part.replica_directory_id)
        is_granted = may_grant_vote(replica.state, replica.standing, candidate, is_long_enough=is_long_enough)
        if is_granted:
            replica.grant(candidate, part.voters_epoch)
        return is_granted

    def _on_begin_request(self, asked: PeerMessage, request: Any, part: Any) -> None:
        error = self._hear_leader(part)
        if error is ErrorCode.NONE and not self._is_meant(request.voter_id, part.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
        self._answer(asked, error)

    def _hear_leader(self, part: Any) -> ErrorCode:
        """Take note of what a leader says of itself, or return why it cannot be so."""
        if part.leader_epoch < self._replica.standing.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if messages.is_from_nobody(part.leader_id) or part.leader_id == self._replica.me.broker_id:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE if self._learn(part.leader_id, part.leader_epoch) else ErrorCode.INVALID_REQUEST

    def _on_end_request(self, asked: PeerMessage, _request: Any, part: Any) -> None:
        replica = self._replica
        successor = messages.first_successor(part)
        if successor is not None and replica.leads_as(part.leader_id, part.leader_epoch):
            self._answer(asked, replica.hand_over(successor, self._now_ms))
            return
        error = self._hear_leader(part)
        if error is ErrorCode.NONE and replica.state is State.FOLLOWER:
            replica.hurry(replica.timeouts.successor_ms(*messages.successor_place(part, replica.me)))
        self._answer(asked, error)

    def _on_describe_request(self, asked: PeerMessage) -> None:
        replica, leadership = self._replica, self._replica.leadership
        if messages.part_of(asked.message, self._partition) is None:
            replica.effects.answer(asked, messages.unknown_partitions(asked.message))
        elif leadership is None:
            self._answer(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            fields: dict[str, Any] = messages.described(
                leadership,
                replica.me if replica.voters.record is not None else ReplicaKey(replica.me.broker_id),
                replica.own_end,
                self._now_ms,
                is_voter=leadership.voters.has(replica.me),
            )
            self._answer(asked, high_watermark=replica.high_watermark, **fields)

    def _on_change_request(self, asked: PeerMessage) -> None:
        self._changing.ask(asked, self._now_ms)

    # ---------------------------------------------------------------------------------------------------- responses

    def _believe(self, event: PeerMessage) -> Any:
        """Take note of what a response says of epochs, and return its item if it answers what is still asked."""
        response: Any = event.message
        part = messages.part_of(response, self._partition) if response.error_code == ErrorCode.NONE else None
        if part is None or part.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
            return None
        is_of_this_epoch = part.leader_epoch == self._replica.standing.epoch
        can_be = self._learn(part.leader_id, part.leader_epoch)
        return part if can_be and is_of_this_epoch and part.error_code in {ErrorCode.NONE, IN_DOUBT} else None

    def _on_vote_response(self, event: PeerMessage) -> None:
        part, replica = self._believe(event), self._replica
        if part is not None and replica.state in STANDING_STATES:
            is_doubtful = part.error_code == IN_DOUBT
            replica.ballots.record(event.broker_id, is_granted=part.vote_granted, is_doubtful=is_doubtful)
            replica.count_votes()

    def _on_begin_response(self, event: PeerMessage) -> None:
        self._believe(event)

    def _on_end_response(self, event: PeerMessage) -> None:
        if self._believe(event) is not None:
            others = (key for key in self._replica.unaware if key.broker_id != event.broker_id)
            self._replica.unaware = tuple(others)

    # ------------------------------------------------------------------------------------------------------ effects

    def ready(self) -> Ready | None:
        """See `Election.ready`."""
        return self._replica.effects.ready()

    def advance(self, ready: Ready) -> None:
        """See `Election.advance`."""
        self._replica.effects.advance(ready)

    def __repr__(self) -> str:
        replica = self._replica
        return (
            f"<QuorumElection {replica.state.value} in epoch {replica.standing.epoch}, voters {replica.voters}, "
            f"high watermark {replica.high_watermark} of {replica.own_end}>"
        )


def _is_changing(state: PartitionState) -> bool:
    """Return whether the controller waits for news of a partition's voters."""
    return bool(state.voters or state.former_voters or state.adding_replicas or state.removing_replicas)
