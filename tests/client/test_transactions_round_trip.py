"""Transactional producers against a broker over TCP: whole or not at all, fencing, offsets, cancellation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest
import trio

from odradek.client import (
    BrokerError,
    ClientError,
    ClientUsageError,
    Consumer,
    GroupMetadata,
    OffsetAndMetadata,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionFatalError,
)
from odradek.client.transactions.machine import State

from .group_cluster import FAST, cluster, fill, make_topic, name, run


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


EVERY_VERSION = pytest.mark.parametrize("version", [1, 2])


async def go_by(producer: Producer, version: int) -> None:
    """Have a producer take the cluster for one that has finalized this `transaction.version`."""
    await producer.init_transactions()
    assert producer._brokers is not None
    producer._brokers._features = {"transaction.version": version}
    producer._brokers._features_epoch = 2**62  # newer than what connections bring


def producer_of(bootstrap: str, transactional_id: str, **more: object) -> Producer:
    named = {key.replace("_", "."): value for key, value in more.items()}
    return Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0, **named})


async def values(bootstrap: str, topic: str, *, level: str = "read_committed") -> list[bytes]:
    """Return what a consumer of this isolation level sees now, in partition 0."""
    found: list[bytes] = []
    async with Consumer({"bootstrap.servers": bootstrap, "isolation.level": level, **FAST}) as consumer:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        end = (await consumer.end_offsets([where]))[where]
        while await consumer.position(where) < end:
            found += [record.value for record in await consumer.poll(timeout_ms=100)]
    return found


async def fail_after(producer: Producer, work: Callable[[], Awaitable[object]]) -> None:
    """Do something within a transaction, and then fail there."""
    async with producer.transaction():
        await work()
        raise ZeroDivisionError


def machine_state(producer: Producer) -> State:
    assert producer._machine is not None
    return producer._machine.state


@EVERY_VERSION
def test_committed_transactions_are_seen_whole_and_aborted_ones_not_at_all(bootstrap: str, version: int) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        aborted: list[object] = []

        def keep(_: object, error: object) -> None:
            aborted.append(error)

        async with producer_of(bootstrap, name("id")) as producer:
            await go_by(producer, version)
            for number in range(3):
                async with producer.transaction():
                    await producer.send(topic, f"{number}-a")
                    await producer.enqueue(topic, f"{number}-b")
                    assert f"{number}-a".encode() not in await values(bootstrap, topic)
            with pytest.raises(ZeroDivisionError):
                await fail_after(producer, partial(producer.send, topic, "written, then aborted"))
            with pytest.raises(ZeroDivisionError):
                await fail_after(producer, partial(producer.enqueue, topic, "never", on_delivery=keep))
            async with producer.transaction():
                pass
            async with producer.transaction():
                await producer.send(topic, "last")

        expected = [b"0-a", b"0-b", b"1-a", b"1-b", b"2-a", b"2-b", b"last"]
        assert expected == await values(bootstrap, topic)
        everything = await values(bootstrap, topic, level="read_uncommitted")
        assert [*expected[:-1], b"written, then aborted", b"last"] == [each for each in everything if each != b"never"]
        assert aborted == [None] or isinstance(aborted[0], TransactionAbortedError)

    run(test)


def test_a_younger_producer_of_the_same_name_fences_the_older_and_aborts_what_it_left_open(bootstrap: str) -> None:
    async def test() -> None:
        topic, transactional_id = await make_topic(bootstrap, 1), name("id")
        async with producer_of(bootstrap, transactional_id) as old, producer_of(bootstrap, transactional_id) as new:
            await old.begin_transaction()
            await old.send(topic, "zombie")
            await new.init_transactions()
            with pytest.raises(BrokerError) as caught:
                await old.send(topic, "zombie again")
            with pytest.raises(TransactionFatalError):
                await old.abort_transaction()
            with pytest.raises(TransactionFatalError):
                await old.begin_transaction()
            async with new.transaction():
                await new.send(topic, "fresh")

        assert caught.value.code.name in {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}
        assert isinstance(old._machine.error, ProducerFencedError)  # type: ignore[union-attr]
        assert await values(bootstrap, topic) == [b"fresh"]

    run(test)


@EVERY_VERSION
def test_offsets_are_part_of_the_transaction(bootstrap: str, version: int) -> None:
    async def test() -> None:
        source, sink, group = await make_topic(bootstrap, 2), await make_topic(bootstrap, 1), name("g")
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **FAST}
        await fill(bootstrap, source, 10, 2)
        async with producer_of(bootstrap, name("id")) as producer, Consumer(settings) as consumer:
            await go_by(producer, version)
            consumer.subscribe([source])
            copied = 0
            while copied < 10:
                records = await consumer.poll(timeout_ms=100)
                copied += len(records)
                async with producer.transaction():
                    for record in records:
                        await producer.enqueue(sink, record.value)
                    await producer.send_offsets(consumer.consumed(), consumer.group_metadata)
            partitions = [TopicPartition(source, 0), TopicPartition(source, 1)]
            committed = await consumer.committed(partitions)
            zero = {partitions[0]: OffsetAndMetadata(0)}
            with pytest.raises(ZeroDivisionError):
                await fail_after(producer, partial(producer.send_offsets, zero, consumer.group_metadata))
            after_abort = await consumer.committed(partitions)

        assert [offset.offset for offset in committed.values() if offset is not None] == [5, 5]
        assert committed == after_abort
        assert sorted(int(value) for value in await values(bootstrap, sink)) == list(range(10))

    run(test)


@EVERY_VERSION
def test_a_consumer_that_is_no_member_any_more_costs_the_transaction_and_not_the_producer(
    bootstrap: str, version: int
) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **FAST}
        async with producer_of(bootstrap, name("id")) as producer, Consumer(settings) as consumer:
            await go_by(producer, version)
            consumer.subscribe([topic])
            while not consumer.assignment:
                await consumer.poll(timeout_ms=50)
            stranger = GroupMetadata(group, consumer.group_metadata.generation_id, "nobody")
            one = {TopicPartition(topic, 0): OffsetAndMetadata(1)}

            async def lose() -> None:
                await producer.send(topic, "lost")
                await producer.send_offsets(one, stranger)

            with pytest.raises(TransactionAbortableError):
                await fail_after(producer, lose)
            async with producer.transaction():
                await producer.send(topic, "kept")

        assert await values(bootstrap, topic) == [b"kept"]

    run(test)


@EVERY_VERSION
def test_a_cancelled_transaction_is_aborted(bootstrap: str, version: int) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        async with producer_of(bootstrap, name("id")) as producer:
            await go_by(producer, version)
            with trio.move_on_after(0.2) as scope:
                async with producer.transaction():
                    await producer.send(topic, "cancelled")
                    await trio.sleep_forever()
            assert scope.cancelled_caught
            assert machine_state(producer) is State.READY
            async with producer.transaction():
                await producer.send(topic, "kept")

        assert await values(bootstrap, topic) == [b"kept"]

    run(test)


def test_a_transaction_that_nobody_ended_is_aborted_with_its_producer(bootstrap: str) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        async with producer_of(bootstrap, name("id")) as producer:
            await producer.begin_transaction()
            await producer.send(topic, "open")
        async with producer_of(bootstrap, name("id")) as producer, producer.transaction():
            await producer.send(topic, "kept")

        assert await values(bootstrap, topic) == [b"kept"]

    run(test)


def test_what_belongs_to_no_transaction_is_refused(bootstrap: str) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        async with Producer({"bootstrap.servers": bootstrap}) as plain:
            with pytest.raises(ClientUsageError, match=r"set transactional\.id"):
                await plain.begin_transaction()
        producer = producer_of(bootstrap, name("id"))
        with pytest.raises(ClientError, match="not open"):
            await producer.init_transactions()
        async with producer:
            with pytest.raises(ClientUsageError, match="no transaction is open"):
                await producer.enqueue(topic, "x")
            with pytest.raises(ClientUsageError, match="cannot be committing next"):
                await producer.commit_transaction()
            await producer.begin_transaction()
            with pytest.raises(ClientUsageError, match="cannot be in a transaction next"):
                await producer.begin_transaction()
            await producer.send_offsets({}, GroupMetadata("g"))
            await producer.commit_transaction()

    run(test)


def test_a_producer_that_is_cancelled_from_outside_still_aborts_its_transaction(bootstrap: str) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        with trio.move_on_after(0.5):
            async with producer_of(bootstrap, name("id")) as producer, producer.transaction():
                await producer.send(topic, "open")
                await trio.sleep_forever()
        async with producer_of(bootstrap, name("id")) as producer, producer.transaction():
            await producer.send(topic, "kept")

        assert await values(bootstrap, topic) == [b"kept"]

    run(test, limit_s=10)


def test_a_cluster_that_goes_over_to_version_2_gives_a_producer_another_epoch(bootstrap: str) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        epochs = []
        async with producer_of(bootstrap, name("id")) as producer:
            assert producer._machine is not None
            for version in (1, 1, 2, 2):
                await go_by(producer, version)
                async with producer.transaction():
                    await producer.send(topic, f"by {version}")
                epochs.append(producer._machine.producer_epoch)

        assert epochs == [0, 0, 2, 3]
        assert await values(bootstrap, topic) == [b"by 1", b"by 1", b"by 2", b"by 2"]

    run(test)
