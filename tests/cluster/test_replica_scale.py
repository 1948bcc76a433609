"""Very many partitions with three replicas, in three broker processes: written, read, and there after a clean bounce.

What Kafka's `replica_scale_test` checks. In the gate there are few topics; with as many as Kafka's has:

    pytest -m sweep tests/cluster/test_replica_scale.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .node_processes import THIS
from .test_processes import PATIENCE_S
from .test_rolled_builds import started

TOPICS: Final = 4
TOPICS_OF_KAFKAS: Final = 50
PARTITIONS: Final = 34
RECORDS: Final = 3
"""Of each partition, before and after."""


def names_of(topics: int) -> list[str]:
    return [f"scale-{number}" for number in range(topics)]


def create(bootstrap: str, names: list[str]) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})  # what it was asked ends with it
    topics = [NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for name in names]
    for future in client.create_topics(topics).values():
        future.result(timeout=PATIENCE_S)


def write(bootstrap: str, names: list[str], said: bytes) -> list[KafkaError]:
    """Send some records to every partition; return what failed."""
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for _ in range(RECORDS):
        for name in names:
            for partition in range(PARTITIONS):
                producer.produce(
                    name,
                    said,
                    partition=partition,
                    on_delivery=lambda error, _message: failures.append(error) if error is not None else None,
                )
    assert producer.flush(PATIENCE_S) == 0
    return failures


def read(bootstrap: str, names: list[str], count: int) -> Counter[tuple[str, int, bytes]]:
    """Return how often each partition has each value, once so many records were read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, partition, 0) for name in names for partition in range(PARTITIONS)])
    found: Counter[tuple[str, int, bytes]] = Counter()
    while found.total() < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{found.total()} of {count} records are there"
        value = message.value()
        assert message.error() is None
        assert isinstance(value, bytes)
        found[message.topic() or "", message.partition() or 0, value] += 1
    consumer.close()
    return found


@pytest.mark.parametrize(
    "topics", [TOPICS, pytest.param(TOPICS_OF_KAFKAS, marks=pytest.mark.sweep, id="as many as Kafka's")]
)
def test_many_partitions_are_written_and_read_before_and_after_each_broker_was_bounced(
    tmp_path: Path, topics: int
) -> None:
    names = names_of(topics)
    with started(tmp_path, THIS) as nodes:
        bootstrap = ",".join(node.address for node in nodes.values())
        create(bootstrap, names)
        failures = write(bootstrap, names, b"before")
        before = read(bootstrap, names, RECORDS * PARTITIONS * topics)
        for node in nodes.values():
            node.stop()
            node.start(THIS)
        failures += write(bootstrap, names, b"after")
        found = read(bootstrap, names, 2 * RECORDS * PARTITIONS * topics)

    assert failures == []
    for number in (before, found):
        assert set(number.values()) == {RECORDS}
    assert len(before) == PARTITIONS * topics
    assert len(found) == 2 * PARTITIONS * topics
