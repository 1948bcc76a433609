"""What width costs one broker: many partitions, many idle connections.

    python -m benchmarks.scale [--partitions 500 5000] [--connections 10000] [--idle-seconds 10] [--beside]

The broker is `odradek serve` in a process of its own. Times are CPU seconds of that process where nothing else is said,
since others may share the cores; memory is PSS. What a partition costs should not depend on how many there are.

| step | what |
|---|---|
| `ready` | from the start of the process to its `ready` line |
| `create` | CreateTopics of everything in one request |
| `produce` | one record of 100 bytes to each partition, one request each, one after the other |
| `metadata` | Metadata of all topics, the least of five |
| `idle` | nothing, for some seconds; and nothing while every partition has records |
| `stop` | SIGTERM to the end of the process |
| `clean`, `killed` | `ready` again, after that stop and after SIGKILL |
| `connections` | idle ones from this process, each has asked ApiVersions once |
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import resource
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker import batch_of
from benchmarks.processes import cpu_seconds, pss_mib
from benchmarks.width import measure_beside
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

KIB = 1024
PRODUCE_VERSION = 9


class Shape(NamedTuple):
    """So many topics of so many partitions."""

    topics: int
    partitions: int

    @property
    def total(self) -> int:
        """All partitions."""
        return self.topics * self.partitions

    def __str__(self) -> str:
        return f"{self.topics} x {self.partitions}"


class Broker:
    """A broker process. Life: `start`, requests, `stop` or `kill`, `start` again."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.process: subprocess.Popen[str]
        self.address: tuple[str, int]
        self.wall_seconds = 0.0

    def start(self) -> float:
        """Start it; return its CPU seconds until it serves."""
        started = time.perf_counter()
        command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", str(self.data_dir), "--set", "max.connections=20000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], 120)
            line = self.process.stdout.readline() if ready else ""
            if not line:
                self.process.kill()
                raise SystemExit("the broker did not start")
            if line.startswith("ready "):
                self.wall_seconds = time.perf_counter() - started
                host, _, port = line.removeprefix("ready ").strip().rpartition(":")
                self.address = host, int(port)
                return self.cpu()

    def end(self, number: signal.Signals) -> float:
        """Send a signal and wait; return the CPU seconds it took to end."""
        before = self.cpu()
        started = time.perf_counter()
        self.process.send_signal(number)
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.wall_seconds = time.perf_counter() - started
        return usage.ru_utime + usage.ru_stime - before

    def kill(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def cpu(self) -> float:
        """Return its CPU seconds so far."""
        return cpu_seconds(self.process.pid)

    def pss(self) -> float:
        """Return its proportional share of memory in KiB."""
        return pss_mib(self.process.pid) * 1024

    def connect(self) -> socket.socket:
        """Return a connection."""
        connection = socket.create_connection(self.address, 120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def ask(connection: socket.socket, frame: bytes) -> bytes:
    """Send one request and return the answer."""
    connection.sendall(frame)
    data = bytearray()
    size = 4
    while len(data) < size:
        piece = connection.recv(1 << 20)
        if not piece:
            raise SystemExit("the broker closed the connection")
        data += piece
        if len(data) >= 4:
            size = 4 + struct.unpack_from(">i", data)[0]
    return bytes(data)


def create_frame(shape: Shape) -> bytes:
    """Return the request that makes all topics."""
    topics = [
        CreatableTopic(name=f"t{number}", num_partitions=shape.partitions, replication_factor=1)
        for number in range(shape.topics)
    ]
    return encode_request(CreateTopicsRequest(topics=topics, timeout_ms=120_000), 5, 1, "scale").join()


def produce_frame(topic: int, partition: int, batch: bytes) -> bytes:
    """Return a Produce of one batch."""
    data = TopicProduceData(name=f"t{topic}", partition_data=[PartitionProduceData(index=partition, records=batch)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    return encode_request(request, PRODUCE_VERSION, 1, "scale").join()


def check_produced(answer: bytes) -> bool:
    """Return whether a Produce was acknowledged."""
    body = memoryview(answer)[4:]
    _, position = decode_response_header(body, 0, PRODUCE_VERSION)
    response = decode(ProduceResponse, body, PRODUCE_VERSION, position=position, exact=True)
    return response.responses[0].partition_responses[0].error_code == 0


def wait_open(connection: socket.socket, shape: Shape) -> None:
    """Wait until the last partition can be produced to: those of large topics are opened in the background."""
    frame = produce_frame(shape.topics - 1, shape.partitions - 1, batch_of(100))
    while not check_produced(ask(connection, frame)):
        time.sleep(0.02)


def produce_frames(shape: Shape) -> Iterator[bytes]:
    """Yield one Produce for each partition."""
    batch = batch_of(100)
    for topic in range(shape.topics):
        for partition in range(shape.partitions):
            yield produce_frame(topic, partition, batch)


def say(step: str, cpu: float, shape: Shape, text: str = "") -> None:
    """Print a step's CPU seconds, as a whole and for each partition."""
    print(f"  {step:<9} {cpu:8.2f} CPU s {cpu / shape.total * 1e6:9.0f} us each   {text}".rstrip(), flush=True)


def measure_partitions(shape: Shape, idle_seconds: float) -> None:
    """Print what so many partitions cost."""
    print(f"{shape} partitions", flush=True)
    with tempfile.TemporaryDirectory(prefix="odradek-scale-") as folder, contextlib.ExitStack() as stack:
        broker = Broker(Path(folder) / "data")
        empty_cpu = broker.start()
        stack.callback(broker.kill)
        empty_pss = broker.pss()
        say("ready", empty_cpu, shape, f"{broker.wall_seconds:.2f} s, empty, {empty_pss / KIB:.1f} MiB")
        connection = broker.connect()
        cpu = broker.cpu()
        started = time.perf_counter()
        ask(connection, create_frame(shape))
        answered = time.perf_counter() - started
        wait_open(connection, shape)
        wall = time.perf_counter() - started
        per_each = (broker.pss() - empty_pss) / shape.total
        text = f"{wall:.2f} s, answered after {answered:.2f} s, {per_each:.1f} KiB each"
        say("create", broker.cpu() - cpu, shape, text)
        cpu, started = broker.cpu(), time.perf_counter()
        for frame in produce_frames(shape):
            ask(connection, frame)
        wall = time.perf_counter() - started
        per_each = (broker.pss() - empty_pss) / shape.total
        say("produce", broker.cpu() - cpu, shape, f"{wall:.2f} s, {per_each:.1f} KiB each")
        say_metadata(broker, connection, shape)
        say_idle(broker, idle_seconds)
        connection.close()
        for step, number in (("clean", signal.SIGTERM), ("killed", signal.SIGKILL)):
            if number is signal.SIGKILL:
                with broker.connect() as connection:
                    for frame in produce_frames(shape):
                        ask(connection, frame)
            cpu = broker.end(number)
            if number is signal.SIGTERM:
                say("stop", cpu, shape, f"{broker.wall_seconds:.2f} s")
            cpu = broker.start()
            pss = broker.pss()
            per_each = (pss - empty_pss) / shape.total
            text = f"{broker.wall_seconds:.2f} s, {cpu:.2f} CPU s in all, {pss / KIB:.1f} MiB, {per_each:.1f} KiB each"
            say(step, cpu - empty_cpu, shape, text)
        broker.end(signal.SIGTERM)


def say_metadata(broker: Broker, connection: socket.socket, shape: Shape) -> None:
    """Print what Metadata of all topics costs."""
    costs, size = [], 0
    for _ in range(5):
        cpu = broker.cpu()
        for _ in range(10):
            size = len(ask(connection, encode_request(MetadataRequest(topics=None), 12, 1, "scale").join()))
        costs.append((broker.cpu() - cpu) / 10)
    say("metadata", min(costs), shape, f"{size / KIB:.0f} KiB")


def say_idle(broker: Broker, seconds: float) -> None:
    """Print what the broker uses while nobody asks for anything."""
    cpu = broker.cpu()
    time.sleep(seconds)
    print(f"  idle      {(broker.cpu() - cpu) / seconds * 100:8.2f} % of a core", flush=True)


def measure_connections(count: int, idle_seconds: float) -> None:
    """Print what idle connections cost, and how promptly others are answered beside them."""
    print(f"{count} idle connections", flush=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))
    frame = encode_request(ApiVersionsRequest(client_software_name="scale"), 3, 1, "scale").join()
    with tempfile.TemporaryDirectory(prefix="odradek-scale-") as folder, contextlib.ExitStack() as stack:
        broker = Broker(Path(folder) / "data")
        broker.start()
        stack.callback(broker.kill)
        say_idle(broker, idle_seconds)
        first = stack.enter_context(broker.connect())
        print(f"  alone     {latency(first, frame)}", flush=True)
        pss, cpu, started = broker.pss(), broker.cpu(), time.perf_counter()
        for _ in range(count):
            ask(stack.enter_context(broker.connect()), frame)
        wall = time.perf_counter() - started
        used = broker.cpu() - cpu
        grown = broker.pss() - pss
        print(
            f"  connect   {used:8.2f} CPU s {used / count * 1e6:9.0f} us each   {wall:.2f} s, "
            f"{grown / count:.2f} KiB each (PSS, without the kernel's sockets)",
            flush=True,
        )
        print(f"  beside    {latency(first, frame)}", flush=True)
        say_idle(broker, idle_seconds)
        cpu = broker.end(signal.SIGTERM)
        print(
            f"  stop      {cpu:8.2f} CPU s {cpu / count * 1e6:9.0f} us each   {broker.wall_seconds:.2f} s", flush=True
        )


def latency(connection: socket.socket, frame: bytes) -> str:
    """Return the latency of small requests, one after the other."""
    times = []
    for _ in range(2_000):
        started = time.perf_counter()
        ask(connection, frame)
        times.append((time.perf_counter() - started) * 1e6)
    quantiles = statistics.quantiles(times, n=100)
    return f"p50 {quantiles[49]:.0f} us  p99 {quantiles[98]:.0f} us"


def main() -> int:
    """Measure every shape, then the connections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="*", default=[500, 5000])
    parser.add_argument("--connections", type=int, default=10_000, help="0 for none")
    parser.add_argument("--idle-seconds", type=float, default=10.0)
    parser.add_argument("--beside", action="store_true", help="beside Apache Kafka, where the peers are: see `width`")
    options = parser.parse_args()
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}")
    if options.beside:
        measure_beside(options.partitions, options.idle_seconds)
        return 0
    for count in options.partitions:
        measure_partitions(Shape(max(1, count // 50), min(count, 50)), options.idle_seconds)
    if options.partitions:
        measure_partitions(Shape(1, max(options.partitions)), options.idle_seconds)
    if options.connections:
        measure_connections(options.connections, options.idle_seconds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
