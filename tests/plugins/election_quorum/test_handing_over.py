"""A leader that is asked to hand over resigns for a voter that has what it has, and for nobody else.

It is asked by an EndQuorumEpoch that names itself as the leader of its epoch, and who is to stand first.
"""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.api import Election, ErrorCode, PeerMessage, Role
from odradek.plugins.election_quorum.messages import end_request
from odradek.plugins.election_quorum.standing import Standing
from odradek.plugins.election_quorum.voters import ReplicaKey
from odradek.testing.contracts.election import PARTITION
from odradek.testing.contracts.election_base import THREE
from tests.plugins.election_quorum.test_election_quorum import TestQuorumElection as Kit

KIT = Kit()
FETCH_MS = 2000


def leader() -> Election:
    """Return the leader of three, whom broker 2 has caught up with and broker 3 has not."""
    election = KIT.new_election()
    KIT.lead(election, THREE)
    election.local_append(4)
    election.follower_fetch(3, -1, 1, 0, 100)
    election.follower_fetch(2, -1, 4, 0, 100)
    KIT.drain(election)
    assert election.role is Role.LEADER
    return election


def told(election: Election, leader_id: int, epoch: int, *successors: int) -> tuple[int, list[list[int]]]:
    """Return what is answered to an EndQuorumEpoch, and whom the leader's own name as successors then."""
    request = end_request(PARTITION, Standing(epoch, leader_id), [ReplicaKey(each) for each in successors])
    election.step(PeerMessage(9, request, correlation_id=8))
    messages: list[Any] = [each for ready in KIT.drain(election) for each in ready.messages]
    ((answer,),) = (each.message.topics[0].partitions for each in messages if each.correlation_id == 8)
    named = [each.message.topics[0].partitions[0] for each in messages if each.correlation_id != 8]
    return answer.error_code, [part.preferred_successors for part in named]


def test_a_leader_hands_over_to_a_voter_that_has_caught_up() -> None:
    election = leader()

    assert told(election, 1, election.leader_epoch, 2) == (ErrorCode.NONE, [[2, 3], [2, 3]])
    assert election.role is not Role.LEADER


def test_whoever_is_named_stands_before_one_that_has_more() -> None:
    election = leader()
    election.follower_fetch(3, -1, 4, 0, 110)
    election.local_append(5)
    election.follower_fetch(2, -1, 5, 0, 120)

    assert told(election, 1, election.leader_epoch, 3) == (ErrorCode.NONE, [[3, 2], [3, 2]])


@pytest.mark.parametrize("successor", [3, 4, 1], ids=["lacks records", "no voter", "itself"])
def test_a_leader_stays_where_nobody_would_vote_for_who_is_named(successor: int) -> None:
    election = leader()

    assert told(election, 1, election.leader_epoch, successor) == (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, [])
    assert election.role is Role.LEADER


def test_a_voter_that_was_there_long_ago_may_not_be_there_any_more() -> None:
    election = leader()
    election.follower_fetch(3, -1, 4, 0, 101 + FETCH_MS)

    assert told(election, 1, election.leader_epoch, 2)[0] == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("leader_id", "epochs_later", "successors", "code"),
    [
        pytest.param(1, -1, (2,), ErrorCode.FENCED_LEADER_EPOCH, id="epoch before"),
        pytest.param(1, 0, (), ErrorCode.INVALID_REQUEST, id="nobody is named"),
        pytest.param(2, 0, (2,), ErrorCode.INVALID_REQUEST, id="of another leader"),
    ],
)
def test_what_does_not_mean_this_leader_in_this_epoch_changes_nothing(
    leader_id: int, epochs_later: int, successors: tuple[int, ...], code: ErrorCode
) -> None:
    election = leader()
    epoch = election.leader_epoch

    assert told(election, leader_id, epoch + epochs_later, *successors)[0] == code
    assert (election.role, election.leader_epoch) == (Role.LEADER, epoch)
