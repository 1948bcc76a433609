"""Producer, consumer, admin and the blocking facade against a real broker over TCP."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from odradek.client import (
    Admin,
    BlockingAdmin,
    BlockingConsumer,
    BlockingProducer,
    BrokerError,
    ClientClosedError,
    ClientUsageError,
    Consumer,
    ConsumerRecord,
    DeserializationError,
    NewTopic,
    NoOffsetForPartitionError,
    Producer,
    ResourceType,
    SerializationError,
    TopicPartition,
)
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import PATIENCE_S

FAST = {"linger.ms": 0}
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module", params=["auto", "portable"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    loop = {"odradek.network.loop": request.param}
    with running_broker({"num.partitions": 3, "log.retention.ms": -1, **loop}) as running:
        yield running


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(PATIENCE_S):
            await test()

    trio.run(limited)


def of(broker: RunningBroker, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap, **{name.replace("_", "."): value for name, value in more.items()}}


async def fill(broker: RunningBroker, topic: str, count: int, **settings: object) -> None:
    async with Producer(of(broker, **settings)) as producer:
        for number in range(count):
            await producer.enqueue(topic, str(number), key=str(number % 7), partition=0, timestamp=1_000 + number)


async def poll_all(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll()
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_comes_back_in_order(broker: RunningBroker, codec: str) -> None:
    async def test() -> None:
        topic = f"codec-{codec}"
        await fill(broker, topic, 500, compression_type=codec)
        async with Consumer(of(broker, **EARLIEST)) as consumer:
            consumer.assign([(topic, 0)])
            records = await poll_all(consumer, 500)
            position = await consumer.position((topic, 0))

        assert [str(number).encode() for number in range(500)] == [record.value for record in records]
        assert list(range(500)) == [record.offset for record in records]
        assert records[3][:6] == (topic, 0, 3, 1_003, b"3", b"3")
        assert position == 500

    run(test)


def test_nulls_headers_and_large_records(broker: RunningBroker) -> None:
    large = random.Random(1).randbytes(900_000)

    async def test() -> None:
        async with Producer(of(broker, **FAST)) as producer:
            headers = [("a", b"1"), ("a", None), ("é", b"")]
            await producer.send("shapes", None, key=b"k", headers=headers, partition=0)
            await producer.send("shapes", large, partition=0)
            await producer.send("shapes", b"", key=b"", partition=0)
        async with Consumer(of(broker, **EARLIEST)) as consumer:
            consumer.assign([("shapes", 0)])
            records = await poll_all(consumer, 3)

        assert [(b"k", None), (None, large), (b"", b"")] == [(record.key, record.value) for record in records]
        assert records[0].headers == (("a", b"1"), ("a", None), ("é", b""))

    run(test)


@pytest.mark.parametrize(
    "wrong",
    [
        {"headers": [("name", "text")]},
        {"headers": [(b"name", b"value")]},
        {"headers": [("name", 5)]},
        {"headers": [("name",)]},
        {"headers": [("\ud800", b"value")]},
        {"headers": {"name": b"value"}},
        {"headers": iter([("name", b"value")])},
        {"headers": 5},
        {"value": "\ud800"},
        {"timestamp": 1.5},
        {"timestamp": -5},
        {"timestamp": 2**63},
        {"partition": "0"},
        {"topic": None},
    ],
    ids=lambda wrong: re.sub(" at 0x[0-9a-f]+", "", str(wrong)),  # the same in every process
)
def test_a_record_that_is_none_is_refused_and_harms_no_other(broker: RunningBroker, wrong: dict[str, Any]) -> None:
    async def test() -> None:
        async with Producer(of(broker, linger_ms=20)) as producer:
            taken = [await producer.enqueue("refusals", "before", partition=0)]
            for take in (producer.enqueue, producer.send):
                with pytest.raises((SerializationError, ClientUsageError)):
                    await take(**{"topic": "refusals", "value": "v", "partition": 1, **wrong})
            with pytest.raises((SerializationError, ClientUsageError)):
                producer.send_nowait(**{"topic": "refusals", "value": "v", "partition": 1, **wrong})
            taken += [await producer.enqueue("refusals", "after", partition=number) for number in (0, 1)]
            await producer.flush()

            assert [delivery.result().partition for delivery in taken] == [0, 0, 1]
            assert producer.statistics().buffered_bytes == 0

    run(test)


def test_positions_move_by_hand(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "positions", 100)
        where = TopicPartition("positions", 0)
        async with Consumer(of(broker, max_poll_records=10)) as consumer:
            with pytest.raises(ClientUsageError, match="nothing is subscribed to or assigned"):
                await consumer.poll(timeout_ms=0)
            consumer.assign([where])

            assert await consumer.position(where) == 100
            consumer.seek(where, 42)
            assert [record.offset for record in await consumer.poll()] == list(range(42, 52))
            assert await consumer.position(where) == 52
            consumer.seek_to_beginning()
            assert (await consumer.poll(records_max=1))[0].offset == 0
            consumer.pause(where)
            assert await consumer.poll(timeout_ms=50) == []
            assert consumer.paused == {where}
            consumer.resume(where)
            assert (await consumer.poll(records_max=1))[0].offset == 1
            consumer.seek_to_end(where)
            assert await consumer.poll(timeout_ms=50) == []
            assert await consumer.position(where) == 100
            assert await consumer.beginning_offsets([where]) == {where: 0}
            assert await consumer.end_offsets([where]) == {where: 100}
            found = await consumer.offsets_for_times({where: 1_030})
            assert [item.offset for item in found.values() if item is not None] == [30]
            assert await consumer.offsets_for_times({where: 9_999_999_999_999}) == {where: None}
            with pytest.raises(ClientUsageError, match="not assigned"):
                consumer.seek(("positions", 1), 0)

    run(test)


@pytest.mark.parametrize("wrong", ["t", ("t",), ("t", "0"), ("t", -1), ("", 0), (None, 0), 5, None], ids=str)
def test_what_names_no_partition_is_refused(broker: RunningBroker, wrong: Any) -> None:
    async def test() -> None:
        async with Consumer(of(broker)) as consumer:
            with pytest.raises(ClientUsageError, match="is no pair of a topic's name and a partition's number"):
                consumer.assign([wrong])
            with pytest.raises(ClientUsageError, match="is no pair"):
                consumer.pause(wrong)
            with pytest.raises(ClientUsageError, match="is no pair"):
                await consumer.end_offsets([wrong])

            assert consumer.assignment == frozenset()

    run(test)


def test_offsets_for_times_may_be_asked_by_plain_pairs(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "pairs", 3)
        async with Consumer(of(broker)) as consumer:
            found = await consumer.offsets_for_times({("pairs", 0): 1_001})
        answer = found[TopicPartition("pairs", 0)]

        assert answer is not None
        assert answer.offset == 1

    run(test)


def test_an_offset_out_of_range_is_reset_or_told(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "ranges", 10)
        where = TopicPartition("ranges", 0)
        async with Consumer(of(broker, **EARLIEST)) as consumer:
            consumer.assign([where])
            consumer.seek(where, 5_000)

            assert (await consumer.poll())[0].offset == 0
        async with Consumer(of(broker, auto_offset_reset="none")) as consumer:
            consumer.assign([where])
            with pytest.raises(NoOffsetForPartitionError, match="ranges-0"):
                await consumer.poll()
            consumer.seek(where, 3)

            assert (await consumer.poll())[0].offset == 3

    run(test)


def test_polling_waits_for_records_that_come_later(broker: RunningBroker) -> None:
    async def test() -> None:
        async with Producer(of(broker, **FAST)) as producer, Consumer(of(broker)) as consumer:
            await consumer.assign_topics("later")
            for partition in consumer.assignment:
                await consumer.position(partition)
            await producer.send("later", b"now")

            assert [record.value for record in await consumer.poll()] == [b"now"]

    run(test)


def test_a_cancelled_poll_takes_nothing(broker: RunningBroker) -> None:
    async def test() -> None:
        async with Producer(of(broker, **FAST)) as producer, Consumer(of(broker, **EARLIEST)) as consumer:
            await producer.send("cancelled", b"1", partition=0)
            consumer.assign([("cancelled", 0)])
            for delay_s in (0.0, 0.001, 0.01):
                taken: list[ConsumerRecord] = []
                with trio.move_on_after(delay_s):
                    taken = await consumer.poll()
                if taken:
                    consumer.seek(("cancelled", 0), 0)

            assert [record.offset for record in await consumer.poll()] == [0]

    run(test)


def test_a_deserializer_that_fails_says_where_and_can_be_sought_past(broker: RunningBroker) -> None:
    async def test() -> None:
        async with Producer(of(broker, **FAST)) as producer:
            for value in ("1", "x", "3"):
                await producer.send("numbers", value, partition=0)
        async with Consumer(of(broker, value_deserializer=int, **EARLIEST)) as consumer:
            consumer.assign([("numbers", 0)])

            assert [record.value for record in await consumer.poll()] == [1]
            for _ in range(2):
                with pytest.raises(DeserializationError) as caught:
                    await consumer.poll()
                assert caught.value.offset == 1
            consumer.seek(("numbers", 0), 2)
            assert [record.value for record in await consumer.poll()] == [3]

    run(test)


def test_iteration_goes_on_for_ever(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "endless", 30)
        offsets: list[int] = []
        async with Consumer(of(broker, max_poll_records=7, **EARLIEST)) as consumer:
            consumer.assign([("endless", 0)])
            async for record in consumer:
                offsets.append(record.offset)
                if len(offsets) == 30:
                    break

        assert offsets == list(range(30))

    run(test)


def test_a_consumer_reads_committed(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "isolated", 10)
        async with Consumer(of(broker, isolation_level="read_committed", **EARLIEST)) as consumer:
            consumer.assign([("isolated", 0)])

            assert len(await poll_all(consumer, 10)) == 10

    run(test)


def test_topics_are_created_grown_changed_and_deleted(broker: RunningBroker) -> None:
    async def test() -> None:
        async with Admin(of(broker)) as admin:
            created = await admin.create_topic(NewTopic("managed", 2, configs={"retention.ms": "60000"}))
            assert (created.name, created.partitions_count) == ("managed", 2)
            with pytest.raises(BrokerError) as caught:
                await admin.create_topic(NewTopic("managed"))
            assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            assert "managed" in [topic.name for topic in await admin.list_topics()]
            await admin.create_partitions("managed", 4)
            assert len((await admin.describe_topic("managed")).partitions) == 4
            await admin.alter_configs(ResourceType.TOPIC, "managed", {"retention.ms": "70000"})
            entry = (await admin.describe_configs(ResourceType.TOPIC, "managed", keys=["retention.ms"]))["retention.ms"]
            assert (entry.value, entry.is_default) == ("70000", False)
            await admin.alter_configs(ResourceType.TOPIC, "managed", {"retention.ms": None})
            entries = await admin.describe_configs(ResourceType.TOPIC, "managed", with_docs=True)
            assert entries["retention.ms"].value == "-1"  # the broker's own again
            assert entries["retention.ms"].documentation
            with pytest.raises(BrokerError, match="INVALID_CONFIG"):
                await admin.alter_configs(ResourceType.TOPIC, "managed", {"retention.ms": "soon"})
            await admin.delete_topic("managed")
            with pytest.raises(BrokerError, match="there is no topic 'managed'"):
                await admin.describe_topic("managed")
            with pytest.raises(BrokerError, match="there is no topic 'managed'"):
                await admin.delete_topic("managed")

    run(test)


def test_a_partition_that_came_since_the_admin_looked_last_is_known(broker: RunningBroker) -> None:
    async def test() -> None:
        async with Admin(of(broker)) as admin:
            first, _, third = (TopicPartition("grown", number) for number in range(3))
            await admin.create_topic(NewTopic("grown", 1))
            assert await admin.delete_records({first: 0}) == {first: 0}
            await admin.create_partitions("grown", 3)

            assert await admin.delete_records({third: 0}) == {third: 0}
            assert await admin.describe_producers(TopicPartition("grown", 1)) == []
            with pytest.raises(BrokerError) as caught:
                await admin.describe_producers(TopicPartition("grown", 3))

        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(test)


def test_the_cluster_and_its_logs_are_described(broker: RunningBroker) -> None:
    async def test() -> None:
        await fill(broker, "described", 20)
        where = TopicPartition("described", 0)
        async with Admin(of(broker)) as admin:
            cluster = await admin.describe_cluster()
            assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap]
            node_id = cluster.nodes[0].node_id
            assert (await admin.describe_configs(ResourceType.BROKER, str(node_id)))["num.partitions"].value == "3"
            (log_dir,) = await admin.describe_log_dirs(node_id)
            assert any(replica.topic == "described" and replica.size_bytes for replica in log_dir.replicas)
            offsets = await admin.list_offsets({where: LATEST_TIMESTAMP})
            assert offsets[where].offset == 20
            assert [item.last_sequence for item in await admin.describe_producers(where)] == [19]
            assert await admin.delete_records({where: 5}) == {where: 5}
            assert (await admin.list_offsets({where: EARLIEST_TIMESTAMP}))[where].offset == 5
            with pytest.raises(BrokerError, match="there is no partition described-9"):
                await admin.describe_producers(TopicPartition("described", 9))

    run(test)


def test_the_blocking_facade_does_the_same_without_trio(broker: RunningBroker) -> None:
    told: list[int] = []
    with BlockingAdmin(of(broker)) as admin:
        admin.create_topic(NewTopic("blocking", 1))

        assert len(admin.describe_topic("blocking").partitions) == 1
    with BlockingProducer(of(broker)) as producer:
        assert producer.send("blocking", "0").offset == 0
        for number in range(1, 100):
            producer.enqueue("blocking", str(number), on_delivery=lambda m, e: told.append(m.offset if m else -1))
        producer.enqueue("blocking", object(), on_delivery=lambda m, e: told.append(-1 if e else 0))
    with BlockingConsumer(of(broker, **EARLIEST)) as consumer:
        consumer.assign([("blocking", 0)])
        values = [record.value for _, record in zip(range(100), consumer, strict=False)]

    assert sorted(told) == [-1, *range(1, 100)]
    assert values == [str(number).encode() for number in range(100)]
    with pytest.raises(ClientClosedError):
        consumer.poll()


def test_the_blocking_facade_passes_errors_on_and_ends_its_thread(broker: RunningBroker) -> None:
    with BlockingProducer(of(broker)) as producer, pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        producer.send("no/such", b"")

    with pytest.raises(ClientClosedError):
        producer.enqueue("t", b"")
