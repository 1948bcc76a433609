"""Partitions whose replicas vote, on three brokers: led by whom a majority chose; what it has acknowledged stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.election import IsrChange, LeadershipGivenUp, PeerMessage
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError
from odradek.kernel.replication.vote_log import VoteLog
from odradek.kernel.wire.messages.api_56_alter_partition import AlterPartitionRequest
from odradek.plugins.election_quorum.messages import LastRecord, begin_request, vote_request
from odradek.plugins.election_quorum.standing import Standing
from odradek.plugins.election_quorum.voters import ReplicaKey

from .small_cluster import Cluster, Node, running


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test on virtual time."""
    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


async def led(cluster: Cluster, *among: int) -> Node:
    """Wait until one of some nodes leads, as the controller knows it, and all of them follow it."""

    def is_led() -> bool:
        leader, epoch = cluster.state.leader, cluster.state.leader_epoch
        replicas = {number: cluster.nodes[number].replica() for number in among}
        return (
            leader in among
            and replicas[leader].is_leader
            and all((each.leader_id, each.leader_epoch) == (leader, epoch) for each in replicas.values())
        )

    await cluster.wait("a leader is known", is_led)
    return cluster.leader


def followers(cluster: Cluster) -> list[Node]:
    """Return who does not lead."""
    return [node for node in cluster.nodes.values() if node is not cluster.leader]


async def committed(cluster: Cluster, leader: Node, *values: bytes) -> None:
    """Write records with acks=all, and wait until they are acknowledged."""
    end = leader.produce(*values)
    await cluster.wait("records are committed", lambda: leader.replica().high_watermark >= end)


def client_values(node: Node) -> list[bytes]:
    """Return what a consumer of a node may see, without what the leaders wrote for themselves."""
    return [value for _offset, value in node.values(node.replica().high_watermark) if value.startswith(b"v")]


def votes_log(node: Node) -> VoteLog:
    """Return where a node keeps its votes."""
    return node.voting._parts.votes.of(node.replica().log.log_dir)


def kept_votes(node: Node) -> bytes:
    """Return what a node has kept of its votes."""
    partition = node.replica().partition
    kept = votes_log(node).kept(partition.topic_id, partition.partition)
    return b"" if kept is None else kept.state


def test_replicas_choose_a_leader_and_the_controller_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)

            assert cluster.state.leader_epoch == leader.replica().leader_epoch >= 1
            assert cluster.state.isr == (1, 2, 3)

    run(body)


