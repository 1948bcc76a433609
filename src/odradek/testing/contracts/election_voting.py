"""Shell: the part of the contract kit of elections about votes, as Kafka's quorums cast them (KRaft).

Its promises are those of the level `speaks_kraft`: Vote in its newest version, the voters from a record of the log or,
where there is none, from the metadata. The kit carries the messages; what is kept is given to the next life.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.contracts.election import FetchEnded, LeadershipGivenUp, PeerMessage, Role, VotersChanged
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.control import KRaftVersionRange, KRaftVoter, KRaftVoters, LeaderChange
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest, VoteResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import PartitionData as BeginPartitionData
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import TopicData as BeginTopicData

from .election_base import ALONE, PARTITION, THREE, ElectionKit
from .levels import needs_level

if TYPE_CHECKING:
    from odradek.kernel.contracts.election import Election, Ready

_EPOCH: Final = 7
_LATE_MS: Final = 10_000


def directory(broker_id: int) -> uuid.UUID:
    """Return the id of a broker's directory."""
    return uuid.UUID(int=1000 + broker_id)


def voters(*broker_ids: int) -> KRaftVoters:
    """Return the record that makes brokers voters, each in its directory."""
    feature = KRaftVersionRange(min_supported_version=0, max_supported_version=1)
    return KRaftVoters(
        voters=[
            KRaftVoter(voter_id=each, voter_directory_id=directory(each), k_raft_version_feature=feature)
            for each in broker_ids
        ]
    )


