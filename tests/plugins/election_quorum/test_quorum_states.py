"""Who gets a vote of a replica, in each state that it can be in: KRaft's table, and what no state believes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from odradek.kernel.api import Election, ErrorCode, FetchEnded, LeadershipGivenUp, Message, PeerMessage
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.messages import LastRecord, answer, begin_request, end_request, vote_request
from odradek.plugins.election_quorum.standing import Standing
from odradek.plugins.election_quorum.timing import FETCH_TIMEOUT_KEY, Timeouts
from odradek.plugins.election_quorum.voters import ReplicaKey
from odradek.testing.contracts.election import PARTITION
from odradek.testing.contracts.election_voting import directory

from .test_quorum_inputs import KIT, ME, answers, error_of, voter

ASKING = ReplicaKey(3, directory(3))
EPOCH = 7
LATE_MS = 100_000
LONG, SHORT = LastRecord(5, 4), LastRecord(5, 3)
"""Where the log of who asks ends; that of who is asked ends at 4, in epoch 5."""


def told_of(epoch: int) -> Election:
    """A voter that has heard of an epoch, and of no leader in it."""
    election = voter(log_end_offset=4, latest_epoch=5)
    answers(election, vote(epoch, SHORT))
    return election


def vote(epoch: int, last: LastRecord, *, pre_vote: bool = False, asking: ReplicaKey = ASKING) -> Message:
    return vote_request(PARTITION, asking, ME, epoch, last, pre_vote=pre_vote)


def granted(election: Election) -> Election:
    """Let broker 2 give it what it has asked for last."""
    standing = Standing(election.leader_epoch)
    election.step(PeerMessage(2, answer(VoteRequest(), PARTITION, standing, ErrorCode.NONE, vote_granted=True)))
    KIT.drain(election)
    return election


def late(election: Election) -> Election:
    """Let all time-outs be over."""
    for now_ms in (0, LATE_MS):
        election.tick(now_ms)
    KIT.drain(election)
    return election


def unattached() -> Election:
    return told_of(EPOCH)


def voted() -> Election:
    election = told_of(EPOCH)
    answers(election, vote(EPOCH, LONG, asking=ReplicaKey(2, directory(2))))
    return election


def prospective() -> Election:
    return late(told_of(EPOCH))


def prospective_with_leader() -> Election:
    return late(follower())


def candidate() -> Election:
    return granted(late(told_of(EPOCH - 1)))


def leader() -> Election:
    return granted(candidate())


def follower() -> Election:
    election = told_of(EPOCH - 1)
    KIT.follow(election, 2, epoch=EPOCH)
    return election


def follower_that_has_fetched() -> Election:
    election = follower()
    election.step(FetchEnded(2, leader_id=2, leader_epoch=EPOCH))
    return election


def resigned() -> Election:
    election = leader()
    election.step(LeadershipGivenUp())
    KIT.drain(election)
    return election


STATES: dict[Callable[[], Election], tuple[str, str, str]] = {
    #                           vote  pre-vote
    unattached: ("unattached", "yes", "yes"),
    voted: ("voted", "no", "yes"),
    prospective: ("prospective", "yes", "yes"),
    prospective_with_leader: ("prospective", "no", "yes"),
    candidate: ("candidate", "no", "yes"),
    leader: ("leader", "no", "no"),
    follower: ("follower", "no", "yes"),
    follower_that_has_fetched: ("follower", "no", "no"),
    resigned: ("resigned", "no", "yes"),
}
"""What each is, and whether it gives its vote, and a pre-vote, in its own epoch, to a log as long as its own."""

STATE = pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)


def outcome(state: Callable[[], Election], request: Message) -> str:
    """Return what a replica in a state answers."""
    (response,) = answers(state(), request, source=3)
    part = response.topics[0].partitions[0]
    if part.error_code:
        return error_code(part.error_code).name
    return "yes" if part.vote_granted else "no"


def standing_of(election: Election) -> tuple[str, Standing]:
    assert isinstance(election, QuorumElection)
    return election.state.value, election.standing


@STATE
def test_a_vote_is_given_as_the_state_has_it(state: Callable[[], Election]) -> None:
    name, vote_given, pre_vote_given = STATES[state]
    kinds = (False, True)

    assert (standing_of(state())[0], state().leader_epoch) == (name, EPOCH)
    assert [outcome(state, vote(EPOCH, LONG, pre_vote=kind)) for kind in kinds] == [vote_given, pre_vote_given]
    assert [outcome(state, vote(EPOCH, SHORT, pre_vote=kind)) for kind in kinds] == ["no", "no"]
    assert [outcome(state, vote(EPOCH - 1, LONG, pre_vote=kind)) for kind in kinds] == ["FENCED_LEADER_EPOCH"] * 2
    assert [outcome(state, vote(EPOCH + 1, LONG, pre_vote=kind)) for kind in kinds] == ["yes", "yes"]
    assert [outcome(state, vote(EPOCH + 1, SHORT, pre_vote=kind)) for kind in kinds] == ["no", "no"]


@STATE
def test_a_pre_vote_and_what_is_of_an_earlier_epoch_leave_a_state_as_it_is(state: Callable[[], Election]) -> None:
    election = state()
    before = standing_of(election)
    found = [
        error_of(election, each)
        for each in (
            begin_request(PARTITION, ME, Standing(EPOCH - 1, 3)),
            end_request(PARTITION, Standing(EPOCH - 1, 3), (ME,)),
        )
    ]
    answers(election, vote(EPOCH, LONG, pre_vote=True), source=3)
    answers(election, vote(EPOCH - 1, LONG), source=3)

    assert found == [ErrorCode.FENCED_LEADER_EPOCH] * 2
    assert standing_of(election) == before


@STATE
def test_the_leader_of_a_later_epoch_is_followed_and_a_later_epoch_without_one_is_waited_in(
    state: Callable[[], Election],
) -> None:
    followed, waiting = state(), state()
    code = error_of(followed, begin_request(PARTITION, ME, Standing(EPOCH + 2, 3)))
    answers(waiting, vote(EPOCH + 2, SHORT), source=3)

    assert (code, standing_of(followed)) == (ErrorCode.NONE, ("follower", Standing(EPOCH + 2, 3)))
    name, standing = standing_of(waiting)
    assert (name, standing) == ("unattached", Standing(EPOCH + 2))


@STATE
def test_a_leader_that_ends_its_epoch_is_succeeded_at_once_by_whoever_may_follow_it(
    state: Callable[[], Election],
) -> None:
    election = state()
    code = error_of(election, end_request(PARTITION, Standing(EPOCH, 2), (ME,)))
    name, standing = standing_of(election)

    if state in (leader, resigned):
        assert (code, name, standing.leader_id) == (ErrorCode.INVALID_REQUEST, STATES[state][0], 1)
    else:
        assert (code, name, standing.leader_id) == (ErrorCode.NONE, "prospective", 2)


def test_who_has_resigned_waits_for_a_later_epoch_and_stands_there() -> None:
    election = resigned()
    for now_ms in (LATE_MS, 2 * LATE_MS):
        election.tick(now_ms)
    waits = standing_of(election)
    for now_ms in (2 * LATE_MS, 3 * LATE_MS):
        election.tick(now_ms)

    assert waits == ("unattached", Standing(EPOCH + 1))
    assert standing_of(election)[0] == "prospective"


def test_who_has_resigned_tells_it_again_to_those_who_have_not_answered() -> None:
    election = leader()
    election.step(LeadershipGivenUp())
    told = [sent_to(election)]
    election.step(PeerMessage(3, answer(end_request(PARTITION, Standing(EPOCH, 1), ()), PARTITION, Standing(EPOCH, 1))))
    for now_ms in (LATE_MS, LATE_MS + 300):
        election.tick(now_ms)
    told.append(sent_to(election))

    assert told == [[2, 3], [2]]


def sent_to(election: Election) -> list[int]:
    """Return to whom is sent what is to be sent."""
    return [message.broker_id for ready in KIT.drain(election) for message in ready.messages]


@pytest.mark.parametrize(("fetch_ms", "step_ms"), [(2_000, 50), (200, 20)])
def test_voters_whose_leader_is_silent_stand_one_after_the_other(fetch_ms: int, step_ms: int) -> None:
    config = BrokerConfig(Registry.of(), static={FETCH_TIMEOUT_KEY: Setting(str(fetch_ms), "test")})

    assert Timeouts(config, random.Random(0)).silent_step_ms == step_ms
