"""Voters whose machines lost power, and with it the end of their logs: none of a majority until they have it again."""

from __future__ import annotations

import random

import attrs
import pytest

from odradek.kernel.api import CorruptionError, PartitionState
from odradek.plugins.election_quorum.ballots import State
from odradek.plugins.election_quorum.standing import Standing, decode_standing, encode_standing

from .nodes import Node, Sent

VOTERS = (1, 2, 3)


class Quorum:
    """Three voters of a topic, whose messages arrive at once, but where nobody is."""

    def __init__(self) -> None:
        self.under_way: list[Sent] = []
        self.now_ms = 0
        self.nodes = {each: Node(each, VOTERS, self.under_way.append, source=random.Random(each)) for each in VOTERS}
        for node in self.nodes.values():
            node.start()

    def run(self, duration_ms: int = 20_000) -> None:
        """Let time pass."""
        for _ in range(duration_ms // 50):
            self.now_ms += 50
            for node in self.alive():
                node.tick(self.now_ms)
                node.carry_out()
                node.fetch()
            sent, self.under_way[:] = self.under_way[:], []
            for each in sent:
                if self.nodes[each.target].is_alive:
                    self.nodes[each.target].receive(each)
                    self.nodes[each.target].carry_out()

    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive]

    def leader(self) -> Node | None:
        return next((node for node in self.alive() if node.election.state is State.LEADER), None)

    def written(self) -> Node:
        """Have a leader write some records that all have, and return it."""
        self.run()
        leader = self.leader()
        assert leader is not None
        for value in ("v1", "v2", "v3"):
            leader.append(value)
        leader.flush()
        self.run()
        return leader


def test_the_longest_of_all_logs_leads_when_everybody_lost_power() -> None:
    quorum = Quorum()
    quorum.written()
    for node, kept in zip(quorum.nodes.values(), (1, 3, 2), strict=True):
        node.lose_power(kept)
    for node in quorum.nodes.values():
        node.start()
    quorum.run()
    leader = quorum.leader()

    assert leader is not None
    assert leader.broker_id == 2
    assert [entry.value for entry in leader.log if entry.value.startswith("v")] == ["v1", "v2"]
    assert not any(node.is_doubtful for node in quorum.nodes.values())


def test_nobody_leads_while_one_is_missing_that_may_have_more() -> None:
    quorum = Quorum()
    leader = quorum.written()
    leader.crash()
    for node in quorum.alive():
        node.lose_power(1)
        node.start()
    quorum.run()

    assert quorum.leader() is None

    leader.start()
    quorum.run()

    assert quorum.leader() is leader
    assert not any(node.is_doubtful for node in quorum.nodes.values())


def test_a_doubt_outlives_the_process() -> None:
    quorum = Quorum()
    leader = quorum.written()
    other = next(node for node in quorum.nodes.values() if node is not leader)
    other.lose_power(1)
    other.start()
    other.carry_out()
    other.crash()
    other.start()

    assert other.election.standing.may_have_lost


def test_who_follows_a_leader_has_everything_again() -> None:
    quorum = Quorum()
    leader = quorum.written()
    other = next(node for node in quorum.nodes.values() if node is not leader)
    other.lose_power(1)
    other.start()
    quorum.run()

    assert not other.is_doubtful
    assert other.log == leader.log
    assert other.hard_state is not None
    assert not decode_standing(other.hard_state).may_have_lost


def test_a_late_fetch_of_a_former_process_does_not_count() -> None:
    quorum = Quorum()
    leader = quorum.written()
    others = [node.broker_id for node in quorum.nodes.values() if node is not leader]
    leader.append("v4")
    leader.flush()
    end = len(leader.log)
    election = leader.election
    election.follower_fetch(others[0], 8, end - 1, 0, quorum.now_ms)
    election.follower_fetch(others[1], 5, end - 1, 0, quorum.now_ms)

    assert election.follower_fetch(others[0], 7, end, 0, quorum.now_ms) == end - 1
    assert election.follower_fetch(others[0], 8, end, 0, quorum.now_ms) == end


def test_by_a_log_that_does_not_know_how_new_it_is_nobody_with_an_older_one_leads() -> None:
    quorum = Quorum()
    leader = quorum.written()
    deleted, away = (node for node in quorum.nodes.values() if node is not leader)
    for node in (leader, deleted, away):
        node.crash()
    deleted.knows_epochs = False
    away.flushed = 1
    for node in (deleted, away):
        node.start()
    quorum.run()

    assert quorum.leader() is None

    leader.start()
    quorum.run()

    assert quorum.leader() in (leader, deleted)


def test_a_doubt_is_kept_and_read() -> None:
    standing = Standing(3, 2, may_have_lost=True)

    assert decode_standing(encode_standing(standing)) == standing
    assert b"mayHaveLost" not in encode_standing(Standing(3, 2))
    with pytest.raises(CorruptionError, match="mayHaveLost 'yes'"):
        decode_standing(encode_standing(standing).replace(b"true", b'"yes"'))


# -- while the controller changes who votes ----------------------------------------------------------------------------

SHRINKING = PartitionState(
    -1, 0, 5, (1, 2, 3), (1, 2, 3), removing_replicas=(3,), voters=(1, 2), former_voters=(1, 2, 3), voters_epoch=5
)
"""Broker 3 is to have no vote any more, and nobody was elected by the other two."""
TAKEN_BACK = attrs.evolve(
    SHRINKING, partition_epoch=6, removing_replicas=(), voters=(), former_voters=(1, 2), voters_epoch=6
)


def name(quorum: Quorum, state: PartitionState) -> None:
    """Have the metadata say this of the voters to all of them."""
    for node in quorum.nodes.values():
        node.name(state)


def test_what_former_voters_have_is_not_lost_by_newer_ones_of_whom_one_is_in_doubt() -> None:
    quorum = Quorum()
    lacks, loses, has = (quorum.nodes[each] for each in (1, 2, 3))
    quorum.written()
    lacks.crash()
    quorum.run()
    leader = quorum.leader()
    assert leader is not None
    leader.append("v4")
    leader.flush()
    quorum.run()
    for node in (loses, has):
        node.crash()
    loses.lose_power(len(loses.log) - 2)
    name(quorum, SHRINKING)
    for node in (lacks, loses, has):
        node.start()
    quorum.run()
    led = quorum.leader()
    name(quorum, TAKEN_BACK)
    quorum.run()

    assert led is None
    assert quorum.leader() is has
    assert [entry.value for entry in lacks.log if entry.value.startswith("v")] == ["v1", "v2", "v3", "v4"]


def test_newer_voters_of_whom_all_are_in_doubt_elect_the_longest_log_if_no_former_one_has_more() -> None:
    quorum = Quorum()
    quorum.written()
    name(quorum, SHRINKING)
    for node, kept in zip(quorum.nodes.values(), (1, 3, 2), strict=True):
        node.lose_power(kept)
    for node in quorum.nodes.values():
        node.start()
    quorum.run()
    leader = quorum.leader()

    assert leader is not None
    assert leader is quorum.nodes[2]
    assert [entry.value for entry in leader.log if entry.value.startswith("v")] == ["v1", "v2"]
