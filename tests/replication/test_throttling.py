"""Replication throttles: who is named waits, who is in sync never does; fetchers that become more or fewer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.contracts.election import Role
from odradek.kernel.contracts.services import ConfigView
from odradek.kernel.dispatch import fetch_operation
from odradek.kernel.dispatch.fetch_session import SESSIONLESS_EPOCH
from odradek.kernel.dispatch.handlers import api_01_fetch
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.partitions.byte_rate import ByteRate
from odradek.kernel.replication.fetch_planning import Followed, fetch_request, fetcher_number, wanted_now
from odradek.kernel.replication.throttling import NO_RATE, ReplicationQuota, names_replica
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.codec import encode_bytes
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import ReplicaState
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsRequest
from odradek.kernel.wire.special_timestamps import LATEST_TIMESTAMP
from tests.dispatch.memory_client import MemoryClient

from .small_cluster import SETTINGS, Cluster, running
from .test_replication import run
from .test_voting_replicas import committed, led

RATE = 1000
RECORDS = 60
VALUE = b"v" * 500


@pytest.mark.parametrize(
    ("throttled", "is_named"),
    [((), False), (("*",), True), (("0:1", "3:2"), True), (("3:1", "2:2"), False), (("",), False)],
)
def test_a_replica_is_named_by_partition_and_broker_or_with_all(throttled: tuple[str, ...], *, is_named: bool) -> None:
    assert names_replica(frozenset(throttled), 3, 2) is is_named


def test_a_quota_is_an_average_over_the_last_windows() -> None:
    clock = ManualClock(0)
    quota = ReplicationQuota(lambda: RATE, ByteRate(clock, windows_count=11, window_ms=1000))
    assert (quota.is_set, quota.is_exceeded()) == (True, False)

    quota.record(10 * RATE)
    assert not quota.is_exceeded(), "as much as ten windows allow"
    quota.record(1)
    assert quota.is_exceeded()

    clock.advance(10_500)
    assert not quota.is_exceeded()
    quota.record(RATE)
    clock.advance(500)
    assert not quota.is_exceeded(), "what came first is forgotten with its window"


def test_windows_are_as_configured() -> None:
    windows = {"moves.window.num": 3, "moves.window.size.seconds": 2}
    clock = ManualClock(0)
    rate = ByteRate.of(cast("ConfigView", SimpleNamespace(get_int=windows.__getitem__)), "moves", clock)
    rate.note(8_000)
    assert rate.bytes_a_second() == 2_000, "of two whole windows, at least"
    clock.advance(5_999)
    assert rate.bytes_a_second() > 0
    clock.advance(1)

    assert rate.bytes_a_second() == 0


def test_without_a_rate_nothing_is_counted_as_too_much() -> None:
    quota = ReplicationQuota(lambda: NO_RATE, ByteRate(ManualClock(0)))
    quota.record(1 << 60)

    assert (quota.is_set, quota.is_exceeded()) == (False, False)


async def behind(cluster: Cluster) -> int:
    """Have broker 3 out of sync, behind by some records; return the leader's end."""
    cluster.settings = attrs.evolve(cluster.settings, partition_bytes_max=1000)
    await cluster.acknowledged(cluster.leader.produce(b"first"))
    await cluster.wait("it has the first", lambda: cluster.nodes[3].replica().log.log_end_offset == 1)
    cluster.cut(3, 1, 2, 0)
    cluster.deaf.add(3)
    cluster.fence(3)
    for _ in range(RECORDS):
        await cluster.acknowledged(cluster.leader.produce(VALUE))
    return cluster.leader.replica().log.log_end_offset


def have_all(cluster: Cluster, end: int) -> bool:
    return all(node.replica().log.log_end_offset == end for node in cluster.nodes.values())


def throttle(cluster: Cluster, side: str, *replicas: str) -> None:
    """Set a rate of one side, and name replicas; the metadata brings it."""
    cluster.throttled = {f"throttled_{side}": frozenset(replicas)}
    for node in cluster.nodes.values():
        node.replica().settings = cluster.plan.settings


async def brought_up(cluster: Cluster, side: str, name: str) -> float:
    """Have broker 3 catch up while a replica is throttled; return how long that takes, in seconds."""
    end = await behind(cluster)
    throttle(cluster, side, name)
    cluster.leader_rate = cluster.follower_rate = RATE
    began = trio.current_time()
    cluster.heal()
    cluster.unfence(3)
    await cluster.wait("it has all", lambda: cluster.nodes[3].replica().log.log_end_offset >= end, 300)
    return trio.current_time() - began


