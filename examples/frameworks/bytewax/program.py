"""Bytewax: a dataflow with state reads all partitions of a topic and writes another one.

Run as `program.py BOOTSTRAP PREFIX`; it creates topics of that prefix.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

COUNT = 60
PARTITIONS = 3
KEYS = ("red", "green", "blue")


def create(bootstrap: str, *topics: str) -> None:
    """Create topics."""
    wanted = [NewTopic(topic, PARTITIONS, 1) for topic in topics]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(wanted).values():
        future.result(30)


def feed(bootstrap: str, topic: str) -> None:
    """Produce orders."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(COUNT):
        producer.produce(topic, key=KEYS[number % len(KEYS)], value=b"1", partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def flow_of(bootstrap: str, source: str, sink: str) -> Dataflow:
    """Return a dataflow that keeps a running total of each key."""
    flow = Dataflow("totals")
    records = op.input("orders", flow, KafkaSource([bootstrap], [source], tail=False))
    keyed = op.map("key", records, lambda message: (message.key.decode(), int(message.value)))
    totals = op.stateful_map("total", keyed, lambda state, amount: ((state or 0) + amount,) * 2)
    messages = op.map("write", totals, lambda item: KafkaSinkMessage(item[0].encode(), str(item[1]).encode()))
    op.output("totals", messages, KafkaSink([bootstrap], sink))
    return flow


def read(bootstrap: str, topic: str, expected: int) -> list[tuple[bytes, int]]:
    """Return what is in a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[bytes, int]] = []
    while len(found) < expected:
        message = consumer.poll(30)
        assert message is not None, f"{len(found)} of {expected} records came"
        found.append((message.key(), int(message.value())))
    consumer.close()
    return found


def main(bootstrap: str, prefix: str) -> None:
    """Run the dataflow twice: with its recovery store it goes on from offsets and totals of the first run."""
    source, sink = f"{prefix}-orders", f"{prefix}-totals"
    create(bootstrap, source, sink)
    with TemporaryDirectory() as folder:
        init_db_dir(Path(folder), 1)
        for _ in range(2):
            feed(bootstrap, source)
            recovery = RecoveryConfig(folder)
            cluster_main(flow_of(bootstrap, source, sink), [], 0, epoch_interval=timedelta(0), recovery_config=recovery)
    each = 2 * COUNT // len(KEYS)
    found = read(bootstrap, sink, 2 * COUNT)
    assert sorted(found) == sorted((key.encode(), total) for key in KEYS for total in range(1, each + 1)), found


main(*sys.argv[1:3])
print("ok")
