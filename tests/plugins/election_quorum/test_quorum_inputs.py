"""What a quorum's replica makes of single inputs: wrong requests, changes of voters, questions, times."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ErrorCode,
    FetchEnded,
    IsrChange,
    IsrChangeEnded,
    KRaftVersion,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    LeadershipGivenUp,
    Message,
    MetadataChanged,
    PeerMessage,
    PeerRefused,
    Ready,
    Role,
    TriedVoters,
    VoterEndpoint,
    VotersChanged,
)
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import PartitionData as DescribePartition
from odradek.kernel.wire.messages.api_55_describe_quorum import TopicData as DescribeTopic
from odradek.kernel.wire.messages.api_57_update_features import UpdateFeaturesResponse
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.messages.api_82_update_raft_voter import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)
from odradek.plugins.election_quorum.leadership import OBSERVER_MS_MAX, Progress
from odradek.plugins.election_quorum.messages import ANSWERS, LastRecord, begin_request, end_request, vote_request
from odradek.plugins.election_quorum.standing import Standing
from odradek.plugins.election_quorum.voters import ReplicaKey
from odradek.testing.contracts.election import PARTITION
from odradek.testing.contracts.election_base import THREE, Broker
from odradek.testing.contracts.election_voting import directory, voters
from tests.plugins.election_quorum.test_election_quorum import TestQuorumElection as Kit

KIT = Kit()
ME = ReplicaKey(1, directory(1))
FEATURE = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)


def voter(**known: Any) -> Election:
    """Return a voter of three that knows nothing else."""
    return KIT.voter(**known)


def leader(record: KRaftVoters | None = None, *, ends: int = 4) -> Election:
    """Return the leader of voters that a record names, which has committed its log up to `ends`."""
    record = voters(1, 2, 3) if record is None else record
    election = KIT.new_election(directory_id=directory(1))
    election.step(VotersChanged(record, 0))
    if election.role is not Role.LEADER:
        KIT.win(election, THREE)
    KIT.drain(election)
    election.local_append(ends)
    for each in record.voters[1:]:
        election.follower_fetch(each.voter_id, -1, ends, 0, 0, each.voter_directory_id)
    assert (election.role, election.high_watermark) == (Role.LEADER, ends)
    return election


def answers(election: Election, request: Message, *, source: int = 2) -> list[Any]:
    """Return what is answered to a request, at once."""
    election.step(PeerMessage(source, request, correlation_id=8))
    sent = [message for ready in KIT.drain(election) for message in ready.messages]
    return [each.message for each in sent if each.correlation_id == 8]


def error_of(election: Election, request: Message) -> ErrorCode:
    """Return the code that a request is answered with, of the partition or as a whole."""
    (response,) = answers(election, request)
    part = response.topics[0].partitions[0] if getattr(response, "topics", ()) else response
    return error_code(part.error_code or response.error_code)


def ask(epoch: int = 5, last: tuple[int, int] = (0, 0), source: int = 2) -> VoteRequest:
    asking = ReplicaKey(source, directory(source))
    return vote_request(PARTITION, asking, ME, epoch, LastRecord(*last), pre_vote=False)


# -- requests that cannot be meant -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    [ask(), begin_request(PARTITION, ME, Standing(5, 2)), end_request(PARTITION, Standing(5, 2), ())],
    ids=lambda whole: type(whole).__name__,
)
def test_a_request_about_another_partition_or_about_two_is_refused(whole: Any) -> None:
    two = type(whole)(topics=[*whole.topics, *whole.topics])
    whole.topics[0].partitions[0].partition_index = 7
    election = voter()

    assert [error_of(election, each) for each in (whole, two)] == [ErrorCode.INVALID_REQUEST] * 2
    assert election.leader_epoch == 0


@pytest.mark.parametrize(
    "request_",
    [ask(last=(0, -1)), ask(last=(-1, 0)), ask(last=(5, 0)), ask(source=-1)],
    ids=["offset", "no epoch", "epoch of its own", "nobody"],
)
def test_a_request_for_a_vote_that_makes_no_sense_is_refused(request_: VoteRequest) -> None:
    assert error_of(voter(), request_) is ErrorCode.INVALID_REQUEST


def test_who_says_that_it_leads_is_believed_once_an_epoch() -> None:
    election = voter()
    found = [
        error_of(election, begin_request(PARTITION, ME, Standing(epoch, leader_id)))
        for leader_id, epoch in ((2, 5), (2, 5), (3, 5), (3, 4), (-1, 5), (1, 6), (3, 6))
    ]

    assert found == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]


def test_a_leader_that_means_another_directory_is_followed_and_told() -> None:
    election = voter()
    code = error_of(election, begin_request(PARTITION, ReplicaKey(1, directory(9)), Standing(5, 2)))

    assert (code, election.leader_epoch) == (ErrorCode.INVALID_VOTER_KEY, 5)


def test_an_end_is_believed_of_the_leader_alone_and_named_successors_of_version_0_count() -> None:
    election = voter()
    KIT.follow(election, 2, epoch=5)
    wrong = error_of(election, end_request(PARTITION, Standing(5, 3), ()))
    request = end_request(PARTITION, Standing(5, 2), (ME,))
    request.topics[0].partitions[0].preferred_candidates = []

    assert (wrong, error_of(election, request)) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
    assert election.role is Role.CANDIDATE


def test_responses_that_say_nothing_of_use_change_nothing() -> None:
    election = voter()
    for key in (52, 53, 54):
        api = ANSWERS[key]
        late = api.topic(topic_name="orders", partitions=[api.partition(error_code=75, leader_id=2, leader_epoch=9)])
        for response in (api.response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID), api.response(topics=[late])):
            election.step(PeerMessage(2, response))
    election.step(PeerMessage(2, FetchlessMessage()))

    assert (election.ready(), election.leader_epoch) == (None, 0)


class FetchlessMessage(Message):
    """A message that no quorum sends."""


def test_who_hears_that_it_leads_an_epoch_it_has_forgotten_votes_for_nobody_in_it() -> None:
    election = voter()
    election.step(FetchEnded(2, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=1, leader_epoch=5))
    (response,) = answers(election, ask(epoch=5))
    part = response.topics[0].partitions[0]

    assert (part.vote_granted, part.leader_id, election.role) == (False, 1, Role.FOLLOWER)


# -- questions and watermarks ------------------------------------------------------------------------------------------


def described(*, topic: str = PARTITION.topic) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(topics=[DescribeTopic(topic_name=topic, partitions=[DescribePartition()])])


def test_a_leader_describes_its_quorum_and_nobody_else_does() -> None:
    election = leader()
    election.follower_fetch(7, -1, 3, 0, 1_000, directory(7))
    (response,) = answers(election, described())
    part = response.topics[0].partitions[0]
    known = [
        [(each.replica_id, each.log_end_offset) for each in all_] for all_ in (part.current_voters, part.observers)
    ]

    assert known == [[(1, 4), (2, 4), (3, 4)], [(7, 3)]]
    assert (part.high_watermark, part.observers[0].last_fetch_timestamp) == (4, 1_000)
    assert error_of(voter(), described()) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_of(election, described(topic="others")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_observer_that_is_silent_is_forgotten() -> None:
    election = leader()
    election.follower_fetch(7, -1, 3, 0, 1_000, directory(7))
    counts = []
    for now_ms in (OBSERVER_MS_MAX + 1_000, OBSERVER_MS_MAX + 1_001):
        election.follower_fetch(2, -1, 4, 0, now_ms, directory(2))
        election.tick(now_ms)
        counts += [len(response.topics[0].partitions[0].observers) for response in answers(election, described())]

    assert counts == [1, 0]


def test_observers_beyond_a_number_are_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.plugins.election_quorum.leadership.OBSERVERS_MAX", 1)
    election = leader()
    for broker_id in (7, 8):
        election.follower_fetch(broker_id, -1, 3, 0, 0, directory(broker_id))
    (response,) = answers(election, described())

    assert [each.replica_id for each in response.topics[0].partitions[0].observers] == [7]


def test_the_low_watermark_is_the_lowest_start_of_a_log_that_lives() -> None:
    brokers = {1: Broker(), 2: Broker(), 3: Broker(is_fenced=True, is_live=False)}
    election = KIT.leading(THREE, brokers=brokers)
    unknown = election.low_watermark(7)
    election.follower_fetch(2, 10, 0, 4, 0)

    assert (unknown, election.low_watermark(7), voter().low_watermark(7)) == (-1, 4, 7)


def test_what_is_older_is_committed_with_the_first_record_of_an_epoch_which_the_leader_has_kept_itself() -> None:
    election = KIT.new_election(directory_id=directory(1), log_end_offset=3, latest_epoch=1)
    election.step(VotersChanged(voters(1, 2, 3), -1))
    KIT.win(election, THREE)
    KIT.drain(election)
    of_followers = [election.follower_fetch(each, -1, 4, 0, 0, directory(each)) for each in (2, 3)]

    assert (of_followers, election.local_append(4)) == ([0, 0], 4), "its own disk is the slowest"


def test_a_fetch_of_an_earlier_process_of_a_broker_does_not_count() -> None:
    election = KIT.leading(THREE, brokers={2: Broker(broker_epoch=10)})
    election.local_append(4)

    assert [election.follower_fetch(2, epoch, 4, 0, 0) for epoch in (9, 10)] == [0, 4]


def test_a_follower_commits_what_its_leader_has_as_far_as_its_log_goes() -> None:
    election = voter(log_end_offset=3)
    KIT.follow(election, 2)
    first = election.leader_high_watermark(9)

    assert (first, election.local_append(7), election.local_append(5), leader().leader_high_watermark(9)) == (
        3,
        7,
        5,
        4,
    )


def test_time_and_resignations_are_no_news_before_there_are_voters() -> None:
    election = KIT.new_election()
    election.step(IsrChangeEnded(IsrChange((1,), 0, 0)))
    election.tick(10**9)
    election.step(LeadershipGivenUp())
    election.step(PeerRefused(2))
    KIT.drain(election)
    election.advance(Ready())

    assert (election.role, tuple(election.isr), election.ready()) == (Role.FOLLOWER, (), None)


def test_where_the_log_names_voters_the_metadata_does_not() -> None:
    election = leader()
    election.step(MetadataChanged(attrs.evolve(THREE, replicas=(4, 5), partition_epoch=1), 1))

    assert tuple(election.isr) == (1, 2, 3)


def test_metadata_that_names_the_same_replicas_again_changes_nothing() -> None:
    election = KIT.leading(THREE)
    election.step(MetadataChanged(attrs.evolve(THREE, partition_epoch=1), 1))

    assert (election.role, election.ready()) == (Role.LEADER, None)


# -- voters ------------------------------------------------------------------------------------------------------------


def update(broker_id: int = 2, life: int = 2, feature: KRaftVersionFeature = FEATURE) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        current_leader_epoch=1,
        voter_id=broker_id,
        voter_directory_id=directory(life),
        listeners=[Listener(name="CONTROLLER", host="two", port=9093)],
        kraft_version_feature=feature,
    )


OLD = KRaftVersionFeature(min_supported_version=0, max_supported_version=0)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (RemoveRaftVoterRequest(voter_id=2), ErrorCode.INVALID_REQUEST),
        (RemoveRaftVoterRequest(voter_id=2, voter_directory_id=directory(9)), ErrorCode.VOTER_NOT_FOUND),
        (update(life=9), ErrorCode.VOTER_NOT_FOUND),
        (update(feature=OLD), ErrorCode.INVALID_REQUEST),
    ],
    ids=["no directory", "another directory", "update of another", "too old"],
)
def test_a_change_of_voters_that_cannot_be_is_refused(request_: Message, code: ErrorCode) -> None:
    assert error_of(leader(), request_) is code


def test_the_last_voter_is_not_removed_and_static_voters_are_fixed() -> None:
    request = RemoveRaftVoterRequest(voter_id=1, voter_directory_id=directory(1))
    static = KIT.leading(THREE)

    assert error_of(leader(voters(1)), request) is ErrorCode.INVALID_REQUEST
    assert error_of(static, request) is ErrorCode.UNSUPPORTED_VERSION


def fixed(*lives: int) -> Election:
    """Return the leader of three voters that the configuration names, whose log ends at 4, committed.

    Args:
        lives: Of brokers 2 and 3, by which their directories are known; 0 for one that does not say it.
    """
    election = KIT.new_election(directory_id=directory(1))
    election.step(MetadataChanged(THREE, 1))
    KIT.win(election, THREE)
    KIT.drain(election)
    election.local_append(4)
    for broker_id, life in zip((2, 3), lives, strict=True):
        election.follower_fetch(broker_id, -1, 4, 0, 0, directory(life) if life else ZERO_ID)
    assert (election.role, election.high_watermark) == (Role.LEADER, 4)
    return election


def without_directories(*broker_ids: int, version_max: int = 1) -> KRaftVoters:
    """What is known of controllers before the log names any."""
    record = voters(*broker_ids)
    for each in record.voters:
        each.voter_directory_id = ZERO_ID
        each.k_raft_version_feature.max_supported_version = version_max
    return record


def test_the_voters_of_the_configuration_are_named_with_the_directories_of_their_fetches() -> None:
    election = fixed(2, 9)
    election.step(PeerMessage(-1, without_directories(1, 2, 3, 4), correlation_id=8))
    (ready,) = KIT.drain(election)
    version, record = ready.append
    assert isinstance(record, KRaftVoters)
    election.step(VotersChanged(record, 5))
    election.local_append(6)
    (concurrent,) = answers(election, without_directories(1, 2, 3))
    before = election.high_watermark
    for broker_id, life in ((2, 2), (3, 9)):
        election.follower_fetch(broker_id, -1, 6, 0, 0, directory(life))
    sent = [message.message for each in KIT.drain(election) for message in each.messages]

    assert version == KRaftVersion(k_raft_version=1)
    assert [(each.voter_id, each.voter_directory_id) for each in record.voters] == [
        (1, directory(1)),
        (2, directory(2)),
        (3, directory(9)),
    ]
    assert concurrent.error_code == 0, "the log names them by now"
    assert (before, election.high_watermark) == (4, 6)
    assert sent == [UpdateFeaturesResponse(error_message=None)]
    assert error_of(election, update(life=7)) is ErrorCode.VOTER_NOT_FOUND


@pytest.mark.parametrize(
    ("lives", "known", "message"),
    [
        (
            (2, 3),
            without_directories(1, 3),
            "Unable to update kraft.version to 1 due to missing voters [1, 3] compared to [1, 2, 3]",
        ),
        (
            (2, 3),
            without_directories(1, 2, 3, version_max=0),
            "Invalid upgrade of kraft.version to 1 because not all of the voters support it",
        ),
        ((2, 0), without_directories(1, 2, 3), "Directory id must be known for all of the voters: "),
    ],
    ids=["one is not registered", "one is too old", "a directory is not known"],
)
def test_voters_of_whom_not_all_is_known_are_not_named(
    lives: tuple[int, int], known: KRaftVoters, message: str
) -> None:
    election = fixed(*lives)
    (response,) = answers(election, known)
    (tried,) = answers(election, TriedVoters(voters=known.voters))

    assert error_code(response.error_code) is ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message.startswith(message)
    assert tried == response, "who only tries is told the same"
    assert election.ready() is None


def test_who_only_tries_to_name_voters_names_nobody() -> None:
    election = fixed(2, 3)
    known = TriedVoters(voters=without_directories(1, 2, 3).voters)
    (tried,) = answers(election, known)
    is_left_alone = election.ready() is None
    (follower,) = answers(voter(), known)

    assert (tried, is_left_alone) == (UpdateFeaturesResponse(error_message=None), True)
    assert error_code(follower.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_voters_whose_naming_was_cut_off_are_those_of_the_configuration_again() -> None:
    election = KIT.new_election(directory_id=directory(2), broker_id=2)
    election.step(MetadataChanged(THREE, 1))
    election.local_append(5)
    election.step(VotersChanged(voters(1, 2), 4))
    named = tuple(election.isr)
    election.step(MetadataChanged(THREE, 1))
    while_it_is_there = tuple(election.isr)
    election.local_append(4)
    election.step(MetadataChanged(THREE, 1))

    assert (named, while_it_is_there, tuple(election.isr)) == ((1, 2), (1, 2), (1, 2, 3))


def test_news_of_a_voter_is_answered_when_it_is_appended() -> None:
    election = leader()
    election.step(PeerMessage(2, update(), correlation_id=8))
    (ready,) = KIT.drain(election)
    (record,) = ready.append
    assert isinstance(record, KRaftVoters)
    election.step(VotersChanged(record, 4))
    sent = [message.message for each in KIT.drain(election) for message in each.messages]

    assert record.voters[1] == KRaftVoter(
        voter_id=2,
        voter_directory_id=directory(2),
        endpoints=[VoterEndpoint(name="CONTROLLER", host="two", port=9093)],
        k_raft_version_feature=KRaftVersionRange(min_supported_version=0, max_supported_version=1),
    )
    assert [type(each).__name__ for each in sent] == ["UpdateRaftVoterResponse"]


def pending_add(election: Election, *, is_waited_for: bool = True) -> KRaftVoters:
    """Ask for broker 7 to be a voter, and return the record that is to be appended."""
    election.follower_fetch(7, -1, 4, 0, 0, directory(7))
    request = AddRaftVoterRequest(
        voter_id=7, voter_directory_id=directory(7), timeout_ms=1_000, ack_when_committed=is_waited_for
    )
    election.step(PeerMessage(-1, request, correlation_id=8))
    (ready,) = KIT.drain(election)
    (record,) = ready.append
    assert isinstance(record, KRaftVoters)
    return record


def codes(election: Election) -> list[int]:
    """Return the codes of what is answered now to whom asked for a change."""
    sent = [message for ready in KIT.drain(election) for message in ready.messages if message.correlation_id == 8]
    return [each.message.error_code for each in sent]  # type: ignore[attr-defined]


def test_a_new_voter_that_nobody_waits_for_is_answered_when_it_is_appended() -> None:
    election = leader()
    election.step(VotersChanged(pending_add(election, is_waited_for=False), 4))

    assert (codes(election), tuple(election.isr)) == ([ErrorCode.NONE], (1, 2, 3, 7))


def test_a_change_that_is_not_committed_in_time_is_answered_so_and_bars_the_next() -> None:
    election = leader()
    election.step(VotersChanged(pending_add(election), 4))
    election.local_append(5)
    for now_ms in (0, 1_000):
        election.tick(now_ms)
    in_time = codes(election)

    assert in_time == [ErrorCode.REQUEST_TIMED_OUT]
    assert error_of(election, update()) is ErrorCode.REQUEST_TIMED_OUT


def test_a_change_of_a_leader_that_leads_no_more_is_answered_so() -> None:
    election = leader()
    pending_add(election)
    election.step(PeerMessage(3, ask(epoch=9, source=3)))

    assert codes(election) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_who_becomes_a_voter_begins_to_wait_and_who_is_none_any_more_stops_standing() -> None:
    election = KIT.new_election(broker_id=4, directory_id=directory(4))
    election.step(VotersChanged(voters(1, 2, 3), 0))
    for now_ms in (0, 9_000):
        election.tick(now_ms)
    before = election.role
    election.step(VotersChanged(voters(1, 2, 3, 4), 1, voters(1, 2, 3)))
    for now_ms in (10_000, 19_000):
        election.tick(now_ms)
    standing = election.role
    election.step(VotersChanged(voters(1, 2, 3), 0))

    assert (before, standing, election.role) == (Role.FOLLOWER, Role.CANDIDATE, Role.FOLLOWER)


def test_what_objects_say_of_themselves() -> None:
    replica: Any = leader()

    assert repr(replica).startswith("<QuorumElection leader in epoch 1, voters 1-AAAAAAAAAAAAAAAAAAAD6Q, 2-")
    assert repr(replica._replica.ballots) == "<Ballots granted [1, 3], refused []>"
    assert (repr(Progress()), str(ReplicaKey(4))) == ("<Progress to -1>", "4")
