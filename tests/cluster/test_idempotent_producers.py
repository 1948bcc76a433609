"""Idempotent producers of three brokers on virtual time: five requests under way, and the leader dies or hands over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio

from odradek.client import NewTopic
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.lab.simulator.cluster import PORT, Cluster
from odradek.lab.simulator.reading import read_logs

from .simulated import CONNECTION, admin, image_of, in_cluster, until

SETTINGS = {"broker.session.timeout.ms": "9000", "default.replication.factor": "3", "min.insync.replicas": "2"}
RECORDS = 300
BLOCK = 1000
Change: TypeAlias = Callable[[Cluster, int], Awaitable[None]]


def leader_of(cluster: Cluster) -> int:
    return image_of(cluster.brokers[1]).topics_by_name["t"].partitions[0].leader


async def dies(cluster: Cluster, leader: int) -> None:
    cluster.brokers[leader].crash()
    await until(lambda: leader_of(cluster) != leader)
    cluster.brokers[leader].start()
    await cluster.brokers[leader].wait_serving()


async def stops(cluster: Cluster, leader: int) -> None:
    await cluster.brokers[leader].stop()
    assert leader_of(cluster) != leader
    cluster.brokers[leader].start()
    await cluster.brokers[leader].wait_serving()


async def is_replaced(cluster: Cluster, leader: int) -> None:
    others = [ReassignablePartition(partition_index=0, replicas=[each for each in (1, 2, 3) if each != leader])]
    async with admin(cluster, 1) as client:
        await client.call(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=others)]),
            lambda _answer: None,
        )
    await until(lambda: leader_of(cluster) != leader)


@pytest.mark.parametrize("change", [dies, stops, is_replaced])
def test_each_record_is_there_once_and_in_order(change: Change) -> None:
    async def main(cluster: Cluster) -> tuple[list[str], int]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("t", assignments=[[2, 3, 1]]))
        await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values()))
        settings = {"enable.idempotence": True, "linger.ms": 0, "batch.size": 0, "request.timeout.ms": 2_000}
        delivered = 0

        def told(metadata: object, error: Exception | None) -> None:
            nonlocal delivered
            delivered += metadata is not None

        async with cluster.producer("p", settings) as producer, trio.open_nursery() as nursery:
            for number in range(RECORDS):
                await producer.enqueue("t", f"{number}", partition=0, on_delivery=told)
                if number == RECORDS // 3:
                    nursery.start_soon(change, cluster, 2)
                await trio.sleep(0.001)
        return [text for _offset, text in (await read_logs(cluster, "t", 1, {}))[0]], delivered

    texts, delivered = in_cluster(main, settings=SETTINGS)

    assert delivered == RECORDS
    assert texts == [f"{number}" for number in range(RECORDS)]


def test_each_broker_gives_producer_ids_of_a_block_of_its_own() -> None:
    async def main(cluster: Cluster) -> list[list[int]]:
        network = cluster.client_machine("asker").network
        found = []
        for node_id in cluster.brokers:
            async with open_connection(f"broker-{node_id}", PORT, CONNECTION, network=network) as connection:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
                found.append([(await connection.request(request, timeout_ms=9000)).producer_id for _ in range(3)])
        return found

    found = in_cluster(main)

    assert [[each - ids[0] for each in ids] for ids in found] == [[0, 1, 2]] * 3
    assert len({ids[0] // BLOCK for ids in found}) == 3
