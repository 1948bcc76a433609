"""Consumers of three brokers on virtual time read from the replica of their rack, and from the leader where it is gone.

What Kafka's `fetch_from_follower_test` checks.
"""

from __future__ import annotations

from odradek.client import Consumer, NewTopic, TopicPartition
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, in_cluster

SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
COUNT = 100
LEADER, NEAR = 1, 3


async def begin_in_racks(cluster: Cluster) -> None:
    for node_id, host in cluster.brokers.items():
        host.start({"broker.rack": f"rack-{node_id}"})
    for host in cluster.brokers.values():
        await host.wait_serving()


def given(cluster: Cluster, node_id: int) -> int:
    """Return how many bytes of the topic consumers have had of a broker in this life of it."""
    broker = cluster.brokers[node_id].broker
    return 0 if broker is None else broker.parts.logs.replicas.topics["t"].counters.bytes_out


async def produce(cluster: Cluster, first: int) -> None:
    async with cluster.producer("p", {"acks": "all"}) as producer:
        for number in range(first, first + COUNT):
            await producer.send("t", b"%d" % number, partition=0)


async def read(consumer: Consumer, first: int) -> list[int]:
    """Read so many records as `produce` has sent, and return those that were not to come next."""
    found: list[int] = []
    while len(found) < COUNT:
        found += [int(record.value or b"") for record in await consumer.poll(timeout_ms=100)]
    return [number for number, wanted in zip(found, range(first, first + COUNT), strict=True) if number != wanted]


def test_a_consumer_reads_from_the_replica_of_its_rack_and_from_the_leader_while_that_is_away() -> None:
    async def main(cluster: Cluster) -> tuple[list[list[int]], list[tuple[int, int]]]:
        async with admin(cluster, LEADER) as client:
            await client.create_topic(NewTopic("t", assignments=[[LEADER, 2, NEAR]]))
        settings = {"client.rack": f"rack-{NEAR}", "auto.offset.reset": "earliest", "request.timeout.ms": 2000}
        wrong: list[list[int]] = []
        counted: list[tuple[int, int]] = []
        async with cluster.consumer("near", settings) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            await produce(cluster, 0)
            wrong.append(await read(consumer, 0))
            counted.append((given(cluster, LEADER), given(cluster, NEAR)))
            cluster.brokers[NEAR].crash()
            await produce(cluster, COUNT)
            wrong.append(await read(consumer, COUNT))
            counted.append((given(cluster, LEADER), given(cluster, NEAR)))
        return wrong, counted

    wrong, ((led, near), (led_alone, _gone)) = in_cluster(main, settings=SETTINGS, begin=begin_in_racks)

    assert wrong == [[], []]
    assert led == 0
    assert near > 0
    assert led_alone > 0


def test_a_consumer_of_no_rack_or_of_an_unknown_one_reads_from_the_leader() -> None:
    async def main(cluster: Cluster) -> list[tuple[int, int]]:
        async with admin(cluster, LEADER) as client:
            await client.create_topic(NewTopic("t", assignments=[[LEADER, 2, NEAR]]))
        await produce(cluster, 0)
        counted: list[tuple[int, int]] = []
        for name, rack in (("none", ""), ("unknown", "rack-9")):
            settings = {"client.rack": rack, "auto.offset.reset": "earliest"}
            async with cluster.consumer(name, settings) as consumer:
                consumer.assign([TopicPartition("t", 0)])
                assert await read(consumer, 0) == []
            counted.append((given(cluster, 2), given(cluster, NEAR)))
        return counted

    assert in_cluster(main, settings=SETTINGS, begin=begin_in_racks) == [(0, 0), (0, 0)]
