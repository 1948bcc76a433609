"""The Spark source reads segment files that Apache Kafka writes, while Kafka serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.client import NewTopic
from odradek.spark_plugin.direct import SegmentPiece
from odradek.spark_plugin.reading.batch_reader import BatchReader
from tests.spark_plugin.test_reading_topics import FULL, rows_of
from tests.spark_plugin.topic_kit import CODECS, Record, Write, open_kit

from .brokers import kafka_at

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def test_kafkas_segment_files_give_what_a_consumer_reads(tmp_path: Path) -> None:
    with kafka_at(tmp_path) as kafka, open_kit(kafka.address) as kit:
        kit.admin.create_topic(NewTopic("orders", 2, configs={"segment.bytes": str(1 << 20)}))
        for number in range(120):
            records = tuple(Record(b"%d" % number, b"%d " % place + b"x" * 3_000) for place in range(10))
            kit.write("orders", Write(number % 2, records, CODECS[number % 5], (None, True, False)[number % 3]))
        for isolation in ("read_committed", "read_uncommitted"):
            options = {
                "kafka.bootstrap.servers": kafka.address,
                "kafka.isolation.level": isolation,
                "subscribe": "orders",
                "includeHeaders": "true",
                "readFrom": "segments",
                "dataDir": str(tmp_path / "kafka" / "1"),
                "maxBytesPerPartition": "200000",
            }
            tasks = BatchReader.of(options, FULL).plan()

            assert rows_of(tasks) == kit.consumed("orders", is_read_committed=isolation == "read_committed")
            assert {type(piece) for task in tasks for piece in task.pieces} == {SegmentPiece}