class VotingPromises(ElectionKit):
    """What an election among voters promises."""

    def voter(self, broker_id: int = 1, **known: Any) -> Election:
        """Return the election of a voter of three, in the state that its context leaves it in."""
        election = self.new_election(broker_id=broker_id, directory_id=directory(broker_id), **known)
        election.step(VotersChanged(voters(1, 2, 3), -1))
        self.drain(election)
        return election

    def ask(
        self, election: Election, candidate: int, *, epoch: int = _EPOCH, last: tuple[int, int] = (0, 0), **more: Any
    ) -> list[Ready]:
        """Ask a voter for its vote, and return the effects."""
        part = PartitionData(
            partition_index=PARTITION.partition,
            replica_epoch=epoch,
            replica_id=candidate,
            replica_directory_id=directory(candidate),
            voter_directory_id=more.get("voter_directory_id", directory(1)),
            last_offset_epoch=last[0],
            last_offset=last[1],
            pre_vote=more.get("pre_vote", False),
        )
        request = VoteRequest(voter_id=1, topics=[TopicData(topic_name=PARTITION.topic, partitions=[part])])
        election.step(PeerMessage(candidate, request, correlation_id=5))
        return self.drain(election)

    def votes(self, effects: list[Ready]) -> list[bool]:
        """Return what the answers to requests for votes say."""
        answers = [each.message for ready in effects for each in ready.messages]
        return [each.topics[0].partitions[0].vote_granted for each in answers if isinstance(each, VoteResponse)]

    def follow(self, election: Election, leader: int, *, epoch: int = _EPOCH) -> None:
        """Have a leader tell that it leads."""
        part = BeginPartitionData(
            partition_index=PARTITION.partition, voter_directory_id=directory(1), leader_id=leader, leader_epoch=epoch
        )
        topic = BeginTopicData(topic_name=PARTITION.topic, partitions=[part])
        election.step(PeerMessage(leader, BeginQuorumEpochRequest(voter_id=1, topics=[topic])))
        self.drain(election)

    # -- votes ---------------------------------------------------------------------------------------------------

    def test_a_vote_is_kept_before_it_is_told_and_answers_who_asked(self) -> None:
        needs_level(self, "speaks_kraft")
        (ready,) = self.ask(self.voter(), 2)
        (answer,) = ready.messages

        assert (ready.hard_state is not None, answer.broker_id, answer.correlation_id) == (True, 2, 5)
        assert self.votes([ready]) == [True]

    def test_a_vote_is_given_once_in_an_epoch_and_again_to_whom_it_was_given(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.voter()

        assert [self.votes(self.ask(election, each)) for each in (2, 3, 2)] == [[True], [False], [True]]

    def test_a_vote_binds_the_next_life(self) -> None:
        needs_level(self, "speaks_kraft")
        (ready,) = self.ask(self.voter(), 2)
        next_life = self.voter(hard_state=ready.hard_state)

        assert [self.votes(self.ask(next_life, each)) for each in (3, 2)] == [[False], [True]]

    def test_a_candidate_whose_log_is_behind_gets_no_vote(self) -> None:
        needs_level(self, "speaks_kraft")
        for last in ((3, 9), (2, 20)):
            assert self.votes(self.ask(self.voter(latest_epoch=3, log_end_offset=10), 2, last=last)) == [False]
        for last in ((3, 10), (4, 1)):
            assert self.votes(self.ask(self.voter(latest_epoch=3, log_end_offset=10), 2, last=last)) == [True]

    def test_a_request_that_means_another_directory_is_refused(self) -> None:
        needs_level(self, "speaks_kraft")
        (ready,) = self.ask(self.voter(), 2, voter_directory_id=directory(9))
        answer: Any = ready.messages[0].message
        part = answer.topics[0].partitions[0]

        assert (part.error_code, part.vote_granted) == (ErrorCode.INVALID_VOTER_KEY, False)

    def test_a_pre_vote_binds_nobody(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.voter()
        first, second = (self.votes(self.ask(election, each, epoch=0, pre_vote=True)) for each in (2, 3))

        assert (first, second, election.leader_epoch) == ([True], [True], 0)

    def test_who_hears_its_leader_gives_no_pre_vote(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.voter()
        self.follow(election, 3)
        before = self.votes(self.ask(election, 2, pre_vote=True))
        election.step(FetchEnded(3, leader_id=3, leader_epoch=_EPOCH))

        assert (before, self.votes(self.ask(election, 2, pre_vote=True))) == ([True], [False])

    # -- leaders -------------------------------------------------------------------------------------------------

    def test_an_epoch_begins_with_a_record_of_its_leader(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.new_election()
        appended = [(ready.leader_epoch, ready.append) for ready in self.lead(election, ALONE) if ready.append]
        ((epoch, records),) = appended

        first = records[0]
        assert isinstance(first, LeaderChange), "the first record of an epoch tells its leader"
        named = [[voter.voter_id for voter in each] for each in (first.voters, first.granting_voters)]

        assert (epoch, first.leader_id, named) == (election.leader_epoch, 1, [[1], [1]])

    def test_what_earlier_epochs_left_is_committed_no_sooner_than_a_record_of_this_one(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.leading(THREE, log_end_offset=5)
        election.local_append(6)

        assert [self.fetch(election, 2, 5), self.fetch(election, 2, 6)] == [0, 6]

    def test_a_leader_that_no_majority_fetches_from_leads_no_more(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.leading(THREE)
        for now_ms in (_LATE_MS, 2 * _LATE_MS):
            election.tick(now_ms)

        assert election.role is not Role.LEADER

    def test_a_leader_that_hears_of_a_larger_epoch_leads_no_more(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.leading(THREE)
        self.ask(election, 2, voter_directory_id=uuid.UUID(int=0))

        assert (election.role, election.leader_epoch) == (Role.FOLLOWER, _EPOCH)

    def test_a_leader_that_gives_up_tells_the_others(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.leading(THREE)
        election.step(LeadershipGivenUp())
        told = {each.broker_id for ready in self.drain(election) for each in ready.messages}

        assert (election.role, told) == (Role.FOLLOWER, {2, 3})

    def test_a_voter_in_another_directory_does_not_count(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.new_election(directory_id=directory(1))
        election.step(VotersChanged(voters(1, 2, 3), 0))
        self.win(election, THREE)
        self.drain(election)
        election.local_append(4)
        counted = [election.follower_fetch(2, -1, 4, 0, 0, each) for each in (directory(9), directory(2))]

        assert counted == [0, 4]

    def test_who_follows_is_told_whom(self) -> None:
        needs_level(self, "speaks_kraft")
        election = self.voter()
        self.follow(election, 3, epoch=2)
        told = self.ask(election, 2, epoch=1)
        answer: Any = told[0].messages[0].message
        part = answer.topics[0].partitions[0]

        assert (election.role, part.error_code, part.leader_id, part.leader_epoch) == (
            Role.FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
            3,
            2,
        )
