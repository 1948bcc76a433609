"""What a producer's settings do, seen at its connections, on virtual time."""

from __future__ import annotations

import random
from collections import deque
from itertools import groupby, pairwise

import pytest
import trio
import trio.testing

from odradek.client import BrokerError, BufferExhaustedError, ClientError, ClientTimeoutError, RecordTooLargeError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.reader import read_records
from odradek.kernel.wire.messages.api_03_metadata import MetadataResponse
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse

from .scripted_brokers import INIT_PRODUCER_ID, METADATA, PRODUCE, ScriptedBrokers, with_brokers

QUIET = 3_600_000
"""Longer than any test: metadata that is not asked for again, connections that are not closed."""


def sizes_of(brokers: ScriptedBrokers) -> list[int]:
    """Return how many bytes of records each Produce request brought."""
    return [
        sum(len(item.records or b"") for topic in each.request.topic_data for item in topic.partition_data)
        for each in brokers.requests(PRODUCE)
    ]


def times_of(brokers: ScriptedBrokers, api_key: int) -> list[float]:
    """Return the seconds between requests of an API."""
    times = [each.time_s for each in brokers.requests(api_key)]
    return [after - before for before, after in pairwise(times)]


# Requests in flight.


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("is_idempotent", [True, False])
def test_no_connection_has_more_unanswered_requests_than_allowed_and_order_is_kept(
    most: int, is_idempotent: bool
) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"max_in_flight_requests_per_connection": most, "enable_idempotence": is_idempotent}
        async with brokers.producer(linger_ms=0, batch_size=0, **settings) as producer:
            await producer.send("t", "first", partition=0)
            brokers.held.add(1)
            for number in range(12):
                await producer.enqueue("t", str(number), partition=0)
            await trio.testing.wait_all_tasks_blocked()

            assert most == brokers.unanswered[1]
            if most == 1 or is_idempotent:  # elsewhere a batch that comes again may come after its followers
                brokers.errors.extend([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS])
            brokers.release()

        assert most == brokers.unanswered_max[1]
        assert [b"first", *(str(number).encode() for number in range(12))] == brokers.values()

    with_brokers(test)


def test_every_broker_may_have_as_many_unanswered_requests_as_allowed() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"max_in_flight_requests_per_connection": 2, "enable_idempotence": False}
        async with brokers.producer(linger_ms=0, batch_size=0, **settings) as producer:
            await producer.send("t", "first", partition=0)
            brokers.held.update((1, 2))
            for number in range(8):
                await producer.enqueue("t", str(number), partition=number % 2)
            await trio.testing.wait_all_tasks_blocked()
            brokers.release()

        assert brokers.unanswered_max == {1: 2, 2: 2}

    with_brokers(test, leaders=(1, 2))


def test_with_one_request_in_flight_a_partition_that_moved_waits_for_the_answer_of_its_former_leader() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"max_in_flight_requests_per_connection": 1, "enable_idempotence": False, "linger_ms": 0}
        async with brokers.producer(metadata_max_age_ms=1_000, **settings) as producer:
            await producer.send("t", "elsewhere", partition=1)  # so that node 2 can be asked for metadata
            brokers.held.add(1)
            await producer.enqueue("t", "one", partition=0)
            await trio.testing.wait_all_tasks_blocked()
            brokers.leaders = (2, 2)
            await trio.sleep(5)
            await producer.enqueue("t", "two", partition=0)
            await trio.sleep(5)
            assert len(brokers.requests(PRODUCE, 2)) == 1
            brokers.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            brokers.release()

        assert brokers.values() == [b"one", b"two"]

    with_brokers(test, leaders=(1, 2))


# The choice of a partition.