def test_what_a_majority_has_is_committed_and_everywhere(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            await cluster.wait(
                "everybody knows",
                lambda: all(client_values(node) == [b"v1", b"v2"] for node in cluster.nodes.values()),
            )

    run(body)


def test_who_gives_up_its_lead_while_something_waits_to_be_done_leads_no_more_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            leader.end()
            replica = leader.replica()
            leader.voting.note(replica)
            was_leader = replica.is_leader
            leader.voting._tick(replica, leader.clock.monotonic_ms() + 60_000)

            assert (was_leader, replica.is_leader) == (True, False)

    run(body)


def test_who_has_resigned_does_not_tell_the_controller_that_it_leads(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            replica = leader.replica()
            asked_count = len(cluster.asked)
            leader.reports.ask(replica, IsrChange((1, 2, 3), replica.leader_epoch, cluster.state.partition_epoch))
            replica.step(LeadershipGivenUp())
            await trio.sleep(0.1)
            told = [each for each in cluster.asked[asked_count:] if isinstance(each, AlterPartitionRequest)]

            assert [each for each in told if each.broker_id == leader.broker_id] == []

    run(body)


def test_one_slow_follower_holds_up_nobody_and_a_second_one_everybody(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            one, other = followers(cluster)
            cluster.cut(leader.broker_id, one.broker_id)
            await committed(cluster, leader, b"v1")
            cluster.cut(leader.broker_id, other.broker_id)
            end = leader.produce(b"v2")
            await trio.sleep(1)
            waited = leader.replica().high_watermark
            cluster.heal()

            assert waited == end - 1

    run(body)


def test_another_leads_when_the_leader_is_gone_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            first = await led(cluster, 1, 2, 3)
            await committed(cluster, first, b"v1", b"v2")
            left = [node.broker_id for node in followers(cluster)]
            cluster.cut(first.broker_id, 0, *left)
            lost = first.produce(b"v lost")
            second = await led(cluster, *left)
            await committed(cluster, second, b"v3")
            deposed = first.replica()
            await cluster.wait("the first gives up", lambda: not deposed.is_leader)

            assert cluster.state.leader_epoch > 1
            assert client_values(second) == [b"v1", b"v2", b"v3"]
            assert deposed.high_watermark < lost
            with pytest.raises(KafkaError) as refused:
                first.produce(b"v refused")
            assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

            cluster.heal()
            await cluster.wait("the first follows", lambda: client_values(first) == [b"v1", b"v2", b"v3"])

    run(body)


def test_what_was_voted_is_kept_by_every_voter(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            replica = leader.replica()
            kept = [kept_votes(node) for node in cluster.nodes.values()]

            assert [b'"leaderEpoch":%d' % replica.leader_epoch in each for each in kept] == [True] * 3

    run(body)


def test_a_vote_that_cannot_be_kept_is_not_told(tmp_path: Path) -> None:
    def refuse(_states: object) -> NoReturn:
        raise StorageError("the disk is full")

    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            voter, candidate = followers(cluster)
            votes: Any = votes_log(voter)
            votes.begin_keep = refuse
            cluster.cut(leader.broker_id, voter.broker_id, candidate.broker_id)
            await trio.sleep(8)

            assert voter.replica().offline_reason == "the disk is full"
            assert not candidate.replica().is_leader

    run(body)


def test_who_gives_a_vote_while_an_older_leader_is_being_kept_follows_that_one_no_more(tmp_path: Path) -> None:
    """Its fetches would have that leader commit what the candidate, as long as the voter was, does not have."""

    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            voter, candidate = followers(cluster)
            replica, epoch = voter.replica(), leader.replica().leader_epoch
            keep, followed = voter.voting._keep, []
            me, other = ReplicaKey(candidate.broker_id), ReplicaKey(voter.broker_id)
            last = LastRecord(epoch, replica.log.log_end_offset)
            asked = vote_request(replica.partition, me, other, epoch + 2, last, pre_vote=False)
            older = begin_request(replica.partition, other, Standing(epoch + 1, leader.broker_id))

            async def keep_while_asked(walks: Any) -> None:
                followed.append([each for fetcher in voter.fetchers._fetchers.values() for each in fetcher.followed])
                await keep(walks)
                if len(followed) == 1:
                    replica.step(PeerMessage(candidate.broker_id, asked, 10**6))

            voter.voting._keep = keep_while_asked  # type: ignore[method-assign]
            replica.step(PeerMessage(leader.broker_id, older, 10**6))
            await cluster.wait("both are kept", lambda: len(followed) >= 2)

            assert replica.election.leader_epoch == epoch + 2
            assert followed[1] == []

    run(body)


def test_nobody_leads_without_a_majority(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            cluster.cut(1, 2, 3)
            cluster.cut(2, 3)
            await trio.sleep(8)
            leading = [node.replica().is_leader for node in cluster.nodes.values()]
            cluster.heal()
            again = await led(cluster, 1, 2, 3)

            assert leading == [False] * 3
            assert client_values(again) == [b"v1"]

    run(body)


def test_an_idle_partition_sends_no_votes(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            epoch = leader.replica().leader_epoch
            await trio.sleep(5)
            cluster.asked.clear()
            await trio.sleep(10)

            assert cluster.asked == []
            assert (leader.replica().is_leader, leader.replica().leader_epoch) == (True, epoch)

    run(body)


def test_a_partition_that_is_not_here_is_refused_and_others_are_answered(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            votes: list[Any] = []
            node = followers(cluster)[0]
            answer = node.voting.answer

            async def kept(request: Any) -> Any:
                votes.append(request)
                return await answer(request)

            node.voting.answer = kept  # type: ignore[method-assign]
            cluster.cut(cluster.leader.broker_id, *(each.broker_id for each in followers(cluster)))
            await cluster.wait("somebody asks", lambda: bool(votes))
            request = votes[0]
            request.topics[0].partitions[0].partition_index = 7
            told: Any = await answer(request)

            assert [part.error_code for topic in told.topics for part in topic.partitions] == [
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            ]

    run(body)
