"""Records past the broker, beside the same records from it: `python -m benchmarks direct_reads`.

Tasks as Spark's workers run them, without Spark: what is counted is the processor time, user and system, of the process
that reads, in seconds per million records, and beside it that of the broker. `segments` maps the broker's files, `tier`
gets objects from a folder; `broker` fetches over loopback. Medians of rounds in which each has its turn; the page cache
is warm for all. `columns` is what `ColumnReader` alone costs over the same bytes in memory: nobody can be faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tiered import Broker, running
from odradek.client import NewTopic
from odradek.client.admin_blocking import BlockingAdmin
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import Column, ColumnReader
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.spark_plugin.client import Client, ClientSettings
from odradek.spark_plugin.direct import BrokerPiece
from odradek.spark_plugin.reading.batch_reader import BatchReader
from odradek.spark_plugin.reading.read_task import ReadTask, read

ROUNDS = 5
MILLION = 1_000_000
HEADERS = (("trace-id", b"0123456789abcdef"), ("source", b"web"), ("kind", b"x" * 12))
TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
HEADERS_TYPE = "array<struct<key:string,value:binary>>"


class Case(NamedTuple):
    """A topic.

    Attributes:
        name: What it is called.
        value_bytes: Of each record.
        batch: Records in one batch.
        records: How many, by the scale of the run.
        codec: Of its batches.
        headers: Of each record.
    """

    name: str
    value_bytes: int
    batch: int
    records: int
    codec: CompressionType = CompressionType.NONE
    headers: tuple[tuple[str, bytes], ...] = ()


CASES = (
    Case("b100", 100, 1_000, 1_000_000),
    Case("k1", 1_024, 100, 250_000),
    Case("b100-headers", 100, 1_000, 500_000, headers=HEADERS),
    Case("b100-lz4", 100, 1_000, 500_000, codec=CompressionType.LZ4),
    Case("k1-single", 1_024, 1, 100_000),
)


def batch_of(case: Case) -> bytes:
    """Return a batch of a case."""
    builder = BatchBuilder(compression=case.codec)
    for number in range(case.batch):
        value = (b"%08d some words that go on for a while " % number * (case.value_bytes // 30 + 1))[: case.value_bytes]
        builder.append(b"key-%07d" % (number % 1_000), value, timestamp=1_700_000_000_000, headers=case.headers)
    return bytes(builder.build())


def fill(client: Client, topic: str, case: Case, records: int) -> None:
    """Send a case's records."""
    batch = batch_of(case)
    each = max((1 << 20) // len(batch), 1)
    left = -(-records // case.batch)
    while left:
        count = min(each if case.batch == 1 else 1, left)
        for _ in range(count):
            data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
            client.call_leader(
                TopicPartition(topic, 0), ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), version_max=9
            )
        left -= count


def tasks_of(bootstrap: str, topic: str, case: Case, options: dict[str, str]) -> list[ReadTask]:
    """Plan a batch over a topic."""
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **options}
    fields = list(TYPES.items())
    if case.headers:
        given["includeHeaders"] = "true"
        fields.append(("headers", HEADERS_TYPE))
    return BatchReader.of(given, fields).plan()


def rows(tasks: list[ReadTask]) -> int:
    """Read tasks as workers do."""
    return sum(batch.num_rows for task in tasks for batch in read(task))


def read_columns(paths: list[Path], case: Case) -> int:
    """Decode a partition's files out of memory: the floor."""
    wanted = Column.KEY | Column.VALUE | Column.OFFSET | Column.TIMESTAMP | Column.TIMESTAMP_TYPE
    wanted |= Column.HEADERS if case.headers else Column(0)
    reader = ColumnReader(0, 1 << 40, wanted, is_read_committed=False)
    return sum(columns.rows for path in paths for columns in reader.feed(path.read_bytes()))


def has_gone_cold(folder: Path, topic: str) -> bool:
    """Say whether only the active segment is left on the disk."""
    return len(list((folder / "data" / f"{topic}-0").glob("*.log"))) == 1


def measure(folder: Path, broker: Broker, case: Case, records: int, rounds: int) -> None:
    """Fill a topic, read it each way in turns, print the medians."""
    bootstrap = broker.address
    small = {"segment.bytes": str(32 << 20), "retention.ms": "-1"}
    cold = f"{case.name}-cold"
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topic(NewTopic(case.name, 1, configs=small))
        cold_configs = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
        admin.create_topic(NewTopic(cold, 1, configs={**small, **cold_configs}))
    with Client(ClientSettings.of({"bootstrap.servers": bootstrap})) as client:
        for topic in (case.name, cold):
            fill(client, topic, case, records)
    deadline = time.monotonic() + 120
    while not has_gone_cold(folder, cold) and time.monotonic() < deadline:
        time.sleep(0.2)
    data_dir, store = str(folder / "data"), (folder / "store").as_uri()
    planned = {
        "broker": tasks_of(bootstrap, case.name, case, {}),
        "segments": tasks_of(bootstrap, case.name, case, {"dataDir": data_dir, "readFrom": "segments"}),
        "tier": tasks_of(bootstrap, cold, case, {"tieredStore": store}),
    }
    pieces = [piece for task in planned["tier"] for piece in task.pieces]
    far = sum(piece.range.size for piece in pieces if not isinstance(piece, BrokerPiece))
    paths = sorted((folder / "data" / f"{case.name}-0").glob("*.log"))
    works: dict[str, Callable[[], int]] = {
        **{name: (lambda tasks=tasks: rows(tasks)) for name, tasks in planned.items()},  # type: ignore[misc] # bound now
        "columns": lambda: read_columns(paths, case),
    }
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for round_number in range(rounds + 1):
        for name, work in works.items():
            before, served = time.process_time(), broker.cpu_s()
            count = work()
            assert count == records, f"{name}: {count} rows"
            if round_number:
                spent = (time.process_time() - before, broker.cpu_s() - served)
                samples[name].append(tuple(each * MILLION / records for each in spent))  # type: ignore[arg-type] # two
    mine = {name: statistics.median(each for each, _ in found) for name, found in samples.items()}
    for name, found in samples.items():
        note = f"{far * 100 // records} % from objects" if name == "tier" else ""
        print(
            f"{case.name:<14}{name:<10}{mine[name]:>8.3f}{mine[name] / mine['broker']:>8.2f}"
            f"{statistics.median(each for _, each in found):>10.3f}  {note}",
            flush=True,
        )


def main(words: list[str] | None = None) -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of records")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="cases, separated by commas")
    args: Any = parser.parse_args(words)
    only = {name for name in args.only.split(",") if name}
    store = "file://{}/store"
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "data", store.format(name), {}) as broker:
        print(f"load {os.getloadavg()[0]:.1f}; CPU s per million records, of the reader and of the broker")
        print(f"{'topic':<14}{'from':<10}{'reader':>8}{'ratio':>8}{'broker':>10}")
        for case in CASES:
            if not only or case.name in only:
                records = max(int(case.records * args.scale) // case.batch, 1) * case.batch
                measure(Path(name), broker, case, records, args.rounds)


if __name__ == "__main__":
    main()
