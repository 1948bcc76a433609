"""What comes twice, and what is lost, by when offsets are committed: on virtual time, one record a second."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from odradek.client import Consumer, RebalanceListener, TopicPartition
from odradek.kernel.errors import ErrorCode

from .simulated_cluster import PROTOCOLS, SESSION_S, SimulatedCluster, with_cluster

T0 = TopicPartition("t", 0)
EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


class Reader:
    """An application: takes a second for each record, and remembers which it has processed."""

    def __init__(self) -> None:
        self.processed: list[int] = []

    async def read(self, consumer: Consumer, *, seconds: float, commits: bool = False) -> None:
        """Poll and process for so long; what was polled is processed, and perhaps committed without waiting."""
        until_s = trio.current_time() + seconds
        while (left_s := until_s - trio.current_time()) > 0:
            for record in await consumer.poll(timeout_ms=round(left_s * 1_000)):
                await trio.sleep(1)
                self.processed.append(int(record.value))
                if commits:
                    consumer.commit_nowait()

    async def read_to_end(self, consumer: Consumer) -> None:
        """Poll and process what there is."""
        while records := await consumer.poll(timeout_ms=SESSION_S * 2_000):
            self.processed += [int(record.value) for record in records]


async def next_reads(cluster: SimulatedCluster, protocol: str) -> list[int]:
    """Return what the next member of the group gets to see."""
    reader = Reader()
    async with cluster.consumer("next", protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"])
        await reader.read_to_end(consumer)
    return reader.processed


@EVERY_PROTOCOL
def test_who_dies_three_seconds_after_an_automatic_commit_has_these_three_seconds_repeated(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        reader = Reader()
        await cluster.append("t", 0, *range(20))
        async with cluster.consumer("dies", protocol, auto_commit_interval_ms=5_000, max_poll_records=1) as dies:
            dies.subscribe(["t"])
            await reader.read(dies, seconds=8)
            cluster.unplug("dies")
            assert await cluster.committed() == {T0: 5}
            seen = await next_reads(cluster, protocol)

        assert reader.processed == [0, 1, 2, 3, 4, 5, 6, 7]
        assert list(range(5, 20)) == seen

    with_cluster(test, {"t": 1})


@EVERY_PROTOCOL
def test_a_rebalance_three_seconds_after_an_automatic_commit_repeats_nothing_where_everybody_polls(
    protocol: str,
) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        readers = Reader(), Reader()
        await cluster.append("t", 0, *range(0, 40, 2))
        await cluster.append("t", 1, *range(1, 40, 2))
        settings: dict[str, object] = {"auto_commit_interval_ms": 5_000, "max_poll_records": 1}
        async with cluster.consumer("first", protocol, **settings) as first:
            first.subscribe(["t"])
            await readers[0].read(first, seconds=8)
            async with cluster.consumer("second", protocol, **settings) as second, trio.open_nursery() as nursery:
                second.subscribe(["t"])
                nursery.start_soon(partial(readers[1].read, second, seconds=52))
                await readers[0].read(first, seconds=52)

        assert list(range(40)) == sorted(readers[0].processed + readers[1].processed)
        assert readers[1].processed

    with_cluster(test, {"t": 2})


@EVERY_PROTOCOL
@pytest.mark.parametrize("is_synchronous", [True, False])
def test_who_commits_before_he_processes_loses_what_he_dies_over(protocol: str, is_synchronous: bool) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        processed: list[int] = []
        await cluster.append("t", 0, *range(10))
        async with cluster.consumer("dies", protocol, enable_auto_commit=False, max_poll_records=1) as dies:
            dies.subscribe(["t"])
            for number in range(4):
                (record,) = await dies.poll()
                if is_synchronous:
                    await dies.commit()
                else:
                    dies.commit_nowait()
                await trio.sleep(1)
                if number < 3:
                    processed.append(int(record.value))
            cluster.unplug("dies")
            seen = await next_reads(cluster, protocol)

        assert processed == [0, 1, 2]
        assert seen == [4, 5, 6, 7, 8, 9]

    with_cluster(test, {"t": 1})


@EVERY_PROTOCOL
def test_who_commits_after_he_processed_has_repeated_what_he_dies_over(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        await cluster.append("t", 0, *range(10))
        async with cluster.consumer("dies", protocol, enable_auto_commit=False, max_poll_records=1) as dies:
            dies.subscribe(["t"])
            for _ in range(3):
                await dies.poll()
                await trio.sleep(1)
                await dies.commit()
            await dies.poll()
            cluster.unplug("dies")
            seen = await next_reads(cluster, protocol)

        assert seen == [3, 4, 5, 6, 7, 8, 9]

    with_cluster(test, {"t": 1})


class CommitsBeforeItGoes(RebalanceListener):
    """Commits once more, and waits for it, before partitions go."""

    def __init__(self) -> None:
        self.consumer: Consumer | None = None

    async def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit."""
        assert self.consumer is not None
        await self.consumer.commit()


@EVERY_PROTOCOL
@pytest.mark.parametrize("is_final_synchronous", [True, False])
def test_asynchronous_commits_with_a_synchronous_one_at_the_end_are_clean(
    protocol: str, is_final_synchronous: bool
) -> None:
    """The last asynchronous commit gets lost, and is not tried again: only a synchronous one makes up for it."""

    async def test(cluster: SimulatedCluster) -> None:
        told: list[object] = []
        listener = CommitsBeforeItGoes()
        await cluster.append("t", 0, *range(10))
        async with cluster.consumer("leaves", protocol, enable_auto_commit=False, max_poll_records=1) as leaves:
            listener.consumer = leaves
            leaves.subscribe(["t"], listener=listener if is_final_synchronous else None)
            for number in range(4):
                await leaves.poll()
                await trio.sleep(1)
                if number == 3:
                    cluster.requests.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=1)
                leaves.commit_nowait(on_commit=lambda _, error: told.append(error and error.retriable))
            await leaves.poll(timeout_ms=0, records_max=0)
        committed = await cluster.committed()
        seen = await next_reads(cluster, protocol)

        assert told == [None, None, None, True]
        assert {T0: 4 if is_final_synchronous else 3} == committed
        assert list(range(4 if is_final_synchronous else 3, 10)) == seen

    with_cluster(test, {"t": 1})


@EVERY_PROTOCOL
def test_a_rebalance_finds_asynchronous_commits_with_a_synchronous_one_at_the_end_clean(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        readers = Reader(), Reader()
        listeners = CommitsBeforeItGoes(), CommitsBeforeItGoes()
        await cluster.append("t", 0, *range(0, 30, 2))
        await cluster.append("t", 1, *range(1, 30, 2))
        settings: dict[str, object] = {"enable_auto_commit": False, "max_poll_records": 1}
        async with cluster.consumer("first", protocol, **settings) as first:
            listeners[0].consumer = first
            first.subscribe(["t"], listener=listeners[0])
            await readers[0].read(first, seconds=6, commits=True)
            cluster.requests.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
            async with cluster.consumer("second", protocol, **settings) as second, trio.open_nursery() as nursery:
                listeners[1].consumer = second
                second.subscribe(["t"], listener=listeners[1])
                nursery.start_soon(partial(readers[1].read, second, seconds=80, commits=True))
                await readers[0].read(first, seconds=80, commits=True)
        committed = await cluster.committed()

        assert list(range(30)) == sorted(readers[0].processed + readers[1].processed)
        assert {T0: 15, TopicPartition("t", 1): 15} == committed

    with_cluster(test, {"t": 2})
