"""Shell: the part of the contract kit of elections about voters that the controller changes, one at a time.

Its promises are those of the level `changes_voters`, which the factory declares too: with them the controller reassigns
partitions whose replicas vote. An epoch has the voters by whom its leader was elected; newer ones count in another
epoch, and once somebody leads by their votes nobody can any more by those of older ones.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.contracts.election import FetchEnded, MetadataChanged, PeerMessage, Role
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest, VoteResponse

from .election_base import PARTITION, THREE, ElectionKit
from .levels import needs_level

if TYPE_CHECKING:
    from odradek.kernel.contracts.election import Election, PartitionState, Ready

_VOTERS_EPOCH: Final = 5
_END: Final = 4
GROWS: Final = attrs.evolve(
    THREE, partition_epoch=4, replicas=(1, 2, 3, 4), adding_replicas=(4,), voters=(1, 2, 3), leader=-1
)
"""Broker 4 has a replica, and no vote yet."""
GROWN: Final = attrs.evolve(GROWS, partition_epoch=5, voters=(), former_voters=(1, 2, 3), voters_epoch=_VOTERS_EPOCH)
"""Broker 4 has a vote, and nobody was elected by these four."""
SHRUNK: Final = attrs.evolve(
    THREE,
    partition_epoch=5,
    removing_replicas=(1,),
    voters=(2, 3),
    former_voters=(1, 2, 3),
    voters_epoch=_VOTERS_EPOCH,
    leader=-1,
)
"""Broker 1 has no vote any more, and nobody was elected by the other two."""


class ChangingVotersPromises(ElectionKit):
    """What an election promises whose voters change while it serves."""

    def led(self, state: PartitionState = THREE) -> Election:
        """Return the election of broker 1, which leads three voters and has committed a record of its epoch."""
        election = self.new_election()
        self.lead(election, THREE)
        election.local_append(_END)
        self.fetched(election, 2, 3, now_ms=1)
        if state is not THREE:
            election.step(MetadataChanged(state, 1))
        self.drain(election)
        assert (election.role, election.high_watermark) == (Role.LEADER, _END)
        return election

    def fetched(self, election: Election, *broker_ids: int, now_ms: int, end: int = _END) -> None:
        """Have brokers fetch at the end of the log."""
        for broker_id in broker_ids:
            election.follower_fetch(broker_id, -1, end, 0, now_ms)

    def passed(self, election: Election, *now_ms: int) -> list[Ready]:
        """Let time pass, and return the effects."""
        effects = []
        for each in now_ms:
            election.tick(each)
            effects += self.drain(election)
        return effects

    def vote(self, election: Election, candidate: int, epoch: int, voters_epoch: int) -> tuple[bool, bytes | None]:
        """Ask for a vote, and return what is answered, and what was kept for it."""
        part = PartitionData(
            partition_index=PARTITION.partition,
            replica_epoch=epoch,
            replica_id=candidate,
            last_offset=_END,
            voters_epoch=voters_epoch,
        )
        request = VoteRequest(voter_id=1, topics=[TopicData(topic_name=PARTITION.topic, partitions=[part])])
        election.step(PeerMessage(candidate, request, correlation_id=5))
        effects = self.drain(election)
        answers: list[Any] = [each.message for ready in effects for each in ready.messages]
        (answer,) = (each for each in answers if isinstance(each, VoteResponse))
        kept = [ready.hard_state for ready in effects if ready.hard_state is not None]
        return answer.topics[0].partitions[0].vote_granted, kept[-1] if kept else None

    def test_a_factory_says_whether_voters_change(self) -> None:
        assert bool(getattr(self.make_factory(), "changes_voters", False)) is self.changes_voters

    def test_a_replica_that_has_no_vote_yet_counts_for_nothing(self) -> None:
        needs_level(self, "changes_voters")
        election = self.led(GROWS)
        election.local_append(_END + 1)
        self.fetched(election, 4, now_ms=2, end=_END + 1)
        before = election.high_watermark
        self.fetched(election, 3, now_ms=3, end=_END + 1)

        assert (before, election.high_watermark) == (_END, _END + 1)

    def test_a_leader_tells_who_elected_it_and_who_has_caught_up(self) -> None:
        needs_level(self, "changes_voters")
        election = self.led(GROWS)
        self.passed(election, 2)
        self.fetched(election, 4, now_ms=3, end=_END - 1)
        behind = [ready.isr_change for ready in self.passed(election, 400, 900) if ready.isr_change is not None]
        self.fetched(election, 4, now_ms=901)
        ready = [ready.isr_change for ready in self.passed(election, 1_000, 1_500) if ready.isr_change is not None]

        assert [sorted(each.isr) for each in (behind[-1], ready[-1])] == [[1, 2, 3], [1, 2, 3, 4]]
        assert (ready[-1].leader_epoch, ready[-1].partition_epoch) == (election.leader_epoch, 0)

    def test_a_leader_tells_nothing_of_its_voters_before_it_has_committed_a_record_of_its_epoch(self) -> None:
        needs_level(self, "changes_voters")
        election = self.leading(THREE)
        election.step(MetadataChanged(GROWS, 1))
        told = [ready.isr_change for ready in self.passed(election, 2_100, 2_300, 2_500)]

        assert set(told) <= {None}

    def test_a_leader_counts_by_those_who_elected_it_until_newer_voters_elect_it_in_a_later_epoch(self) -> None:
        needs_level(self, "changes_voters")
        election = self.led(GROWN)
        epoch = election.leader_epoch
        election.local_append(_END + 1)
        self.fetched(election, 4, now_ms=2, end=_END + 1)
        alone = (election.role, election.high_watermark)
        self.fetched(election, 2, now_ms=3, end=_END + 1)
        with_one = election.high_watermark
        self.fetched(election, 3, now_ms=4, end=_END + 1)
        self.passed(election, 5, 6)

        assert (alone, with_one) == ((Role.LEADER, _END), _END + 1)
        assert (election.role, election.leader_epoch > epoch) == (Role.CANDIDATE, True)

    def test_a_leader_leads_on_where_newer_voters_could_not_elect_it(self) -> None:
        needs_level(self, "changes_voters")
        election = self.led(attrs.evolve(GROWN, replicas=(1, 2, 3, 4, 5), adding_replicas=(4, 5), voters=(1, 4, 5)))
        epoch = election.leader_epoch
        for now_ms in range(100, 9_000, 500):
            self.fetched(election, 2, 3, now_ms=now_ms)
            self.passed(election, now_ms)

        assert (election.role, election.leader_epoch) == (Role.LEADER, epoch)

    def test_a_leader_without_a_vote_makes_way_once_the_others_have_all_and_not_before(self) -> None:
        needs_level(self, "changes_voters")
        election = self.led(SHRUNK)
        election.local_append(_END + 1)
        self.fetched(election, 2, now_ms=9_000, end=_END + 1)
        self.passed(election, 9_001)
        before = election.role
        self.fetched(election, 3, now_ms=9_002, end=_END + 1)
        self.passed(election, 9_003, 9_004)

        assert (before, election.role) == (Role.LEADER, Role.FOLLOWER)

    def test_who_has_no_vote_follows_whom_the_metadata_names_and_never_stands(self) -> None:
        needs_level(self, "changes_voters")
        election = self.new_election(broker_id=4)
        election.step(MetadataChanged(attrs.evolve(GROWS, leader=3, leader_epoch=6), 1))
        followed = [(ready.role, ready.leader_id, ready.leader_epoch) for ready in self.drain(election)]
        election.step(FetchEnded(3, leader_id=3, leader_epoch=6))
        roles = set()
        for now_ms in range(0, 60_000, 500):
            self.passed(election, now_ms)
            roles.add(election.role)

        assert followed[-1] == (Role.FOLLOWER, 3, 6)
        assert roles == {Role.FOLLOWER}

    def test_who_has_voted_by_newer_voters_votes_by_no_older_ones_in_this_life_or_the_next(self) -> None:
        needs_level(self, "changes_voters")
        election = self.new_election()
        election.step(MetadataChanged(THREE, 1))
        self.drain(election)
        newer, kept = self.vote(election, 2, 7, _VOTERS_EPOCH)
        older = self.vote(election, 3, 8, _VOTERS_EPOCH - 1)[0]
        next_life = self.new_election(hard_state=kept)
        next_life.step(MetadataChanged(THREE, 1))
        self.drain(next_life)

        assert (newer, older, self.vote(next_life, 3, 9, _VOTERS_EPOCH - 1)[0]) == (True, False, False)
        assert self.vote(next_life, 2, 10, _VOTERS_EPOCH)[0]

    def test_a_replica_that_remembers_nothing_votes_by_no_older_voters_than_those_that_are_named(self) -> None:
        needs_level(self, "changes_voters")
        election = self.new_election()
        election.step(MetadataChanged(GROWN, 1))
        self.drain(election)
        older = self.vote(election, 3, 7, _VOTERS_EPOCH - 1)[0]

        assert (older, self.vote(election, 2, 8, _VOTERS_EPOCH)[0]) == (False, True)

    def test_who_has_voted_by_newer_voters_than_the_metadata_names_waits_for_them(self) -> None:
        needs_level(self, "changes_voters")
        election = self.new_election()
        election.step(MetadataChanged(THREE, 1))
        self.drain(election)
        self.vote(election, 2, 7, _VOTERS_EPOCH)
        roles = set()
        for now_ms in range(0, 20_000, 500):
            self.passed(election, now_ms)
            roles.add(election.role)
        election.step(MetadataChanged(GROWN, 1))
        later = set()
        for now_ms in range(20_000, 40_000, 500):
            self.passed(election, now_ms)
            later.add(election.role)

        assert (roles, Role.CANDIDATE in later) == ({Role.FOLLOWER}, True)
