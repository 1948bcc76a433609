"""Storage in segment files against the bare system calls: `python -m benchmarks.storage`.

Each figure of ours stands beside a raw loop of the same run: the same bytes by `os.pwritev` or `os.pread` alone.
Microseconds a batch and MB/s; medians of interleaved rounds. Files lie in the folder given by `--dir`, by default
below the system's temporary one; pages are warm (every round writes the same file length again).
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
import tracemalloc
import uuid
from pathlib import Path

from odradek.kernel.api import LogConfig, OsFiles, StorageContext, TopicIdPartition
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.log import SegmentLog
from odradek.testing.batches import make_batch

ROUNDS = 7
PER_TURN = 8


def make_engine(directory: Path) -> SegmentEngine:
    """Return an engine over one directory."""
    source = random.Random(1)
    engine = SegmentEngine(
        StorageContext(
            log_dirs=[str(directory)],
            node_id=1,
            cluster_id="",
            settings={},
            now_ms=lambda: time.time_ns() // 1_000_000,
            monotonic_ms=lambda: time.monotonic_ns() // 1_000_000,
            random=source,
            new_id=lambda: uuid.UUID(int=source.getrandbits(128)),
            files=OsFiles(),
            threads=SystemThreads(),
        )
    )
    engine.start()
    return engine


def open_log(engine: SegmentEngine, number: int) -> SegmentLog:
    """Return a log of that engine."""
    log = engine.open_log(TopicIdPartition(uuid.UUID(int=5), "bench", number), LogConfig())
    assert isinstance(log, SegmentLog)
    return log


def appends(log: SegmentLog, batches: list[bytes]) -> tuple[float, float]:
    """Return seconds spent in `append` and in `write_pending`, for turns of eight batches."""
    clock = time.perf_counter
    append, write = log.append, log.write_pending
    staging = writing = 0.0
    for first in range(0, len(batches), PER_TURN):
        begin = clock()
        for offset in range(first, first + PER_TURN):
            append(batches[offset], offset, offset, 1_000)
        middle = clock()
        write()
        staging, writing = staging + middle - begin, writing + clock() - middle
    return staging, writing


def raw_writes(path: Path, batches: list[bytes]) -> float:
    """Return the seconds of the same writes without us."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    begin = time.perf_counter()
    position = 0
    for first in range(0, len(batches), PER_TURN):
        position += os.pwritev(fd, batches[first : first + PER_TURN], position)
    seconds = time.perf_counter() - begin
    os.close(fd)
    return seconds


def small_appends(directory: Path) -> None:
    """Measure turns of eight small batches."""
    batches = [make_batch(offset) for offset in range(40_000)]
    engine = make_engine(directory)
    log = open_log(engine, 0)
    ours, staged, raw = [], [], []
    for _ in range(ROUNDS):
        log.truncate_fully(0)
        staging, writing = appends(log, batches)
        staged.append(staging)
        ours.append(staging + writing)
        raw.append(raw_writes(directory / "raw", batches))
    engine.close({})
    scale = 1e6 / len(batches)
    show("append, 161 bytes, 8 a turn", "us a batch", [s * scale for s in staged])
    show("append + write_pending", "us a batch", [s * scale for s in ours])
    show("  raw: one pwritev of 8", "us a batch", [s * scale for s in raw])


def large_appends(directory: Path) -> None:
    """Measure batches of 1 MiB."""
    batch = make_batch(0, size_bytes=(1 << 20) - 61)
    count = 256
    engine = make_engine(directory)
    log = open_log(engine, 1)
    ours, raw = [], []
    for _ in range(ROUNDS):
        log.truncate_fully(0)
        begin = time.perf_counter()
        for offset in range(count):
            log.append(batch, offset, offset, 1_000)
            log.write_pending()
        ours.append(count * len(batch) / (time.perf_counter() - begin) / 1e6)
        fd = os.open(directory / "raw", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        begin = time.perf_counter()
        for number in range(count):
            os.pwritev(fd, [batch], number * len(batch))
        raw.append(count * len(batch) / (time.perf_counter() - begin) / 1e6)
        os.close(fd)
    engine.close({})
    show("append + write, 1 MiB", "MB/s", ours)
    show("  raw: pwritev", "MB/s", raw)


def reads(directory: Path) -> None:
    """Measure reads that go on, that jump, and at the tail."""
    engine = make_engine(directory)
    log = open_log(engine, 2)
    count = 200_000
    batches = [make_batch(offset) for offset in range(count)]
    appends(log, batches)
    source = random.Random(3)
    offsets = [source.randrange(count) for _ in range(5_000)]
    following, scattered, tails = [], [], []
    for _ in range(ROUNDS):
        offset, calls, begin = 0, 0, time.perf_counter()
        while (read := log.read(offset, 65_536, at_least_one=True)).size_bytes:
            offset, calls = read.next_offset, calls + 1
        following.append((time.perf_counter() - begin) / calls * 1e6)
        begin = time.perf_counter()
        for offset in offsets:
            log.read(offset, 1 << 30)
        scattered.append((time.perf_counter() - begin) / len(offsets) * 1e6)
        log.read(count - 1, 1 << 20)
        begin = time.perf_counter()
        for _ in range(5_000):
            log.read(count - 1, 1 << 20)
        tails.append((time.perf_counter() - begin) / 5_000 * 1e6)
    engine.close({})
    show("read on, 64 KiB, cut inside a segment", "us a read", following)
    show("read from a random offset", "us a read", scattered)
    show("read at the tail", "us a read", tails)


def many_logs(directory: Path, count: int) -> None:
    """Measure an engine with many logs, a tenth of them with data."""
    engine = make_engine(directory)
    begin = time.perf_counter()
    for number in range(count):
        open_log(engine, number)
    made = time.perf_counter() - begin
    for log in list(engine._logs.values())[: count // 10]:  # noqa: SLF001 # a benchmark of it
        log.append(make_batch(0), 0, 0, 1_000)
        log.write_pending()
    begin = time.perf_counter()
    engine.close({})
    closed = time.perf_counter() - begin
    begin = time.perf_counter()
    engine = make_engine(directory)
    for number in range(count):
        open_log(engine, number)
    opened = time.perf_counter() - begin
    engine.close({})
    tracemalloc.start()
    engine = make_engine(directory)
    for number in range(count):
        open_log(engine, number)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    engine.close({})
    print(f"{count} logs: made in {made:.2f} s, closed in {closed:.2f} s, found and opened again in {opened:.2f} s")
    print(f"  {size / count / 1024:.1f} KiB a log")


def show(name: str, unit: str, values: list[float]) -> None:
    """Print one figure."""
    print(
        f"{name:42} {statistics.median(values):10.2f} {unit:10}  (lowest {min(values):.2f}, highest {max(values):.2f})"
    )


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where the files go")
    parser.add_argument("--logs", type=int, default=5_000, help="how many logs to open")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        for number, part in enumerate((small_appends, large_appends, reads)):
            directory = Path(name) / str(number)
            part(directory)
        many_logs(Path(name) / "many", arguments.logs)


if __name__ == "__main__":
    main()
