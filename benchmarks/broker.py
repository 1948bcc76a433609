"""The whole broker against the least that C can do: small produces, ingest of large batches, fetches.

    python -m benchmarks.broker [CASE ...] [--rounds 5] [--seconds 1] [--set KEY=VALUE]...

The broker is `odradek serve` in a process of its own on one core, the client a C program (compiled on first use with
`cc`) on another. Where a C loop is compared, rounds alternate between the two. Each round has a server and a log of its
own; a log that grows fast finds warm pages (see `warm_pages`). Rates drift by half as the machine likes: trust the
ratios, and CPU seconds where others share the cores.

| case | what |
|---|---|
| `small` | 8 connections, one single-record Produce (100 B, acks=1) in flight on each |
| `pipelined` | the same with 5 in flight on each |
| `ingest-64k` | 4 connections, batches of 64 KiB, acks=all, 2 in flight; against C: receive, CRC-32C, append, answer |
| `ingest-1m` | 1 connection, batches of 1 MB, 2 in flight; against C likewise |
| `fetch-64k`, `fetch-1m` | 1 connection reads the same stretch again and again; against C: sendfile |
| `fetch-64k-busy`, `fetch-1m-busy` | the same with as many connections and requests in flight as `ingest` has |
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import cpu_seconds
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

HERE = Path(__file__).parent
TOPIC = "bench"
RECORD_BYTES_MAX = 1024
"""No record of a batch is larger, with what belongs to it."""
WARM_BYTES_PER_S = 2_500_000_000
"""More than a log grows in a second."""


class Case(NamedTuple):
    """One measure.

    Attributes:
        api: `produce` or `fetch`.
        connections: Of the client, each to a partition of its own.
        depth: Requests in flight on each.
        payload_bytes: Of the batch, or of what is fetched.
        rival: The C loop to compare with; empty for none.
        acks: Of a Produce.
    """

    api: str
    connections: int
    depth: int
    payload_bytes: int
    rival: str
    acks: int = -1


CASES = {
    "small": Case("produce", 8, 1, 100, "", 1),
    "pipelined": Case("produce", 8, 5, 100, "", 1),
    "ingest-64k": Case("produce", 4, 2, 64 << 10, "ingest"),
    "ingest-1m": Case("produce", 1, 2, 1_000_000, "ingest"),
    "fetch-64k": Case("fetch", 1, 1, 64 << 10, "egress"),
    "fetch-1m": Case("fetch", 1, 1, 1 << 20, "egress"),
    "fetch-64k-busy": Case("fetch", 4, 2, 64 << 10, "egress"),
    "fetch-1m-busy": Case("fetch", 1, 2, 1 << 20, "egress"),
}


class Sample(NamedTuple):
    """One round: requests and megabytes a second, latencies, the server's CPU seconds per million requests and GB."""

    rate: float
    mb_rate: float
    p50_us: float
    p99_us: float
    cpu_million: float
    cpu_gb: float


def compile_load(folder: Path) -> Path:
    """Compile the C program; return where it is."""
    program = folder / "broker_load"
    native = ["-msse4.2"] if os.uname().machine == "x86_64" else []
    subprocess.run(["cc", "-O2", *native, "-o", program, HERE / "broker_load.c"], check=True)
    return program


def batch_of(payload_bytes: int) -> bytes:
    """Return a batch of about so many bytes, of records of at most 1,000 bytes."""
    builder = BatchBuilder()
    now_ms = time.time_ns() // 1_000_000
    value = os.urandom(min(payload_bytes, 1000))
    while builder.size_bytes < payload_bytes:
        builder.append(None, value, timestamp=now_ms)
    return bytes(builder.build())


def produce_frame(partition: int, case: Case) -> bytes:
    """Return a Produce request (v9, as librdkafka and kafka-python send about)."""
    data = [PartitionProduceData(index=partition, records=batch_of(case.payload_bytes))]
    request = ProduceRequest(
        acks=case.acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
    )
    return encode_request(request, 9, 1, "bench").join()


def fetch_frame(partition: int, case: Case) -> bytes:
    """Return a Fetch request (v11) from the beginning of a partition."""
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=case.payload_bytes)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=case.payload_bytes,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    return encode_request(request, 11, 1, "bench").join()


def ask(address: tuple[str, int], frame: bytes) -> bytes:
    """Send one request on a connection of its own and return the answer."""
    with socket.create_connection(address, 30) as connection, connection.makefile("rb") as answers:
        connection.sendall(frame)
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)


