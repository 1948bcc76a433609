"""Streams of topics as Spark drives them, without Spark: what a test asks a stream reader."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import Any, Final

from odradek.spark_plugin.offsets import JsonOffsets
from odradek.spark_plugin.reading.read_task import read
from odradek.spark_plugin.reading.stream_reader import StreamReader
from tests.spark_plugin.topic_kit import Kit

EARLIEST: Final = {"startingOffsets": "earliest"}
LENIENT: Final = {**EARLIEST, "failOnDataLoss": "false"}


def reader_of(kit: Kit, topic: str, options: Mapping[str, Any] | None = None) -> StreamReader:
    given_options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic}
    given_options |= {key: str(value) for key, value in (options or {}).items()}
    return StreamReader.of(given_options, [("partition", "int"), ("offset", "bigint")])


def through_json(offset: JsonOffsets) -> JsonOffsets:
    """Hand offsets over as Spark does: as text."""
    loaded: JsonOffsets = json.loads(json.dumps(offset))
    return loaded


def batch(reader: StreamReader, start: JsonOffsets, end: JsonOffsets) -> list[tuple[int, int]]:
    """Read a micro-batch: partitions and offsets."""
    found: list[tuple[int, int]] = []
    for task in pickle.loads(pickle.dumps(reader.plan(through_json(start), through_json(end)))):
        for rows in read(task):
            found += zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
    return found


def latest(reader: StreamReader, start: JsonOffsets) -> JsonOffsets:
    return reader.latest_offset(through_json(start), is_limited=True)


def hurry(reader: StreamReader) -> list[float]:
    """Have a reader's waits take no time; return them, in seconds, as they come."""
    waits: list[float] = []
    reader._sleep = waits.append
    reader._now_ms = lambda: round(1_000 * sum(waits))
    return waits


def offsets(count: int, start: int = 0, partition: int = 0) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, count)]
