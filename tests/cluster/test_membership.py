"""Brokers of one cluster on virtual time: they register, follow the metadata, ask the controller, die and come back."""

from __future__ import annotations

from odradek.client import NewTopic
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster, until


def fenced(cluster: Cluster) -> dict[int, bool]:
    """Who is fenced, as the first broker knows it."""
    return {broker_id: broker.is_fenced for broker_id, broker in image_of(cluster.brokers[1]).brokers.items()}


def test_three_brokers_register_and_are_unfenced() -> None:
    async def main(cluster: Cluster) -> list[dict[int, bool]]:
        return [fenced(cluster)]

    assert in_cluster(main) == [{1: False, 2: False, 3: False}]


def test_any_broker_creates_a_topic_and_all_know_it() -> None:
    async def main(cluster: Cluster) -> list[list[str]]:
        for node_id in cluster.brokers:
            async with admin(cluster, node_id) as client:
                await client.create_topic(NewTopic(f"topic-{node_id}", 3, 3))
        await until(lambda: len({image_of(each).offset for each in cluster.brokers.values()}) == 1)
        return [sorted(image_of(each).topics_by_name) for each in cluster.brokers.values()]

    assert in_cluster(main) == [["topic-1", "topic-2", "topic-3"]] * 3


SETTINGS = {"broker.session.timeout.ms": "9000"}


def test_a_broker_that_dies_is_fenced_and_its_leaders_move() -> None:
    async def main(cluster: Cluster) -> tuple[list[int], dict[int, bool], list[set[int]]]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("t", 6, 3))
        await until(lambda: "t" in image_of(cluster.brokers[1]).topics_by_name)
        began_ns = cluster.world.now_ns
        cluster.brokers[3].crash()
        await until(lambda: fenced(cluster)[3])
        elapsed_ms = (cluster.world.now_ns - began_ns) // 1_000_000
        leaders = {state.leader for state in image_of(cluster.brokers[1]).topics_by_name["t"].partitions}
        isr = {broker for state in image_of(cluster.brokers[1]).topics_by_name["t"].partitions for broker in state.isr}
        while_dead = fenced(cluster)
        cluster.brokers[3].start()
        await cluster.brokers[3].wait_serving()
        return [elapsed_ms], while_dead | {0: fenced(cluster)[3]}, [leaders, isr]

    (elapsed_ms,), states, (leaders, isr) = in_cluster(main, settings=SETTINGS)

    assert elapsed_ms <= 11_100
    assert states == {1: False, 2: False, 3: True, 0: False}
    assert leaders == {1, 2}
    assert isr == {1, 2}
