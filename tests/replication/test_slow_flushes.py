"""Followers whose disks are slow to flush: what is flushed takes its time, and holds up neither votes nor others."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.replication.fetch_planning import Followed
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.plugins.election_quorum.voters import ReplicaKey

from .small_cluster import Cluster, Node, running
from .test_voters_lives import quorum_election
from .test_voting_replicas import led, run

FLUSHED = LogConfig(flush_messages=1)


def count_flushed(node: Node) -> None:
    """Flush what a node leads at once, which the broker's own service does otherwise."""
    for replica in node.replicas.topics["t"].partitions.values():
        if replica.is_leader and replica.appended_offset < replica.log.log_end_offset:
            replica.log.flush()
            replica.note_appended(replica.log.recovery_point)
            node.replicas.progressed((replica,))


def produce_on(cluster: Cluster) -> int:
    """Write to every partition whose last record is acknowledged; return to how many."""
    count = 0
    for node in cluster.nodes.values():
        for number, replica in node.replicas.topics["t"].partitions.items():
            if replica.is_leader and replica.high_watermark >= replica.log.log_end_offset:
                node.produce(b"v", partition=number)
                count += 1
        count_flushed(node)
    return count


@pytest.mark.parametrize("duration_s", [0.15, 3.5])
def test_many_flushes_that_each_follower_has_to_wait_for_depose_no_leader(tmp_path: Path, duration_s: float) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=20, log_config=FLUSHED) as cluster:

            def states() -> list[tuple[int, int]]:
                partitions = cluster.driven.image.topics_by_name["t"].partitions
                return [(state.leader, state.leader_epoch) for state in partitions]

            await cluster.wait("all are led", lambda: all(leader > 0 for leader, _epoch in states()))
            for _ in range(20):
                produce_on(cluster)
                await trio.sleep(0.1)
            before = states()
            for node in cluster.nodes.values():
                node.threads.duration_s = duration_s
            acknowledged_count = 0
            for _ in range(80):
                acknowledged_count += produce_on(cluster)
                await trio.sleep(0.25)

            assert states() == before
            assert acknowledged_count > 20

    run(body)


@pytest.mark.parametrize("election", ["isr", "quorum"])
def test_a_flush_that_hangs_holds_up_no_other_partition_and_deposes_nobody(tmp_path: Path, election: str) -> None:
    async def body() -> None:
        async with running(tmp_path, election=election, partitions=2, log_config=FLUSHED) as cluster:
            leader = cluster.nodes[1]
            await cluster.wait("1 leads both", lambda: all(leader.replica(number).is_leader for number in (0, 1)))
            for node in cluster.nodes.values():
                node.replica(1).log.reconfigure(LogConfig())
            epochs = [leader.replica(number).leader_epoch for number in (0, 1)]
            slow = cluster.nodes[3]
            produce_on(cluster)
            end = leader.replica().log.log_end_offset
            await cluster.wait("it is acknowledged", lambda: leader.replica().high_watermark == end)
            await trio.sleep(1)
            slow.threads.is_hanging = True
            kept = slow.replica().appended_offset
            end = leader.produce(b"v")
            count_flushed(leader)
            await cluster.wait("3 has it", lambda: slow.replica().log.log_end_offset == end)
            cluster.asked.clear()
            for _ in range(20):
                other_end = leader.produce(b"v", partition=1)
                began_s = trio.current_time()
                await cluster.wait("3 has it", lambda: slow.replica(1).log.log_end_offset == other_end)  # noqa: B023

                assert trio.current_time() - began_s < 0.6
                await trio.sleep(0.5)

            assert not any(isinstance(each, VoteRequest) for each in cluster.asked), "it hears its leader"
            assert (slow.replica().appended_offset, slow.replica().log.log_end_offset) == (kept, end)
            assert [leader.replica(number).leader_epoch for number in (0, 1)] == epochs
            assert all(leader.replica(number).is_leader for number in (0, 1))

    run(body)


