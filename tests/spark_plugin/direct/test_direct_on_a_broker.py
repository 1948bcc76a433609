"""Files and objects of a real broker, read past it: the rows that a consumer reads, whatever the broker does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client import ResourceType, TopicPartition
from odradek.spark_plugin.direct import BrokerPiece, DirectReadError, SegmentPiece, TierPiece
from odradek.spark_plugin.errors import DataLossError
from odradek.spark_plugin.reading.batch_reader import BatchReader
from odradek.spark_plugin.reading.read_task import ReadTask
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.spark_plugin.test_reading_topics import FULL, rows_of
from tests.spark_plugin.topic_kit import Kit, Record, Write, open_kit, writes
from tests.waiting import until

TIERS = {
    "transaction.state.log.replication.factor": 1,
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "50",
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "50",
    "log.segment.delete.delay.ms": "1",
    "replica.high.watermark.checkpoint.interval.ms": "50",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def broker(store: Path) -> Iterator[RunningBroker]:
    with running_broker({**TIERS, "odradek.tiered.store": store.as_uri()}) as broker:
        yield broker


@pytest.fixture(scope="module")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    with open_kit(broker.bootstrap) as kit:
        yield kit


def reader_of(kit: Kit, topic: str, **options: Any) -> BatchReader:
    named = {key.replace("_", "."): str(value) for key, value in options.items()}
    named |= {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return BatchReader.of(named, FULL)


def kinds(tasks: list[ReadTask]) -> set[type]:
    return {type(piece) for task in tasks for piece in task.pieces}


@settings(max_examples=12)
@given(
    all_writes=writes(2),
    is_read_committed=st.booleans(),
    min_partitions=st.integers(1, 6),
    max_bytes=st.sampled_from([0, 150, 2_000]),
)
def test_segment_files_give_what_a_consumer_reads(
    kit: Kit,
    broker: RunningBroker,
    all_writes: list[Write],
    is_read_committed: bool,
    min_partitions: int,
    max_bytes: int,
) -> None:
    topic = kit.new_topic(2)
    kit.write(topic, *all_writes)
    options: dict[str, Any] = {"dataDir": broker.data_dir, "minPartitions": min_partitions, "readFrom": "segments"}
    if max_bytes:
        options["maxBytesPerPartition"] = max_bytes
    isolation = "read_committed" if is_read_committed else "read_uncommitted"
    tasks = reader_of(kit, topic, kafka_isolation_level=isolation, **options).plan()

    assert rows_of(tasks) == kit.consumed(topic, is_read_committed=is_read_committed)
    assert kinds(tasks) <= {SegmentPiece}


def tiered_topic(kit: Kit, **configs: str) -> str:
    return kit.new_topic(1, remote_storage_enable="true", local_retention_bytes="1200", **configs)


def write_much(kit: Kit, topic: str) -> None:
    for number in range(60):
        record = Record(b"key %d" % (number % 7), b"%d " % number + b"x" * 60)
        kit.write(topic, Write(0, (record,), "none", (None, True, False)[number % 3]))


def has_left(broker: RunningBroker, topic: str) -> bool:
    """Say whether the first segment is only in the store."""
    directory = broker.data_dir / f"{topic}-0"
    return not (directory / f"{0:020d}.log").exists()


def test_cold_segments_come_from_the_store_and_new_ones_from_the_disk(
    kit: Kit, broker: RunningBroker, store: Path
) -> None:
    topic = tiered_topic(kit)
    write_much(kit, topic)
    until(lambda: has_left(broker, topic))
    for isolation in ("read_committed", "read_uncommitted"):
        places = {"dataDir": broker.data_dir, "tieredStore": store.as_uri(), "readFrom": "segments"}
        tasks = reader_of(kit, topic, kafka_isolation_level=isolation, **places).plan()

        assert rows_of(tasks) == kit.consumed(topic, is_read_committed=isolation == "read_committed")
        assert kinds(tasks) == {TierPiece, SegmentPiece}


def test_with_a_store_alone_brokers_have_the_rest(kit: Kit, broker: RunningBroker, store: Path) -> None:
    topic = tiered_topic(kit)
    write_much(kit, topic)
    until(lambda: has_left(broker, topic))
    tasks = reader_of(kit, topic, tieredStore=store.as_uri(), kafka_isolation_level="read_committed").plan()

    assert rows_of(tasks) == kit.consumed(topic, is_read_committed=True)
    assert kinds(tasks) == {TierPiece, BrokerPiece}
    with pytest.raises(DirectReadError, match=f"readFrom=segments, and {topic}-0 .* cannot be read so"):
        reader_of(kit, topic, tieredStore=store.as_uri(), readFrom="segments").plan()


def test_segments_leave_for_the_store_between_plan_and_task(kit: Kit, broker: RunningBroker, store: Path) -> None:
    topic = kit.new_topic(1, remote_storage_enable="true")
    write_much(kit, topic)
    places = {"dataDir": broker.data_dir, "tieredStore": store.as_uri(), "readFrom": "segments"}
    tasks = reader_of(kit, topic, kafka_isolation_level="read_committed", **places).plan()
    rows = kit.consumed(topic, is_read_committed=True)
    kit.admin.alter_configs(ResourceType.TOPIC, topic, {"local.retention.bytes": "1200"})
    until(lambda: has_left(broker, topic))

    assert rows_of(tasks) == rows


def test_readers_beside_a_compaction_miss_nothing_and_repeat_nothing(kit: Kit, broker: RunningBroker) -> None:
    topic = kit.new_topic(1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="50")
    stop = threading.Event()
    latest: dict[bytes | None, bytes | None] = {}
    with open_kit(broker.bootstrap) as other:

        def write() -> None:
            number = 0
            while not stop.is_set():
                key, value = b"key %d" % (number % 5), b"%d " % number + b"x" * 50
                other.write(topic, Write(0, (Record(key, value),)))
                latest[key] = value
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(12):
                before = dict(latest)
                rows = rows_of(reader_of(kit, topic, dataDir=broker.data_dir).plan())
                offsets = [row[4] for row in rows]

                assert offsets == sorted(set(offsets)), "rising, without a repeat"
                newest = {row[0]: int(row[1].split()[0]) for row in rows}
                for key, value in before.items():
                    assert value is not None
                    assert newest[key] >= int(value.split()[0]), "no key's last record is missing"
        finally:
            stop.set()
            writer.join()


def test_a_topic_made_anew_between_plan_and_task_is_not_read(kit: Kit, broker: RunningBroker) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    tasks = reader_of(kit, topic, dataDir=broker.data_dir).plan()

    assert kinds(tasks) == {SegmentPiece}
    kit.make_again(topic)
    kit.fill(topic, 40)
    with pytest.raises(DataLossError):
        rows_of(tasks)


def test_offsets_that_a_user_names_are_cut_out_of_segments(kit: Kit, broker: RunningBroker) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 60)
    offsets = {
        "startingOffsets": json.dumps({topic: {"0": 7}}),
        "endingOffsets": json.dumps({topic: {"0": 43}}),
        "maxBytesPerPartition": 200,
    }
    tasks = reader_of(kit, topic, dataDir=broker.data_dir, readFrom="segments", **offsets).plan()

    assert [row[4] for row in rows_of(tasks)] == list(range(7, 43))
    assert len(tasks) > 2
    assert TopicPartition(topic, 0) == tasks[0].pieces[0].range.topic_partition
