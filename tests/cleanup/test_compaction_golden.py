"""Our compaction leaves what Apache Kafka's cleaner left of the same log, and Kafka's tool reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.record import Record
from tests.cleanup.compacted import CompactedTopic
from tests.cleanup.test_strategy_model import KINDS, World, fill
from tests.kafka_tools import damage_that_kafka_sees

GOLDEN = Path(__file__).parent / "golden" / "kafka-4.3.1"
CAPTURED_MS = 1_795_288_870_000


def compact_golden(directory: Path) -> Path:
    """Compact the log of Kafka's once; return where it lies."""
    (directory / "two").mkdir()
    folder = directory / "one" / "t-0"
    shutil.copytree(GOLDEN / "before", folder)
    topic = CompactedTopic(directory, segment_bytes=3_000)
    topic.hosted.clock.advance(CAPTURED_MS - topic.hosted.clock.now_ms())
    assert topic.compact()
    assert topic.replica.log.clean_end == 212
    topic.hosted.lifecycle.close()
    return folder


def batches_of(folder: Path) -> list[tuple[str, object, list[Record]]]:
    """Return every batch: its segment, its header without what depends on the time of the pass, its records."""
    found: list[tuple[str, object, list[Record]]] = []
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            has_horizon = header.delete_horizon_ms is not None
            told = attrs.evolve(header, base_timestamp=-2 if has_horizon else 0, crc=0, length_bytes=0)
            found.append((path.name, told, list(read_batch(data, position, header))))
    return found


def indexes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: data for path in sorted(folder.glob("*.txnindex")) if (data := path.read_bytes())}


def test_the_first_pass_leaves_kafkas_segments_batches_records_and_transaction_indexes(tmp_path: Path) -> None:
    ours, kafkas = compact_golden(tmp_path), GOLDEN / "after"

    assert batches_of(ours) == batches_of(kafkas)
    assert indexes_of(ours) == indexes_of(kafkas)


@pytest.mark.interop
def test_kafka_reads_what_compaction_leaves(tmp_path: Path) -> None:
    assert damage_that_kafka_sees(compact_golden(tmp_path)) == []


@pytest.mark.interop
def test_kafka_reads_what_every_strategy_and_ttl_leave(tmp_path: Path) -> None:
    for number, kind in enumerate(KINDS):
        directory = tmp_path / str(number)
        directory.mkdir()
        world = World(kind, directory)
        fill(world)
        compactor = world.topic.make_compactor()
        while world.topic.compact(compactor):
            pass
        world.topic.hosted.lifecycle.close()

    # An empty batch with the largest timestamp would be told as damage of the time index, after Kafka's cleaner too.
    assert damage_that_kafka_sees(tmp_path) == []