@pytest.mark.parametrize(("side", "name"), [("leaders", "0:1"), ("leaders", "*"), ("followers", "0:3")])
def test_a_replica_that_is_behind_is_brought_up_no_faster_than_it_may(tmp_path: Path, side: str, name: str) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            lasted_s = await brought_up(cluster, side, name)

            size_bytes = RECORDS * len(VALUE)
            assert size_bytes / RATE - 15 <= lasted_s <= size_bytes / RATE * 1.6
            await cluster.acknowledged(cluster.leader.produce(b"last"))

    run(body)


@pytest.mark.parametrize(("side", "name"), [("leaders", "0:2"), ("followers", "0:1"), ("followers", "1:3")])
def test_other_replicas_are_not_throttled(tmp_path: Path, side: str, name: str) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            assert await brought_up(cluster, side, name) < 5

    run(body)


def test_who_is_in_sync_is_never_throttled(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"first"))
            await cluster.wait("all are in sync", lambda: len(cluster.state.isr) == 3)
            throttle(cluster, "leaders", "*")
            cluster.throttled["throttled_followers"] = frozenset(("*",))
            throttle_all = cluster.plan.settings
            for node in cluster.nodes.values():
                node.replica().settings = throttle_all
            cluster.leader_rate = cluster.follower_rate = 1
            began = trio.current_time()
            for _ in range(RECORDS):
                await cluster.acknowledged(cluster.leader.produce(VALUE))

            assert trio.current_time() - began < 5
            assert len(cluster.state.isr) == 3

    run(body)


def test_who_is_in_sync_is_not_throttled_by_a_fetcher_that_has_just_come_to_follow_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"first"))
            await cluster.wait("all are in sync", lambda: len(cluster.state.isr) == 3)
            throttle(cluster, "followers", "*")
            cluster.follower_rate = 1
            await cluster.acknowledged(cluster.leader.produce(VALUE))  # which is more than they may take for a while
            await cluster.wait("all have it", lambda: have_all(cluster, 2))
            began = trio.current_time()
            for node in cluster.nodes.values():
                node.fetchers.leader_changed(node.replica().partition)
            await cluster.acknowledged(cluster.leader.produce(b"last"))

            assert trio.current_time() - began < 5

    run(body)


def test_partitions_go_to_other_fetchers_when_their_number_changes(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"first"))
            for count in (4, 2, 1):
                cluster.settings = attrs.evolve(cluster.settings, fetchers_count=count)
                for node in cluster.nodes.values():
                    node.fetchers.settings_altered()
                end = cluster.leader.produce(b"more")
                await cluster.acknowledged(end)
                await cluster.wait(
                    "all have it",
                    lambda end=end: all(n.replica().log.log_end_offset == end for n in cluster.nodes.values()),
                )
                fetchers = [each for node in cluster.nodes.values() for each in node.fetchers._fetchers.values()]
                assert sum(len(each.followed) for each in fetchers) == 2
                assert all(each.number < count for each in fetchers if each.followed)

    run(body)


def test_what_a_fetcher_was_told_of_the_leaders_end_is_nothing_to_the_one_that_comes_after_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await behind(cluster)
            cluster.leader.replica().log.advance_log_start(10)
            follower = cluster.nodes[3]
            ask, is_told, goes_on = follower.request, trio.Event(), trio.Event()

            async def slowly(node_id: int, message: Message, **options: Any) -> Any:
                answer = await ask(node_id, message, **options)
                is_end = isinstance(message, ListOffsetsRequest) and (
                    message.topics[0].partitions[0].timestamp == LATEST_TIMESTAMP
                )
                if is_end and not is_told.is_set():
                    is_told.set()
                    await goes_on.wait()
                return answer

            follower.request = slowly  # type: ignore[method-assign]
            cluster.heal()
            cluster.unfence(3)
            await is_told.wait()
            count = next(count for count in range(2, 20) if fetcher_number(TopicPartition("t", 0), count))
            cluster.settings = attrs.evolve(cluster.settings, fetchers_count=count)
            follower.fetchers.settings_altered()
            end = cluster.leader.produce(b"after it was told")
            await cluster.wait("the other fetcher has all", lambda: follower.replica().log.log_end_offset == end)
            cluster.cut(3, 1, 2)
            goes_on.set()
            await trio.sleep(5)

            assert follower.replica().log.log_end_offset == end

    run(body)


