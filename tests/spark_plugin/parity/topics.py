"""Fills the topics of the facts, the same on every broker: offsets, timestamps and partitions are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client import BlockingAdmin, BlockingProducer, NewTopic, TopicPartition

from .inputs import FACTS, FIRST_MS, ODD, RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.client import Headers

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHAPES: Sequence[tuple[bytes | None, bytes | None, Headers]] = (
    (b"key", b"value", ()),
    (None, b"no key", ()),
    (b"no value", None, ()),
    (None, None, ()),
    (b"", b"", ()),
    (b"one header", b"v", (("name", b"content"),)),
    (b"headers", b"v", (("name", b"1"), ("name", b"2"), ("", b""), ("none", None))),
    (bytes(range(256)), "ÄÖ€".encode() * 50, (("umlaut-ä", "ü".encode()),)),
)


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Create a topic that keeps what it gets, however old."""
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topic(NewTopic(name, partitions, 1, {"retention.ms": "-1"}))


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic."""
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        admin.delete_topic(name)


def cut(bootstrap: str, name: str, offset: int) -> None:
    """Have the log of a topic's only partition begin at an offset."""
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        admin.delete_records({TopicPartition(name, 0): offset})


def produce_numbers(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    """Produce records with the numbers from 0 on to each partition."""
    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(count):
            for partition in range(partitions):
                producer.enqueue(
                    topic,
                    b"value %d of %d" % (number, partition),
                    key=b"key-%d" % (number % 50),
                    partition=partition,
                    timestamp=FIRST_MS + 1000 * number,
                )
        producer.flush()


def produce_odd(bootstrap: str, topic: str) -> None:
    """Produce all that a record may be, in every codec, and transactions that abort and that commit between them."""
    for number, codec in enumerate(CODECS):
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec}
        with BlockingProducer(settings) as producer:
            _produce_shapes(producer, topic, number)
        with BlockingProducer({**settings, "transactional.id": f"{topic}-{codec}"}) as producer:
            producer.init_transactions()
            for is_committed in (number % 2 == 0, True):
                producer.begin_transaction()
                _produce_shapes(producer, topic, number)
                if is_committed:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()


def _produce_shapes(producer: BlockingProducer, topic: str, number: int) -> None:
    for index, (key, value, headers) in enumerate(SHAPES):
        partition = index % 2
        timestamp = FIRST_MS + number * 100 + index
        producer.send(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)


def fill(bootstrap: str) -> None:
    """Create the topics that everybody reads, and fill them."""
    create_topic(bootstrap, FACTS, 2)
    produce_numbers(bootstrap, FACTS, 2, RECORDS)
    create_topic(bootstrap, ODD, 2)
    produce_odd(bootstrap, ODD)
