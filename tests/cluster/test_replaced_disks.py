"""Whole brokers that keep the metadata together: disks that are replaced, and a broker alone that becomes several."""

from __future__ import annotations

from uuid import UUID

import pytest
import trio

from odradek.client import NewTopic
from odradek.client.admin_values import QuorumDescription
from odradek.kernel.broker import read_broker_options
from odradek.kernel.quorum.formatting import Formatting, standalone
from odradek.lab.simulator.cluster import DATA_DIR, BrokerHost, Cluster
from odradek.lab.simulator.disk import Disk
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .simulated import LIMIT_S, admin, image_of, in_quorum_of_three


def replace_disk(broker: BrokerHost) -> None:
    """End a broker, and let an empty disk stand where its own was."""
    broker.crash()
    broker.host.disk = Disk(broker.host.world, f"{broker.host.name}, replaced")


async def described(cluster: Cluster, broker_id: int) -> QuorumDescription:
    async with admin(cluster, broker_id) as client:
        return await client.describe_quorum()


def directories(quorum: QuorumDescription) -> dict[int, UUID]:
    """The voters' directories, by id."""
    return {each.replica_id: each.directory_id for each in quorum.voters}


@pytest.mark.parametrize("joins", [pytest.param(False, marks=pytest.mark.sweep), True])
def test_a_voter_whose_disk_was_replaced_observes_until_it_is_added(joins: bool) -> None:
    async def main(cluster: Cluster) -> None:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("orders", 2, 3))
        before = await described(cluster, 1)
        victim, other = before.leader_id, before.leader_id % 3 + 1
        old = directories(before)
        replace_disk(cluster.brokers[victim])
        cluster.brokers[victim].start()
        await cluster.brokers[victim].wait_serving()

        assert image_of(cluster.brokers[victim]).cluster_id == image_of(cluster.brokers[other]).cluster_id
        assert "orders" in image_of(cluster.brokers[victim]).topics_by_name
        if joins:
            while directories(await described(cluster, other)).get(victim) in (None, old[victim]):  # noqa: ASYNC110 - as `until`
                await trio.sleep(0.1)
        after = await described(cluster, other)
        now = directories(after)
        assert now.keys() == {1, 2, 3}
        assert (now[victim] == old[victim]) is not joins
        assert (victim in {each.replica_id for each in after.observers}) is not joins

    in_quorum_of_three(main, {"controller.quorum.auto.join.enable": str(joins).lower()})


@pytest.mark.sweep
def test_two_replaced_disks_of_three_found_no_cluster_and_lead_none() -> None:
    async def main(cluster: Cluster) -> None:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("orders", 2, 3))
        cluster_id = image_of(cluster.brokers[1]).cluster_id
        cluster.brokers[3].crash()
        for broker_id in (1, 2):
            replace_disk(cluster.brokers[broker_id])
            cluster.brokers[broker_id].start()
        with trio.move_on_after(2) as patience:
            await cluster.brokers[1].wait_serving()
        assert patience.cancelled_caught
        cluster.brokers[3].start()
        with trio.move_on_after(2) as patience:
            await cluster.brokers[1].wait_serving()
        assert patience.cancelled_caught
        for broker_id in (1, 2):
            broker = cluster.brokers[broker_id].broker
            assert broker is not None
            assert broker.parts.metadata.node.feed.cluster_id == cluster_id

    in_quorum_of_three(main, {})


def test_a_broker_that_was_alone_becomes_the_first_of_three_voters() -> None:
    world = World(Seeds(1))
    servers = ",".join(f"broker-{number}:9093" for number in (1, 2, 3))
    common = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": servers,
        "controller.quorum.auto.join.enable": "true",
    }

    def settings_of(number: int) -> dict[str, str]:
        return {**common, "listeners": f"PLAINTEXT://broker-{number}:9092,CONTROLLER://broker-{number}:9093"}

    async def main(cluster: Cluster) -> None:
        alone = cluster.add_broker({})
        alone.start()
        await alone.wait_serving()
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("orders", 2, 1))
        cluster_id = image_of(alone).cluster_id
        await alone.stop()
        options = [f"{key}={value}" for key, value in {"node.id": "1", **settings_of(1)}.items()]
        config = read_broker_options(config=None, environment={}, options=options, data_dir=DATA_DIR).config
        process = alone.host.start_process()
        machine = process.machine
        voters = standalone(config, machine)
        Formatting(config, machine, cluster_id=cluster_id, voters=voters, ignores_formatted=True).run()
        process.kill()
        alone.start(settings_of(1))
        for number in (2, 3):
            cluster.add_broker(settings_of(number)).start()
        for broker in cluster.brokers.values():
            await broker.wait_serving()
        while len((await described(cluster, 2)).voters) < 3:  # noqa: ASYNC110 - as `until`
            await trio.sleep(0.1)

        assert {image_of(each).cluster_id for each in cluster.brokers.values()} == {cluster_id}
        assert all("orders" in image_of(each).topics_by_name for each in cluster.brokers.values())
        alone.crash()
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("afterwards", 1, 2))

    async def root() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            await main(cluster)
            for broker in cluster.brokers.values():
                broker.crash()
            nursery.cancel_scope.cancel()

    run_in_world(world, root, limit_ns=LIMIT_S * SECOND)