def test_a_follower_that_repeats_itself_is_answered_by_template_unless_what_it_gets_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2) as cluster:
            cluster.cut(2, 1)  # the test asks in its stead
            leader = cluster.leader
            leader.produce(VALUE)
            client = MemoryClient(leader.router)
            state = ReplicaState(replica_id=2, replica_epoch=cluster.nodes[2].epoch)
            wanted = {TopicPartition("t", 0): Followed(cluster.nodes[2].replica(), 2).wish(1 << 20)}
            request = fetch_request(attrs.evolve(SETTINGS, wait_ms_max=0), state, (0, SESSIONLESS_EPOCH), wanted, ())
            expected = [encode_bytes(client.ask(request, 18), 18) for _ in range(4)]

            encoded: list[Message] = []
            encoders = leader.router.routes[1]._encoders
            (encode, in_slices) = encoders[18]

            def note(response: Any, *args: Any) -> Any:
                encoded.append(response)
                return encode(response, *args)

            monkeypatch.setitem(encoders, 18, (note, in_slices))
            assert [encode_bytes(client.ask(request, 18), 18) for _ in range(2)] == expected[:2]
            assert not encoded
            cluster.leader_rate = RATE
            assert encode_bytes(client.ask(request, 18), 18) == expected[0]
            assert len(encoded) == 1

    run(body)


def test_a_wide_fetch_reads_throttled_replicas_once_before_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster, trio.open_nursery() as nursery:
            await behind(cluster)
            cluster.cut(2, 1)
            monkeypatch.setattr(api_01_fetch, "AT_ONCE_MAX", 0)
            leader = cluster.leader
            await nursery.start(leader.router.run)
            throttle(cluster, "leaders", "*")
            cluster.leader_rate = 1
            client = MemoryClient(leader.router)
            state = ReplicaState(replica_id=3, replica_epoch=cluster.nodes[3].epoch)
            wanted = {TopicPartition("t", 0): Followed(cluster.nodes[3].replica(), 3).wish(1000)}
            request = fetch_request(SETTINGS, state, (0, SESSIONLESS_EPOCH), wanted, ())
            client.send(request, 18)
            await trio.testing.wait_all_tasks_blocked()
            first: Any = client.received()[0]
            assert first.responses[0].partitions[0].records, "nothing went to it yet"

            again: list[Any] = []
            read_targets = vars(fetch_operation)["read_targets"]

            def note(*args: Any, **options: Any) -> Any:
                again.append(args)
                return read_targets(*args, **options)

            monkeypatch.setitem(vars(fetch_operation), "read_targets", note)
            client.send(request, 18)
            await trio.testing.wait_all_tasks_blocked()
            assert leader.fetches.delayed_count == 1
            assert not again
            nursery.cancel_scope.cancel()

    run(body)


def test_a_voter_that_is_behind_and_throttled_hears_its_leader(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            slow = next(node for node in cluster.nodes.values() if node is not leader)
            leader.replica().settings = slow.replica().settings = attrs.evolve(
                cluster.plan.settings, throttled_followers=frozenset(("*",))
            )
            cluster.follower_rate = 1
            cluster.settings = attrs.evolve(cluster.settings, partition_bytes_max=len(VALUE))  # a batch each
            epoch, election = leader.replica().leader_epoch, slow.replica().election
            cluster.cut(slow.broker_id, leader.broker_id)
            for _ in range(30):
                await committed(cluster, leader, VALUE)
            cluster.cuts.clear()
            await cluster.wait("it takes some", lambda: slow.replica().log.log_end_offset > 3)
            for _ in range(100):
                await trio.sleep(0.1)

                assert election.role is Role.FOLLOWER
            assert leader.replica().leader_epoch == epoch
            assert slow.replica().log.log_end_offset < leader.replica().log.log_end_offset

    run(body)


def test_a_throttled_voter_that_is_held_back_does_not_have_its_turn(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await cluster.wait("it is led", lambda: any(node.replica().is_leader for node in cluster.nodes.values()))
            node = next(node for node in cluster.nodes.values() if not node.replica().is_leader)
            replica = node.replica()
            replica.settings = attrs.evolve(replica.settings, throttled_followers=frozenset(("*",)))
            followed = Followed(replica, node.broker_id)
            followed.is_in_sync, followed.due_ms = False, 1050
            both = {replica.topic_partition: followed}
            held_back = wanted_now(both, 1000, 1 << 20, is_throttling=True)
            asked = wanted_now(both, 1050, 1 << 20, is_throttling=True).wishes

            assert held_back == ({}, 1050, True)
            assert list(asked) == [replica.topic_partition]
            assert wanted_now(both, 1051, 1 << 20, is_throttling=True).wishes == {}

    run(body)
