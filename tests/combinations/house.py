"""Brokers with one election and one storage, and what a client does with them, through librdkafka."""

# pyright: reportPrivateImportUsage=false
# confluent_kafka.admin has no __all__: nothing in it counts as public.

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from odradek.testing.running_broker import RunningBroker, running_broker
from odradek.testing.running_cluster import RunningCluster, running_cluster
from tests.waiting import PATIENCE_S, until

from .table import QUICK, Combination, Election, Storage

SPEC: Any = OffsetSpec
"""Its constructors have no types."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIG = '[plugins]\nenable = ["*", "odradek_template"]\n'
BEGIN_MS = 1_700_000_000_000
PROMPT = {"fetch.wait.max.ms": 10, "reconnect.backoff.ms": 10, "log_level": 0}


class Record(NamedTuple):
    """A record as a client gives and gets it."""

    key: bytes | None
    value: bytes | None
    timestamp: int = BEGIN_MS
    headers: tuple[tuple[str, bytes], ...] = ()


class House:
    """Brokers that may be restarted on their data, for an election and a storage. Life: `open`, whatever, `close`."""

    def __init__(self, election: Election, storage: Storage, folder: Path) -> None:
        self.election = election
        self.storage = storage
        self.data_dir = folder / "data"
        self._store = folder / "store"
        self._config = folder / "odradek.toml"
        self._config.write_text(CONFIG)
        self._stack = ExitStack()
        self._numbers = itertools.count()
        self._topics: list[str] = []
        self.brokers: RunningBroker | RunningCluster
        self.admin: AdminClient

    def open(self) -> None:
        """Start the brokers."""
        settings: dict[str, object] = {**QUICK, **self.storage.broker_settings}
        if self.election.brokers == 1:
            opened = running_broker(settings, data_dir=self.data_dir, config=self._config)
            self.brokers = self._stack.enter_context(opened)
        else:
            many = self.election.brokers
            settings |= {self.storage.store_key: self._store.as_uri()} if self.storage.store_key else {}
            cluster = running_cluster(settings, brokers=many, data_dir=self.data_dir, config=self._config)
            self.brokers = self._stack.enter_context(cluster)
        self.admin = AdminClient({"bootstrap.servers": self.brokers.bootstrap})

    def close(self) -> None:
        """Stop the brokers."""
        self._stack.close()

    def leader_of(self, topic: str) -> str:
        """Return the address of the broker that leads a topic's partition."""
        if isinstance(self.brokers, RunningBroker):
            return self.brokers.bootstrap
        return self.brokers.brokers[self.brokers.leader(topic)].bootstrap

    def restart(self) -> None:
        """Stop the brokers and start others on their data."""
        self.close()
        self.open()

    # -- topics ----------------------------------------------------------------------------------------------------

    def topic(self, combination: Combination, **settings: str) -> str:
        """Create a topic of one partition, with a new name."""
        name = f"{combination}-{next(self._numbers)}"
        wanted = NewTopic(name, 1, self.election.brokers, config=combination.topic_settings(**settings))
        self.admin.create_topics([wanted])[name].result(PATIENCE_S)
        self._topics.append(name)
        return name

    def delete_topics(self) -> None:
        """Delete all topics that were created, so that the cleaner has nothing else to do for the next test."""
        if self._topics:
            for deletion in self.admin.delete_topics(self._topics).values():
                deletion.result(PATIENCE_S)
            self._topics.clear()

    def alter(self, topic: str, **settings: str) -> None:
        """Set a topic's settings, with dots for underscores."""
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    def delete_records(self, topic: str, offset: int) -> int:
        """Delete the records below an offset; return the log start."""
        place = TopicPartition(topic, 0, offset)
        return int(self.admin.delete_records([place])[place].result(PATIENCE_S).low_watermark)

    def offset_of(self, topic: str, spec: OffsetSpec) -> int:
        """Ask for one offset."""
        place = TopicPartition(topic, 0)
        return int(self.admin.list_offsets({place: spec})[place].result(PATIENCE_S).offset)

    def bounds(self, topic: str) -> tuple[int, int]:
        """Return the first offset and the end."""
        return self.offset_of(topic, SPEC.earliest()), self.offset_of(topic, SPEC.latest())

    # -- records ---------------------------------------------------------------------------------------------------

    def producer(self, **settings: object) -> Producer:
        """Make a producer."""
        chosen = {key.replace("_", "."): value for key, value in settings.items()}
        return Producer({"bootstrap.servers": self.brokers.bootstrap, "linger.ms": 0, **PROMPT_PRODUCER, **chosen})

    def produce(self, topic: str, records: Iterable[Record], **settings: object) -> None:
        """Have records acknowledged, each a batch of its own unless settings say otherwise."""
        producer = self.producer(**settings)
        send(producer, topic, records)

    def consume(self, topic: str, offset: int = 0, *, is_committed: bool = False) -> list[tuple[int, Record]]:
        """Read from an offset, or `OFFSET_BEGINNING`, to the end; return records with their offsets."""
        settings = {
            "bootstrap.servers": self.brokers.bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest" if offset == OFFSET_BEGINNING else "error",
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
            **PROMPT,
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, 0, offset)])
        found: list[tuple[int, Record]] = []
        try:
            while True:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, f"{topic} ended nowhere after {len(found)} records"
                error = message.error()
                if error is None:
                    given: Any = message.headers() or ()
                    headers = tuple((name, value) for name, value in given)
                    record = Record(message.key(), message.value(), message.timestamp()[1], headers)
                    found.append((message.offset() or 0, record))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()

    def cool(self, topic: str) -> None:
        """Make the next reads of a topic cold."""
        self.storage.cool(self, topic)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the brokers do by themselves."""
        until(condition, self.brokers.check)


PROMPT_PRODUCER = {"reconnect.backoff.ms": 10, "log_level": 0}


def send(producer: Producer, topic: str, records: Iterable[Record]) -> None:
    """Have records acknowledged.

    Raises:
        KafkaException: One was refused.
    """
    failures: list[KafkaError] = []
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0, "not acknowledged in time"
    if failures:
        raise KafkaException(failures[0])


def numbered(count: int, start: int = 0, *, size_bytes: int = 10, begin_ms: int = BEGIN_MS) -> Sequence[Record]:
    """Return records of different keys, a second apart."""
    return [
        Record(b"key %d" % n, b"%d " % n + b"x" * size_bytes, begin_ms + n * 1000, (("n", b"%d" % n),))
        for n in range(start, start + count)
    ]


def values_of(found: Iterable[tuple[int, Record]]) -> list[bytes | None]:
    """Return only the values."""
    return [record.value for _, record in found]
