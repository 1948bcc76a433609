"""How fast a broker stands and how little it needs: `python -m benchmarks.start`.

| row | what |
|---|---|
| help | `odradek --help`, start to end of the process |
| ready | start of the process to the line `ready HOST:PORT`, with an empty data directory |
| first answer | start of the process to the first ApiVersions answer |
| idle memory | proportional set size (PSS) when nobody asks |
| partitions | 5,000 partitions: memory for each, and the next start with them |
| fixture | `running_broker`, which is what the fixture `odradek_broker` runs: the first of a process, and the next |
| demo | `odradek demo`, start to end of the process, with the processor time of its brokers |
| connections | 10,000 idle connections that each asked once: memory for each |

Wall and processor time are medians; processor time is the one to compare on a machine that others use too.
"""

from __future__ import annotations

import argparse
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from benchmarks.processes import cpu_seconds, pss_mib
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.wire.message import Message

TOPICS, PARTITIONS_EACH = 50, 100
DEMO_ROUNDS_MAX = 5


@attrs.frozen
class Started:
    """A broker that answered for the first time.

    Attributes:
        process: The broker.
        address: Where it listens.
        ready_s: Wall time to the line `ready`.
        answer_s: Wall time to the first answer.
        cpu_s: Processor time to the first answer.
    """

    process: subprocess.Popen[bytes]
    address: tuple[str, int]
    ready_s: float
    answer_s: float
    cpu_s: float

    def pss_mib(self) -> float:
        """Return the memory that is this process's own, with its share of what is mapped by several."""
        return pss_mib(self.process.pid)


@contextmanager
def started(data_dir: Path) -> Iterator[Started]:
    """Run a broker until the block ends."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            host, _, port = process.stdout.readline().split()[1].decode().rpartition(":")
            ready_s = time.perf_counter() - begin
            with socket.create_connection((host, int(port))) as connection:
                ask(connection, ApiVersionsRequest(), 0)
            answer_s = time.perf_counter() - begin
            yield Started(process, (host, int(port)), ready_s, answer_s, cpu_seconds(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)


def ask(connection: socket.socket, request: Message, version: int) -> bytes:
    """Send a request and return the answer's frame."""
    connection.sendall(encode_request(request, version, 1, "start").join())
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(size)


def measure_help(rounds: int) -> None:
    """Print how long `odradek --help` takes."""
    wall_s, processor_s = time_command("--help", rounds)
    show("help", f"{wall_s * 1e3:.0f} ms, processor {processor_s * 1e3:.0f} ms")


def measure_start(rounds: int) -> None:
    """Print how long a broker takes to answer, and its memory."""
    runs, memory = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as broker:
            runs.append(broker)
            memory.append(broker.pss_mib())
    show("ready", f"{statistics.median(run.ready_s for run in runs) * 1e3:.0f} ms")
    answer, cpu = (
        statistics.median(values) for values in zip(*((run.answer_s, run.cpu_s) for run in runs), strict=True)
    )
    show("first answer", f"{answer * 1e3:.0f} ms, processor {cpu * 1e3:.0f} ms")
    show("idle memory", f"{statistics.median(memory):.1f} MiB")


def measure_partitions() -> None:
    """Print what 5,000 partitions need, while they are made and at the next start."""
    count = TOPICS * PARTITIONS_EACH
    topics = [
        CreatableTopic(name=f"topic-{number}", num_partitions=PARTITIONS_EACH, replication_factor=1)
        for number in range(TOPICS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        with started(Path(folder)) as broker:
            empty_mib, begin = broker.pss_mib(), time.perf_counter()
            with socket.create_connection(broker.address) as connection:
                ask(connection, CreateTopicsRequest(topics=topics, timeout_ms=600_000), 5)
            made_s, grown_mib = time.perf_counter() - begin, broker.pss_mib() - empty_mib
        show("partitions", f"{count} made in {made_s:.1f} s, {grown_mib * 1024 / count:.1f} KiB each")
        with started(Path(folder)) as broker:
            show("", f"next start {broker.answer_s:.2f} s, processor {broker.cpu_s:.2f} s, {broker.pss_mib():.1f} MiB")


def measure_connections(count: int) -> None:
    """Print what idle connections need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(count, hard - 200)
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as broker:
        before_mib = broker.pss_mib()
        connections = []
        for _ in range(count):
            connections.append(socket.create_connection(broker.address))
            ask(connections[-1], ApiVersionsRequest(), 0)
        after_mib = broker.pss_mib()
        for connection in connections:
            connection.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    show("connections", f"{count}: {(after_mib - before_mib) * 1024 / count:.2f} KiB each, {after_mib:.1f} MiB in all")


FIXTURE = """
import time
begin = time.perf_counter()
from odradek.testing.running_broker import running_broker
for _ in range(2):
    with running_broker():
        print(time.perf_counter() - begin)
    begin = time.perf_counter()
"""


def measure_fixture(rounds: int) -> None:
    """Print how long a test waits for its broker, imports included, and the next test that wants one of its own."""
    runs = []
    for _ in range(rounds):
        told = subprocess.run([sys.executable, "-c", FIXTURE], capture_output=True, text=True, check=True)
        runs.append([float(line) for line in told.stdout.split()])
    first, following = (statistics.median(values) * 1e3 for values in zip(*runs, strict=True))
    show("fixture", f"{first:.0f} ms, the next {following:.0f} ms")


def measure_demo(rounds: int) -> None:
    """Print how long the demo takes; it ends by itself, and fails where a check of its own does."""
    wall_s, processor_s = time_command("demo", rounds)
    show("demo", f"{wall_s:.1f} s, processor {processor_s:.1f} s")


def time_command(argument: str, rounds: int) -> tuple[float, float]:
    """Return how long `odradek ARGUMENT` takes, and its processor time, in seconds: medians."""
    walls, cpus = [], []
    for _ in range(rounds):
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "odradek", argument], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - begin)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


def show(name: str, text: str) -> None:
    """Print a row."""
    print(f"{name:<14} {text}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Start-up time and memory of a broker.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    measure_help(options.rounds)
    measure_start(options.rounds)
    measure_fixture(options.rounds)
    measure_demo(min(options.rounds, DEMO_ROUNDS_MAX))
    measure_partitions()
    measure_connections(options.connections)


if __name__ == "__main__":
    main()
