"""Faults that a test asks of its broker, as real clients take them: they try again, wait, connect anew."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka's
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.testing.running_broker import RunningBroker, running_broker

from ..waiting import until
from .clients import import_or_skip

pytestmark = pytest.mark.interop

TOPIC = "orders"
VALUES = [b"%d" % number for number in range(5)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(data_dir=tmp_path) as running:
        running.create_topic(TOPIC)
        yield running


# What a client that keeps its order and produces once does; each sends, waits for what was sent, and closes.


def by_librdkafka(broker: RunningBroker, values: list[bytes]) -> None:
    confluent = import_or_skip("confluent_kafka")
    failures: list[Any] = []
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "retry.backoff.ms": 20}
    producer = confluent.Producer({**settings, "socket.timeout.ms": 1500, "reconnect.backoff.ms": 20})
    for value in values:
        producer.produce(TOPIC, value, on_delivery=lambda error, _message: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None] * len(values)


def by_kafka_python(broker: RunningBroker, values: list[bytes]) -> None:
    kafka = import_or_skip("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, enable_idempotence=True, retry_backoff_ms=20, request_timeout_ms=3000
    )
    for sent in [producer.send(TOPIC, value) for value in values]:
        sent.get(60)
    producer.close()


def by_aiokafka(broker: RunningBroker, values: list[bytes]) -> None:
    aiokafka = import_or_skip("aiokafka")

    async def produce() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, enable_idempotence=True, retry_backoff_ms=20, request_timeout_ms=3000
        ) as producer:
            for sent in [await producer.send(TOPIC, value) for value in values]:
                await sent

    asyncio.run(produce())


PRODUCERS = pytest.mark.parametrize("produce", [by_librdkafka, by_kafka_python, by_aiokafka])
Produce = Callable[[RunningBroker, list[bytes]], None]


def values_in(broker: RunningBroker) -> list[bytes | None]:
    return [record.value for record in broker.records(TOPIC)]


@PRODUCERS
@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR"])
def test_a_producer_tries_again_after_an_error_that_passes(broker: RunningBroker, produce: Produce, error: str) -> None:
    fault = broker.fail_next("Produce", error, times=3)
    produce(broker, VALUES)

    assert values_in(broker) == VALUES
    assert fault.met_count == 3


@PRODUCERS
def test_an_idempotent_producer_whose_answers_are_lost_leaves_no_record_twice(
    broker: RunningBroker, produce: Produce
) -> None:
    lost = broker.drop_next("Produce", is_done_first=True)
    produce(broker, VALUES)

    assert values_in(broker) == VALUES
    assert lost.met_count == 1


@PRODUCERS
def test_a_producer_waits_for_answers_that_are_late(broker: RunningBroker, produce: Produce) -> None:
    with broker.delay("Produce", ms=400) as late:
        began = time.perf_counter()
        produce(broker, VALUES)

    assert time.perf_counter() - began >= 0.4
    assert values_in(broker) == VALUES
    assert late.met_count >= 1


@PRODUCERS
@pytest.mark.parametrize("end", [RunningBroker.stop, RunningBroker.kill])
def test_producers_come_back_to_a_broker_that_was_away(
    broker: RunningBroker, produce: Produce, end: Callable[[RunningBroker], None]
) -> None:
    produce(broker, VALUES)
    end(broker)
    broker.start()
    produce(broker, VALUES)

    assert values_in(broker) == VALUES * 2


def test_librdkafka_goes_on_when_its_broker_goes_and_comes(broker: RunningBroker) -> None:
    confluent = import_or_skip("confluent_kafka")
    delivered: list[Any] = []
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 100}
    producer = confluent.Producer(settings)

    def send() -> None:
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _message: delivered.append(error))

    ends = (RunningBroker.stop, RunningBroker.kill, RunningBroker.drop_connections, RunningBroker.pause)
    for end in ends:
        send()
        until(lambda: producer.flush(0.1) == 0)
        end(broker)
        send()
        producer.poll(0.2)
        broker.start()
        broker.resume()
        until(lambda: producer.flush(0.1) == 0)

    assert delivered == [None] * 2 * len(ends)
    assert len(broker.records(TOPIC)) == 2 * len(ends)


def test_librdkafka_is_told_of_a_throttle(broker: RunningBroker) -> None:
    confluent = import_or_skip("confluent_kafka")
    throttles: list[float] = []
    producer = confluent.Producer(
        {"bootstrap.servers": broker.bootstrap, "throttle_cb": lambda event: throttles.append(event.throttle_time)}
    )
    with broker.throttle(ms=250, api="Produce"):
        producer.produce(TOPIC, b"x")
        until(lambda: producer.flush(0.1) == 0)
        until(lambda: bool(producer.poll(0.1) or throttles))

    assert throttles[0] == 0.25


GROUP_FAULTS = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
    ("SyncGroup", "REBALANCE_IN_PROGRESS"),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
    ("Fetch", "NOT_LEADER_OR_FOLLOWER"),
    ("Fetch", "FENCED_LEADER_EPOCH"),
    ("ListOffsets", "NOT_LEADER_OR_FOLLOWER"),
    ("Metadata", "UNKNOWN_SERVER_ERROR"),
]


@pytest.mark.parametrize(("api", "error"), GROUP_FAULTS)
def test_a_consumer_of_librdkafka_reads_all_after_an_error_that_passes(
    broker: RunningBroker, api: str, error: str
) -> None:
    confluent = import_or_skip("confluent_kafka")
    by_librdkafka(broker, VALUES)
    fault = broker.fail_next(api, error)
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "auto.offset.reset": "earliest",
            # Of a topic whose metadata failed it asks again with the next refresh only: by default after five minutes.
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    consumer.subscribe([TOPIC])
    read: list[bytes] = []

    def has_read_all() -> bool:
        read.extend(message.value() for message in consumer.consume(5, 0.2) if message.error() is None)
        return len(read) >= len(VALUES)

    until(has_read_all)
    consumer.close()

    assert read == VALUES
    assert fault.met_count == 1
    broker.wait_for_lag(0, group="workers")


def test_a_commit_that_is_refused_is_told_to_its_consumer(broker: RunningBroker) -> None:
    confluent = import_or_skip("confluent_kafka")
    by_librdkafka(broker, VALUES)
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    until(lambda: bool(consumer.consume(1, 0.2)))
    broker.fail_next("OffsetCommit", "INVALID_COMMIT_OFFSET_SIZE")
    with pytest.raises(confluent.KafkaException) as refused:
        consumer.commit(asynchronous=False)
    consumer.commit(asynchronous=False)
    consumer.close()

    assert refused.value.args[0].name() == "INVALID_COMMIT_OFFSET_SIZE"
    assert sum(broker.lag("workers").values()) == 4
