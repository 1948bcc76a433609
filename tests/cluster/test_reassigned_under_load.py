"""Partitions move to other brokers while records come, on virtual time: whoever dies meanwhile, each is there once.

What Kafka's `reassign_partitions_test` and `throttling_test` check.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import pytest
import trio

from odradek.cli.placing.throttle import clear_throttle, set_throttle, throttled_by
from odradek.client import Admin, NewTopic, TopicPartition
from odradek.kernel.contracts.election import PartitionState
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, image_of, in_cluster, until

BEFORE = [[2, 3], [1, 2]]
AFTER = {TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (2, 3)}
COUNT = 200
EVERY_S = 0.02
MOVED_AT = 50
RATE_BYTES = 100_000
VALUE_BYTES = 10_000
VALUES_COUNT = 300
BURST_S = 12
"""A rate is that of eleven seconds: so much comes at once in the beginning."""

Accident = Callable[[Cluster], Awaitable[None]]


async def nothing(cluster: Cluster) -> None:
    """All brokers stay."""


async def bounce_cleanly(cluster: Cluster) -> None:
    for node_id in (3, 2):
        await cluster.brokers[node_id].stop()
        cluster.brokers[node_id].start()
        await cluster.brokers[node_id].wait_serving()


async def bounce_hard(cluster: Cluster) -> None:
    for node_id in (3, 2):
        cluster.brokers[node_id].crash()
        await trio.sleep(0.1)
        cluster.brokers[node_id].start()
        await cluster.brokers[node_id].wait_serving()
        await trio.sleep(1)


def partition_of(cluster: Cluster) -> PartitionState:
    """Return the partition as the controller has it."""
    return image_of(cluster.brokers[1]).topics_by_name["t"].partitions[0]


async def replicas_of(client: Admin) -> dict[TopicPartition, tuple[int, ...]]:
    found = (await client.describe_topic("t")).partitions
    return {TopicPartition("t", number): info.replicas for number, info in found.items()}


async def until_moved(client: Admin, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    while await replicas_of(client) != wanted:  # noqa: ASYNC110 - nobody tells a client when a move ends
        await trio.sleep(0.1)


async def read_all(cluster: Cluster, counts: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[int]]:
    read: dict[TopicPartition, list[int]] = {each: [] for each in counts}
    async with cluster.consumer("reader", {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([*counts])
        while any(len(read[each]) < count for each, count in counts.items()):
            for record in await consumer.poll(timeout_ms=100):
                read[TopicPartition(record.topic, record.partition)].append(int(record.value))
    return read


@pytest.mark.parametrize("accident", [nothing, bounce_cleanly, bounce_hard])
@pytest.mark.parametrize("is_from_zero", [True, False])
def test_what_is_acknowledged_while_partitions_move_is_there_once_and_in_order(
    accident: Accident, is_from_zero: bool
) -> None:
    """The logs begin at 0, or records before are deleted already: newcomers begin where the leader does."""

    async def main(cluster: Cluster) -> dict[TopicPartition, list[int]]:
        acknowledged: dict[TopicPartition, list[int]] = {each: [] for each in AFTER}

        async def send(number: int) -> None:
            partition = TopicPartition("t", number % 2)
            await producer.send("t", b"%d" % number, partition=partition.partition)
            acknowledged[partition].append(number)

        async with admin(cluster, 1) as client, cluster.producer("p", {"acks": "all", "linger.ms": 0}) as producer:
            await client.create_topic(NewTopic("t", assignments=BEFORE))
            if not is_from_zero:
                for number in range(-20, 0):
                    await producer.send("t", b"%d" % number, partition=number % 2)
                await client.delete_records(dict.fromkeys(AFTER, -1))
            async with trio.open_nursery() as nursery:
                for number in range(COUNT):
                    if number == MOVED_AT:
                        assert await client.alter_partition_reassignments(AFTER) == {}
                        nursery.start_soon(accident, cluster)
                    nursery.start_soon(send, number)
                    await trio.sleep(EVERY_S)
            await until_moved(client, AFTER)
        return await read_all(cluster, {each: len(numbers) for each, numbers in acknowledged.items()})

    read = in_cluster(main)

    assert read == {TopicPartition("t", first): [*range(first, COUNT, 2)] for first in (0, 1)}


def test_a_plan_is_taken_back_by_another_while_only_a_newcomer_has_all_that_was_acknowledged() -> None:
    """Kafka's tool does so where the old assignment is executed: the newcomer is dropped once the old one is back."""
    partition = TopicPartition("t", 0)

    async def main(cluster: Cluster) -> list[int]:
        async with admin(cluster, 1) as client, cluster.producer("p", {"acks": "all", "linger.ms": 0}) as producer:
            await client.create_topic(NewTopic("t", assignments=[[2]]))
            await cluster.brokers[3].stop()
            await client.alter_partition_reassignments({partition: (1, 3)})
            state = partial(partition_of, cluster)
            await until(lambda: set(state().isr) == {1, 2})
            await cluster.brokers[2].stop()
            for number in range(10):
                await producer.send("t", b"%d" % number, partition=0)
            assert await client.alter_partition_reassignments({partition: (2,)}) == {}
            assert (state().leader, state().isr, state().replicas) == (1, (1,), (2, 1, 3))
            for node_id in (2, 3):
                cluster.brokers[node_id].start()
            await until_moved(client, {partition: (2,)})
            assert not await client.list_partition_reassignments()
        return (await read_all(cluster, {partition: 10}))[partition]

    assert in_cluster(main) == [*range(10)]


def test_a_throttled_move_takes_as_long_as_its_rate_says_and_in_sync_replicas_are_not_slowed() -> None:
    wanted = {TopicPartition("t", 0): (2, 3)}

    async def main(cluster: Cluster) -> tuple[float, float]:
        async with admin(cluster, 1) as client, cluster.producer("p", {"acks": "all"}) as producer:
            await client.create_topic(NewTopic("t", assignments=[[1, 2]]))
            for _number in range(VALUES_COUNT):
                await producer.send("t", b"0" * VALUE_BYTES, partition=0)
            topics = {"t": await client.describe_topic("t")}
            await set_throttle(client, throttled_by(wanted, topics), RATE_BYTES)
            began_s = trio.current_time()
            await client.alter_partition_reassignments(wanted)
            await trio.sleep(BURST_S)
            sent_s = trio.current_time()
            await producer.send("t", b"0", partition=0)
            acknowledged_s = trio.current_time() - sent_s
            assert await client.list_partition_reassignments(), "it has just begun"
            await until_moved(client, wanted)
            assert await clear_throttle(client, ["t"])
            assert not await clear_throttle(client, ["t"])
            return trio.current_time() - began_s, acknowledged_s

    taken_s, acknowledged_s = in_cluster(main)
    at_rate_s = VALUES_COUNT * VALUE_BYTES / RATE_BYTES

    assert at_rate_s - BURST_S <= taken_s <= at_rate_s + BURST_S
    assert acknowledged_s < 1
