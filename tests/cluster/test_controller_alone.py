"""A node that is the controller and no broker, and brokers of which none is the controller."""

from __future__ import annotations

import trio

from odradek.client import NewTopic
from odradek.lab.simulator.cluster import CONTROLLER_PORT, Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .simulated import admin, image_of, until

COMMON = {"controller.listener.names": "CONTROLLER", "controller.quorum.voters": f"1@broker-1:{CONTROLLER_PORT}"}


def test_brokers_live_with_a_controller_that_keeps_no_partition() -> None:
    world = World(Seeds(3))

    async def main() -> tuple[list[int], set[int], bool, bool]:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            listeners = f"CONTROLLER://broker-1:{CONTROLLER_PORT}"
            cluster.add_broker({"process.roles": "controller", "listeners": listeners, **COMMON})
            for _ in range(2):
                cluster.add_broker({"process.roles": "broker", **COMMON})
            for node in cluster.brokers.values():
                node.start()
            for node in cluster.brokers.values():
                await node.wait_serving()
            async with admin(cluster, 3) as client:
                await client.create_topic(NewTopic("t", 4, 2))
                controller = await client.find_controller()
            await until(lambda: "t" in image_of(cluster.brokers[2]).topics_by_name)
            image = image_of(cluster.brokers[2])
            leaders = {state.leader for state in image.topics_by_name["t"].partitions}
            await cluster.brokers[2].stop()
            is_fenced = image_of(cluster.brokers[1]).brokers[2].is_fenced
            await cluster.brokers[3].stop()
            await cluster.brokers[1].stop()
            nursery.cancel_scope.cancel()
            return sorted(image.brokers), leaders, controller == 1, is_fenced

    brokers, leaders, is_found, is_fenced = run_in_world(world, main, limit_ns=100 * SECOND)

    assert brokers == [2, 3]
    assert leaders == {2, 3}
    assert is_found
    assert is_fenced