async def _send_beside_a_slow_broker(brokers: ScriptedBrokers, pause_s: float, **settings: object) -> int:
    """Return how many of the later records without a key go to the partition of a broker that answers nothing."""
    more = {"max_in_flight_requests_per_connection": 1, "linger_ms": 0, "batch_size": 1, "delivery_timeout_ms": QUIET}
    numbers = []
    async with brokers.producer(request_timeout_ms=QUIET // 2, **more, **settings) as producer:
        await producer.send("t", "0", partition=0)
        await producer.send("t", "1", partition=1)
        brokers.held.add(1)
        for number in range(120):
            if number == 20:
                await trio.sleep(pause_s)
            delivery = await producer.enqueue("t", str(number))
            numbers.append(delivery)
            await trio.testing.wait_all_tasks_blocked()
        brokers.release()
        chosen = [(await delivery.wait()).partition for delivery in numbers]
    return chosen[21:].count(0)  # the first one after the pause goes where it was settled before it


@pytest.mark.parametrize(
    ("timeout_ms", "is_adaptive", "expected"),
    [(1_000, True, range(1)), (0, True, range(1, 30)), (60_000, True, range(1, 30)), (1_000, False, range(30, 100))],
)
def test_partitions_of_a_broker_that_takes_nothing_are_passed_over_after_a_while(
    timeout_ms: int, is_adaptive: bool, expected: range
) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        to_slow = await _send_beside_a_slow_broker(
            brokers,
            5.0,
            partitioner_availability_timeout_ms=timeout_ms,
            partitioner_adaptive_partitioning_enable=is_adaptive,
        )

        assert to_slow in expected

    with_brokers(test, leaders=(1, 2))


@pytest.mark.parametrize("ignores_keys", [True, False])
def test_keys_decide_unless_they_are_to_be_ignored(ignores_keys: bool) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(partitioner_ignore_keys=ignores_keys, batch_size=1, linger_ms=0) as producer:
            chosen = {(await producer.send("t", "x", key="always the same")).partition for _ in range(30)}

        assert (len(chosen) > 1) == ignores_keys

    with_brokers(test, leaders=(1, 2, 1, 2))


def test_records_without_a_key_change_their_partition_between_batches_not_within_them() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(batch_size=1_000, linger_ms=1_000) as producer:
            deliveries = [await producer.enqueue("t", "x" * 445) for _ in range(80)]
            await producer.flush()
            chosen = [(await delivery.wait()).partition for delivery in deliveries]

        stays = [len(list(group)) for _, group in groupby(chosen)]
        assert [length % 4 for length in stays] == [0] * len(stays)  # two fit into a batch, which is not worth a change
        assert len(stays) > 5

    with_brokers(test, leaders=(1, 2, 1, 2))


# Metadata.


def test_metadata_is_asked_again_when_it_is_old() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(metadata_max_age_ms=7_000, connections_max_idle_ms=QUIET) as producer:
            await producer.send("t", "x")
            await trio.sleep(30)

        assert [round(pause) for pause in times_of(brokers, METADATA)] == [7, 7, 7, 7]

    with_brokers(test)


def test_topics_that_nobody_uses_any_more_are_not_asked_about() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(metadata_max_idle_ms=5_000, metadata_max_age_ms=1_000) as producer:
            await producer.send("idle", "x")
            for number in range(12):
                await producer.send("used", str(number))
                await trio.sleep(1)

        asked = [(each.time_s, {topic.name for topic in each.request.topics}) for each in brokers.requests(METADATA)]
        early = [names for time_s, names in asked if asked[0][0] + 1 < time_s < asked[0][0] + 5]
        late = [names for time_s, names in asked if time_s > asked[0][0] + 7]
        assert early == [{"idle", "used"}] * len(early)
        assert late == [{"used"}] * len(late)
        assert early
        assert late

    with_brokers(test)


def test_a_topic_whose_records_still_wait_is_asked_about_however_long_nobody_used_it() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"metadata_max_idle_ms": 5_000, "metadata_max_age_ms": 1_000, "request_timeout_ms": 20_000}
        brokers.held.add(1)
        async with brokers.producer(linger_ms=0, **settings) as producer:
            await producer.enqueue("t", "x", partition=0)
            await trio.sleep(10)
            assert brokers.requests(METADATA)[-1].request.topics == []
            await trio.sleep(15)
            brokers.release()

        assert brokers.values() == [b"x"]
        assert trio.current_time() - brokers.requests(PRODUCE)[0].time_s < 30  # long before it would be given up

    with_brokers(test)


# Batches and requests.


def test_a_batch_waits_for_more_records_as_long_as_linger_says() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(linger_ms=3_000, connections_max_idle_ms=QUIET) as producer:
            await producer.partitions_for("t")
            for _ in range(2):
                start_s = trio.current_time()
                await producer.send("t", "x", partition=0)

                assert pytest.approx(trio.current_time() - start_s, abs=0.01) == 3.0

    with_brokers(test)


def test_batches_are_as_large_as_they_may_be() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(linger_ms=1_000, batch_size=2_000) as producer:
            for _ in range(30):
                await producer.enqueue("t", "x" * 400, partition=0)

        assert all(1_600 < size <= 2_000 for size in sizes_of(brokers)[:-1])

    with_brokers(test)


