"""Groups and transactions on internal topics whose replicas vote (`odradek.internal.election`): coordinators follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio

from odradek.client import Consumer, NewTopic, Producer, TopicPartition
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .simulated import admin, image_of, in_cluster, until

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
VOTED = {"odradek.internal.election": "quorum"}
PATIENT = {"max.block.ms": 120_000, "delivery.timeout.ms": 240_000}


def states(cluster: Cluster, topic: str, node_id: int = 1) -> list[PartitionState]:
    """Return the partitions of a topic, as a broker knows them."""
    found = image_of(cluster.brokers[node_id]).topics_by_name.get(topic)
    return [] if found is None else list(found.partitions)


def elections(cluster: Cluster) -> Mapping[str, str]:
    return {topic.name: topic.election for topic in image_of(cluster.brokers[1]).topics_by_name.values()}


async def coordinator_of(cluster: Cluster, key: str, key_type: int) -> int:
    """Return who coordinates a group (key type 0) or a transactional id (1)."""
    found: list[int] = []

    def check(answer: FindCoordinatorResponse) -> None:
        found[:] = [each.node_id for each in answer.coordinators if not each.error_code]

    async with admin(cluster, 1) as client:
        while not found:
            await client.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), check)
            await trio.sleep(0.1)
    return found[0]


async def no_coordinator_on_the_controllers_broker(cluster: Cluster, topic: str) -> None:
    """Have another broker than the first lead a topic's partitions, so that it may be killed."""
    async with admin(cluster, 2) as client:
        places = [TopicPartition(topic, number) for number in range(len(states(cluster, topic)))]
        assert await client.alter_partition_reassignments(dict.fromkeys(places, (2, 3, 1))) == {}
        while any(state.leader != 2 for state in states(cluster, topic)):
            await client.elect_leaders(places)
            await trio.sleep(0.1)


@pytest.mark.parametrize("stops", [True, False], ids=["stops", "is killed"])
def test_a_group_goes_on_where_it_was_when_its_coordinator(*, stops: bool) -> None:
    async def main(cluster: Cluster) -> tuple[str, int | None, list[int]]:
        async with admin(cluster, 1) as client, cluster.producer("shop", PATIENT) as shop:
            await client.create_topic(NewTopic("orders", 1, 3))
            for number in range(20):
                await shop.send("orders", b"%d" % number, partition=0)
            place = TopicPartition("orders", 0)
            await _consume(cluster, "first", 10)
            await until(lambda: all(state.leader > 0 for state in states(cluster, OFFSETS)))
            await no_coordinator_on_the_controllers_broker(cluster, OFFSETS)
            before = await coordinator_of(cluster, "group", 0)
            await (cluster.brokers[before].stop() if stops else _kill(cluster, before))
            committed = (await client.list_group_offsets("group"))[place]
            read = await _consume(cluster, "second", 10)
            return elections(cluster)[OFFSETS], None if committed is None else committed.offset, read

    assert in_cluster(main, settings=VOTED) == ("quorum", 10, list(range(10, 20)))


async def _kill(cluster: Cluster, node_id: int) -> None:
    cluster.brokers[node_id].crash()


async def _consume(cluster: Cluster, name: str, count: int) -> list[int]:
    """Read so many records in the group, commit, and leave."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "group",
        "client.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": count,
    }
    found: list[int] = []
    async with Consumer(settings, machine=cluster.client_machine(name)) as consumer:
        consumer.subscribe(["orders"])
        while len(found) < count:
            found += [int(each.value or b"") for each in await consumer.poll(timeout_ms=1000)]
        await consumer.commit()
    return found


def test_transactions_go_on_when_their_coordinator_is_killed() -> None:
    async def main(cluster: Cluster) -> tuple[str, list[bytes | None]]:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("orders", 1, 3, {"odradek.election": "quorum"}))
        async with cluster.producer("shop", {"transactional.id": "shop", **PATIENT}) as shop:
            await _transact(shop, b"kept", is_kept=True)
            await no_coordinator_on_the_controllers_broker(cluster, STATE)
            await shop.begin_transaction()
            await shop.send("orders", b"kept, too", partition=0)
            cluster.brokers[await coordinator_of(cluster, "shop", 1)].crash()
            await shop.commit_transaction()
            await _transact(shop, b"taken back", is_kept=False)
            await _transact(shop, b"kept at last", is_kept=True)
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        found: list[bytes | None] = []
        async with Consumer(settings, machine=cluster.client_machine("reader")) as reader:
            reader.assign([TopicPartition("orders", 0)])
            while len(found) < 3:
                found += [each.value for each in await reader.poll(timeout_ms=1000)]
        return elections(cluster)[STATE], found

    assert in_cluster(main, settings=VOTED) == ("quorum", [b"kept", b"kept, too", b"kept at last"])


async def _transact(producer: Producer, value: bytes, *, is_kept: bool) -> None:
    await producer.begin_transaction()
    await producer.send("orders", value, partition=0)
    await (producer.commit_transaction() if is_kept else producer.abort_transaction())


def test_they_are_made_when_there_are_enough_brokers_as_in_kafka() -> None:
    world = World(Seeds(1))
    made: list[set[tuple[int, ...]]] = []

    def voters(cluster: Cluster) -> set[tuple[int, ...]]:
        return {tuple(sorted(state.replicas)) for state in states(cluster, OFFSETS)}

    async def root() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            first, second, third = cluster.add_brokers(3, VOTED)
            for broker in (first, second):
                broker.start()
                await broker.wait_serving()
            with trio.move_on_after(5):
                await coordinator_of(cluster, "group", 0)
            made.append(voters(cluster))
            third.start()
            await third.wait_serving()
            await coordinator_of(cluster, "group", 0)
            made.append(voters(cluster))
            await trio.sleep(40)  # nothing is asked to grow, and refused, meanwhile
            for broker in cluster.brokers.values():
                broker.crash()
            nursery.cancel_scope.cancel()

    run_in_world(world, root, limit_ns=600 * SECOND)

    assert made == [set(), {(1, 2, 3)}]
