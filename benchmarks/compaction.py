"""What compaction takes, alone and beside clients: `python -m benchmarks compaction`.

    pass        one process compacts segments of records with few and with many keys: MB/s and records/s of what is read
    latency     single-record produces to one broker, without compaction and beside a worker process that never rests

The input is on disk and warm. Best of three passes; the latency is of one run of each, and noisy where cores are few.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from odradek.kernel.api import KeyTable, LogConfig, OsFiles
from odradek.kernel.cleanup.compaction_job import CompactionDone, CompactionJob, GroupRewritten, compact
from odradek.kernel.cleanup.workers import ProcessWorker
from odradek.kernel.contracts.cleanup import Compaction
from odradek.kernel.contracts.rewriting import SegmentRewrite
from odradek.kernel.machine.system.processes import SystemProcesses
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.records.batch import assign_offset_and_epoch, iterate_batches, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.plugins.storage_segment.rewriting import CleanedSegment, FolderPlace, SegmentFileSource
from odradek.testing.running_broker import running_broker
from tests.broker.broker_process import Client, batch_of
from tests.broker.test_process import create, produce

RECORDS = 200_000
PER_BATCH = 100
VALUE_BYTES = 100
ROUNDS = 3
PRODUCES = 3_000
CONFIG = LogConfig()


def unlimited() -> Throttle:
    """Return one that nothing reaches."""
    return Throttle(lambda: 1e300, time.perf_counter, SystemThreads().new_event())


def batches_of(
    keys: int, per_batch: int, compression: str, *, records: int = RECORDS, timestamp: int = 0, step: int = 1
) -> Iterator[bytes]:
    """Iterate over batches of records with random keys, each as a producer sends it; times rise by `step`."""
    source = random.Random(1)
    for base in range(0, records, per_batch):
        builder = BatchBuilder(compression=CompressionType[compression])
        for number in range(base, base + per_batch):
            key, value = b"key-%d" % source.randrange(keys), source.randbytes(VALUE_BYTES)
            builder.append(key, value, timestamp=timestamp + number * step)
        yield bytes(builder.build())


def write_segment(folder: Path, keys: int, compression: CompressionType) -> SegmentFileSource:
    """Write one closed segment of records with random keys."""
    writer = CleanedSegment(OsFiles(), folder, 0, CONFIG)
    size_bytes = 0
    for number, made in enumerate(batches_of(keys, PER_BATCH, compression.name)):
        batch = bytearray(made)
        assign_offset_and_epoch(batch, read_header(batch), number * PER_BATCH, 0)
        size_bytes += len(batch)
        for _, header in iterate_batches(batch):
            writer.append(batch, header.last_offset, header.max_timestamp)
    writer.finish({})
    for path in folder.glob("*.cleaned"):
        path.rename(path.with_suffix(""))
    path = folder / f"{0:020d}.log"
    return SegmentFileSource(OsFiles(), path, 0, RECORDS, size_bytes, 0)


def job_of(source: SegmentFileSource) -> CompactionJob:
    """Return the compaction of all of it, with the broker's defaults."""
    place = FolderPlace(OsFiles(), source.path.parent, CONFIG)
    return CompactionJob(
        compaction=Compaction(0, RECORDS, 1.0, KeyTable),
        rewrite=SegmentRewrite([source], place, is_portable=True),
        aborted=(),
        last_records={},
        memory_bytes=128 << 20,
        load_factor=0.9,
        buffer_bytes=512 << 10,
        bytes_per_second=1e300,
        segment_bytes=1 << 30,
        segment_index_bytes=10 << 20,
        delete_retention_ms=0,
        now_ms=0,
    )


def measure_pass(keys: int, compression: CompressionType) -> None:
    """Print the speed of a pass."""
    with tempfile.TemporaryDirectory() as folder:
        source = write_segment(Path(folder), keys, compression)
        best, kept = float("inf"), 0
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            for step in compact(job_of(source), unlimited()):
                if isinstance(step, GroupRewritten):
                    kept = step.bytes_written
            best = min(best, time.perf_counter() - begun)
        print(
            f"pass, {keys} keys, {compression.name.lower()}: {source.size_bytes / best / 1e6:.1f} MB/s, "
            f"{RECORDS / best:,.0f} records/s, {100 * kept / source.size_bytes:.0f} % kept"
        )


def latencies(client: Client) -> list[float]:
    """Return how long single produces take, in milliseconds, sorted."""
    batch, taken = batch_of(b"v" * 100), []
    for _ in range(PRODUCES):
        begun = time.perf_counter()
        produce(client, "t", batch)
        taken.append(1000 * (time.perf_counter() - begun))
    return sorted(taken)


def measure_latency() -> None:
    """Print what a client notices of a worker process, and of the same work on a thread of the broker's process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_broker({"log.retention.ms": -1}) as broker,
        Client(broker.bootstrap) as client,
    ):
        create(client, "t")
        source = write_segment(Path(folder), 1_000, CompressionType.NONE)
        latencies(client)
        show("without compaction", latencies(client))
        code = "import sys; from benchmarks.compaction import work_for_ever; work_for_ever(sys.argv[1])"
        with subprocess.Popen([sys.executable, "-c", code, folder]) as busy:
            show("beside a worker process", latencies(client))
            busy.kill()
        worker = ProcessWorker(job_of(source), SystemProcesses())
        begun = time.perf_counter()
        while not isinstance(worker.next_step(), CompactionDone):
            pass
        worker.close()
        print(f"a worker process, started and done: {time.perf_counter() - begun:.2f} s for {RECORDS:,} records")


def show(what: str, taken: list[float]) -> None:
    """Print a line of latencies."""
    print(f"produce, {what}: p50 {statistics.median(taken):.3f} ms, p99 {taken[len(taken) * 99 // 100]:.3f} ms")


def work_for_ever(folder: str) -> None:
    """Compact the same segment again and again, as a worker process that has much to do."""
    import os

    os.nice(5)
    path = Path(folder) / f"{0:020d}.log"
    source = SegmentFileSource(OsFiles(), path, 0, RECORDS, path.stat().st_size, 0)
    while True:
        for _ in compact(job_of(source), unlimited()):
            pass


def main() -> None:
    """Measure and print."""
    for keys in (1_000, 150_000):
        measure_pass(keys, CompressionType.NONE)
    measure_pass(1_000, CompressionType.LZ4)
    measure_latency()


if __name__ == "__main__":
    main()
