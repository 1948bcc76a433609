"""Changes of voters that meet each other or the end of a lead, and what voters that come and go make of commitment."""

from __future__ import annotations

import pytest

from odradek.kernel.api import (
    Election,
    ErrorCode,
    KRaftVoters,
    LeadershipGivenUp,
    Message,
    PeerMessage,
    Role,
    VotersChanged,
)
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.messages.api_82_update_raft_voter import UpdateRaftVoterRequest
from odradek.testing.contracts.election_base import THREE
from odradek.testing.contracts.election_voting import directory, voters

from .test_quorum_inputs import (
    KIT,
    answers,
    ask,
    codes,
    described,
    error_of,
    fixed,
    leader,
    update,
)

FETCH_MS, CHECK_MS = 2_000, 3_000
"""A fetch time-out, and how long a leader leads unheard."""


def fetch(election: Election, broker_id: int, offset: int, now_ms: int = 0) -> int:
    return election.follower_fetch(broker_id, -1, offset, 0, now_ms, directory(broker_id))


def add(broker_id: int = 7) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(voter_id=broker_id, voter_directory_id=directory(broker_id), timeout_ms=1_000)


def remove(broker_id: int = 3) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(voter_id=broker_id, voter_directory_id=directory(broker_id))


def update_in(epoch: int) -> UpdateRaftVoterRequest:
    request = update()
    request.current_leader_epoch = epoch
    return request


CHANGES = pytest.mark.parametrize("asked", [add(8), remove(2), update()], ids=["add", "remove", "update"])


def begin(election: Election, request: Message) -> tuple[KRaftVoters, ...]:
    """Ask for a change, and return what is to be appended."""
    if isinstance(request, AddRaftVoterRequest):
        fetch(election, request.voter_id, 4)
    election.step(PeerMessage(-1, request, correlation_id=8))
    appended = [record for ready in KIT.drain(election) for record in ready.append]
    return tuple(record for record in appended if isinstance(record, KRaftVoters))


@CHANGES
@pytest.mark.parametrize("pending", [add(), remove(), update()], ids=["add", "remove", "update"])
@pytest.mark.parametrize("is_appended", [False, True], ids=["asked", "appended"])
def test_a_change_waits_for_the_one_before_whatever_both_are(
    asked: Message, pending: Message, is_appended: bool
) -> None:
    election = leader()
    fetch(election, 8, 4)
    (record,) = begin(election, pending)
    if is_appended:
        election.step(VotersChanged(record, 4, voters(1, 2, 3)))
        election.local_append(5)
        KIT.drain(election)
    barred = error_of(election, asked)
    election.step(VotersChanged(record, 4, voters(1, 2, 3)))
    election.local_append(5)
    for voter in record.voters[1:]:
        fetch(election, voter.voter_id, 5)
    KIT.drain(election)

    assert barred is ErrorCode.REQUEST_TIMED_OUT
    assert election.high_watermark == 5
    assert error_of_next(election, asked) is not ErrorCode.REQUEST_TIMED_OUT


def error_of_next(election: Election, request: Message) -> ErrorCode:
    """Return the code of a refusal, NONE where a change begins."""
    if isinstance(request, AddRaftVoterRequest):
        fetch(election, request.voter_id, 5)
    found = answers(election, request)
    return error_code(found[0].error_code) if found else ErrorCode.NONE


@CHANGES
def test_nothing_changes_before_the_leader_has_committed_in_its_epoch(asked: Message) -> None:
    election = KIT.new_election(directory_id=directory(1))
    election.step(VotersChanged(voters(1, 2, 3), 0))
    KIT.win(election, THREE)
    KIT.drain(election)
    election.local_append(4)
    fetch(election, 8, 4)

    assert (election.role, election.high_watermark) == (Role.LEADER, 0)
    assert error_of(election, asked) is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("asked", [add(8), remove(2), update()], ids=["add", "remove", "update"])
def test_voters_of_the_configuration_are_changed_by_nobody(asked: Message) -> None:
    election = fixed(2, 3)
    fetch(election, 8, 4)

    assert error_of(election, asked) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("pending", [add(), remove()], ids=["add", "remove"])
