"""Voters that come and go, on real replicas and virtual time: moved, grown, shrunk, cancelled, and after lost disks."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.controller.voter_steps import voting
from odradek.kernel.errors import ErrorCode
from tests.controller.controller_requests import list_reassignments, reassign_partitions

from .small_cluster import Cluster, Node, running
from .test_voting_replicas import client_values, committed, led, run


def reassign(cluster: Cluster, *replicas: int) -> None:
    """Ask for other replicas; for none of them: as before."""
    (told,) = cluster.decide(reassign_partitions(("t", 0, list(replicas) or None))).responses
    (answer,) = told.partitions

    assert answer.error_code == ErrorCode.NONE, answer.error_message


def is_done(cluster: Cluster, *replicas: int) -> bool:
    """Return whether these are the replicas, all of them voters for good."""
    state = cluster.state
    is_settled = not (state.adding_replicas or state.removing_replicas or state.voters or state.former_voters)
    return is_settled and set(state.replicas) == set(replicas)


async def moved(cluster: Cluster, *replicas: int) -> Node:
    """Wait until a reassignment is done, and one of the replicas leads."""
    await cluster.wait(f"the replicas are {replicas}", lambda: is_done(cluster, *replicas))
    leader = await led(cluster, *replicas)

    assert set(leader.replica().election.isr) == set(replicas)
    return leader


async def show(cluster: Cluster, *values: bytes) -> None:
    """Wait until every replica shows these records."""
    nodes = [cluster.nodes[each] for each in cluster.state.replicas]
    await cluster.wait("all have them", lambda: all(client_values(node) == list(values) for node in nodes))


@pytest.mark.parametrize(
    "target",
    [
        pytest.param((1, 2, 3, 4), id="grown"),
        pytest.param((1, 2), id="shrunk"),
        pytest.param((2,), id="to one"),
        pytest.param((2, 3, 4), id="one moved"),
        pytest.param((4, 5), id="moved and shrunk"),
        pytest.param((4, 5, 3, 2, 1), id="to five"),
    ],
)
def test_voters_become_others_and_what_was_acknowledged_stays(tmp_path: Path, target: tuple[int, ...]) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            reassign(cluster, *target)
            leader = await moved(cluster, *target)
            await committed(cluster, leader, b"v3")
            await show(cluster, b"v1", b"v2", b"v3")

            assert cluster.state.replicas == target
            for number in {1, 2, 3} - set(target):
                assert not cluster.nodes[number].replicas.topics["t"].partitions

    run(body)


def test_voters_of_an_idle_topic_become_others_though_all_its_records_were_deleted(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            end = leader.replica().log.log_end_offset
            leader.replica().log.advance_log_start(end)
            reassign(cluster, leader.broker_id, 4, 5)
            leader = await moved(cluster, leader.broker_id, 4, 5)
            await committed(cluster, leader, b"v3")
            await show(cluster, b"v3")

            assert all(cluster.nodes[number].replica().log.log_start_offset >= end for number in (4, 5))

    run(body)


def test_three_voters_become_three_others_while_records_come(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2, 3, election="quorum", brokers=6) as cluster:
            await led(cluster, 1, 2, 3)
            reassign(cluster, 4, 5, 6)
            sets: list[tuple[int, ...]] = [(1, 2, 3)]
            written: list[bytes] = []
            while not is_done(cluster, 4, 5, 6):
                await cluster.stirred()
                now = tuple(sorted(voting(cluster.state)))
                if now != sets[-1]:
                    sets.append(now)
                leader = cluster.nodes.get(cluster.state.leader)
                if leader is not None and leader.replicas.topics["t"].partitions and leader.replica().is_leader:
                    value = b"v%d" % len(written)
                    end = leader.produce(value)
                    for _ in range(20):
                        await cluster.stirred()
                        if leader.replica().offline_reason or not leader.replica().is_leader:
                            break
                        if leader.replica().high_watermark >= end:
                            written.append(value)
                            break
            leader = await moved(cluster, 4, 5, 6)

            assert [len({*one} ^ {*other}) for one, other in pairwise(sets)] == [1] * 6
            assert set(written) <= set(client_values(leader))
            assert written

    run(body)


def listed_in(cluster: Cluster) -> list[Any]:
    """Return what ListPartitionReassignments tells, by topic."""
    return list(cluster.decide(list_reassignments(None)).topics)


def test_a_voter_that_was_to_go_and_is_not_is_shown_as_coming_until_it_votes_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await committed(cluster, await led(cluster, 1, 2, 3), b"v1")
            reassign(cluster, 1)
            await cluster.wait("one alone votes", lambda: len(voting(cluster.state)) == 1)
            reassign(cluster)
            shown = []
            while not is_done(cluster, 1, 2, 3):
                (listed,) = listed_in(cluster)
                (moving,) = listed.partitions
                returning = {1, 2, 3} - {*voting(cluster.state)}

                assert (set(moving.adding_replicas), moving.removing_replicas) == (returning, [])
                shown.append(len(returning))
                reassign(cluster)  # a second time changes nothing
                await cluster.stirred()

            assert shown[0] == 1
            assert not listed_in(cluster)

    run(body)


def test_what_is_cancelled_in_the_middle_becomes_again_what_it_was(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            reassign(cluster, 4, 5)
            await cluster.wait("4 votes, and one does no more", lambda: len({*voting(cluster.state)} - {1, 2, 3}) == 1)
            reassign(cluster)
            leader = await moved(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v2")
            await show(cluster, b"v1", b"v2")

    run(body)


def test_where_too_many_die_as_a_voter_comes_nobody_is_elected_until_that_is_cancelled(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=4) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            reassign(cluster, 1, 2, 3, 4)
            await cluster.wait("4 is to vote", lambda: bool(cluster.state.former_voters))
            dead = {4, next(each for each in (1, 2, 3) if each != leader.broker_id)}
            alive = {1, 2, 3} - dead
            for each in dead:
                cluster.cut(each, *(other for other in range(5) if other != each))
            await cluster.wait("its leader stands anew", lambda: not leader.replica().is_leader)
            for _ in range(400):
                await cluster.stirred()

                assert not any(cluster.nodes[each].replica().is_leader for each in alive)
            reassign(cluster)
            leader = await led(cluster, *alive)
            await committed(cluster, leader, b"v2")
            cluster.heal()
            await moved(cluster, 1, 2, 3)
            await show(cluster, b"v1", b"v2")

    run(body)


def test_a_new_replica_has_no_vote_before_it_has_caught_up(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=4) as cluster:
            leader = await led(cluster, 1, 2, 3)
            cluster.cut(4, 1, 2, 3)
            reassign(cluster, 1, 2, 3, 4)
            epoch = cluster.state.leader_epoch
            for _ in range(100):
                await cluster.stirred()

            assert set(voting(cluster.state)) == {1, 2, 3}
            assert (cluster.state.leader, cluster.state.leader_epoch) == (leader.broker_id, epoch)
            await committed(cluster, leader, b"v1")
            cluster.heal()
            await moved(cluster, 1, 2, 3, 4)
            await show(cluster, b"v1")

    run(body)


async def at_each_step(cluster: Cluster, accident: Callable[[int], Awaitable[None]], steps: int) -> None:
    """Move the partition from 1, 2, 3 to 3, 4, 5, with an accident after some of the changes that the controller makes.

    Others are made meanwhile; `steps` says how many are not, at the least.
    """
    await committed(cluster, await led(cluster, 1, 2, 3), b"v1")
    reassign(cluster, 3, 4, 5)
    epochs: set[int] = set()
    for _ in range(20_000):
        if is_done(cluster, 3, 4, 5):
            break
        state = cluster.state
        if state.voters_epoch not in epochs:
            epochs.add(state.voters_epoch)
            await accident(state.leader)
        await cluster.stirred()
    leader = await moved(cluster, 3, 4, 5)
    await committed(cluster, leader, b"v2")
    await show(cluster, b"v1", b"v2")

    assert len(epochs) > steps  # the first is before them


def test_a_leader_that_dies_at_any_step_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:

            async def kill(leader_id: int) -> None:
                if leader_id > 0:
                    await cluster.restart(leader_id)

            await at_each_step(cluster, kill, 4)

    run(body)


def test_a_leader_that_nobody_reaches_at_any_step_acknowledges_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:

            async def cut(leader_id: int) -> None:
                if leader_id < 0:
                    return
                alone = cluster.nodes[leader_id].replica()
                others = [each for each in range(6) if each != leader_id]
                cluster.cut(leader_id, *others)
                high_watermark = alone.high_watermark
                if alone.is_leader and len(alone.election.isr) > 1:
                    cluster.nodes[leader_id].produce(b"lost")
                for _ in range(40):  # voters elect another meanwhile, and not all steps are made
                    await cluster.stirred()

                assert len(alone.election.isr) == 1 or alone.high_watermark == high_watermark
                cluster.heal()

            await at_each_step(cluster, cut, 4)

    run(body)


def test_metadata_that_some_hear_late_changes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=5) as cluster:
            late = [1, 2, 3, 4, 5]

            async def deafen(_leader_id: int) -> None:
                cluster.deaf = {late[0], late[1]}
                late.append(late.pop(0))
                for _ in range(40):
                    await cluster.stirred()
                cluster.heal()

            await at_each_step(cluster, deafen, 2)

    run(body)


# -- disks that were replaced ------------------------------------------------------------------------------------------


async def replace_disk(cluster: Cluster, number: int) -> Node:
    """Give a broker an empty disk, with another id than the one that the metadata has for its replica."""

    def empty(directory: Path) -> None:
        shutil.rmtree(directory / "logs0")

    fresh = await cluster.restart(number, change=empty)
    assert "t" not in fresh.replicas.topics or not fresh.replicas.topics["t"].partitions
    return fresh


def test_a_voter_whose_disk_was_replaced_comes_back_as_a_new_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            gone, kept = (node.broker_id for node in cluster.nodes.values() if node is not leader)
            fresh = await replace_disk(cluster, gone)
            reassign(cluster, leader.broker_id, kept)
            await moved(cluster, leader.broker_id, kept)
            fresh.home = fresh.replicas.engines[cluster.storage].log_dirs()[0].directory_id
            reassign(cluster, leader.broker_id, kept, gone)
            leader = await moved(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v2")
            await show(cluster, b"v1", b"v2")

    run(body)


def test_two_of_three_whose_disks_were_replaced_elect_nobody_whatever_is_asked(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=4) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            one, other = (each for each in (1, 2, 3) if each != leader.broker_id)
            await replace_disk(cluster, one)
            await replace_disk(cluster, other)
            await cluster.wait("nobody leads", lambda: not leader.replica().is_leader)
            for target in [(leader.broker_id,), (leader.broker_id, 4), (one, other), (4,), ()]:
                reassign(cluster, *target)
                for _ in range(60):
                    await cluster.stirred()

                    assert not any(
                        replica.is_leader
                        for node in cluster.nodes.values()
                        for replica in node.replicas.topics["t"].partitions.values()
                    )

            assert set(voting(cluster.state)) == {1, 2, 3}
            assert [value for _offset, value in leader.values() if value.startswith(b"v")] == [b"v1"]

    run(body)
