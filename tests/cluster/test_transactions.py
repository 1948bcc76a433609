"""Transactions of three brokers on virtual time: partitions, coordinators and groups lie on different brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import attrs
import pytest
import trio

from odradek.client import NewTopic
from odradek.client.producer import Producer
from odradek.kernel.broker import Broker
from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.contracts.coordinator_keys import coordinator_partition
from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.lab.simulator.cluster import BrokerHost, Cluster
from odradek.plugins.transactions.metadata import EPOCH_EXHAUSTED, TransactionMetadata, TransactionRecord
from odradek.plugins.transactions.shard import TransactionShard
from odradek.plugins.transactions.states import TransactionState

from .simulated import admin, image_of, in_cluster, until

SETTINGS = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
}
PARTITIONS = 6


async def make_topic(cluster: Cluster) -> None:
    async with admin(cluster, 2) as client:
        await client.create_topic(NewTopic("t", PARTITIONS, 3))
    await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values() if each.broker))


def settings_of(name: str) -> dict[str, object]:
    return {"transactional.id": name, "request.timeout.ms": 2_000, "delivery.timeout.ms": 60_000}


async def write(cluster: Cluster, name: str, values: list[bytes], *, commits: bool) -> None:
    """One transaction with a record in each partition, and so in each broker."""
    async with cluster.producer(name, settings_of(name)) as producer:
        await producer.begin_transaction()
        for value in values:
            for partition in range(PARTITIONS):
                await producer.send("t", value, partition=partition)
        if commits:
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()


async def read_committed(cluster: Cluster) -> list[list[bytes]]:
    """What each partition has, up to its end: no transaction may be open."""
    places = [TopicPartition("t", number) for number in range(PARTITIONS)]
    values: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    settings = {"auto.offset.reset": "earliest", "group.id": None}
    async with (
        cluster.consumer("ends", settings) as uncommitted,
        cluster.consumer("reader", {**settings, "isolation.level": "read_committed"}) as consumer,
    ):
        uncommitted.assign(places)
        consumer.assign(places)
        ends = await uncommitted.end_offsets(places)
        while sum([await consumer.position(place) for place in places]) < sum(ends.values()):
            for record in await consumer.poll(timeout_ms=100):
                values[record.partition].append(bytes(record.value))
    return [values[number] for number in range(PARTITIONS)]


def coordinator_of(cluster: Cluster, name: str) -> BrokerHost:
    image = image_of(next(each for each in cluster.brokers.values() if each.broker is not None))
    partitions = image.topics_by_name["__transaction_state"].partitions
    return cluster.brokers[partitions[coordinator_partition(name, len(partitions))].leader]


def name_coordinated_by(cluster: Cluster, node_id: int) -> str:
    """A transactional id of this broker's; the topic is there."""
    return next(
        name for number in range(100) if coordinator_of(cluster, name := f"id-{number}") is cluster.brokers[node_id]
    )


def test_a_transaction_spans_brokers() -> None:
    async def main(cluster: Cluster) -> tuple[list[list[bytes]], set[int]]:
        await make_topic(cluster)
        for name in ("a", "b", "c", "d"):
            await write(cluster, name, [b"%s kept" % name.encode()], commits=True)
            await write(cluster, name, [b"%s dropped" % name.encode()], commits=False)
        partitions = image_of(cluster.brokers[1]).topics_by_name["t"].partitions
        return await read_committed(cluster), {state.leader for state in partitions}

    values, leaders = in_cluster(main, settings=SETTINGS)

    assert leaders == {1, 2, 3}
    assert values == [[b"a kept", b"b kept", b"c kept", b"d kept"]] * PARTITIONS


# ------------------------------------------------------------------------ the coordinator dies, whatever the state is


