"""An election among replicas passes the kit: a majority votes, and a majority commits. As small as it can be.

It is no plugin: votes go by time-outs that are no time-outs, and nothing is kept between lives but what it asks for.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionInput,
    ElectionReason,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    Ready,
    Role,
)
from odradek.kernel.wire.messages.api_52_vote import (
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
    VoteRequest,
    VoteResponse,
)
from odradek.testing.contracts.election import ElectionContract

TIMEOUT_MS = 1_000


def vote(epoch: int) -> VoteResponse:
    """Return a vote for whoever asked in this epoch."""
    partition = ResponsePartitionData(leader_epoch=epoch, vote_granted=True)
    return VoteResponse(topics=[ResponseTopicData(partitions=[partition])])


class MajorityElection:
    """A candidate begins an epoch of its own and leads in it when a majority has given its vote.

    What a majority has is committed if the leader's epoch wrote it, and all before with it (Raft, 5.4.2).
    """

    def __init__(self, context: ElectionContext) -> None:
        self._broker_id = context.broker_id
        self._log_end_offset = context.log_end_offset
        self._begin = context.log_end_offset
        self._voters: tuple[int, ...] = ()
        self._votes: set[int] = set()
        self._ends: dict[int, int] = {}
        self._effects: list[Ready] = []
        self.role = Role.FOLLOWER
        self.leader_epoch = -1
        self.high_watermark = min(context.high_watermark, context.log_end_offset)

    @property
    def isr(self) -> Collection[int]:
        return self._voters

    def step(self, event: ElectionInput) -> None:
        if isinstance(event, MetadataChanged):
            self._voters = event.state.replicas
        elif (
            isinstance(event, PeerMessage) and self.role is Role.CANDIDATE and event.message == vote(self.leader_epoch)
        ):
            self._votes |= {event.broker_id}.intersection(self._voters)
            self._lead_if_elected()

    def tick(self, now_ms: int) -> None:
        if now_ms >= TIMEOUT_MS and self.role is Role.FOLLOWER and self._broker_id in self._voters:
            self.leader_epoch += 1
            self._votes = {self._broker_id}
            candidate = PartitionData(
                replica_id=self._broker_id, replica_epoch=self.leader_epoch, last_offset=self._log_end_offset
            )
            request = VoteRequest(topics=[TopicData(partitions=[candidate])])
            self._take(
                Role.CANDIDATE,
                hard_state=b"%d %d" % (self.leader_epoch, self._broker_id),
                messages=tuple(PeerMessage(each, request) for each in self._voters if each != self._broker_id),
            )
            self._lead_if_elected()

    def _lead_if_elected(self) -> None:
        if 2 * len(self._votes) > len(self._voters):
            self._begin = self._log_end_offset
            self._ends = dict.fromkeys(self._voters, -1)
            self._ends[self._broker_id] = self._log_end_offset
            self._take(Role.LEADER)

    def _take(self, role: Role, *, hard_state: bytes | None = None, messages: tuple[PeerMessage, ...] = ()) -> None:
        self.role = role
        self._effects.append(
            Ready(
                hard_state=hard_state,
                role=role,
                leader_id=self._broker_id if role is Role.LEADER else -1,
                leader_epoch=self.leader_epoch,
                messages=messages,
            )
        )

    def local_append(self, log_end_offset: int) -> int:
        self._log_end_offset = log_end_offset
        return self._count(self._broker_id, log_end_offset)

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        return self._count(broker_id, fetch_offset)

    def leader_high_watermark(self, offset: int) -> int:
        if self.role is Role.FOLLOWER:
            self.high_watermark = max(self.high_watermark, min(offset, self._log_end_offset))
        return self.high_watermark

    def low_watermark(self, log_start_offset: int) -> int:
        return log_start_offset

    def _count(self, broker_id: int, end: int) -> int:
        if self.role is Role.LEADER and broker_id in self._ends:
            self._ends[broker_id] = end
            of_majority = sorted(self._ends.values(), reverse=True)[len(self._voters) // 2]
            if of_majority > self._begin:
                self.high_watermark = max(self.high_watermark, of_majority)
        return self.high_watermark

    def can_acknowledge(self) -> bool:
        return self.role is Role.LEADER

    def ready(self) -> Ready | None:
        return self._effects[0] if self._effects else None

    def advance(self, ready: Ready) -> None:
        self._effects.remove(ready)


class MajorityFactory:
    """Makes them; the controller has no say."""

    def new_election(self, context: ElectionContext) -> Election:
        return MajorityElection(context)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        return None

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        alive = tuple(each for each in replicas if each in live_brokers)
        return PartitionState(leader=-1, leader_epoch=0, partition_epoch=0, replicas=tuple(replicas), isr=alive)


class TestMajorityElection(ElectionContract):
    is_chosen_by_controller = False
    commits_by_isr = False
    settings: ClassVar[Mapping[str, object]] = {}

    def make_factory(self) -> ElectionFactory:
        return MajorityFactory()

    def win(self, election: Election, state: PartitionState) -> None:
        election.tick(TIMEOUT_MS)
        for each in state.replicas[1:]:
            election.step(PeerMessage(each, vote(election.leader_epoch)))

    def test_what_a_majority_has_is_committed(self) -> None:
        election = self.leading(PartitionState(-1, 0, 0, replicas=(1, 2, 3), isr=(1, 2, 3)))
        election.local_append(5)

        assert (self.fetch(election, 2, 3), self.fetch(election, 3, 5)) == (3, 5)