@contextlib.contextmanager
def running(command: Sequence[object], *, word: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server on core 0; give it and the rest of its first line that begins with `word`."""
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),
    )
    try:
        assert process.stdout is not None
        while True:
            ready, _, _ = select.select([process.stdout], [], [], 60)
            line = process.stdout.readline() if ready else ""
            if not line:
                raise SystemExit(f"{command[0]} did not start")
            if line.startswith(word):
                yield process, line[len(word) :].strip()
                return
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def measure(program: Path, port: int, pid: int, case: Case, frames: Path, seconds: float) -> Sample:
    """Load a server for some seconds."""
    before = cpu_seconds(pid)
    command = [program, "load", port, case.connections, seconds, case.depth, frames]
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the client failed: {done.stderr.strip()}")
    used = cpu_seconds(pid) - before
    count, answer_bytes, elapsed, p50_us, p99_us = map(float, done.stdout.split())
    moved = answer_bytes if case.api == "fetch" else count * case.payload_bytes
    return Sample(
        count / elapsed, moved / elapsed / 1e6, p50_us, p99_us, used / count * 1e6, used / moved * 1e9 if moved else 0.0
    )


def warm_pages(size_bytes: int) -> None:
    """Have the machine hand out so much memory, and give it back, for the log's pages to come from.

    A virtual machine gets memory that it never touched from its host, at 0.3 GB/s here, and loses again what is free
    for a second: on cold pages every log, that of the C loop too, is as slow as that.
    """
    pages = size_bytes // mmap.PAGESIZE
    if pages:
        with mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(pages)


@contextlib.contextmanager
def serving_broker(case: Case, place: Path, settings: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Run a broker with the topic of a case, filled for a fetch; give its process id and its port."""
    command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", place / "data"]
    command += [word for setting in settings for word in ("--set", setting)]
    with running(command, word="ready ") as (process, address):
        port = int(address.rpartition(":")[2])
        topic = CreatableTopic(name=TOPIC, num_partitions=case.connections, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        ask(("127.0.0.1", port), encode_request(request, 5, 1, "b").join())
        if case.api == "fetch":
            # What is asked for holds a whole number of batches, so that as much as that is answered.
            filled = case._replace(api="produce", payload_bytes=(64 << 10) - RECORD_BYTES_MAX)
            for partition in range(case.connections):
                for _ in range(case.payload_bytes // filled.payload_bytes + 2):
                    ask(("127.0.0.1", port), produce_frame(partition, filled))
        yield process.pid, port


@contextlib.contextmanager
def serving_rival(case: Case, place: Path, program: Path) -> Iterator[tuple[int, int]]:
    """Run the C loop of a case; give its process id and its port."""
    file = place / "rival"
    file.write_bytes(os.urandom(case.payload_bytes))
    with running([program, "serve", case.rival, file, case.payload_bytes], word="") as (process, port):
        yield process.pid, int(port)


def run_case(case: Case, program: Path, folder: Path, options: argparse.Namespace) -> dict[str, list[Sample]]:
    """Measure one case in alternating rounds."""
    frames = folder / "frames"
    make = produce_frame if case.api == "produce" else fetch_frame
    frames.write_bytes(b"".join(make(partition, case) for partition in range(case.connections)))
    servers: dict[str, Callable[[Case, Path], AbstractContextManager[tuple[int, int]]]] = {}
    servers["odradek"] = partial(serving_broker, settings=options.set)
    if case.rival:
        servers["C"] = partial(serving_rival, program=program)
    samples: dict[str, list[Sample]] = {server: [] for server in servers}
    for _ in range(options.rounds):
        for server, serving in servers.items():
            with tempfile.TemporaryDirectory(dir=folder) as name, serving(case, Path(name)) as (pid, port):
                warm_pages(int(WARM_BYTES_PER_S * options.seconds) if case.rival == "ingest" else 0)
                samples[server].append(measure(program, port, pid, case, frames, options.seconds))
    return samples


def report(name: str, samples: dict[str, list[Sample]]) -> dict[str, object]:
    """Print a case and return its figures: medians, and medians of the rounds' ratios to C."""
    figures: dict[str, object] = {}
    for server, rounds in samples.items():
        median = Sample(*(statistics.median(column) for column in zip(*rounds, strict=True)))
        ratio = ""
        if server != "C" and "C" in samples:
            pairs = list(zip(rounds, samples["C"], strict=True))
            rate = statistics.median(ours.mb_rate / theirs.mb_rate for ours, theirs in pairs)
            cpu = statistics.median(theirs.cpu_gb / ours.cpu_gb if ours.cpu_gb else 0.0 for ours, theirs in pairs)
            ratio = f"   {rate:.2f} of C's rate, {cpu:.2f} by CPU"
            figures["ratio_rate"], figures["ratio_cpu"] = rate, cpu
        figures[server] = median._asdict()
        print(
            f"{name:11} {server:8} {median.rate:10,.0f}/s {median.mb_rate:8,.0f} MB/s   p50 {median.p50_us:6.0f} us  "
            f"p99 {median.p99_us:6.0f} us   {median.cpu_million:7.1f} CPU s/M  {median.cpu_gb:6.2f} CPU s/GB{ratio}",
            flush=True,
        )
    return figures


def main() -> int:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the broker")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as name:
        folder = Path(name)
        program = compile_load(folder)
        for case in options.cases or CASES:
            figures[case] = report(case, run_case(CASES[case], program, folder, options))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