def test_keys_and_values_are_made_by_their_serializers() -> None:
    class OfKeys:
        def serialize(self, topic: str, key: int) -> bytes:
            return f"key {key} of {topic}".encode()

    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"key_serializer": OfKeys, "value_serializer": lambda value: f"value {value}".encode()}
        async with brokers.producer(**settings) as producer:
            await producer.send("t", 8, key=7, partition=0)

        (item,) = brokers.requests(PRODUCE)[0].request.topic_data[0].partition_data
        assert [(record.key, record.value) for record in read_records(item.records)] == [(b"key 7 of t", b"value 8")]

    with_brokers(test)


def test_requests_are_as_large_as_they_may_be() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"max_request_size": 1_100, "batch_size": 500, "linger_ms": 1_000}
        async with brokers.producer(**settings) as producer:
            for number in range(6):
                await producer.enqueue("t", "x" * 400, partition=number)

        assert [800 < size <= 1_100 for size in sizes_of(brokers)] == [True, True, True]

    with_brokers(test, leaders=(1,) * 6)


@pytest.mark.parametrize("limit", ["max_request_size", "buffer_memory"])
def test_a_record_that_is_larger_than_a_request_or_the_buffer_may_be_is_refused_at_once(limit: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(**{limit: 1_000}) as producer:
            await producer.send("t", "x" * 900)
            with pytest.raises(RecordTooLargeError, match=limit.replace("_", ".")):
                await producer.send("t", "x" * 1_001)

        assert len(brokers.requests(PRODUCE)) == 1

    with_brokers(test)


def test_a_full_buffer_holds_senders_up_for_as_long_as_they_may_be_blocked() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.held.add(1)
        settings = {"buffer_memory": 3_000, "batch_size": 1_000, "max_block_ms": 4_000}
        async with brokers.producer(**settings) as producer:
            with trio.fail_after(0.1):  # there is room for six; nobody waits yet
                for _ in range(6):
                    await producer.enqueue("t", "x" * 400, partition=0)
            start_s = trio.current_time()
            with pytest.raises(BufferExhaustedError) as caught:
                await producer.enqueue("t", "x" * 400, partition=0)

            assert pytest.approx(trio.current_time() - start_s, abs=0.01) == 4.0
            assert caught.value.retriable
            assert 2_400 < producer.statistics().buffered_bytes <= 3_000
            brokers.release()

    with_brokers(test)


@pytest.mark.parametrize("call", ["send", "partitions_for"])
def test_a_topic_that_does_not_show_up_holds_senders_up_for_as_long_as_they_may_be_blocked(call: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(max_block_ms=7_000) as producer:
            start_s = trio.current_time()
            with pytest.raises(ClientTimeoutError):
                await getattr(producer, call)("t")

            assert pytest.approx(trio.current_time() - start_s, abs=0.01) == 7.0

    with_brokers(test, leaders=())


def test_waiting_for_a_topic_and_then_for_memory_takes_no_longer_than_either() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.held.add(1)
        settings = {"buffer_memory": 1_000, "batch_size": 1_000, "max_block_ms": 9_000, "retry_backoff_ms": 900}
        async with brokers.producer(**settings) as producer:
            await producer.enqueue("t", "x" * 700, partition=0)
            await trio.sleep(5)
            brokers.refusals[METADATA] = deque([MetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)] * 3)
            start_s = trio.current_time()
            with pytest.raises(BufferExhaustedError):
                await producer.enqueue("another", "x" * 700, partition=0)

            assert not brokers.refusals[METADATA]
            assert pytest.approx(trio.current_time() - start_s, abs=0.01) == 9.0
            brokers.release()

    with_brokers(test)


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", 1, 19)])
def test_a_higher_level_of_compression_makes_smaller_batches(codec: str, low: int, high: int) -> None:
    source = random.Random(7)
    words = [f"{source.randrange(10**6)}" for _ in range(300)]
    values = [" ".join(source.choices(words, k=60)) for _ in range(40)]

    async def test(brokers: ScriptedBrokers) -> None:
        for level in (low, high):
            settings = {"compression_type": codec, f"compression_{codec}_level": level}
            async with brokers.producer(linger_ms=1_000, batch_size=100_000, **settings) as producer:
                for value in values:
                    await producer.enqueue("t", value, partition=0)

        at_low, at_high = sizes_of(brokers)
        assert at_high < at_low < sum(map(len, values))
        request = brokers.requests(PRODUCE)[-1].request
        records = request.topic_data[0].partition_data[0].records
        assert [record.value for record in read_records(records)] == [value.encode() for value in values]

    with_brokers(test)


# Time-outs and repetitions.


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_a_broker_is_told_how_many_replicas_are_to_have_a_record_and_how_long_it_may_take(acks: int | str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(acks=acks, request_timeout_ms=12_345) as producer:
            await producer.send("t", "x")
            await trio.testing.wait_all_tasks_blocked()

        (asked,) = brokers.requests(PRODUCE)
        assert (-1 if acks == "all" else acks, 12_345) == (asked.request.acks, asked.request.timeout_ms)

    with_brokers(test)


def test_a_request_without_an_answer_ends_its_connection_after_its_time_out() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(request_timeout_ms=9_000, linger_ms=0) as producer:
            await producer.partitions_for("t")
            brokers.held.add(1)
            brokers.nursery.start_soon(producer.send, "t", "x")
            await trio.sleep(10)
            (asked, *_) = brokers.requests(PRODUCE)
            brokers.release()

        assert asked.time_s + 9 == pytest.approx(brokers.closes_s[1][-2], abs=0.01)

    with_brokers(test)


def test_a_record_is_given_up_after_its_delivery_time_out() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 1_000)
        settings = {"delivery_timeout_ms": 20_000, "request_timeout_ms": 5_000, "linger_ms": 0}
        async with brokers.producer(**settings) as producer:
            await producer.partitions_for("t")
            start_s = trio.current_time()
            with pytest.raises(ClientError) as caught:
                await producer.send("t", "x")

            assert caught.value.retriable
            assert pytest.approx(trio.current_time() - start_s, abs=1.2) == 20  # a pause may be cut short by it

    with_brokers(test)


def test_a_record_that_waits_for_its_repetition_is_given_up_in_time() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.append(ErrorCode.NOT_ENOUGH_REPLICAS)
        settings = {"delivery_timeout_ms": 20_000, "request_timeout_ms": 5_000, "linger_ms": 0}
        async with brokers.producer(retry_backoff_ms=QUIET, retry_backoff_max_ms=QUIET, **settings) as producer:
            await producer.partitions_for("t")
            start_s = trio.current_time()
            with pytest.raises(ClientTimeoutError):
                await producer.send("t", "x")

            assert pytest.approx(trio.current_time() - start_s, abs=0.01) == 20

    with_brokers(test)


def test_pauses_before_repetitions_double_up_to_their_limit_and_differ_by_chance() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 8)
        settings = {"retry_backoff_ms": 1_000, "retry_backoff_max_ms": 8_000, "linger_ms": 0}
        async with brokers.producer(**settings) as producer:
            await producer.send("t", "x")

        pauses = times_of(brokers, PRODUCE)
        for pause, plain in zip(pauses, [1, 2, 4, 8, 8, 8, 8, 8], strict=True):
            assert 0.8 * plain <= pause <= min(1.2 * plain, 8) + 0.002
        assert len(set(pauses)) > 4

    with_brokers(test)


