"""What a consumer's settings do, seen at its connections and in what it hands out, on virtual time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import BrokerError, NoOffsetForPartitionError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.types import TopicPartition

from .scripted_brokers import FETCH, LIST_OFFSETS, METADATA, ScriptedBrokers, with_brokers

if TYPE_CHECKING:
    from odradek.client import Consumer, ConsumerRecord

HERE = TopicPartition("t", 0)


def batch_of(*values: bytes) -> bytes:
    builder = BatchBuilder(base_offset=0)
    for value in values:
        builder.append(None, value, timestamp=1)
    return bytes(builder.build())


async def poll_from_the_beginning(consumer: Consumer) -> list[ConsumerRecord]:
    consumer.assign([HERE])
    consumer.seek(HERE, 0)
    return await consumer.poll(timeout_ms=10_000)


@pytest.mark.parametrize(
    ("key", "attribute", "value", "expected"),
    [
        ("fetch_min_bytes", "min_bytes", 77, 77),
        ("fetch_max_bytes", "max_bytes", 7_777, 7_777),
        ("fetch_max_wait_ms", "max_wait_ms", 777, 777),
        ("isolation_level", "isolation_level", "read_committed", 1),
        ("isolation_level", "isolation_level", "read_uncommitted", 0),
        ("client_rack", "rack_id", "row 7", "row 7"),
    ],
)
def test_brokers_are_told_how_to_answer_fetches(key: str, attribute: str, value: object, expected: object) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(**{key: value}) as consumer:
            await poll_from_the_beginning(consumer)

        assert {expected} == {getattr(each.request, attribute) for each in brokers.requests(FETCH)}

    with_brokers(test)


def test_brokers_are_told_how_much_to_send_of_a_partition() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(max_partition_fetch_bytes=4_321) as consumer:
            await poll_from_the_beginning(consumer)

        asked = brokers.requests(FETCH)[0].request
        assert [item.partition_max_bytes for topic in asked.topics for item in topic.partitions] == [4_321]

    with_brokers(test)


def test_a_fetch_may_take_as_long_as_it_waits_beyond_the_time_out_of_requests() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(fetch_max_wait_ms=40_000, request_timeout_ms=10_000) as consumer:
            consumer.assign([HERE])
            consumer.seek(HERE, 0)
            await consumer.poll(timeout_ms=100_000)

        pauses = [each.time_s for each in brokers.requests(FETCH)[:3]]
        assert pauses[1] - pauses[0] == pytest.approx(40, abs=0.01)
        assert len(brokers.connects_s[1]) == 2  # to the bootstrap server, and to the broker by its id

    with_brokers(test)


@pytest.mark.parametrize("most", [1, 3, 500])
def test_a_poll_returns_so_many_records_at_most(most: int) -> None:
    values = [str(number).encode() for number in range(7)]

    async def test(brokers: ScriptedBrokers) -> None:
        brokers.fetched = batch_of(*values)
        async with brokers.consumer(max_poll_records=most) as consumer:
            polls = [[record.value for record in await poll_from_the_beginning(consumer)]]
            while sum(map(len, polls)) < len(values):
                polls.append([record.value for record in await consumer.poll(timeout_ms=10_000)])

        assert [values[at : at + most] for at in range(0, len(values), most)] == polls

    with_brokers(test)


def test_keys_and_values_are_read_by_their_deserializers_and_then_seen_by_interceptors() -> None:
    class OfKeys:
        def deserialize(self, topic: str, data: bytes) -> str:
            return f"{data.decode()} of {topic}"

    class Reversing:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return records[::-1]

    async def test(brokers: ScriptedBrokers) -> None:
        builder = BatchBuilder(base_offset=0)
        for number in (b"1", b"2"):
            builder.append(number, number, timestamp=1)
        brokers.fetched = bytes(builder.build())
        settings = {"key_deserializer": OfKeys, "value_deserializer": int, "interceptor_classes": [Reversing]}
        async with brokers.consumer(**settings) as consumer:
            records = await poll_from_the_beginning(consumer)

        assert [(record.key, record.value) for record in records] == [("2 of t", 2), ("1 of t", 1)]

    with_brokers(test)


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_wrong_checksum_is_an_error_unless_checksums_are_not_looked_at(is_checked: bool) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        damaged = bytearray(batch_of(b"one"))
        damaged[17] ^= 1  # the checksum itself
        brokers.fetched = bytes(damaged)
        async with brokers.consumer(check_crcs=is_checked) as consumer:
            if is_checked:
                with pytest.raises(BrokerError) as caught:
                    await poll_from_the_beginning(consumer)
                assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
            else:
                assert [record.value for record in await poll_from_the_beginning(consumer)] == [b"one"]

    with_brokers(test)


@pytest.mark.parametrize(
    ("reset", "timestamp"), [("earliest", -2), ("latest", -1), ("by_duration:PT1H", 9_000_000 - 3_600_000)]
)
def test_without_a_position_reading_begins_where_auto_offset_reset_says(reset: str, timestamp: int) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(
            ManualClock(9_000_000), auto_offset_reset=reset, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([HERE])
            await consumer.poll(timeout_ms=1_000)

        (asked,) = brokers.requests(LIST_OFFSETS)
        assert timestamp == asked.request.topics[0].partitions[0].timestamp
        assert asked.request.isolation_level == 1  # the latest that may be seen
        expected = 0 if reset == "earliest" else 9
        assert {expected} == {
            item.fetch_offset for topic in brokers.requests(FETCH)[0].request.topics for item in topic.partitions
        }

    with_brokers(test)


def test_without_a_position_and_a_reset_there_is_an_error() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(auto_offset_reset="none") as consumer:
            consumer.assign([HERE])
            with pytest.raises(NoOffsetForPartitionError):
                await consumer.poll(timeout_ms=1_000)

        assert brokers.requests(LIST_OFFSETS) == []

    with_brokers(test)


@pytest.mark.parametrize("may_create", [True, False])
def test_brokers_are_told_whether_asking_for_a_topic_may_create_it(may_create: bool) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(allow_auto_create_topics=may_create) as consumer:
            await consumer.partitions_for("t")

        assert {may_create} == {each.request.allow_auto_topic_creation for each in brokers.requests(METADATA)}

    with_brokers(test)


def test_a_consumer_s_metadata_is_asked_again_when_it_is_old() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.consumer(metadata_max_age_ms=7_000) as consumer:
            await consumer.partitions_for("t")
            await trio.sleep(30)

        times = [each.time_s for each in brokers.requests(METADATA)]
        assert [round(after - before) for before, after in pairwise(times)] == [7, 7, 7, 7]

    with_brokers(test)