def test_a_voter_asks_from_what_is_flushed(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", log_config=FLUSHED) as cluster:
            leader = cluster.nodes[1]
            await cluster.wait("1 leads", lambda: leader.replica().is_leader)
            await cluster.wait("3 follows", lambda: cluster.nodes[3].replica().leader_id == 1)
            count_flushed(leader)
            slow = cluster.nodes[3]
            await cluster.wait("it has a record", lambda: slow.replica().appended_offset > 0)
            kept, epoch = slow.replica().appended_offset, slow.replica().log.latest_epoch
            slow.threads.is_hanging = True
            end = leader.produce(b"v")
            count_flushed(leader)
            await cluster.wait("3 has it", lambda: slow.replica().log.log_end_offset == end)
            asked = Followed(slow.replica(), 3).wish(1).partition

            assert (asked.fetch_offset, asked.last_fetched_epoch) == (kept, epoch)
            await trio.sleep(5)
            leadership = quorum_election(leader)._replica.leadership

            assert leadership is not None
            assert leadership.followers[ReplicaKey(3)].end == kept

    run(body)


def test_a_leader_says_nothing_of_what_a_voter_has_behind_where_it_asked(tmp_path: Path) -> None:
    """Records of a former leader that nobody else has are shown to no consumer while their flush takes its time."""

    async def body() -> None:
        async with running(tmp_path, 1, 2, 3, 4, 5, brokers=5, election="quorum", log_config=FLUSHED) as cluster:
            former = await led(cluster, 1, 2, 3, 4, 5)
            count_flushed(former)
            begin = former.replica().log.log_end_offset
            nodes = [node for node in cluster.nodes.values() if node is not former]
            await cluster.wait("all begin", lambda: all(each.replica().appended_offset >= begin for each in nodes))
            *others, slow = nodes
            slow.threads.flush_s = 8  # votes are kept as fast as before
            cluster.cut(former.broker_id, *(each.broker_id for each in others))
            end = former.produce(b"never committed", b"nor this")
            count_flushed(former)
            replica = slow.replica()
            await cluster.wait("one has it", lambda: replica.log.log_end_offset == end, 2)
            cluster.cut(former.broker_id, 0, *(each.broker_id for each in nodes))
            leader: list[Node] = []
            while not leader:
                for node in others:
                    count_flushed(node)
                leader = [node for node in others if node.replica().is_leader]
                await trio.sleep(0.05)
            for _ in range(3):
                leader[0].produce(b"committed")
                count_flushed(leader[0])
                await trio.sleep(0.2)
            assert leader[0].replica().high_watermark > end
            seen: set[int] = set()
            while b"nor this" in [value for _offset, value in slow.values(replica.log.log_end_offset)]:
                seen.add(replica.high_watermark)
                await trio.sleep(0.0005)

            assert max(seen) <= begin

    run(body)


def test_who_follows_a_log_that_was_emptied_counts_while_its_first_record_is_flushed(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", log_config=FLUSHED) as cluster:
            leader = await led(cluster, 1, 2, 3)
            leader.produce(b"v1")
            count_flushed(leader)
            replicas = [node.replica() for node in cluster.nodes.values()]
            end = leader.replica().log.log_end_offset
            await cluster.wait("all have it", lambda: all(each.high_watermark >= end for each in replicas))
            leader.replica().log.advance_log_start(end)
            await cluster.wait("all are empty", lambda: all(each.log.log_start_offset == end for each in replicas))
            await trio.sleep(2)
            for node in cluster.nodes.values():
                if node is not leader:
                    node.threads.duration_s = 5
            epoch = leader.replica().leader_epoch
            leader.produce(b"v2")
            count_flushed(leader)
            await trio.sleep(8)

            assert (leader.replica().is_leader, leader.replica().leader_epoch) == (True, epoch)
            assert leader.replica().high_watermark == end + 1

    run(body)
