"""Apache Kafka's DumpLogSegments reads every file that we write, and finds nothing to complain about."""

import random
import shutil
from pathlib import Path

import attrs
import pytest

from odradek.kernel.api import LogConfig, PartitionLog
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, make_context, rewrite
from tests.kafka_tools import damage_that_kafka_sees

CONFIG = LogConfig(segment_bytes=60_000, index_interval_bytes=1_000, segment_index_bytes=1_200)


def fill(log: PartitionLog, source: random.Random, count: int, epoch: int) -> None:
    log.assign_epoch(epoch, log.log_end_offset)
    for number in range(count):
        builder = BatchBuilder(
            compression=source.choice(list(CompressionType)),
            base_offset=log.log_end_offset + source.choice((0, 0, 0, 3)),
            partition_leader_epoch=epoch,
        )
        base, timestamp = builder.base_offset, 1_700_000_000_000 + source.randrange(10**6)
        for _ in range(source.randrange(1, 12)):
            builder.append(b"key", source.randbytes(source.randrange(200)), timestamp=timestamp)
        log.append(builder.build(), base, base + builder.records_count - 1, timestamp)
        if number % 5 == 0:
            log.write_pending()
    log.write_pending()


@pytest.mark.interop
def test_kafka_reads_what_every_way_of_writing_leaves(tmp_path: Path) -> None:
    source = random.Random(5)
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    plain = engine.open_log(PARTITION, CONFIG)
    fill(plain, source, 400, epoch=0)
    fill(plain, source, 100, epoch=3)
    recovered = engine.open_log(PARTITION._replace(topic="recovered"), CONFIG)
    fill(recovered, source, 300, epoch=1)
    cut = engine.open_log(PARTITION._replace(topic="cut"), attrs.evolve(CONFIG, preallocate=True))
    fill(cut, source, 300, epoch=0)
    cut.truncate_to(cut.log_end_offset // 2)
    fill(cut, source, 50, epoch=1)
    replaced = engine.open_log(PARTITION._replace(topic="replaced"), CONFIG)
    fill(replaced, source, 300, epoch=0)
    first, second, third = replaced.segments()[:3]
    batches = [bytes(b) for b in replaced.batches(0, third.base_offset)]
    rewrite(engine, replaced, [first.base_offset, second.base_offset], [*batches[::3], batches[-1]])
    live = tmp_path / "live"
    plain.flush()
    shutil.copytree(tmp_path / "logs0" / "orders-3", live / "orders-3")
    engine.abandon()
    torn = max((tmp_path / "logs0" / "recovered-3").glob("*.log"))
    with torn.open("ab") as file:
        file.write(bytes(100))
    engine = SegmentEngine(make_context(tmp_path))
    for found in engine.start():
        engine.open_log(found.partition, CONFIG)
    engine.close({})

    assert len(list((tmp_path / "logs0" / "orders-3").glob("*.log"))) > 3
    assert damage_that_kafka_sees(tmp_path / "logs0", in_use=[live]) == []
