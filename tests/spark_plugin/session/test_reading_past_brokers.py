"""Spark reads segment files: the rows that the broker gives, in batches and streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.testing.running_broker import RunningBroker
from tests.spark_plugin.topic_kit import Kit, Record, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def written(kit: Kit) -> str:
    """Return a topic with transactions of both ends in many small segments."""
    topic = kit.new_topic(2)
    for number in range(30):
        records = tuple(Record(b"%d" % number, b"value %d" % place) for place in range(3))
        kit.write(topic, Write(number % 2, records, "lz4", (None, True, False)[number % 3]))
    return topic


def test_a_batch_of_segment_files_has_the_brokers_rows(
    kit: Kit, broker: RunningBroker, read: Callable[..., DataFrame]
) -> None:
    topic = written(kit)
    committed = {"kafka.isolation.level": "read_committed"}
    places = {"readFrom": "segments", "dataDir": broker.data_dir, "maxBytesPerPartition": 500}
    order = ["partition", "offset"]

    frame = read(topic, {**committed, **places})
    assert frame.rdd.getNumPartitions() > 2
    assert frame.orderBy(*order).collect() == read(topic, committed).orderBy(*order).collect()


def test_a_stream_of_segment_files_has_each_row_once(
    kit: Kit, broker: RunningBroker, read: Callable[..., DataFrame], read_stream: Callable[..., DataFrame], run: Any
) -> None:
    topic = written(kit)
    seen: list[tuple[int, int]] = []
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 40, "dataDir": broker.data_dir}
    frame = read_stream(topic, options).select("partition", "offset")
    run(frame, lambda batch, _: seen.extend(tuple(row) for row in batch.collect()))

    assert sorted(seen) == sorted(tuple(row) for row in read(topic).select("partition", "offset").collect())
