"""Consumers and producers whose partition's leader moves, whose log is cut, who are throttled, whose sessions end."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from odradek.client import (
    BufferExhaustedError,
    ClientTimeoutError,
    Consumer,
    LogTruncationError,
    Producer,
    TopicPartition,
)
from odradek.kernel.errors import ErrorCode
from tests.waiting import PATIENCE_S

from .fake_cluster import FakeCluster, fake_cluster

T0 = TopicPartition("t", 0)
FAST: dict[str, object] = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 1,
}
FETCH, PRODUCE, METADATA, END_OF_EPOCH = 1, 0, 3, 23


def with_cluster(test: Callable[[FakeCluster], Awaitable[None]], **values: Any) -> None:
    async def run() -> None:
        with trio.fail_after(PATIENCE_S):
            async with fake_cluster(**values) as cluster:
                await test(cluster)

    trio.run(run)


def consumer_of(cluster: FakeCluster, **more: object) -> Consumer:
    settings = {"auto.offset.reset": "earliest", "fetch.max.wait.ms": 5, **FAST}
    named = {name.replace("_", "."): value for name, value in more.items()}
    return Consumer({"bootstrap.servers": cluster.bootstrap, **settings, **named})


def producer_of(cluster: FakeCluster) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, **FAST})


async def poll_values(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += [record.value for record in await consumer.poll(timeout_ms=100)]
    return found


@pytest.mark.parametrize("hints", [True, False])
def test_a_consumer_follows_its_leader(hints: bool) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a", b"b")
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            assert await poll_values(consumer, 2) == [b"a", b"b"]
            cluster.move(2)
            cluster.append(b"c")
            if hints:  # metadata lags behind; the answer of the old leader does not
                cluster.told_leader = 1
            assert await poll_values(consumer, 1) == [b"c"]

        assert (FETCH, 2) in cluster.asked
        assert (END_OF_EPOCH, 2) in cluster.asked

    with_cluster(test, hints=hints)


def test_a_consumer_that_knows_an_older_epoch_learns_the_new_one() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a")
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            assert await poll_values(consumer, 1) == [b"a"]
            cluster.move(1)  # the same node, in another epoch: FENCED_LEADER_EPOCH
            cluster.append(b"b")
            assert await poll_values(consumer, 1) == [b"b"]

    with_cluster(test)


def test_a_consumer_that_knows_a_newer_epoch_waits_for_the_leader() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a")
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            assert await poll_values(consumer, 1) == [b"a"]
            cluster.move(1)
            cluster.append(b"b")
            assert await poll_values(consumer, 1) == [b"b"]
            cluster.leader_epoch -= 1  # the broker lags behind: UNKNOWN_LEADER_EPOCH
            assert await consumer.poll(timeout_ms=50) == []
            cluster.leader_epoch += 1
            cluster.append(b"c")
            assert await poll_values(consumer, 1) == [b"c"]

    with_cluster(test)


def test_a_consumer_goes_back_to_where_a_new_leader_s_log_parts_from_what_it_read() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a", b"b", b"lost")
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            assert await poll_values(consumer, 3) == [b"a", b"b", b"lost"]
            cluster.move(2, keeps=2)
            cluster.append(b"c", b"d", b"e")
            assert await poll_values(consumer, 3) == [b"c", b"d", b"e"]

    with_cluster(test)


def test_a_consumer_without_a_reset_is_told_of_a_cut_log_and_may_seek() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a", b"lost")
        async with consumer_of(cluster, auto_offset_reset="none") as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 0)
            assert await poll_values(consumer, 2) == [b"a", b"lost"]
            cluster.move(2, keeps=1)
            cluster.append(b"b")
            with pytest.raises(LogTruncationError) as caught:
                await poll_values(consumer, 1)
            consumer.seek(T0, 1)
            assert await poll_values(consumer, 1) == [b"b"]

        assert (caught.value.topic_partition, caught.value.position, caught.value.end_offset) == (T0, 2, 1)

    with_cluster(test)


def test_a_session_asks_for_changes_only_and_begins_again_when_it_is_lost() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.append(b"a")
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            assert await poll_values(consumer, 1) == [b"a"]
            while (2, 1) not in cluster.fetches and (3, 0) not in cluster.fetches:
                await consumer.poll(timeout_ms=10)
            cluster.fetch_errors.append(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            cluster.append(b"b")
            before = len(cluster.fetches)
            assert await poll_values(consumer, 1) == [b"b"]

        assert cluster.fetches[0] == (0, 1)
        assert cluster.fetches[1] == (1, 1)  # the position has moved
        assert (2, 0) in cluster.fetches  # nothing has changed since
        assert (0, 1) in cluster.fetches[before:]

    with_cluster(test, session_id=77)


@pytest.mark.parametrize("hints", [True, False])
def test_a_producer_follows_its_leader(hints: bool) -> None:
    async def test(cluster: FakeCluster) -> None:
        async with producer_of(cluster) as producer:
            assert (await producer.send("t", b"x", partition=0)).offset == 0
            cluster.move(2)
            cluster.told_leader = 1 if hints else None
            assert (await producer.send("t", b"x", partition=0)).offset == 1

        assert cluster.asked.count((PRODUCE, 2)) == 1

    with_cluster(test, hints=hints)


def test_a_throttled_client_pauses_as_long_as_it_is_asked_to() -> None:
    async def test(cluster: FakeCluster) -> None:
        async with producer_of(cluster) as producer:
            await producer.send("t", b"x", partition=0)
            cluster.throttles_ms = deque([150])
            await producer.send("t", b"x", partition=0)
            began_s = trio.current_time()
            await producer.send("t", b"x", partition=0)
            first_s = trio.current_time() - began_s
            await producer.send("t", b"x", partition=0)

        assert first_s >= 0.14
        assert trio.current_time() - began_s - first_s < 0.14

    with_cluster(test)


def test_what_is_asked_for_while_an_answer_is_under_way_is_not_asked_for_again() -> None:
    async def test(cluster: FakeCluster) -> None:
        async with Producer({"bootstrap.servers": cluster.bootstrap, **RESTED}) as producer:
            with pytest.raises(BufferExhaustedError):
                producer.send_nowait("t", b"a", partition=0)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            await producer.send("t", b"a", partition=0)
            await trio.sleep(0.2)  # four times the back-off

        assert [key for key, _ in cluster.asked].count(METADATA) == 1

    with_cluster(test)


RESTED: dict[str, object] = {"retry.backoff.ms": 50, "retry.backoff.max.ms": 50}


async def send_to_a_missing_partition(cluster: FakeCluster) -> None:
    async with Producer({"bootstrap.servers": cluster.bootstrap, "max.block.ms": 400, **RESTED}) as producer:
        with pytest.raises(ClientTimeoutError, match=r"got no partition 7 within max.block.ms=400: it has \d+$"):
            await producer.send("t", b"a", partition=7)


async def send_where_nobody_leads(cluster: FakeCluster) -> None:
    times = {"linger.ms": 0, "request.timeout.ms": 400, "delivery.timeout.ms": 400}
    async with Producer({"bootstrap.servers": cluster.bootstrap, **times, **RESTED}) as producer:
        with pytest.raises(ClientTimeoutError, match="not acknowledged"):
            await producer.send("t", b"a", partition=0)


async def poll_a_missing_partition(cluster: FakeCluster) -> None:
    async with Consumer({"bootstrap.servers": cluster.bootstrap, **RESTED}) as consumer:
        consumer.assign([TopicPartition("t", 7)])
        assert await consumer.poll(timeout_ms=400) == []


async def poll_where_nobody_leads(cluster: FakeCluster) -> None:
    async with Consumer(
        {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest", **RESTED}
    ) as consumer:
        consumer.assign([T0])
        assert await consumer.poll(timeout_ms=400) == []


@pytest.mark.parametrize(
    "work",
    [send_to_a_missing_partition, send_where_nobody_leads, poll_a_missing_partition, poll_where_nobody_leads],
)
def test_who_waits_for_a_partition_asks_no_more_often_than_the_backoff_says(
    work: Callable[[FakeCluster], Awaitable[None]],
) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.told_leader = -1
        await work(cluster)

        assert 2 <= [key for key, _ in cluster.asked].count(METADATA) <= 14

    with_cluster(test)
