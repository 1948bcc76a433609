"""Internal topics of a cluster that began with one broker have their replicas when the others have come."""

from __future__ import annotations

import trio

from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .simulated import admin, image_of, until

INTERNAL = ("__consumer_offsets", "__transaction_state")


def replicas_of(cluster: Cluster) -> list[tuple[int, int]]:
    """Of each partition, how many replicas there are, and how many in sync."""
    topics = image_of(cluster.brokers[1]).topics_by_name
    return [(len(state.replicas), len(state.isr)) for name in INTERNAL for state in topics[name].partitions]


def test_replicas_come_with_brokers() -> None:
    world = World(Seeds(1))

    async def root() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            first, *others = cluster.add_brokers(3, {})
            first.start()
            await first.wait_serving()
            async with cluster.producer("p", {"transactional.id": "p", "max.block.ms": 60_000}) as producer:
                await producer.begin_transaction()
                await producer.abort_transaction()
            async with admin(cluster, 1) as client:
                await client.call(FindCoordinatorRequest(coordinator_keys=["g"]), lambda _answer: None)
            await until(lambda: all(name in image_of(first).topics_by_name for name in INTERNAL))
            assert replicas_of(cluster) == [(1, 1)] * 4

            for broker in others:
                broker.start()
                await broker.wait_serving()

            await until(lambda: replicas_of(cluster) == [(3, 3)] * 4)
            await until(lambda: image_of(first).topic_config("__transaction_state").get("min.insync.replicas") == "2")
            assert "min.insync.replicas" not in image_of(first).topic_config("__consumer_offsets")
            for broker in cluster.brokers.values():
                broker.crash()
            nursery.cancel_scope.cancel()

    run_in_world(world, root, limit_ns=600 * SECOND)
