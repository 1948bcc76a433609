"""Copiers that share a group copy exactly once over three brokers on virtual time, as brokers or copiers are bounced.

What Kafka's `group_mode_transactions_test` checks: each record is copied once, and in its partition's order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from odradek.client import NewTopic, TopicPartition
from odradek.kernel.errors import KafkaError
from odradek.kernel.peers.errors import ClientError
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, in_cluster

SETTINGS = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 3
COUNT = 30
"""In each partition."""
PLACES = [TopicPartition("copies", partition) for partition in range(PARTITIONS)]


class Copier:
    """Copies by transactions, and begins anew where one fails."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self.life = trio.CancelScope()

    async def run(self) -> None:
        """Copy until cancelled; a life that is ended by `life` is followed by another."""
        while True:
            with trio.CancelScope() as self.life:
                try:
                    await self._copy()
                except (ClientError, KafkaError):
                    await trio.sleep(0.1)

    async def _copy(self) -> None:
        settings: dict[str, object] = {"request.timeout.ms": 2_000}
        consumer_settings = settings | {
            "group.id": "copiers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "max.poll.records": 7,
            "session.timeout.ms": 6_000,
        }
        producer_settings = settings | {"transactional.id": self._name, "delivery.timeout.ms": 20_000}
        async with (
            self._cluster.producer(self._name, producer_settings) as producer,
            self._cluster.consumer(self._name, consumer_settings) as consumer,
        ):
            consumer.subscribe(["originals"])
            while True:
                records = await consumer.poll(timeout_ms=500)
                if not records:
                    continue
                async with producer.transaction():
                    for record in records:
                        await producer.enqueue("copies", record.value, partition=record.partition)
                    await producer.send_offsets(consumer.consumed(), consumer.group_metadata)


Accident = Callable[[Cluster, list[Copier]], Awaitable[None]]


async def nothing(_cluster: Cluster, _copiers: list[Copier]) -> None:
    """All stay."""


async def bounce_brokers_cleanly(cluster: Cluster, _copiers: list[Copier]) -> None:
    for host in (cluster.brokers[3], cluster.brokers[2]):
        await host.stop()
        host.start()
        await host.wait_serving()


async def bounce_brokers_hard(cluster: Cluster, _copiers: list[Copier]) -> None:
    for host in (cluster.brokers[3], cluster.brokers[2]):
        host.crash()
        await trio.sleep(0.1)
        host.start()
        await host.wait_serving()
        await trio.sleep(1)


async def bounce_copiers(_cluster: Cluster, copiers: list[Copier]) -> None:
    for copier in copiers:
        await trio.sleep(0.3)
        copier.life.cancel()


async def fill(cluster: Cluster) -> None:
    async with cluster.producer("source", {"acks": "all"}) as producer:
        for number in range(COUNT):
            for partition in range(PARTITIONS):
                await producer.send("originals", b"%d" % number, partition=partition)
            await trio.sleep(0.02)


async def read(cluster: Cluster) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    async with cluster.consumer("reader", settings) as consumer:
        consumer.assign(PLACES)
        while sum(map(len, found.values())) < COUNT * PARTITIONS:
            for record in await consumer.poll(timeout_ms=100):
                found[record.partition].append(int(record.value or b""))
        await trio.sleep(1)
        for record in await consumer.poll(timeout_ms=1000):  # what is there twice comes last
            found[record.partition].append(int(record.value or b""))
    return found


@pytest.mark.parametrize("accident", [nothing, bounce_brokers_cleanly, bounce_brokers_hard, bounce_copiers])
def test_copiers_that_share_a_group_copy_each_record_once_and_in_order(accident: Accident) -> None:
    async def main(cluster: Cluster) -> dict[int, list[int]]:
        async with admin(cluster, 1) as client:
            for name in ("originals", "copies"):
                await client.create_topic(NewTopic(name, PARTITIONS, 3))
        copiers = [Copier(cluster, f"copier-{number}") for number in (1, 2)]
        async with trio.open_nursery() as nursery:
            for copier in copiers:
                nursery.start_soon(copier.run)
            async with trio.open_nursery() as work:
                work.start_soon(fill, cluster)
                await trio.sleep(0.5)
                work.start_soon(accident, cluster, copiers)
            found = await read(cluster)
            nursery.cancel_scope.cancel()
        return found

    assert in_cluster(main, settings=SETTINGS) == {each: [*range(COUNT)] for each in range(PARTITIONS)}
