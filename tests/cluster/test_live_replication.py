"""How a running cluster replicates is changed by clients: how many fetchers there are, and who is slowed."""

from __future__ import annotations

from odradek.client.admin_values import ResourceType
from odradek.kernel.replication.replication import Replication
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, in_cluster, until
from .test_replicas import SETTINGS, make_topic, read_all


def replication_of(cluster: Cluster, node_id: int) -> Replication:
    broker = cluster.brokers[node_id].broker
    assert broker is not None
    replication = broker.parts.events.replication
    assert replication is not None
    return replication


def fetcher_numbers(cluster: Cluster) -> set[int]:
    return {
        fetcher.number
        for node_id in cluster.brokers
        for fetcher in replication_of(cluster, node_id).fetchers._fetchers.values()
        if fetcher.followed
    }


def test_a_number_of_fetchers_that_is_altered_moves_partitions_of_all_brokers_at_once() -> None:
    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 6)
        assert fetcher_numbers(cluster) == {0}
        async with admin(cluster, 3) as client:
            await client.alter_configs(ResourceType.BROKER, "", {"num.replica.fetchers": "2"})
        await until(lambda: fetcher_numbers(cluster) == {0, 1})
        async with cluster.producer("producer", {"acks": "all"}) as producer:
            for number in range(12):
                await producer.send("t", b"%d" % number, partition=number % 6)

        assert len(await read_all(cluster, 6)) == 12

    in_cluster(main, settings=SETTINGS)


def test_a_rate_and_the_replicas_that_it_is_for_reach_leader_and_follower() -> None:
    async def main(cluster: Cluster) -> None:
        await make_topic(cluster)
        quotas = [replication_of(cluster, node_id).leader_quota for node_id in cluster.brokers]
        assert not any(quota.is_set for quota in quotas)
        async with admin(cluster, 2) as client:
            await client.alter_configs(ResourceType.BROKER, "2", {"leader.replication.throttled.rate": "1000"})
            await client.alter_configs(ResourceType.TOPIC, "t", {"leader.replication.throttled.replicas": "0:2"})
        await until(lambda: [quota.is_set for quota in quotas] == [False, True, False])
        brokers = [host.broker for host in cluster.brokers.values() if host.broker is not None]
        replicas = [broker.parts.logs.replicas.get("t", 0) for broker in brokers]
        await until(lambda: all(replica.settings.throttled_leaders == {"0:2"} for replica in replicas))

    in_cluster(main, settings=SETTINGS)
