"""Idempotent producers of three brokers on virtual time: five requests under way, and the leader dies or hands over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio

from odradek.client import NewTopic
from odradek.client.delivery import RecordMetadata
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.lab.simulator.cluster import PORT, BrokerHost, Cluster
from odradek.lab.simulator.reading import read_logs

from .simulated import CONNECTION, admin, image_of, in_cluster, until

SETTINGS = {"broker.session.timeout.ms": "9000", "default.replication.factor": "3", "min.insync.replicas": "2"}
RECORDS = 300
BLOCK = 1000
IN_FLIGHT = 5
Change: TypeAlias = Callable[[Cluster, int], Awaitable[None]]


def replica_of(host: BrokerHost) -> Replica:
    assert host.broker is not None
    return host.broker.parts.logs.replicas.get("t", 0)


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
    await reassign(cluster, [each for each in (1, 2, 3) if each != leader])
    await until(lambda: leader_of(cluster) != leader)


async def moves_to_who_was_no_replica(cluster: Cluster, leader: int) -> None:
    await reassign(cluster, [1, 3])
    await until(lambda: leader_of(cluster) == 1)


async def reassign(cluster: Cluster, replicas: list[int]) -> None:
    wanted = [ReassignablePartition(partition_index=0, replicas=replicas)]
    async with admin(cluster, 1) as client:
        await client.call(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=wanted)]),
            lambda _answer: None,
        )


async def make_topic(cluster: Cluster, *replicas: int) -> None:
    async with admin(cluster, 2) as client:
        await client.create_topic(NewTopic("t", assignments=[replicas]))
    await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values()))


def one_record_a_request() -> dict[str, object]:
    return {"enable.idempotence": True, "linger.ms": 0, "batch.size": 0, "request.timeout.ms": 2_000}


@pytest.mark.parametrize(
    ("replicas", "change"),
    [((2, 3, 1), dies), ((2, 3, 1), stops), ((2, 3, 1), is_replaced), ((2, 3), moves_to_who_was_no_replica)],
)
def test_each_record_is_there_once_and_in_order(replicas: tuple[int, ...], change: Change) -> None:
    async def main(cluster: Cluster) -> tuple[list[str], int]:
        await make_topic(cluster, *replicas)
        delivered = 0

        def told(metadata: object, error: Exception | None) -> None:
            nonlocal delivered
            delivered += metadata is not None

        async with cluster.producer("p", one_record_a_request()) as producer, trio.open_nursery() as nursery:
            for number in range(RECORDS):
                await producer.enqueue("t", f"{number}", partition=0, on_delivery=told)
                if number == RECORDS // 3:
                    nursery.start_soon(change, cluster, 2)
                await trio.sleep(0.001)
        return [text for _offset, text in (await read_logs(cluster, "t", 1, {}))[0]], delivered

    texts, delivered = in_cluster(main, settings=SETTINGS)

    assert delivered == RECORDS
    assert texts == [f"{number}" for number in range(RECORDS)]


def test_five_batches_whose_answers_are_lost_are_known_to_the_leader_that_a_reassignment_brings() -> None:
    """The producer has sent all that it may have in flight; who has it next was no replica when it was written."""

    async def main(cluster: Cluster) -> tuple[list[int], list[str]]:
        await make_topic(cluster, 2, 3)
        old, told = cluster.brokers[2], list[int]()

        def is_there(metadata: RecordMetadata | None, error: Exception | None) -> None:
            assert metadata is not None, error
            told.append(metadata.offset)

        async with cluster.producer("p", one_record_a_request()) as producer:
            await producer.send("t", "0", partition=0)
            cluster.network.cut(old.host.host, cluster.client_host("p").host)
            for number in range(1, 8):
                await producer.enqueue("t", f"{number}", partition=0, on_delivery=is_there)
            await until(lambda: replica_of(old).high_watermark == 1 + IN_FLIGHT)
            await moves_to_who_was_no_replica(cluster, 2)
            assert (replica_of(cluster.brokers[1]).log.log_end_offset, told) == (1 + IN_FLIGHT, [])
        return told, [text for _offset, text in (await read_logs(cluster, "t", 1, {}))[0]]

    told, texts = in_cluster(main, settings=SETTINGS)

    assert told == list(range(1, 8))
    assert texts == [f"{number}" for number in range(8)]


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
