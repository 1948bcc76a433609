"""The producer against a broker that fails by script: each record once and in order, errors, cancellation."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from odradek.client import (
    BrokerError,
    BufferExhaustedError,
    ClientClosedError,
    ClientError,
    ClientTimeoutError,
    ClientUsageError,
    Producer,
    RecordMetadata,
    RecordTooLargeError,
    SerializationError,
)
from odradek.kernel.errors import ErrorCode
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

from .fake_broker import (
    APPEND,
    DROP_AFTER,
    DROP_BEFORE,
    FAILED_AFTER,
    NOT_LEADER_AFTER,
    OFFLINE_AFTER,
    SILENT,
    TIMED_OUT_AFTER,
    FakeBroker,
    fake_broker,
)

FAST: dict[str, object] = {
    "linger.ms": 0,
    "retry.backoff.ms": 1,
    "retry.backoff.max.ms": 5,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 5,
}
FAULTS = [
    DROP_BEFORE,
    DROP_AFTER,
    TIMED_OUT_AFTER,
    NOT_LEADER_AFTER,
    OFFLINE_AFTER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
]


def producer_of(broker: FakeBroker, **settings: object) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    given = {"bootstrap.servers": broker.bootstrap, **FAST, **named}
    return Producer(given, machine=machine_with(random=random.Random(5)))


def with_broker(test: Callable[[FakeBroker], Awaitable[None]], **values: Any) -> None:
    async def run() -> None:
        with trio.fail_after(PATIENCE_S):
            async with fake_broker(**values) as broker:
                await test(broker)

    trio.run(run)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_record_is_written_once_whatever_happens_to_its_first_attempt(fault: str | ErrorCode) -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker) as producer:
            metadata = await producer.send("t", b"one", partition=0)

        assert broker.values() == [b"one"]
        assert RecordMetadata("t", 0, 0, metadata.timestamp, -1, 3) == metadata
        assert broker.produce_count == 2

    with_broker(test, script=deque([fault]))


@pytest.mark.parametrize("seed", range(8))
def test_many_records_through_random_faults_stay_whole_and_in_order(seed: int) -> None:
    source = random.Random(seed)
    script = deque(source.choice([*FAULTS, "append", "append", "append"]) for _ in range(40))

    async def test(broker: FakeBroker) -> None:
        told: list[int] = []
        async with producer_of(broker, batch_size=100) as producer:
            for number in range(60):
                await producer.enqueue(
                    "t",
                    str(number),
                    partition=0,
                    on_delivery=lambda metadata, error, number=number: told.append(number),  # type: ignore[misc]
                )

        assert [str(number).encode() for number in range(60)] == broker.values()
        # One may be known to stand there before the one in front of it, which was appended and answered with an error.
        assert list(range(60)) == sorted(told)

    with_broker(test, script=script)


def test_a_broker_that_does_not_answer_is_asked_again_over_another_connection() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, request_timeout_ms=200) as producer:
            await producer.send("t", b"one", partition=0)

        assert broker.values() == [b"one"]
        assert broker.connections_count >= 2

    with_broker(test, script=deque([SILENT]))


def test_without_idempotence_a_lost_answer_makes_a_duplicate() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, enable_idempotence=False) as producer:
            await producer.send("t", b"one", partition=0)

        assert broker.values() == [b"one", b"one"]

    with_broker(test, script=deque([DROP_AFTER]))


@pytest.mark.parametrize(
    ("code", "retriable"), [(ErrorCode.INVALID_RECORD, False), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)]
)
def test_a_fatal_error_reaches_both_forms_at_once(code: ErrorCode, retriable: bool) -> None:
    async def test(broker: FakeBroker) -> None:
        told: list[ClientError | None] = []
        async with producer_of(broker) as producer:
            with pytest.raises(BrokerError) as caught:
                await producer.send("t", b"one", partition=0)
            broker.script.append(code)
            await producer.enqueue("t", b"two", partition=0, on_delivery=lambda _, error: told.append(error))
            await producer.flush()
            await producer.send("t", b"three", partition=0)

        assert (code, retriable) == (caught.value.code, caught.value.retriable)
        assert isinstance(told[0], BrokerError)
        assert code is told[0].code
        assert broker.values() == [b"three"]

    with_broker(test, script=deque([code]))


def test_retries_end_with_the_last_retriable_error() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, retries=2, acks=1) as producer:
            with pytest.raises(BrokerError) as caught:
                await producer.send("t", b"one", partition=0)

        assert caught.value.retriable
        assert broker.produce_count == 3

    with_broker(test, script=deque([ErrorCode.NOT_ENOUGH_REPLICAS] * 9))


def test_the_delivery_deadline_ends_retries() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, delivery_timeout_ms=300, request_timeout_ms=300) as producer:
            with pytest.raises(ClientError) as caught:
                await producer.send("t", b"one", partition=0)

        assert caught.value.retriable

    with_broker(test, script=deque([ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000))


@pytest.mark.parametrize(
    "script",
    [
        [NOT_LEADER_AFTER, NOT_LEADER_AFTER, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2],
        [OFFLINE_AFTER, OFFLINE_AFTER, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2],
        [FAILED_AFTER, NOT_LEADER_AFTER],
    ],
    ids=str,
)
def test_what_came_behind_a_batch_that_was_given_up_after_its_append_is_written_once(
    script: list[str | ErrorCode],
) -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, retries=2, batch_size=100) as producer:
            await producer.send("t", b"zero", partition=0)
            one = await producer.enqueue("t", b"1" * 60, partition=0)
            two = await producer.enqueue("t", b"2" * 60, partition=0)
            with pytest.raises(BrokerError):
                await one.wait()
            await two.wait()

        assert broker.values() == [b"zero", b"1" * 60, b"2" * 60]

    with_broker(test, script=deque([APPEND, *script]))


@pytest.mark.parametrize(
    ("first", "fate"),
    [(ErrorCode.NOT_ENOUGH_REPLICAS, "it was not appended"), (NOT_LEADER_AFTER, "it may have been appended")],
    ids=str,
)
def test_a_deadline_says_whether_the_record_may_have_been_appended(first: str | ErrorCode, fate: str) -> None:
    settings = {"delivery_timeout_ms": 300, "request_timeout_ms": 300}
    rests = {"retry_backoff_ms": 60_000, "retry_backoff_max_ms": 60_000}

    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, **settings, **rests) as producer:
            with pytest.raises(ClientTimeoutError, match=fate):
                await producer.send("t", b"one", partition=0)

        assert broker.values() == ([b"one"] if first is NOT_LEADER_AFTER else [])

    with_broker(test, script=deque([first]))


def test_a_batch_that_is_too_large_is_split() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, linger_ms=50) as producer:
            deliveries = [await producer.enqueue("t", str(number), partition=0) for number in range(5)]
            results = [await delivery.wait() for delivery in deliveries]

        assert [metadata.offset for metadata in results] == [0, 1, 2, 3, 4]
        assert broker.values() == [b"0", b"1", b"2", b"3", b"4"]

    with_broker(test, script=deque([ErrorCode.MESSAGE_TOO_LARGE]))


def test_acks_0_expects_no_answer() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, acks=0) as producer:
            metadata = await producer.send("t", b"one", partition=0)
        while not broker.values():
            await trio.lowlevel.checkpoint()

        assert metadata.offset == -1

    with_broker(test)


def test_metadata_that_never_comes_ends_with_max_block() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, max_block_ms=100) as producer:
            with pytest.raises(ClientTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await producer.send("t", b"one")

    with_broker(test, topic_error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_an_illegal_topic_is_told_at_once() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker) as producer:
            with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
                await producer.send("t", b"one")

    with_broker(test, topic_error=ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_full_memory_makes_enqueue_wait_and_send_nowait_raise() -> None:
    async def test(broker: FakeBroker) -> None:
        broker.script.extend([SILENT] * 100)
        errors: list[ClientError] = []
        with trio.CancelScope() as scope:
            async with producer_of(broker, buffer_memory=400, batch_size=200, max_block_ms=200) as producer:
                await producer.partitions_for("t")
                while not errors:
                    try:
                        await producer.enqueue("t", b"x" * 100, partition=0)
                    except BufferExhaustedError as error:
                        errors.append(error)
                with pytest.raises(BufferExhaustedError):
                    producer.send_nowait("t", b"x" * 100, partition=0)
                scope.cancel()

        assert errors[0].retriable

    with_broker(test)


def test_memory_that_is_given_back_lets_waiting_records_in() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, buffer_memory=400, batch_size=200, linger_ms=60_000) as producer:
            for number in range(40):
                await producer.enqueue("t", str(number).zfill(100), partition=0)

        assert broker.values() == [str(number).zfill(100).encode() for number in range(40)]

    with_broker(test)


def test_what_is_wrong_with_a_record_is_raised_by_the_call_that_brings_it() -> None:
    async def test(broker: FakeBroker) -> None:
        settings = {"max_request_size": 1_000, "value_serializer": lambda value: value, "max_block_ms": 100}
        async with producer_of(broker, **settings) as producer:
            with pytest.raises(SerializationError, match="of type object"):
                await producer.enqueue("t", object())
            with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
                await producer.enqueue("t", b"x" * 2_000)
            with pytest.raises(ClientTimeoutError, match="no partition 5"):
                await producer.send("t", b"x", partition=5)

    with_broker(test)


def test_nobody_there_is_a_retriable_failure() -> None:
    async def run() -> None:
        settings = {"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 100, **FAST}
        async with Producer(settings) as producer:
            with pytest.raises(ClientTimeoutError, match="cannot connect") as caught:
                await producer.send("t", b"one")

        assert caught.value.retriable

    trio.run(run)


def test_a_closed_or_unopened_producer_says_so() -> None:
    async def test(broker: FakeBroker) -> None:
        producer = producer_of(broker)
        with pytest.raises(ClientClosedError):
            await producer.send("t", b"one")
        async with producer:
            pass
        with pytest.raises(ClientClosedError):
            await producer.send("t", b"one")
        with pytest.raises(ClientUsageError, match="opened once"):
            await producer.__aenter__()

    with_broker(test)


def test_interceptor_then_serializer_then_partitioner() -> None:
    order: list[str] = []

    class Interceptor:
        def on_send(self, record: Any) -> Any:
            order.append("interceptor")
            return record

        def on_acknowledgement(self, metadata: object, error: object) -> None:
            order.append(f"acknowledged {error}")

    class Chooser:
        def partition(self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
            order.append(f"partitioner {value} {value_bytes!r}")
            return 1

    def serialize(value: int) -> bytes:
        order.append("serializer")
        return str(value).encode()

    async def test(broker: FakeBroker) -> None:
        settings = {
            "interceptor_classes": [Interceptor()],
            "value_serializer": serialize,
            "partitioner_class": Chooser(),
        }
        async with producer_of(broker, **settings) as producer:
            await producer.send("t", 42)

        assert broker.values("t", 1) == [b"42"]
        assert order == ["interceptor", "serializer", "partitioner 42 b'42'", "acknowledged None"]

    with_broker(test, partitions_count=2)


class Watch:
    """Keeps what interceptors hear; sees to it that each record that was sent is heard of once more."""

    def __init__(self) -> None:
        self.sent: list[object] = []
        self.heard: list[tuple[object, object]] = []

    def on_send(self, record: Any) -> Any:
        self.sent.append(record.value)
        return record

    def on_acknowledgement(self, metadata: object, error: object) -> None:
        self.heard.append((metadata, error))


async def enqueue(producer: Producer, value: object) -> None:
    await producer.enqueue("t", value)


async def send_nowait(producer: Producer, value: object) -> None:
    producer.send_nowait("t", value)


@pytest.mark.parametrize("ask", [enqueue, send_nowait])
@pytest.mark.parametrize(("value", "expected"), [(bytes(5_000), RecordTooLargeError), (7, SerializationError)])
def test_interceptors_hear_of_a_record_that_is_refused_before_it_is_taken(
    value: object, expected: type[ClientError], ask: Callable[[Producer, object], Awaitable[None]]
) -> None:
    async def test(broker: FakeBroker) -> None:
        watch = Watch()
        async with producer_of(broker, interceptor_classes=[watch], max_request_size=1_000) as producer:
            await producer.send("t", b"known")
            with pytest.raises(expected) as refused:
                await ask(producer, value)

        assert watch.sent == [b"known", value]
        assert watch.heard[1:] == [(None, refused.value)]

    with_broker(test)


def test_interceptors_hear_of_a_record_that_finds_no_memory() -> None:
    async def test(broker: FakeBroker) -> None:
        watch = Watch()
        settings = {"interceptor_classes": [watch], "buffer_memory": 20_000, "linger_ms": 60_000, "batch_size": 16_000}
        async with producer_of(broker, **settings) as producer:
            await producer.enqueue("t", bytes(10_000))
            producer.send_nowait("t", bytes(5_000))
            with pytest.raises(BufferExhaustedError) as refused:
                producer.send_nowait("t", bytes(15_000))
            assert watch.heard[-1] == (None, refused.value)
            await producer.flush()

        assert len(watch.heard) == len(watch.sent)

    with_broker(test)


def test_interceptors_hear_of_a_record_whose_sender_is_cancelled() -> None:
    async def test(broker: FakeBroker) -> None:
        watch = Watch()
        async with producer_of(broker, interceptor_classes=[watch]) as producer:
            with trio.move_on_after(0):
                await producer.enqueue("t", b"v")
            ((metadata, error),) = watch.heard

        assert metadata is None
        assert isinstance(error, ClientError)
        assert watch.sent == [b"v"]

    with_broker(test)


def test_a_broker_with_old_versions_is_spoken_to_in_them() -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker) as producer:
            await producer.send("t", b"one", partition=0)

        assert broker.values() == [b"one"]

    with_broker(test, versions_max={0: 3, 3: 1, 18: 0, 22: 0})


# Cancellation.


@pytest.mark.parametrize("phase", ["metadata", "answer", "flush"])
def test_a_call_cancelled_in_any_phase_leaves_the_producer_usable(phase: str) -> None:
    async def test(broker: FakeBroker) -> None:
        async with producer_of(broker, request_timeout_ms=300) as producer:
            if phase != "metadata":
                await producer.partitions_for("t")
                broker.script.append(SILENT)
            else:
                broker.topic_error = ErrorCode.LEADER_NOT_AVAILABLE
            with trio.move_on_after(0.05) as scope:
                if phase == "flush":
                    await producer.enqueue("t", b"first", partition=0)
                    await producer.flush()
                else:
                    await producer.send("t", b"first", partition=0)

            assert scope.cancelled_caught
            broker.topic_error = ErrorCode.NONE
            await producer.send("t", b"second", partition=0)

        first = [] if phase == "metadata" else [b"first"]
        assert [*first, b"second"] == broker.values()

    with_broker(test)


@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.03, 0.08])
def test_a_cancelled_producer_ends_with_all_its_tasks_and_tells_every_record_s_fate(delay_s: float) -> None:
    async def test(broker: FakeBroker) -> None:
        told: list[ClientError | None] = []
        taken = 0
        broker.script.extend([SILENT] * 100)
        with trio.move_on_after(delay_s):
            async with producer_of(broker) as producer:
                while True:
                    await producer.enqueue("t", b"x", partition=0, on_delivery=lambda _, error: told.append(error))
                    taken += 1
                    await trio.sleep(0.001)

        assert taken == len(told)
        assert all(isinstance(error, ClientClosedError) for error in told)

    with_broker(test)


def test_an_error_of_the_caller_leaves_the_with_block_as_itself() -> None:
    async def test(broker: FakeBroker) -> None:
        async def use() -> None:
            async with producer_of(broker) as producer:
                await producer.send("t", b"one", partition=0)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await use()

        assert broker.values() == [b"one"]

    with_broker(test)


def test_a_refused_connection_is_tried_again_until_the_broker_is_there() -> None:
    async def test(broker: FakeBroker) -> None:
        broker.is_silent = True
        async with producer_of(broker, request_timeout_ms=100) as producer:
            with trio.move_on_after(0.15):
                await producer.send("t", b"lost", partition=0)
            broker.is_silent = False
            await producer.send("t", b"one", partition=0)

        assert broker.values() == [b"one"]

    with_broker(test)
