"""Partitions of three brokers on virtual time: what is acknowledged by all in-sync replicas outlives one of them."""

from __future__ import annotations

from odradek.client import NewTopic
from odradek.kernel.types import TopicPartition
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster, until

SETTINGS = {"broker.session.timeout.ms": "9000", "default.replication.factor": "3", "min.insync.replicas": "2"}


async def make_topic(cluster: Cluster, partitions: int = 1) -> None:
    async with admin(cluster, 2) as client:
        await client.create_topic(NewTopic("t", partitions, 3))
    await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values() if each.broker))


async def read_all(cluster: Cluster, partitions: int = 1) -> list[bytes]:
    values: list[bytes] = []
    places = [TopicPartition("t", number) for number in range(partitions)]
    async with cluster.consumer("reader", {"auto.offset.reset": "earliest", "group.id": None}) as consumer:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while sum([await consumer.position(place) for place in places]) < sum(ends.values()):
            values += [bytes(record.value) for record in await consumer.poll(timeout_ms=100)]
    return values


def test_records_reach_all_replicas() -> None:
    async def main(cluster: Cluster) -> tuple[list[bytes], list[int]]:
        await make_topic(cluster, 3)
        async with cluster.producer("producer", {"acks": "all"}) as producer:
            for number in range(30):
                await producer.send("t", b"%d" % number, partition=number % 3)
        await until(lambda: all(_marks(cluster, index) == [10, 10, 10] for index in range(3)))
        return sorted(await read_all(cluster, 3)), _marks(cluster, 0)

    values, marks = in_cluster(main, settings=SETTINGS)

    assert values == sorted(b"%d" % number for number in range(30))
    assert marks == [10, 10, 10]


def _marks(cluster: Cluster, index: int) -> list[int]:
    found = []
    for host in cluster.brokers.values():
        assert host.broker is not None
        found.append(host.broker.parts.logs.replicas.get("t", index).high_watermark)
    return found


def test_a_leader_that_dies_takes_nothing_acknowledged_along() -> None:
    async def main(cluster: Cluster) -> tuple[list[bytes], set[int]]:
        await make_topic(cluster)
        controller = cluster.brokers[1]
        leader = image_of(controller).topics_by_name["t"].partitions[0].leader
        victim = cluster.brokers[leader if leader != 1 else 2]
        async with cluster.producer("producer", {"acks": "all", "request.timeout.ms": 2000}) as producer:
            for number in range(30):
                if number == 10:
                    victim.crash()
                await producer.send("t", b"%d" % number, partition=0)
        victim.start()
        await victim.wait_serving()
        await until(lambda: len(image_of(controller).topics_by_name["t"].partitions[0].isr) == 3)
        return await read_all(cluster), set(image_of(controller).topics_by_name["t"].partitions[0].isr)

    values, isr = in_cluster(main, settings=SETTINGS)

    assert values == [b"%d" % number for number in range(30)]
    assert isr == {1, 2, 3}
