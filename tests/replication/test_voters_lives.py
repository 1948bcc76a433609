"""Voters whose processes end and begin: what they know of their votes and their logs, and what they may do by it."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import pytest
import trio

from odradek.kernel.contracts.election import Role
from odradek.kernel.replication.vote_log import FILE_NAME
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.voters import ReplicaKey
from odradek.plugins.storage_segment.log import SegmentLog

from .small_cluster import Cluster, Node, running
from .test_vote_log import FullDisk
from .test_voting_replicas import client_values, committed, followers, kept_votes, led, run, votes_log

NEXT_BOOT = uuid.UUID(int=2)


def is_doubtful(node: Node) -> bool:
    """Return whether a voter does not trust the end of its log."""
    return quorum_election(node).standing.may_have_lost


def quorum_election(node: Node) -> QuorumElection:
    """Return the election of a node's replica of partition 0."""
    return cast("QuorumElection", node.replica().election)


def kept_boot(node: Node) -> uuid.UUID | None:
    """Return in which boot a node has kept its votes last."""
    partition = node.replica().partition
    kept = votes_log(node).kept(partition.topic_id, partition.partition)
    return None if kept is None else kept.boot_id


def losing(bytes_count: int) -> Callable[[Path], None]:
    """Return what takes the end of the log of partition 0 off a disk."""

    def lose(directory: Path) -> None:
        (path,) = directory.glob("logs0/t-0/*.log")
        data = path.read_bytes()
        path.write_bytes(data[: max(len(data) - bytes_count, 0)])

    return lose


async def caught_up(cluster: Cluster, nodes: Iterable[Node], *values: bytes) -> None:
    """Wait until some nodes show these records."""
    wanted = list(values)
    await cluster.wait("all have caught up", lambda: all(client_values(node) == wanted for node in nodes))


