"""What a consumer's settings for groups do, seen by the coordinator, on virtual time."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitRequest
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from .simulated_cluster import PROTOCOLS, SimulatedCluster, with_cluster

if TYPE_CHECKING:
    from odradek.client import Consumer

EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


def times_of(cluster: SimulatedCluster, kind: type) -> list[float]:
    return [noted.time_s for noted in cluster.requests.of(kind)]


async def poll_for(consumer: Consumer, seconds: float) -> None:
    end_s = trio.current_time() + seconds
    while trio.current_time() < end_s:
        await consumer.poll(timeout_ms=500)


def test_a_classic_member_tells_its_times_and_names_and_beats_as_often_as_it_is_to() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        settings: dict[str, object] = {
            "session_timeout_ms": 21_000,
            "max_poll_interval_ms": 77_000,
            "group_instance_id": "one",
            "heartbeat_interval_ms": 7_000,
            "client_rack": "row 7",
        }
        async with cluster.consumer("a", "eager", **settings) as consumer:
            consumer.subscribe(["t"])
            await poll_for(consumer, 40)

        join = cluster.requests.of(JoinGroupRequest)[-1].request
        assert (join.session_timeout_ms, join.rebalance_timeout_ms, join.group_instance_id) == (21_000, 77_000, "one")
        assert [protocol.name for protocol in join.protocols] == ["range"]
        assert b"row 7" in bytes(join.protocols[0].metadata)
        times = times_of(cluster, HeartbeatRequest)
        assert [round(after - before) for before, after in pairwise(times)] == [7] * 4

    with_cluster(test)


def test_a_member_of_the_consumer_protocol_tells_its_times_and_names() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        settings: dict[str, object] = {
            "max_poll_interval_ms": 77_000,
            "group_instance_id": "one",
            "group_remote_assignor": "range",
            "client_rack": "row 7",
        }
        async with cluster.consumer("a", "consumer", **settings) as consumer:
            consumer.subscribe(["t"])
            await poll_for(consumer, 10)

        join = cluster.requests.of(ConsumerGroupHeartbeatRequest)[0].request
        assert (join.rebalance_timeout_ms, join.instance_id) == (77_000, "one")
        assert (join.server_assignor, join.rack_id) == ("range", "row 7")

    with_cluster(test)


@EVERY_PROTOCOL
def test_a_member_that_is_not_polled_leaves_after_its_poll_interval(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", protocol, max_poll_interval_ms=33_000) as consumer:
            consumer.subscribe(["t"])
            await poll_for(consumer, 10)
            polled_s = trio.current_time()
            await trio.sleep(100)

            if protocol == "consumer":
                goodbyes_s = [
                    noted.time_s
                    for noted in cluster.requests.of(ConsumerGroupHeartbeatRequest)
                    if noted.request.member_epoch < 0
                ]
            else:
                goodbyes_s = times_of(cluster, LeaveGroupRequest)
            assert polled_s + 33 == pytest.approx(goodbyes_s[0], abs=0.6)

    with_cluster(test)


@EVERY_PROTOCOL
def test_polls_commit_as_often_as_they_are_to(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", protocol, auto_commit_interval_ms=9_000) as consumer:
            start_s = trio.current_time()
            consumer.subscribe(["t"])
            for number in range(80):
                await cluster.append("t", 0, number)
                await poll_for(consumer, 0.5)
            times = times_of(cluster, OffsetCommitRequest)

        assert [round(after - before) for before, after in pairwise((start_s, *times))] == [9] * 4

    with_cluster(test)


def test_a_commit_of_polls_that_failed_is_tried_again_after_the_pause_of_repetitions() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        cluster.requests.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=3)
        settings = {"auto_commit_interval_ms": 9_000, "retry_backoff_ms": 2_000, "retry_backoff_max_ms": 2_000}
        async with cluster.consumer("a", "eager", **settings) as consumer:
            consumer.subscribe(["t"])
            await cluster.append("t", 0, 1)
            await poll_for(consumer, 17)
            times = times_of(cluster, OffsetCommitRequest)

        assert [round(after - before) for before, after in pairwise(times)] == [2, 2, 2]

    with_cluster(test)


def test_a_commit_that_a_rebalance_waits_for_takes_no_longer_than_default_api_timeout_says() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        settings = {"default_api_timeout_ms": 7_000, "auto_commit_interval_ms": 3_600_000, "retry_backoff_max_ms": 100}
        async with cluster.consumer("a", "eager", **settings) as consumer:
            consumer.subscribe(["t"])
            await cluster.append("t", 0, 1)
            await poll_for(consumer, 10)
            joins_count = len(times_of(cluster, JoinGroupRequest))
            start_s = trio.current_time()
            with cluster.requests.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
                consumer.enforce_rebalance()
                await poll_for(consumer, 60)
            joined_s = times_of(cluster, JoinGroupRequest)[joins_count]

        assert start_s + 7 == pytest.approx(joined_s, abs=0.6)

    with_cluster(test)


@EVERY_PROTOCOL
def test_who_does_not_want_commits_gets_none(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        settings = {"enable_auto_commit": False, "auto_commit_interval_ms": 1_000}
        async with cluster.consumer("a", protocol, **settings) as consumer:
            consumer.subscribe(["t"])
            await cluster.append("t", 0, 1)
            await poll_for(consumer, 10)
            async with cluster.consumer("b", protocol, **settings) as other:
                other.subscribe(["t"])
                async with trio.open_nursery() as nursery:  # a rebalance is no reason either
                    nursery.start_soon(poll_for, consumer, 10)
                    nursery.start_soon(poll_for, other, 10)

        assert cluster.requests.of(OffsetCommitRequest) == []

    with_cluster(test)


@pytest.mark.parametrize(("excludes", "expected"), [(True, {"t"}), (False, {"t", "__consumer_offsets"})])
def test_patterns_match_internal_topics_where_these_are_not_excluded(excludes: bool, expected: set[str]) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", exclude_internal_topics=excludes) as consumer:
            consumer.subscribe(pattern=re.compile(".*"))
            await poll_for(consumer, 10)

            assert expected == {partition.topic for partition in consumer.assignment}

    with_cluster(test)
