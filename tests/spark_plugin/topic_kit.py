"""Topics with everything a topic can hold, and what a consumer reads of them: the rows that Spark is to get.

A topic is made by writes: some records in one batch or more, with a codec, maybe in a transaction that ends one way or
the other. Segments are tiny, so that each topic has several.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from odradek.client import BlockingAdmin, NewTopic
from odradek.client.blocking_consumer import BlockingConsumer
from odradek.client.blocking_producer import BlockingProducer
from odradek.client.fetched_records import ConsumerRecord
from tests.waiting import until

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LATEST_TIMESTAMP: Final = 1_700_000_000_000
ENDING: Final = ("PrepareCommit", "PrepareAbort")
"""States of a transaction that was ended, and whose markers are still being written: clients do not wait for them."""

SMALL_SEGMENTS: Final = {"internal.segment.bytes": "600", "retention.ms": "-1"}

Row = tuple[Any, ...]
"""key, value, topic, partition, offset, timestamp in microseconds, timestamp type, headers or None."""

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@attrs.frozen
class Record:
    """What is sent."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_600_000_000_000


@attrs.frozen
class Write:
    """Records of one partition, sent together.

    Attributes:
        partition: Where.
        records: What.
        codec: One of `CODECS`.
        is_committed: How their transaction ends; None without one.
    """

    partition: int
    records: tuple[Record, ...]
    codec: str = "none"
    is_committed: bool | None = None


def records() -> st.SearchStrategy[Record]:
    binary = st.none() | st.binary(max_size=60)
    headers = st.lists(st.tuples(st.text(max_size=8), binary), max_size=3).map(tuple)
    return st.builds(Record, binary, binary, headers, st.integers(0, LATEST_TIMESTAMP))


def writes(partitions_count: int) -> st.SearchStrategy[list[Write]]:
    """Return lists of writes for a topic of so many partitions."""
    one = st.builds(
        Write,
        partition=st.integers(0, partitions_count - 1),
        records=st.lists(records(), min_size=1, max_size=6).map(tuple),
        codec=st.sampled_from(CODECS),
        is_committed=st.sampled_from([None, None, True, False]),
    )
    return st.lists(one, max_size=6)


QUIET: Final[dict[str, object]] = {"transaction.state.log.replication.factor": 1, "auto.create.topics.enable": False}
"""Settings of a broker for a kit: a topic that was deleted does not come back because a producer asks for it."""


@attrs.define
class Kit:
    """Makes topics and fills them; one thread."""

    bootstrap: str
    admin: BlockingAdmin
    _stack: ExitStack
    _name: str
    _producers: dict[tuple[str, bool], BlockingProducer] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def new_topic(self, partitions_count: int = 1, **configs: str) -> str:
        """Create a topic with small segments; underscores in the names of configs are dots."""
        name = f"{self._name}-{next(self._numbers)}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topic(NewTopic(name, partitions_count, configs={**SMALL_SEGMENTS, **named}))
        return name

    def make_again(self, topic: str) -> None:
        """Delete a topic, and create one of the same name."""
        self.admin.delete_topic(topic)
        self.admin.create_topic(NewTopic(topic, 1, configs=SMALL_SEGMENTS))

    def write(self, topic: str, *all_writes: Write) -> None:
        """Send, each write after the other."""
        for write in all_writes:
            producer = self._producer(write.codec, is_transactional=write.is_committed is not None)
            if write.is_committed is None:
                self._send(producer, topic, write)
                continue
            producer.begin_transaction()
            self._send(producer, topic, write)
            (producer.commit_transaction if write.is_committed else producer.abort_transaction)()

    def fill(self, topic: str, count: int, partition: int = 0) -> None:
        """Send numbered records, ten in a batch at the most."""
        for start in range(0, count, 10):
            values = range(start, min(start + 10, count))
            self.write(topic, Write(partition, tuple(Record(b"%d" % n, b"value %d" % n) for n in values)))

    def _send(self, producer: BlockingProducer, topic: str, write: Write) -> None:
        failures: list[BaseException] = []

        def told(_: object, error: BaseException | None) -> None:
            if error is not None:
                failures.append(error)

        for record in write.records:
            producer.enqueue(
                topic,
                record.value,
                key=record.key,
                headers=record.headers,
                partition=write.partition,
                timestamp=record.timestamp,
                on_delivery=told,
            )
        producer.flush()
        assert not failures

    def _producer(self, codec: str, *, is_transactional: bool) -> BlockingProducer:
        found = self._producers.get((codec, is_transactional))
        if found is None:
            settings = {"bootstrap.servers": self.bootstrap, "compression.type": codec, "linger.ms": 60_000}
            if is_transactional:
                settings["transactional.id"] = f"{self._name}-{codec}"
            found = self._stack.enter_context(BlockingProducer(settings))
            if is_transactional:
                found.init_transactions()
            self._producers[codec, is_transactional] = found
        return found

    def consumed(self, topic: str, *, is_read_committed: bool = False) -> list[Row]:
        """Return what a consumer reads of a topic, by partition and offset; of committed ones when all have markers."""
        if is_read_committed:
            until(lambda: not self.admin.list_transactions(states=ENDING))
        isolation = "read_committed" if is_read_committed else "read_uncommitted"
        settings = {"bootstrap.servers": self.bootstrap, "auto.offset.reset": "earliest", "isolation.level": isolation}
        with BlockingConsumer(settings) as consumer:
            partitions = consumer.assign_topics(topic)
            ends = consumer.end_offsets(partitions)
            found: list[ConsumerRecord] = []
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                found += consumer.poll(timeout_ms=100)
        return sorted((row_of(record) for record in found), key=place)


@contextmanager
def open_kit(bootstrap: str) -> Iterator[Kit]:
    """Open what makes topics on a broker."""
    with ExitStack() as stack:
        admin = stack.enter_context(BlockingAdmin({"bootstrap.servers": bootstrap}))
        yield Kit(bootstrap, admin, stack, f"kit{len(admin.list_topics())}")  # another kit may have been here


def row_of(record: ConsumerRecord) -> Row:
    """Return a record as Spark shows it."""
    headers = [{"key": key, "value": value} for key, value in record.headers] or None
    return (
        record.key,
        record.value,
        record.topic,
        record.partition,
        record.offset,
        record.timestamp * 1_000,
        int(record.is_log_append_time),
        headers,
    )


def place(row: Row) -> tuple[str, int, int]:
    """Return topic, partition and offset."""
    return row[2], row[3], row[4]


def cells(batches: Sequence[Any], names: Mapping[str, Any] | Sequence[str] = COLUMNS) -> list[Row]:
    """Return Arrow's batches as rows of plain values, timestamps in microseconds."""
    rows: list[Row] = []
    for batch in batches:
        columns = []
        for name in names:
            column = batch.column(batch.schema.get_field_index(name))
            columns.append((column.cast("int64") if name == "timestamp" else column).to_pylist())
        rows += zip(*columns, strict=True)
    return rows
