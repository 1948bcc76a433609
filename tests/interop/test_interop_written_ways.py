"""Every way in which a broker comes to write segments and indexes: Apache Kafka's tool reads what each has left."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.wire.messages import api_21_delete_records as delete_records
from odradek.kernel.wire.messages import api_34_alter_replica_log_dirs as alter_dirs

from ..broker.broker_process import Client as Connection
from ..broker.broker_process import broker_process
from ..broker.test_process import produce
from ..kafka_tools import damage_that_kafka_sees, kafka_command
from ..waiting import until
from .records import FIRST_TIMESTAMP, create_topic

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

SMALL: Final[dict[str, Any]] = {"internal_segment_bytes": "20000"}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "rolled-by-size": SMALL,
    "rolled-by-time": {"segment_ms": "15000"},
    "rolled-by-index": {"segment_index_bytes": "96"},
    "preallocated": {**SMALL, "preallocate": "true"},
    "stamped": {**SMALL, "message_timestamp_type": "LogAppendTime"},
    "recompressed": {**SMALL, "compression_type": "zstd"},
    "compacted": {**SMALL, "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"},
    "trimmed": SMALL,
    "moved": SMALL,
}
"""Topic to configs; dots are underscores."""
QUICK: Final = (
    "log.index.interval.bytes=500",
    "log.cleaner.backoff.ms=100",
    "replica.high.watermark.checkpoint.interval.ms=100",
)
BATCHES: Final = 40
RECORDS: Final = 8
SEGMENTS_MIN: Final = 5


def fill(connection: Connection, topic: str, source: random.Random) -> None:
    """Produce batches of every codec, whose times rise by seconds and fall back now and then."""
    for number in range(BATCHES):
        builder = BatchBuilder(compression=list(CompressionType)[number % 5])
        for _ in range(RECORDS):
            time = FIRST_TIMESTAMP + 2_500 * number - source.choice((0, 0, 0, 7_000))
            builder.append(b"%d" % source.randrange(9), source.randbytes(source.randrange(400)), timestamp=time)
        error_code, _ = produce(connection, topic, bytes(builder.build()))
        assert error_code == 0


def trim(connection: Connection, topic: str) -> None:
    """Delete the first half: a broker that starts finds a log that begins within a segment."""
    half = delete_records.DeleteRecordsPartition(partition_index=0, offset=BATCHES * RECORDS // 2 + 3)
    wanted = delete_records.DeleteRecordsTopic(name=topic, partitions=[half])
    response = connection.ask(delete_records.DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000), 2)
    assert isinstance(response, delete_records.DeleteRecordsResponse)
    assert response.topics[0].partitions[0].error_code == 0


def move(connection: Connection, topic: str, here: Path, there: Path) -> None:
    """Have a partition's log moved to another directory; return once it has come."""
    wanted = alter_dirs.AlterReplicaLogDir(
        path=str(there), topics=[alter_dirs.AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    )
    response = connection.ask(alter_dirs.AlterReplicaLogDirsRequest(dirs=[wanted]), 2)
    assert isinstance(response, alter_dirs.AlterReplicaLogDirsResponse)
    assert response.results[0].partitions[0].error_code == 0
    until(lambda: (there / f"{topic}-0").exists() and not (here / f"{topic}-0").exists())


def segments_of(data: Path, topic: str) -> list[Path]:
    """Return the segments of a topic's only partition, wherever it lies."""
    return sorted(data.glob(f"*/{topic}-0/*.log"))


def checkpoints(data: Path) -> list[Path]:
    """Return the files that say how far logs have been compacted."""
    return list(data.glob("*/cleaner-offset-checkpoint"))


def test_kafka_reads_what_every_way_of_writing_leaves(tmp_path: Path) -> None:
    kafka_command()
    source = random.Random(3)
    one, two = tmp_path / "one", tmp_path / "two"
    settings = (f"log.dirs={one},{two}", *QUICK)
    with broker_process(None, *settings) as broker, Connection(broker.address) as connection:
        for topic, configs in WAYS.items():
            create_topic(broker.address, topic, **configs)
            fill(connection, topic, source)
        trim(connection, "trimmed")
        here = segments_of(tmp_path, "moved")[0].parents[1]
        move(connection, "moved", here, two if here == one else one)
        until(lambda: "compacted 0 " in "".join(path.read_text() for path in checkpoints(tmp_path)))
        broker.kill()
    with broker_process(None, *settings) as broker, Connection(broker.address) as connection:
        for topic in WAYS:
            fill(connection, topic, source)
        status, _ = broker.terminate()
    counts = {topic: len(segments_of(tmp_path, topic)) for topic in WAYS}

    assert status == 0
    assert min(counts.values()) >= SEGMENTS_MIN, counts
    assert damage_that_kafka_sees(one, two) == []
