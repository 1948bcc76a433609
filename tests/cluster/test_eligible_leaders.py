"""All replicas of a partition are away, and one that stopped cleanly before comes back: it may lead, and lacks nothing.

What Kafka's `eligible_leader_replicas_test` checks (KIP-966).
"""

from __future__ import annotations

import pytest

from odradek.client import NewTopic, TopicPartition
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster, until

COUNT = 50


@pytest.mark.parametrize("is_clean", [True, False])
def test_who_stopped_cleanly_before_the_last_one_died_leads_with_all_records(is_clean: bool) -> None:
    """With `min.insync.replicas=2` nothing was acknowledged since it left; who died may have lost what it had."""

    async def main(cluster: Cluster) -> tuple[int, list[int]]:
        def leader() -> int:
            return image_of(cluster.brokers[1]).topics_by_name["t"].partitions[0].leader

        def in_sync() -> tuple[int, ...]:
            return image_of(cluster.brokers[1]).topics_by_name["t"].partitions[0].isr

        async with admin(cluster, 1) as client, cluster.producer("p", {"acks": "all"}) as producer:
            await client.create_topic(NewTopic("t", assignments=[[2, 3]], configs={"min.insync.replicas": "2"}))
            for number in range(COUNT):
                await producer.send("t", b"%d" % number)
        first, last = cluster.brokers[3], cluster.brokers[2]
        await (first.stop() if is_clean else crash(cluster, 3))
        await until(lambda: in_sync() == (2,))
        last.crash()
        await until(lambda: leader() == -1)
        first.start()
        await first.wait_serving()
        if is_clean:
            await until(lambda: leader() == 3)
        else:
            assert leader() == -1, "what it had may be lost"
        last.start()  # what one alone has is not committed: two are to be in sync
        await last.wait_serving()
        await until(lambda: leader() != -1)
        elected = leader()
        async with cluster.consumer("c", {"auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            read: list[int] = []
            while len(read) < COUNT:
                read += [int(record.value) for record in await consumer.poll(timeout_ms=100)]
        return elected, read

    elected, read = in_cluster(main)

    assert elected == (3 if is_clean else 2)
    assert read == [*range(COUNT)]


async def crash(cluster: Cluster, node_id: int) -> None:
    """Crash a broker, and wait until the cluster takes it for away."""
    cluster.brokers[node_id].crash()
    await until(lambda: image_of(cluster.brokers[1]).brokers[node_id].is_fenced)
