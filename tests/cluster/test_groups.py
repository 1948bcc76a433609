"""Groups of three brokers on virtual time: what becomes of members and offsets when their coordinator dies or moves."""

from __future__ import annotations

import trio

from odradek.client import NewTopic, RebalanceListener
from odradek.client.consumer import Consumer
from odradek.kernel.contracts.coordinator_keys import coordinator_partition
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.lab.simulator.cluster import PORT, BrokerHost, Cluster

from .simulated import CONNECTION, admin, image_of, in_cluster, until

SETTINGS = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
}
PARTITIONS = 6
OFFSETS = "__consumer_offsets"


class Rebalances(RebalanceListener):
    """Counts how often partitions came or went."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Count it."""
        self.count += 1

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Count it."""
        self.count += 1


async def make_topic(cluster: Cluster) -> None:
    async with admin(cluster, 2) as client:
        await client.create_topic(NewTopic("t", PARTITIONS, 3))
    await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values() if each.broker))


async def make_group_coordinated_by(cluster: Cluster, node_id: int) -> str:
    """The id of a group that this broker coordinates."""
    async with admin(cluster, 1) as client:
        await client.call(FindCoordinatorRequest(coordinator_keys=["any"]), lambda _answer: None)
    await until(lambda: OFFSETS in image_of(cluster.brokers[node_id]).topics_by_name)
    return next(
        name for number in range(100) if coordinator_of(cluster, name := f"group-{number}") is cluster.brokers[node_id]
    )


def partition_of(cluster: Cluster, group_id: str) -> tuple[int, PartitionState]:
    image = image_of(next(each for each in cluster.brokers.values() if each.broker is not None))
    partitions = image.topics_by_name[OFFSETS].partitions
    index = coordinator_partition(group_id, len(partitions))
    return index, partitions[index]


def coordinator_of(cluster: Cluster, group_id: str) -> BrokerHost:
    return cluster.brokers[partition_of(cluster, group_id)[1].leader]


async def poll_for_ever(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=1_000)


def test_members_of_the_consumer_protocol_keep_their_partitions_when_their_coordinator_dies() -> None:
    async def main(cluster: Cluster) -> None:
        await make_topic(cluster)
        group_id = await make_group_coordinated_by(cluster, 2)
        settings = {
            "group.id": group_id,
            "group.protocol": "consumer",
            "request.timeout.ms": 3_000,
            "enable.auto.commit": False,
        }
        place = TopicPartition("t", 0)
        async with (
            cluster.consumer("first", settings) as first,
            cluster.consumer("second", settings) as second,
            trio.open_nursery() as nursery,
        ):
            consumers, rebalances = (first, second), Rebalances()
            for consumer in consumers:
                consumer.subscribe(["t"], listener=rebalances)
                nursery.start_soon(poll_for_ever, consumer)
            await until(lambda: sum(len(each.assignment) for each in consumers) == PARTITIONS)
            await until(lambda: all(len(each.assignment) == PARTITIONS // 2 for each in consumers))
            await first.commit({place: 7})
            before = [(each.assignment, each.group_metadata) for each in consumers], rebalances.count

            cluster.brokers[2].crash()
            await until(lambda: coordinator_of(cluster, group_id) is not cluster.brokers[2])
            await trio.sleep(20)

            assert ([(each.assignment, each.group_metadata) for each in consumers], rebalances.count) == before
            committed = await second.committed([place])
            assert [each.offset for each in committed.values() if each is not None] == [7]
            await first.commit({place: 8})
            nursery.cancel_scope.cancel()

    in_cluster(main, settings=SETTINGS)


def test_a_join_that_waits_is_told_at_once_when_its_coordinator_is_another() -> None:
    async def main(cluster: Cluster) -> tuple[int, int, int]:
        group_id = await make_group_coordinated_by(cluster, 2)
        index, state = partition_of(cluster, group_id)
        join = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        to_others = ReassignablePartition(
            partition_index=index, replicas=[each for each in state.replicas if each != 2]
        )
        move = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=OFFSETS, partitions=[to_others])])
        answers: list[JoinGroupResponse] = []
        network = cluster.client_machine("joiner").network
        async with open_connection("broker-2", PORT, CONNECTION, network=network) as connection:
            async with trio.open_nursery() as nursery:

                async def ask() -> None:
                    answers.append(await connection.request(join, timeout_ms=120_000, version=3))

                nursery.start_soon(ask)
                await trio.sleep(5)
                waiting_count = len(answers)
                async with admin(cluster, 1) as client:
                    await client.call(move, lambda _answer: None)
                began_ns = cluster.world.now_ns
            elapsed_ms = (cluster.world.now_ns - began_ns) // 1_000_000
        return waiting_count, answers[0].error_code, elapsed_ms

    waiting_count, code, elapsed_ms = in_cluster(
        main, settings={**SETTINGS, "group.initial.rebalance.delay.ms": "60000"}
    )

    assert waiting_count == 0
    assert code == ErrorCode.NOT_COORDINATOR
    assert elapsed_ms < 1_000
