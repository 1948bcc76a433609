"""A voter that is left alone while it is calm, and told what it was not, is what it would have been if told at once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.kernel.api import Election, FetchEnded, PeerMessage, Role
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.messages import begin_request
from odradek.plugins.election_quorum.standing import Standing
from odradek.testing.contracts.election import PARTITION
from odradek.testing.contracts.election_voting import directory

from .test_quorum_inputs import ME, ask, leader, voter

FETCH_MS, BEGIN_MS, CHECK_MS = 2000, 1000, 3000
HEARD_MS = 100
ENDS = 4


def told(election: Election) -> list[Any]:
    """Return what an election wants done now, and have it done."""
    found = []
    while (ready := election.ready()) is not None:
        found.append(ready)
        election.advance(ready)
    return found


def follower() -> QuorumElection:
    """Return a follower of voter 2 that was answered by it."""
    election = voter()
    election.tick(0)
    election.step(PeerMessage(2, begin_request(PARTITION, ME, Standing(5, 2))))
    election.step(FetchEnded(2))
    told(election)
    election.tick(HEARD_MS)
    return cast("QuorumElection", election)


def leading() -> QuorumElection:
    """Return a leader whom both others have followed."""
    election = leader()
    fetched(election, HEARD_MS)
    election.tick(HEARD_MS)
    told(election)
    return cast("QuorumElection", election)


def fetched(election: Election, now_ms: int) -> None:
    """Have both others fetch, and say nothing new."""
    for each, known in ((2, 0), (3, 1)):
        election.follower_fetch(each, -1, ENDS, 0, now_ms + known, directory(each))


def test_it_says_how_long_it_may_be_left_alone() -> None:
    assert (follower().calm_ms(), leading().calm_ms()) == (FETCH_MS, BEGIN_MS)


def test_who_waits_for_somebody_or_has_something_to_do_may_not_be_left_alone() -> None:
    alone = cast("QuorumElection", voter())
    asked = follower()
    asked.step(PeerMessage(3, ask(epoch=9, source=3), correlation_id=8))

    assert (alone.calm_ms(), asked.calm_ms()) == (0, 0)


@pytest.mark.parametrize("last_ms", range(HEARD_MS, 20_000, 3_333))
def test_a_follower_waits_from_the_last_fetch_that_was_answered(last_ms: int) -> None:
    lazily, at_once = follower(), follower()
    heard_ms = HEARD_MS
    for heard_ms in range(HEARD_MS, last_ms + 1, 25):
        at_once.step(FetchEnded(2))
        at_once.tick(heard_ms)
    lazily.step(FetchEnded(2))
    lazily.tick(heard_ms)
    for election in (lazily, at_once):
        election.tick(heard_ms + FETCH_MS - 1)
    before = (told(lazily), told(at_once))
    for election in (lazily, at_once):
        election.tick(heard_ms + FETCH_MS)

    assert before == ([], [])
    assert lazily.state is at_once.state
    assert [each.messages for each in told(lazily)] == [each.messages for each in told(at_once)] != []


@pytest.mark.parametrize("last_ms", range(HEARD_MS, 20_000, 3_333))
def test_a_leader_resigns_from_the_last_fetch_of_a_majority(last_ms: int) -> None:
    lazily, at_once = leading(), leading()
    heard_ms = HEARD_MS
    for heard_ms in range(HEARD_MS, last_ms + 1, 25):
        fetched(at_once, heard_ms)
        at_once.tick(heard_ms)
    fetched(lazily, heard_ms)
    lazily.tick(heard_ms)
    for election in (lazily, at_once):
        for now_ms in range(heard_ms, heard_ms + CHECK_MS, 25):
            election.tick(now_ms)
    before = (told(lazily), told(at_once))
    for election in (lazily, at_once):
        election.tick(heard_ms + CHECK_MS)

    assert {message for each in before[0] for message in map(repr, each.messages)} == {
        message for each in before[1] for message in map(repr, each.messages)
    }
    assert lazily.state is at_once.state
    assert lazily.leader_epoch == at_once.leader_epoch
    assert (lazily.role, at_once.role) == (Role.FOLLOWER, Role.FOLLOWER)
