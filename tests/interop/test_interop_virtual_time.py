"""A broker whose time is advanced, as real clients take it that know nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin_blocking import BlockingAdmin
from odradek.testing.running_broker import RunningBroker, running_broker

from ..waiting import until
from .clients import import_or_skip

pytestmark = pytest.mark.interop

TOPIC = "orders"
GROUP = "readers"
HEARTBEAT = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 100}
"""So that a member soon learns that it was given up."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(HEARTBEAT, data_dir=tmp_path, virtual_time=True) as running:
        running.create_topic(TOPIC, partitions=2)
        yield running


@contextmanager
def reader(broker: RunningBroker, protocol: str, client_id: str) -> Iterator[Any]:
    """Run a member by librdkafka."""
    confluent = import_or_skip("confluent_kafka")
    settings: dict[str, object] = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": GROUP,
        "client.id": client_id,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 100}
    consumer = confluent.Consumer(settings)
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def owned(consumer: Any) -> list[int]:
    """Return the partitions that a member reads; as it polls it takes what the broker gives."""
    assert consumer.poll(0.05) is None
    return sorted(each.partition for each in consumer.assignment())


def membership(broker: RunningBroker) -> tuple[dict[str, str], int]:
    """Return the ids of the group's members by their client ids, and its epoch, if it has any."""
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap, "client.id": "admin"}) as admin:
        group = admin.describe_group(GROUP)
        return {each.client_id: each.member_id for each in group.members}, group.epoch


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_stays_while_it_is_connected_and_comes_back_when_it_was_given_up(
    broker: RunningBroker, protocol: str
) -> None:
    with reader(broker, protocol, "one") as one, reader(broker, protocol, "other") as other:
        until(lambda: sorted(owned(one) + owned(other)) == [0, 1] and len(owned(one)) == 1)
        before = membership(broker)
        broker.advance("1d")
        assert membership(broker) == before

        broker.advance("2m", silent=["other"])
        until(lambda: sorted(owned(one) + owned(other)) == [0, 1] and len(owned(one)) == 1)
        assert membership(broker) != before  # another id (classic), or later epochs
        assert membership(broker)[0]["one"] == before[0]["one"]


def test_a_transaction_of_librdkafka_times_out(broker: RunningBroker) -> None:
    confluent = import_or_skip("confluent_kafka")
    producer = confluent.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "biller"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(TOPIC, b"half an order", partition=0)
    producer.flush(30)
    broker.advance("2m")
    with pytest.raises(confluent.KafkaException):
        producer.commit_transaction(30)

    assert broker.records(TOPIC, read_committed=True) == []


def test_what_kafka_python_reads_ages(broker: RunningBroker) -> None:
    kafka = import_or_skip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    producer.send(TOPIC, b"old", partition=0, timestamp_ms=broker.now_ms()).get(30)
    broker.advance("8d")
    producer.send(TOPIC, b"new", partition=0, timestamp_ms=broker.now_ms()).get(30)

    assert next(consumer).value == b"new"
    assert consumer.beginning_offsets([partition]) == {partition: 1}
    consumer.close()
    producer.close()