class LostMarkers:
    """A `MarkerWriter` whose markers are lost, and so are the answers."""

    def write(self, marker: TransactionMarker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Lose it."""


def broker_of(host: BrokerHost) -> Broker:
    assert host.broker is not None
    return host.broker


def transactions_of(host: BrokerHost) -> dict[str, TransactionMetadata]:
    """What a broker that coordinates transactional ids knows of them."""
    runtime = broker_of(host).parts.requests.coordinators.by_topic["__transaction_state"]
    return {name: metadata for _partition, shard in runtime.shards() for name, metadata in shard.ids.items()}


def state_of(host: BrokerHost, name: str) -> TransactionState:
    return transactions_of(host)[name].state


async def begin(producer: Producer, value: bytes) -> None:
    await producer.begin_transaction()
    for partition in range(PARTITIONS):
        await producer.send("t", value, partition=partition)


async def killed_while_ongoing(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    await begin(producer, b"one")
    assert state_of(coordinator, name) is TransactionState.ONGOING
    coordinator.crash()
    await producer.commit_transaction()


async def killed_before_the_first_record(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    coordinator.crash()
    await begin(producer, b"one")
    await producer.commit_transaction()


async def killed_between_two_records(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    """Verification: leaders that have no record yet ask a coordinator that is gone."""
    await producer.begin_transaction()
    await producer.send("t", b"one", partition=0)
    coordinator.crash()
    for partition in range(1, PARTITIONS):
        await producer.send("t", b"one", partition=partition)
    await producer.commit_transaction()


async def killed_when_a_commit_is_prepared(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    await begin(producer, b"one")
    broker_of(coordinator).parts.view.markers = LostMarkers()
    await producer.commit_transaction()
    assert state_of(coordinator, name) is TransactionState.PREPARE_COMMIT
    coordinator.crash()


async def killed_when_an_abort_is_prepared(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    await begin(producer, b"never")
    broker_of(coordinator).parts.view.markers = LostMarkers()
    await producer.abort_transaction()
    assert state_of(coordinator, name) is TransactionState.PREPARE_ABORT
    coordinator.crash()
    await begin(producer, b"one")
    await producer.commit_transaction()


async def killed_when_a_commit_is_complete(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    await begin(producer, b"one")
    await producer.commit_transaction()
    await until(lambda: state_of(coordinator, name) is TransactionState.COMPLETE_COMMIT)
    coordinator.crash()


async def killed_when_an_abort_is_complete(producer: Producer, coordinator: BrokerHost, name: str) -> None:
    await begin(producer, b"never")
    await producer.abort_transaction()
    await until(lambda: state_of(coordinator, name) is TransactionState.COMPLETE_ABORT)
    coordinator.crash()
    await begin(producer, b"one")
    await producer.commit_transaction()


Moment: TypeAlias = Callable[[Producer, BrokerHost, str], Awaitable[None]]


@pytest.mark.parametrize(
    "moment",
    [
        killed_before_the_first_record,
        killed_between_two_records,
        killed_while_ongoing,
        killed_when_a_commit_is_prepared,
        killed_when_an_abort_is_prepared,
        killed_when_a_commit_is_complete,
        killed_when_an_abort_is_complete,
    ],
)
def test_a_producer_goes_on_when_its_coordinator_dies(moment: Moment) -> None:
    async def main(cluster: Cluster) -> list[list[bytes]]:
        await make_topic(cluster)
        await write(cluster, "warm", [b"warm"], commits=True)
        name = name_coordinated_by(cluster, 2)
        async with cluster.producer(name, settings_of(name)) as producer:
            await moment(producer, cluster.brokers[2], name)
            await begin(producer, b"two")
            await producer.commit_transaction()
        return await read_committed(cluster)

    assert in_cluster(main, settings=SETTINGS) == [[b"warm", b"one", b"two"]] * PARTITIONS


def test_a_transaction_that_nobody_ends_is_aborted_by_the_next_coordinator() -> None:
    async def main(cluster: Cluster) -> list[list[bytes]]:
        await make_topic(cluster)
        await write(cluster, "warm", [b"warm"], commits=True)
        name = name_coordinated_by(cluster, 2)
        async with cluster.producer(name, {**settings_of(name), "transaction.timeout.ms": 30_000}) as producer:
            await begin(producer, b"never")
            cluster.brokers[2].crash()
            await until(lambda: coordinator_of(cluster, name) is not cluster.brokers[2])
            await trio.sleep(45)
            assert state_of(coordinator_of(cluster, name), name) is TransactionState.COMPLETE_ABORT
            with pytest.raises(ClientError):
                await producer.commit_transaction()
        return await read_committed(cluster)

    assert in_cluster(main, settings=SETTINGS) == [[b"warm"]] * PARTITIONS


async def set_epoch(coordinator: BrokerHost, name: str, epoch: int) -> None:
    """Have a transactional id be as old as that."""
    runtime = broker_of(coordinator).parts.requests.coordinators.by_topic["__transaction_state"]

    def write(shard: TransactionShard, _now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
        aged = attrs.evolve(shard.ids[name], producer_epoch=epoch)
        return CoordinatorResult([TransactionRecord(name, aged)], None)

    await runtime.call(runtime.partition_for(name), write)


def test_the_next_producer_id_of_an_exhausted_epoch_outlives_the_coordinator() -> None:
    async def main(cluster: Cluster) -> tuple[list[list[bytes]], int, TransactionMetadata]:
        await make_topic(cluster)
        await write(cluster, "warm", [b"warm"], commits=True)
        name, coordinator = name_coordinated_by(cluster, 2), cluster.brokers[2]
        await write(cluster, name, [b"one"], commits=True)
        await until(lambda: state_of(coordinator, name) is TransactionState.COMPLETE_COMMIT)
        await set_epoch(coordinator, name, EPOCH_EXHAUSTED - 1)  # a new producer gets the last one
        async with cluster.producer(name, settings_of(name)) as producer:
            await begin(producer, b"two")
            broker_of(coordinator).parts.view.markers = LostMarkers()
            await producer.commit_transaction()
            prepared = transactions_of(coordinator)[name]
            coordinator.crash()
            await begin(producer, b"three")
            await producer.commit_transaction()
            after = transactions_of(coordinator_of(cluster, name))[name]
        assert prepared.state is TransactionState.PREPARE_COMMIT
        return await read_committed(cluster), prepared.next_producer_id, after

    values, next_producer_id, after = in_cluster(main, settings=SETTINGS)

    assert values == [[b"warm", b"one", b"two", b"three"]] * PARTITIONS
    assert next_producer_id >= 0
    assert after.producer_id == next_producer_id
    assert after.producer_epoch <= 1