@pytest.mark.parametrize("ends", ["resigned", "unseated"])
def test_a_change_is_answered_as_undecided_when_the_lead_ends_before_it_is_committed(
    pending: Message, ends: str
) -> None:
    election = leader()
    (record,) = begin(election, pending)
    election.step(VotersChanged(record, 4, voters(1, 2, 3)))
    election.local_append(5)
    election.step(LeadershipGivenUp() if ends == "resigned" else PeerMessage(2, ask(epoch=9)))

    assert codes(election) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_the_removal_of_a_voter_that_is_not_committed_in_time_is_answered_so() -> None:
    election = leader()
    (record,) = begin(election, remove())
    election.step(VotersChanged(record, 4, voters(1, 2, 3)))
    election.local_append(5)
    for now_ms in (0, FETCH_MS):
        fetch(election, 2, 4, now_ms)
        election.tick(now_ms)

    assert codes(election) == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_news_of_a_voter_is_for_the_leader_of_the_epoch_that_it_names(epoch: int, code: ErrorCode) -> None:
    election = leader()
    request = update_in(epoch)

    assert (begin(election, request) != ()) is (code is ErrorCode.NONE)
    assert codes_of(election, request) == [code] * (code is not ErrorCode.NONE)


def codes_of(election: Election, request: Message) -> list[ErrorCode]:
    """Return the codes with which a request is refused; none where a change is under way already."""
    codes_ = [error_code(each.error_code) for each in answers(election, request)]
    return [each for each in codes_ if each is not ErrorCode.REQUEST_TIMED_OUT]


# ------------------------------------------------------------------------------------------------------- what counts


def test_a_new_voter_that_lags_takes_nothing_back_and_is_waited_for_from_then_on() -> None:
    election = leader()
    before = election.high_watermark
    election.step(VotersChanged(voters(1, 2, 3, 7), 4, voters(1, 2, 3)))
    election.local_append(5)
    with_two = [fetch(election, 2, 5), election.high_watermark]
    with_three = fetch(election, 3, 5)

    assert (before, with_two, with_three) == (4, [4, 4], 5)


def test_what_a_majority_of_fewer_voters_has_is_committed_when_one_is_removed() -> None:
    election = leader(voters(1, 2, 3, 4))
    election.local_append(6)
    fetch(election, 2, 6)
    before = election.high_watermark
    election.step(VotersChanged(voters(1, 2, 3), 5, voters(1, 2, 3, 4)))
    KIT.drain(election)

    assert (before, election.high_watermark) == (4, 6)


def test_a_voter_that_fetches_from_further_back_is_told_so_and_nothing_is_taken_back() -> None:
    election = leader()
    went_back = [fetch(election, 2, 1), fetch(election, 3, 0)]
    (response,) = answers(election, described())
    ends = [each.log_end_offset for each in response.topics[0].partitions[0].current_voters]
    election.local_append(5)

    assert (went_back, ends) == ([4, 4], [4, 1, 0])
    assert [fetch(election, 2, 4), fetch(election, 2, 5)] == [4, 5]


# -------------------------------------------------------------------------------------------------- who is heard of


def led_until(election: Election, now_ms: int) -> bool:
    election.tick(now_ms)
    KIT.drain(election)
    return election.role is Role.LEADER


def test_the_only_voter_leads_on_however_long_it_hears_of_nobody() -> None:
    election = leader(voters(1))

    assert all(led_until(election, now_ms) for now_ms in (0, CHECK_MS, 100 * CHECK_MS))


@pytest.mark.parametrize(("heard", "leads"), [((2,), False), ((2, 3), True), ((2, 7), True)])
def test_of_more_voters_a_leader_has_to_hear_more(heard: tuple[int, ...], leads: bool) -> None:
    election = leader()
    election.step(VotersChanged(voters(1, 2, 3, 7), 4, voters(1, 2, 3)))
    assert led_until(election, 0)
    for broker_id in heard:
        fetch(election, broker_id, 4, CHECK_MS - 1)
    assert led_until(election, CHECK_MS - 1)

    assert led_until(election, CHECK_MS + 1) is leads


def test_once_a_voter_is_removed_a_leader_has_to_hear_fewer() -> None:
    election = leader(voters(1, 2, 3, 4))
    election.step(VotersChanged(voters(1, 2, 3), 4, voters(1, 2, 3, 4)))
    assert led_until(election, 0)
    fetch(election, 2, 4, CHECK_MS - 1)

    assert led_until(election, CHECK_MS + 1)