@pytest.mark.parametrize("retries", [0, 3])
def test_a_batch_is_sent_again_as_often_as_retries_says(retries: int) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 9)
        async with brokers.producer(retries=retries, enable_idempotence=False) as producer:
            with pytest.raises(BrokerError):
                await producer.send("t", "x")

        assert retries + 1 == len(brokers.requests(PRODUCE))

    with_brokers(test)


def test_a_transactional_producer_tells_its_name_and_time_out_and_asks_again_after_doubling_pauses() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        loading = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        brokers.refusals[INIT_PRODUCER_ID] = deque([loading] * 6)
        settings = {"transactional_id": "biller", "transaction_timeout_ms": 43_210}
        async with brokers.producer(retry_backoff_ms=1_000, retry_backoff_max_ms=8_000, **settings) as producer:
            await producer.init_transactions()

        asked = brokers.requests(INIT_PRODUCER_ID)
        assert {("biller", 43_210)} == {
            (each.request.transactional_id, each.request.transaction_timeout_ms) for each in asked
        }
        for pause, plain in zip(times_of(brokers, INIT_PRODUCER_ID), [1, 2, 4, 8, 8, 8], strict=True):
            assert 0.8 * plain <= pause <= min(1.2 * plain, 8) + 0.002

    with_brokers(test)
