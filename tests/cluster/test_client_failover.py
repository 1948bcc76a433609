"""Our client on virtual time, while leaders die and stop: it goes on at once; nothing is lost, doubled or reordered."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio

from odradek.client import NewTopic, TopicPartition
from odradek.client.consumer import Consumer
from odradek.client.producer import Producer
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster

T0 = TopicPartition("t", 0)
COUNT = 150
EVERY_S = 0.005
GAP_S_MAX = 0.05
"""Half of `retry.backoff.ms`: who waits for that is too slow."""


class Load:
    """Five requests in flight and more, a reader, and when each record was acknowledged and read."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.acknowledged: dict[int, float] = {}
        self.offsets: dict[int, int] = {}
        self.read: list[tuple[int, float]] = []

    @property
    def leader(self) -> int:
        return image_of(self.cluster.brokers[1]).topics_by_name["t"].partitions[0].leader

    async def send(self, producer: Producer, number: int) -> None:
        sent = await producer.send("t", b"%d" % number, partition=0)
        self.acknowledged[number], self.offsets[number] = trio.current_time(), sent.offset

    async def consume(self, consumer: Consumer) -> None:
        while len(self.read) < COUNT:
            self.read += [(int(record.value), trio.current_time()) for record in await consumer.poll(timeout_ms=100)]

    async def accident(self, way: str) -> None:
        """The leader ends in the first third, and is back in the last."""
        broker = self.cluster.brokers[2]
        await trio.sleep(COUNT / 3 * EVERY_S)
        if way == "crash":
            broker.crash()
        else:
            await broker.stop()
        await trio.sleep(COUNT / 3 * EVERY_S)
        broker.start()

    async def run(self, way: str) -> None:
        producer = self.cluster.producer("p", {"acks": "all", "linger.ms": 0})
        consumer = self.cluster.consumer("c", {"auto.offset.reset": "earliest"})
        async with producer, consumer, trio.open_nursery() as nursery:
            consumer.assign([T0])
            nursery.start_soon(self.consume, consumer)
            nursery.start_soon(self.accident, way)
            for number in range(COUNT):
                nursery.start_soon(self.send, producer, number)
                await trio.sleep(EVERY_S)


def longest_gap_s(times: list[float]) -> float:
    ordered = sorted(times)
    return max(after - before for before, after in pairwise(ordered))


@pytest.mark.parametrize("way", ["crash", "stop"])
@pytest.mark.parametrize("seed", [1, 2])
def test_producer_and_consumer_go_on_as_soon_as_another_broker_leads(way: str, seed: int) -> None:
    async def main(cluster: Cluster) -> Load:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("t", assignments=[[2, 3, 1]], configs={"min.insync.replicas": "2"}))
        load = Load(cluster)
        await load.run(way)
        assert load.leader != -1
        return load

    load = in_cluster(main, seed=seed)

    assert load.offsets == {number: number for number in range(COUNT)}
    assert [number for number, _ in load.read] == list(range(COUNT))
    assert longest_gap_s([*load.acknowledged.values()]) < GAP_S_MAX
    assert longest_gap_s([when for _, when in load.read]) < GAP_S_MAX
