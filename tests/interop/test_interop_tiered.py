"""Tiered topics: librdkafka gets the same from every storage, hot and cold, whatever happens to broker and store."""

# pyright: reportPrivateImportUsage=false
# confluent_kafka.admin has no __all__: nothing in it counts as public.

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.waiting import PATIENCE_S, names_below, until

from ..broker.broker_process import BrokerProcess, broker_process

pytestmark = pytest.mark.interop

SEGMENT_BYTES = 1 << 20
STAMP_MS = 1_700_000_000_000
COUNT = 6_000
TIERED = {"odradek.storage": "tiered", "segment.bytes": str(SEGMENT_BYTES), "local.retention.bytes": "1"}
QUICK = (
    "remote.log.storage.system.enable=true",
    "remote.log.manager.task.interval.ms=100",
    "log.flush.offset.checkpoint.interval.ms=200",
    "log.retention.check.interval.ms=200",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
)


class Read(NamedTuple):
    """A record as a client gets it."""

    offset: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]] | None
    timestamp: int


def create(address: str, topic: str, configs: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config=configs)])[topic].result(30)


def transact(address: str, topic: str) -> None:
    """Write `COUNT` records in ten transactions, of which every third is aborted."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": f"of {topic}", "linger.ms": 5})
    producer.init_transactions(PATIENCE_S)
    for number in range(10):
        producer.begin_transaction()
        for record in range(number * COUNT // 10, (number + 1) * COUNT // 10):
            producer.produce(
                topic,
                key=b"%d" % (record % 100),
                value=b"%06d" % record + bytes(1_000),
                headers=[("n", b"%d" % number)],
                timestamp=STAMP_MS + record,
                partition=0,
            )
            producer.poll(0)
        producer.flush(PATIENCE_S)
        if number % 3 == 2:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)


def read_all(address: str, topic: str, isolation: str, start: int = 0, *, end: int | None = None) -> list[Read]:
    """Read a partition from an offset to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reads alone",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        found: list[Read] = []
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"nothing came for {PATIENCE_S} s, after {len(found)} records"
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return found
            offset, key, value = message.offset(), message.key(), message.value()
            assert offset is not None
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            found.append(Read(offset, key, value, message.headers(), message.timestamp()[1]))  # type: ignore[arg-type]
            if end is not None and offset + 1 >= end:
                return found
    finally:
        consumer.close()


def local_start(data_dir: Path, topic: str) -> int:
    """Return where the first segment on the local disk begins."""
    return min(int(path.stem) for path in (data_dir / f"{topic}-0").glob("*.log"))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def is_cold(data_dir: Path, topic: str, at_least: int) -> Callable[[], bool]:
    return lambda: local_start(data_dir, topic) >= at_least


@pytest.fixture
def broker(data_dir: Path) -> Iterator[BrokerProcess]:
    with broker_process(data_dir, *QUICK) as running:
        yield running


def test_every_storage_gives_the_same_bytes_hot_and_cold(broker: BrokerProcess, data_dir: Path) -> None:
    for topic, configs in (
        ("segment", {"segment.bytes": str(SEGMENT_BYTES)}),
        ("memory", {"odradek.storage": "memory"}),
        ("tiered", TIERED),
    ):
        create(broker.address, topic, configs)
        transact(broker.address, topic)
    until(is_cold(data_dir, "tiered", 3_000))

    for isolation in ("read_uncommitted", "read_committed"):
        expected = read_all(broker.address, "segment", isolation)
        assert len(expected) == (COUNT if isolation == "read_uncommitted" else COUNT - 3 * COUNT // 10)
        assert read_all(broker.address, "memory", isolation) == expected
        assert read_all(broker.address, "tiered", isolation) == expected
        assert read_all(broker.address, "tiered", isolation) == expected, "and again, from the cache"


def test_nothing_is_lost_by_a_broker_that_dies_and_a_store_that_is_away(data_dir: Path) -> None:
    store = data_dir.with_name("data-tiered")
    with broker_process(data_dir, *QUICK) as broker:
        create(broker.address, "orders", TIERED)
        transact(broker.address, "orders")
        until(is_cold(data_dir, "orders", 3_000))
        everything = read_all(broker.address, "orders", "read_committed")
        broker.kill()
    store.rename(store.with_name("away"))
    with broker_process(data_dir, *QUICK) as broker:
        start = local_start(data_dir, "orders")
        hot = [read for read in everything if read.offset >= start]

        assert read_all(broker.address, "orders", "read_committed", start) == hot
        transact(broker.address, "orders")
        store.with_name("away").rename(store)
        again = read_all(broker.address, "orders", "read_committed")
        assert again[: len(everything)] == everything
        assert [read.value for read in again[len(everything) :]] == [read.value for read in everything]
        until(is_cold(data_dir, "orders", COUNT + 3_000))
        assert read_all(broker.address, "orders", "read_committed") == again


def test_a_deleted_topic_leaves_nothing_in_the_store(broker: BrokerProcess, data_dir: Path) -> None:
    create(broker.address, "gone", TIERED)
    transact(broker.address, "gone")
    until(is_cold(data_dir, "gone", 3_000))
    store = data_dir.with_name("data-tiered")
    assert list(store.rglob("*.log"))

    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics(["gone"])["gone"].result(30)

    until(lambda: names_below(store) == ["odradek.json"])
