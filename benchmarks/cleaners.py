"""Compaction's cost beside Apache Kafka's cleaner, on the same segments: `python -m benchmarks cleaners`.

For each case Kafka gets a compacted topic and its records; its active segment is copied, then closed, and its cleaner
works: the processor time of the cleaner's thread is read from `/proc`. The copy is then compacted by our worker's code,
in this process, with the same memory. What the JVM's compiler and collector take beside the thread is not counted. A
first round warms the JVM; the rounds after it are shown as medians, and ours over Kafka's in the same round.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.kernel.api import OsFiles
from odradek.kernel.cleanup.compaction_job import GroupRewritten, compact
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.records.run import HAS_COMPILED_RUNS
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.plugins.storage_segment.rewriting import SegmentFileSource

from .compaction import RECORDS, batches_of, job_of
from .processes import TICKS
from .rivals import PEERS, Rival, Wire, row

CLEANER_THREAD = "kafka-log-clean"
"""A thread's name in `/proc` has 15 characters."""
SETTINGS = {
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.threads": 1,
    "log.message.timestamp.before.max.ms": (1 << 63) - 1,
    "log.retention.ms": -1,
}
QUIET_S = 1.5
"""So long the cleaner's thread must rest before its work is taken for done."""


class Case(NamedTuple):
    """What is compacted."""

    name: str
    keys: int
    per_batch: int
    compression: str


CASES = [
    Case("1,000 keys", 1_000, 100, "NONE"),
    Case("150,000 keys", 150_000, 100, "NONE"),
    Case("1,000 keys, lz4", 1_000, 100, "LZ4"),
    Case("1,000 keys, 10 a batch", 1_000, 10, "NONE"),
]


def cleaner_seconds(rival: Rival) -> float:
    """Return the processor time of Kafka's cleaner thread."""
    used = 0
    for pid in rival.pids:
        for path in Path(f"/proc/{pid}/task").glob("*/stat"):
            name, _, fields = path.read_text().partition("(")[2].rpartition(")")
            if name.startswith(CLEANER_THREAD):
                used += int(fields.split()[11]) + int(fields.split()[12])
    return used / TICKS


def create(wire: Wire, topic: str) -> None:
    """Create a topic that is compacted as soon as a segment is closed, which the second produce after a pause does."""
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "3600000"}
    wanted = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    answer = wire.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5)
    assert not answer.topics[0].error_code, answer


def produce(wire: Wire, topic: str, batches: Iterator[bytes]) -> None:
    """Produce batches one by one."""
    for batch in batches:
        data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
        while True:
            answer = wire.ask(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data), 9)
            error = answer.responses[0].partition_responses[0].error_code
            if error not in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}:
                break
            time.sleep(0.05)  # the topic is new
        assert not error, answer


def size_of(path: Path) -> int:
    """Return a file's size; while it is being replaced, that of the one before."""
    while True:
        try:
            return path.stat().st_size
        except FileNotFoundError:
            time.sleep(0.001)


def measure_kafka(rival: Rival, data_dir: Path, case: Case, number: int, copy: Path) -> float:
    """Have Kafka's cleaner compact a case's records; return its processor time. The segment is copied first."""
    topic, wire = f"t{case.keys}-{case.per_batch}-{case.compression}-{number}", rival.connect()
    create(wire, topic)
    produce(wire, topic, batches_of(case.keys, case.per_batch, case.compression))
    (log,) = data_dir.glob(f"**/{topic}-0/{0:020d}.log")
    shutil.copy(log, copy / log.name)
    before = cleaner_seconds(rival)
    # Records of a later time close the segment: `segment.ms` is counted by the records' own.
    produce(wire, topic, batches_of(1, 1, "NONE", records=2, timestamp=7_200_000, step=7_200_000))
    size, used, since = log.stat().st_size, before, time.perf_counter()
    while size_of(log) == size or time.perf_counter() - since < QUIET_S:
        time.sleep(0.1)
        now = cleaner_seconds(rival)
        if now - used > 0.015:
            used, since = now, time.perf_counter()
    wire.socket.close()
    return used - before


def measure_ours(copy: Path) -> tuple[float, int]:
    """Compact the copy; return processor time and bytes that are left."""
    path = copy / f"{0:020d}.log"
    source = SegmentFileSource(OsFiles(), path, 0, RECORDS, path.stat().st_size, 0)
    begun, left = time.process_time(), 0
    for step in compact(job_of(source), Throttle(lambda: 1e300, time.perf_counter, SystemThreads().new_event())):
        if isinstance(step, GroupRewritten):
            left = step.bytes_written
    return time.process_time() - begun, left


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    if not (PEERS / "peers.py").exists():
        sys.exit(f"Apache Kafka comes from the peers, which are not there: ODRADEK_PEERS ({PEERS})")
    sys.path.append(str(PEERS))
    from peers import start  # type: ignore[import-not-found] # a script outside of the project

    print(f"{RECORDS:,} records with values of 100 B; compiled functions: {HAS_COMPILED_RUNS}")
    with tempfile.TemporaryDirectory() as folder, start("kafka", settings=SETTINGS, data_dir=folder) as peer:
        rival = Rival("kafka", peer.bootstrap, peer.pids)
        for case in CASES:
            samples: dict[str, list[tuple[float, ...]]] = {"odradek": [], "kafka": []}
            for number in range(rounds + 1):
                with tempfile.TemporaryDirectory() as copied:
                    theirs = measure_kafka(rival, Path(folder), case, number, Path(copied))
                    size = (Path(copied) / f"{0:020d}.log").stat().st_size
                    mine, _ = measure_ours(Path(copied))
                if number:
                    for name, seconds in (("odradek", mine), ("kafka", theirs)):
                        samples[name].append((size / seconds / 1e6, RECORDS / seconds))
            row(case.name, samples, ("{:8.1f} MB/CPU s", "{:11,.0f} records/CPU s"))


if __name__ == "__main__":
    main()