def test_a_voter_that_was_killed_votes_on(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            killed, gone = followers(cluster)
            fresh = await cluster.restart(killed.broker_id)

            assert not is_doubtful(fresh)

            cluster.cut(leader.broker_id, 0, killed.broker_id, gone.broker_id)
            second = await led(cluster, killed.broker_id, gone.broker_id)
            await committed(cluster, second, b"v2")
            await caught_up(cluster, [second], b"v1", b"v2")

    run(body)


def test_a_voter_that_lost_power_does_not_vote_before_it_has_caught_up(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            lost, behind = followers(cluster)
            cluster.cut(leader.broker_id, behind.broker_id)
            await committed(cluster, leader, b"v1", b"v2")
            cluster.cut(leader.broker_id, 0, lost.broker_id, behind.broker_id)
            fresh = await cluster.restart(lost.broker_id, boot_id=NEXT_BOOT, change=losing(1000))
            for _ in range(80):
                await cluster.stirred()
                leading = [node.broker_id for node in (fresh, behind) if node.replica().is_leader]

                assert leading == []  # who has these records is not among the two
                assert is_doubtful(fresh)

            cluster.heal()
            await led(cluster, 1, 2, 3)
            await cluster.wait("it has caught up", lambda: not is_doubtful(fresh))
            await cluster.wait("that is kept", lambda: b"mayHaveLost" not in kept_votes(fresh))
            await caught_up(cluster, cluster.nodes.values(), b"v1", b"v2")

    run(body)


def test_a_log_that_is_gone_with_the_power_is_no_new_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            lost = followers(cluster)[0].broker_id
            cluster.cut(lost, 0, *(each for each in (1, 2, 3) if each != lost))
            fresh = await cluster.restart(
                lost, boot_id=NEXT_BOOT, change=lambda disk: shutil.rmtree(disk / "logs0" / "t-0")
            )

            assert fresh.replica().log.log_end_offset == 0
            assert is_doubtful(fresh)

    run(body)


def test_a_doubt_outlives_a_process(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            lost = followers(cluster)[0].broker_id
            cluster.cut(lost, 0, *(each for each in (1, 2, 3) if each != lost))
            fresh = await cluster.restart(lost, boot_id=NEXT_BOOT)
            await cluster.wait("the doubt is kept", lambda: b"mayHaveLost" in kept_votes(fresh))
            again = await cluster.restart(lost, boot_id=NEXT_BOOT)

            assert is_doubtful(again)

    run(body)


@pytest.mark.parametrize("has_room_at_the_end", [True, False])
def test_a_doubt_that_could_not_be_kept_outlives_a_stop_in_good_order(
    tmp_path: Path, *, has_room_at_the_end: bool
) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            await committed(cluster, leader, b"v2")
            lost = followers(cluster)[0].broker_id
            cluster.cut(lost, 0, *(each for each in (1, 2, 3) if each != lost))
            disk = FullDisk()
            disk.is_full = True
            fresh = await cluster.restart(lost, boot_id=NEXT_BOOT, change=losing(1), votes_files=disk)
            replica = fresh.replica()
            await cluster.wait("its votes cannot be kept", lambda: replica.offline_reason is not None)
            await fresh.lifecycle.retry_failed_logs()  # there is room for records, and its log is opened anew
            disk.is_full = not has_room_at_the_end
            again = await cluster.restart(lost, boot_id=NEXT_BOOT, is_clean=True)

            assert is_doubtful(again)

    run(body)


def test_a_voter_whose_votes_found_no_room_is_served_again_when_there_is(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            disk = FullDisk()
            fresh = await cluster.restart(followers(cluster)[0].broker_id, votes_files=disk)
            await caught_up(cluster, [fresh], b"v1")
            disk.is_full, replica = True, fresh.replica()
            cluster.cut(leader.broker_id, 0, *(node.broker_id for node in followers(cluster)))
            await cluster.wait("its votes cannot be kept", lambda: replica.offline_reason is not None)
            disk.is_full = False
            await fresh.lifecycle.retry_failed_logs()
            second = await led(cluster, *(node.broker_id for node in followers(cluster)))
            await committed(cluster, second, b"v2")
            await caught_up(cluster, [fresh], b"v1", b"v2")

    run(body)


def test_a_start_that_was_given_up_leaves_the_doubt(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            await committed(cluster, leader, b"v2")
            lost = followers(cluster)[0].broker_id
            cluster.cut(lost, 0, *(each for each in (1, 2, 3) if each != lost))
            await cluster.restart(lost, boot_id=NEXT_BOOT, change=losing(1))
            again = await cluster.restart(lost, boot_id=uuid.UUID(int=3), is_clean=True)

            assert is_doubtful(again)

    run(body)


def test_a_stop_in_good_order_is_good_for_one_start(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            await committed(cluster, leader, b"v2")
            number = followers(cluster)[0].broker_id
            await cluster.restart(number, is_clean=True)  # it votes no more in this life: its file stays as it is
            await caught_up(cluster, [cluster.nodes[number]], b"v1", b"v2")
            lost = await cluster.restart(number, boot_id=NEXT_BOOT, change=losing(1))

            assert is_doubtful(lost)

    run(body)


def test_who_was_in_doubt_is_so_when_its_log_is_closed_and_opened_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            await committed(cluster, leader, b"v2")
            number = followers(cluster)[0].broker_id
            fresh = await cluster.restart(number, boot_id=NEXT_BOOT, is_clean=True, change=losing(1))
            log = cast("SegmentLog", fresh.replica().log)
            first = fresh.voting.votes_of(log, is_at_home=True)
            log.was_clean = True

            assert first.may_have_lost
            assert fresh.voting.votes_of(log, is_at_home=True).may_have_lost

    run(body)


def test_a_clean_stop_leaves_no_doubt_and_the_next_boot_is_known(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            number = followers(cluster)[0].broker_id
            fresh = await cluster.restart(number, boot_id=NEXT_BOOT, is_clean=True)

            assert not is_doubtful(fresh)

            await cluster.wait("its boot is kept", lambda: kept_boot(fresh) == NEXT_BOOT)
            killed = await cluster.restart(number, boot_id=NEXT_BOOT)

            assert not is_doubtful(killed)

    run(body)


def test_whom_the_leaders_machine_refuses_does_not_wait_for_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            left = [node.broker_id for node in followers(cluster)]
            leader.end()
            cluster.refusing.add(leader.broker_id)
            cluster.cut(leader.broker_id, 0, *left)
            begun = trio.current_time()
            waiting = [cluster.nodes[each].replica().election for each in left]
            await cluster.wait("somebody stands", lambda: any(each.role is not Role.FOLLOWER for each in waiting))

            assert trio.current_time() - begun < 1  # the fetch time-out is two seconds

            second = await led(cluster, *left)
            await committed(cluster, second, b"v2")

    run(body)


def test_all_that_were_killed_elect_again_and_have_lost_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            epoch = cluster.state.leader_epoch
            for number in (1, 2, 3):
                await cluster.restart(number)
            await cluster.wait("another epoch has a leader", lambda: cluster.state.leader_epoch > epoch)
            again = await led(cluster, 1, 2, 3)
            await committed(cluster, again, b"v3")
            await caught_up(cluster, cluster.nodes.values(), b"v1", b"v2", b"v3")

    run(body)


def test_all_that_lost_power_elect_whoever_has_most(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            await committed(cluster, leader, b"v2")
            epoch, most = cluster.state.leader_epoch, leader.broker_id % 3 + 1
            for number in (1, 2, 3):
                lost_bytes = 0 if number == most else 1 if number == leader.broker_id else 10_000
                await cluster.restart(number, boot_id=NEXT_BOOT, change=losing(lost_bytes))
            await cluster.wait("another epoch has a leader", lambda: cluster.state.leader_epoch > epoch)
            again = await led(cluster, 1, 2, 3)

            assert again.broker_id == most
            await caught_up(cluster, cluster.nodes.values(), b"v1", b"v2")
            assert not any(is_doubtful(node) for node in cluster.nodes.values())

    run(body)


@pytest.mark.parametrize("is_clean", [True, False])
def test_offsets_of_records_that_were_all_deleted_are_not_given_again(tmp_path: Path, *, is_clean: bool) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            one, away = followers(cluster)
            await committed(cluster, leader, b"v1")
            await caught_up(cluster, [one, away], b"v1")
            cluster.cut(away.broker_id, 0, leader.broker_id, one.broker_id)
            await committed(cluster, leader, b"v2", b"v3")
            await caught_up(cluster, [one], b"v1", b"v2", b"v3")
            end = leader.replica().log.log_end_offset
            for node in (leader, one):
                node.replica().log.advance_log_start(end)
            cluster.cut(leader.broker_id, 0, one.broker_id, away.broker_id)
            one.replicas.engines[cluster.storage].checkpoint({})
            fresh = await cluster.restart(one.broker_id, is_clean=is_clean)
            cluster.cuts.discard(frozenset((away.broker_id, 0)))
            cluster.cuts.discard(frozenset((away.broker_id, one.broker_id)))
            second = await led(cluster, one.broker_id, away.broker_id)

            assert second is fresh
            assert second.replica().log.log_start_offset == end

    run(body)


async def begun_anew(cluster: Cluster) -> tuple[Node, Node, Node]:
    """Have one voter away while all records are deleted; return leader, the other, and who had to begin anew."""
    leader = await led(cluster, 1, 2, 3)
    one, away = followers(cluster)
    cluster.cut(away.broker_id, 0, leader.broker_id, one.broker_id)
    await committed(cluster, leader, b"v1", b"v2")
    await caught_up(cluster, [one], b"v1", b"v2")
    end = leader.replica().log.log_end_offset
    leader.replica().log.advance_log_start(end)
    cluster.heal()
    log = away.replica().log
    await cluster.wait("it has begun anew", lambda: log.log_start_offset == log.log_end_offset == end)
    return leader, one, away


def test_who_begins_anew_where_the_leaders_log_does_counts_before_it_has_a_record(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader, _one, away = await begun_anew(cluster)
            end = leader.replica().log.log_end_offset
            leadership = quorum_election(leader)._replica.leadership
            assert leadership is not None
            await cluster.wait("it counts", lambda: leadership.followers[ReplicaKey(away.broker_id)].end == end)

            assert not quorum_election(away)._replica.is_doubtful
            assert list(away.replica().log.epoch_entries()) == [(cluster.state.leader_epoch, end)]

    run(body)


@pytest.mark.parametrize("is_restarted", [True, False])
def test_who_began_anew_elects_a_leader_of_an_idle_topic(tmp_path: Path, *, is_restarted: bool) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader, one, away = await begun_anew(cluster)
            end = leader.replica().log.log_end_offset
            if is_restarted:  # what it has learned of the leader's epochs is kept
                away = await cluster.restart(away.broker_id)
            await trio.sleep(3)
            leader.end()
            cluster.refusing.add(leader.broker_id)
            cluster.cut(leader.broker_id, 0, one.broker_id, away.broker_id)
            second = await led(cluster, one.broker_id, away.broker_id)

            assert second.replica().log.log_start_offset == end
            await committed(cluster, second, b"v3")

    run(body)


def emptied(directory: Path) -> None:
    """Replace a disk."""
    shutil.rmtree(directory / "logs0")


def test_a_voter_whose_disk_was_replaced_has_no_vote(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            replaced, other = followers(cluster)
            fresh = await cluster.restart(replaced.broker_id, change=emptied)

            assert fresh.replicas.find("t", 0) is None
            assert len(list(fresh.replicas.failed)) == 1

            await committed(cluster, leader, b"v2")
            cluster.cut(leader.broker_id, 0, 1, 2, 3)
            for _ in range(80):
                await cluster.stirred()

                assert not other.replica().is_leader

    run(body)


def test_a_voter_whose_votes_are_gone_has_no_vote(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            number = followers(cluster)[0].broker_id
            fresh = await cluster.restart(number, change=lambda disk: (disk / "logs0" / FILE_NAME).unlink())

            assert fresh.replicas.find("t", 0) is None
            assert len(list(fresh.replicas.failed)) == 1

    run(body)
