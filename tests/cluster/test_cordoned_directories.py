"""Cordoned log directories: nothing new comes there, what is there stays, and the controller knows (KIP-1066)."""

from __future__ import annotations

import pytest
import trio

from odradek.client import NewTopic
from odradek.client.admin import Admin
from odradek.client.admin_values import ResourceType
from odradek.client.errors import BrokerError
from odradek.kernel.config.cordons import CORDONED
from odradek.kernel.errors import ErrorCode
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster, until

TWO_DISKS = {"log.dirs": "/data/one,/data/two"}
PARTITIONS = 6
Found = dict[str, tuple[bool, set[str]]]
"""By log directory: whether it is cordoned, and the topics that have replicas in it."""


async def cordon(cluster: Cluster, client: Admin, node_id: int, text: str, count: int) -> None:
    """Cordon directories of a broker, and wait until the controller knows how many."""
    await client.alter_configs(ResourceType.BROKER, str(node_id), {CORDONED: text})
    await until(lambda: len(image_of(cluster.brokers[1]).brokers[node_id].cordoned_log_dirs) == count)


async def refused(client: Admin, topic: str, factor: int) -> ErrorCode:
    with pytest.raises(BrokerError) as refusal:
        await client.create_topic(NewTopic(topic, PARTITIONS, factor))
    return refusal.value.code


def holders(cluster: Cluster, topic: str) -> set[int]:
    partitions = image_of(cluster.brokers[1]).topics_by_name[topic].partitions
    return {replica for state in partitions for replica in state.replicas}


async def described(client: Admin, node_id: int) -> Found:
    return {
        log_dir.path: (log_dir.is_cordoned, {replica.topic for replica in log_dir.replicas})
        for log_dir in await client.describe_log_dirs(node_id)
    }


@pytest.mark.parametrize("node_id", [1, 2], ids=["the controller's own", "another broker's"])
def test_nothing_new_is_placed_where_all_is_cordoned_and_new_logs_avoid_what_is(node_id: int) -> None:
    async def main(cluster: Cluster) -> None:
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("before", PARTITIONS, 3))
            await cordon(cluster, client, node_id, "*", 2)
            await client.create_topic(NewTopic("elsewhere", PARTITIONS, 2))
            assert holders(cluster, "elsewhere") == {1, 2, 3} - {node_id}
            assert await refused(client, "wide", 3) is ErrorCode.INVALID_REPLICATION_FACTOR
            with pytest.raises(BrokerError, match="some brokers have all their log directories cordoned"):
                await client.create_partitions("before", PARTITIONS + 1)
            both = await described(client, node_id)
            assert both == {"/data/one": (True, {"before"}), "/data/two": (True, {"before"})}

            await cordon(cluster, client, node_id, "/data/two", 1)
            await client.create_topic(NewTopic("wide", PARTITIONS, 3))
            await until(lambda: "wide" in image_of(cluster.brokers[node_id]).topics_by_name)
            one = await described(client, node_id)
            assert one == {"/data/one": (False, {"before", "wide"}), "/data/two": (True, {"before"})}

    in_cluster(main, settings=TWO_DISKS)


def test_what_is_cordoned_is_so_after_a_restart_and_until_it_is_given_free() -> None:
    async def main(cluster: Cluster) -> list[bool]:
        broker, seen = cluster.brokers[2], []

        def is_cordoned() -> bool:
            return image_of(cluster.brokers[1]).brokers[2].is_cordoned

        async with admin(cluster, 3) as client:
            await cordon(cluster, client, 2, "*", 2)
            await broker.stop()
            seen.append(is_cordoned())
            broker.start()
            await broker.wait_serving()
            seen.append(is_cordoned())
            await client.alter_configs(ResourceType.BROKER, "2", {CORDONED: None})
            await until(lambda: not is_cordoned())
            await client.create_topic(NewTopic("wide", 1, 3))
        return seen

    assert in_cluster(main, settings=TWO_DISKS) == [True, True]


def test_who_is_started_cordoned_gets_nothing_from_the_start() -> None:
    async def main(cluster: Cluster) -> ErrorCode:
        await until(lambda: all(broker.is_cordoned for broker in image_of(cluster.brokers[1]).brokers.values()))
        async with admin(cluster, 3) as client:
            return await refused(client, "t", 1)

    assert in_cluster(main, settings={CORDONED: "*"}) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_internal_topics_are_made_beside_who_is_cordoned_and_grow_there_once_it_is_given_free() -> None:
    name = "__transaction_state"

    async def main(cluster: Cluster) -> list[set[int]]:
        async with admin(cluster, 1) as client:
            await cordon(cluster, client, 3, "*", 2)
            async with cluster.producer("p", {"transactional.id": "p", "max.block.ms": 60_000}) as producer:
                await producer.begin_transaction()
                await producer.abort_transaction()
            seen = [holders(cluster, name)]
            await trio.sleep(10)  # several times what growth waits for
            seen.append(holders(cluster, name))
            await client.alter_configs(ResourceType.BROKER, "3", {CORDONED: None})
            await until(lambda: len(holders(cluster, name)) == 3)
        return seen

    assert in_cluster(main, settings=TWO_DISKS) == [{1, 2}, {1, 2}]
