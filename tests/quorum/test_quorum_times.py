"""How long elections take in which a controller stands, and its commits."""

from __future__ import annotations

from odradek.kernel.contracts.election import Role
from odradek.kernel.quorum.quorum_times import QuorumTimes
from tests.quorum.quorum_world import Quorum, append, in_quorum


def test_an_election_lasts_from_when_a_controller_stands_until_somebody_leads() -> None:
    times = QuorumTimes()
    for role, leader_id, now_ms in (
        (Role.FOLLOWER, -1, 0),
        (Role.CANDIDATE, -1, 100),
        (Role.FOLLOWER, -1, 120),
        (Role.CANDIDATE, -1, 130),
        (Role.LEADER, 1, 150),
        (Role.FOLLOWER, 2, 900),
        (Role.CANDIDATE, -1, 1000),
        (Role.FOLLOWER, 2, 1010),
    ):
        times.take_role(role, leader_id, now_ms)

    assert (times.elections.count, times.elections.mean, times.elections.max) == (2, 30, 50)


def test_a_leader_knows_how_long_it_stood_and_how_long_its_records_waited() -> None:
    async def main(quorum: Quorum) -> tuple[int, float, int, float]:
        leader = await quorum.settled()
        await append(leader, b"a")
        await append(leader, b"b")
        times = leader.times
        return times.elections.count, times.elections.max, times.commits.count, times.commits.max

    elections, longest_election, commits, longest_commit = in_quorum(main)

    assert (elections, commits) == (1, 2)
    assert longest_election > 0
    assert 0 < longest_commit < 1000
