"""Partitions whose replicas vote, on three brokers: led by whom a majority chose; what it has acknowledged stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.election import IsrChange, LeadershipGivenUp, PeerMessage, Role
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError, error_code
from odradek.kernel.partitions.following import REBUILDING, rebuild_after_cut
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.replication import fetcher
from odradek.kernel.replication.fetcher import IDLE_WAIT_MS
from odradek.kernel.replication.vote_log import VoteLog
from odradek.kernel.types import id_text
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest
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
            for later_ms in (0, 60_000):  # what it waits for begins with the first, if it was heard just before
                leader.voting._tick(replica, leader.clock.monotonic_ms() + later_ms)

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
            rounds, followed = voter.voting._rounds_of(replica.log.log_dir), []
            keep = rounds._keep
            me, other = ReplicaKey(candidate.broker_id), ReplicaKey(voter.broker_id)
            last = LastRecord(epoch, replica.log.log_end_offset)
            asked = vote_request(replica.partition, me, other, epoch + 2, last, pre_vote=False)
            older = begin_request(replica.partition, other, Standing(epoch + 1, leader.broker_id))

            async def keep_while_asked(walks: Any) -> None:
                followed.append([each for fetcher in voter.fetchers._fetchers.values() for each in fetcher.followed])
                await keep(walks)
                if len(followed) == 1:
                    replica.step(PeerMessage(candidate.broker_id, asked, 10**6))

            rounds._keep = keep_while_asked  # type: ignore[method-assign]
            replica.step(PeerMessage(leader.broker_id, older, 10**6))
            await cluster.wait("both are kept", lambda: len(followed) >= 2)

            assert replica.election.leader_epoch == epoch + 2
            assert followed[1] == []

    run(body)


def test_voters_of_a_silent_leader_have_turns_also_where_the_first_of_them_is_gone(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2, 3, 4, 5, election="quorum", brokers=5) as cluster:
            leader = await led(cluster, 1, 2, 3, 4, 5)
            first, *others = sorted(each.broker_id for each in followers(cluster))
            cluster.cut(first, leader.broker_id, *others)
            await trio.sleep(4)
            epoch = leader.replica().leader_epoch
            assert leader.replica().is_leader
            cluster.cut(leader.broker_id, *others)
            began_s = trio.current_time()
            await cluster.wait("another leads", lambda: any(cluster.nodes[each].replica().is_leader for each in others))

            (now_leads,) = [each for each in others if cluster.nodes[each].replica().is_leader]
            assert cluster.nodes[now_leads].replica().leader_epoch == epoch + 1
            assert trio.current_time() - began_s < 2.8

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
            await cluster.wait("what was committed is, again", lambda: client_values(again) == [b"v1"])

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
            node = followers(cluster)[-1]  # those before it stand first
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


def test_a_leader_whom_the_controllers_have_fenced_is_not_listened_to_for_ever(tmp_path: Path) -> None:
    """It reaches its followers and not the controllers: clients are told of no leader as long as it leads."""

    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            first = await led(cluster, 1, 2, 3)
            await committed(cluster, first, b"v1")
            left = [node.broker_id for node in followers(cluster)]
            cluster.cut(first.broker_id, 0)
            cluster.deaf.add(first.broker_id)
            cluster.fence(first.broker_id)
            begun_s = trio.current_time()
            second = await led(cluster, *left)

            assert trio.current_time() - begun_s < 8
            await committed(cluster, second, b"v2")
            assert client_values(second) == [b"v1", b"v2"]
            assert not first.replica().is_leader

    run(body)


def test_brokers_that_are_all_fenced_yet_keep_their_leader(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            epoch = leader.replica().leader_epoch
            for number in (1, 2, 3):
                cluster.fence(number)
            await trio.sleep(15)

            assert (leader.replica().is_leader, leader.replica().leader_epoch) == (True, epoch)

    run(body)


def vote_requests(cluster: Cluster, node: Node, *partitions: int) -> VoteRequest:
    """Return what a voter that does not lead asks another for, of several partitions."""
    asking = next(each for each in followers(cluster) if each is not node)
    parts = [
        PartitionData(
            partition_index=index,
            replica_id=asking.broker_id,
            replica_epoch=cluster.leader.replica().leader_epoch + 1,
            last_offset=100,
            last_offset_epoch=cluster.leader.replica().leader_epoch,
        )
        for index in partitions
    ]
    return VoteRequest(
        voter_id=node.broker_id, topics=[TopicData(topic_name=id_text(cluster.topic_id), partitions=parts)]
    )


def errors_of(answer: Any) -> dict[int, ErrorCode]:
    """Return what an answer says of each partition."""
    return {part.partition_index: error_code(part.error_code) for topic in answer.topics for part in topic.partitions}


def test_a_disk_that_hangs_does_not_hold_up_what_is_answered_of_others(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            voter = followers(cluster)[0]
            voter.threads.is_hanging = True
            begun_s = trio.current_time()
            answer = await voter.voting.answer(vote_requests(cluster, voter, 0, 7))

            assert errors_of(answer) == {7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert trio.current_time() - begun_s <= 1.1  # who asked waits for two seconds

    run(body)


def test_what_is_asked_of_a_replica_that_fails_is_refused_at_once(tmp_path: Path) -> None:
    def refuse(_states: object) -> NoReturn:
        raise StorageError("the disk is full")

    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            voter = followers(cluster)[0]
            votes: Any = votes_log(voter)
            votes.begin_keep = refuse
            begun_s = trio.current_time()
            answer = await voter.voting.answer(vote_requests(cluster, voter, 0))

            assert errors_of(answer) == {0: ErrorCode.KAFKA_STORAGE_ERROR}
            assert trio.current_time() - begun_s < 0.1

    run(body)


def test_votes_of_one_directory_do_not_wait_for_the_disk_of_another(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            node = cluster.leader
            other = tmp_path / "other"
            other.mkdir()
            node.threads.is_hanging = True
            node.voting._keep_later(node.replica().log.log_dir, (cluster.topic_id, 8), b"hangs")
            await trio.sleep(1)
            node.threads.is_hanging = False  # for whoever comes now
            node.voting._keep_later(str(other), (cluster.topic_id, 9), b"does not")
            await trio.sleep(1)

            assert node.voting._parts.votes.of(str(other)).kept(cluster.topic_id, 9) is not None
            assert votes_log(node).kept(cluster.topic_id, 8) is None

    run(body)


def test_a_voter_that_is_paused_does_not_wait_for_its_leader(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            epoch = leader.replica().leader_epoch
            paused = followers(cluster)[0]
            paused.replica().pause("it is read again")
            await trio.sleep(8)
            role = paused.replica().election.role
            paused.lifecycle.end_pause(paused.replica(), "it is read again", None)
            await committed(cluster, leader, b"v1")
            end = leader.replica().log.log_end_offset
            await trio.sleep(IDLE_WAIT_MS / 1000 + 0.1)

            assert role is Role.FOLLOWER
            assert paused.replica().log.log_end_offset == end
            assert leader.replica().leader_epoch == epoch

    run(body)


def test_a_replica_that_is_read_again_after_a_cut_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read = trio.Event()

    async def slowly(lifecycle: Any, replica: Replica, now_ms: int) -> None:
        await is_read.wait()
        await rebuild_after_cut(lifecycle, replica, now_ms)

    monkeypatch.setattr(fetcher, "rebuild_after_cut", slowly)

    async def body() -> None:
        async with running(tmp_path, partitions=2) as cluster:
            leader = cluster.leader
            cut, other = next(node for node in cluster.nodes.values() if node is not leader).broker_id, 1
            follower = cluster.nodes[cut]
            await cluster.acknowledged(leader.produce(b"v1"))
            for node in cluster.nodes.values():
                for task in node.fetchers._fetchers.values():
                    if node is follower:
                        follower.replica().pause(REBUILDING)
                        task._cut.send_nowait(follower.replica())
            leader_of_other = cluster.nodes[follower.replica(other).leader_id]
            end = leader_of_other.produce(b"v2", partition=other)
            await cluster.wait("the other goes on", lambda: follower.replica(other).log.log_end_offset == end, 2)

            assert follower.replica().is_paused
            is_read.set()
            await cluster.wait("it is served again", lambda: not follower.replica().is_paused)

    run(body)
