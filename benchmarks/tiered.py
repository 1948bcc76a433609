"""What tiered storage takes: `python -m benchmarks.tiered [--gigabytes N] [--store folder|s3]`.

    upload    a topic of segments of 64 MiB goes to the store: MB/s from the first byte produced to the last confirmed,
              processor time of the broker, the most memory it held
    cold      the same topic is read from offset 0, with nothing at hand: MB/s, processor time
    again     the same once more: what fits the cache comes from it
    hot       one record produced to another topic and read at once: alone, and beside a reader of cold records

Once with a folder as the store, once with an S3 server (`versitygw`, where Go is) on the same machine. Client, broker
and store share the cores: compare the lines of one run.
"""

# pyright: reportPrivateImportUsage=false
# confluent_kafka.admin has no __all__: nothing in it counts as public.

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from confluent_kafka.admin import AdminClient, NewTopic

from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.broker.broker_process import Client, batch_of
from tests.broker.test_process import create, produce
from tools.s3_server import ServerMissingError, build, environment, serving

SEGMENT_BYTES = 64 << 20
BATCH_BYTES = 1_000_000
CACHE_BYTES = 256 << 20
FETCH_BYTES = 8 << 20
LATENCIES = 2_000
MB = 1_000_000


class Broker:
    """A broker that serves, and what it has used so far."""

    def __init__(self, data: Path, store: str, variables: Mapping[str, str]) -> None:
        keys = {
            "remote.log.storage.system.enable": "true",
            "remote.log.manager.task.interval.ms": "200",
            "log.flush.offset.checkpoint.interval.ms": "500",
            "replica.high.watermark.checkpoint.interval.ms": "500",
            "log.retention.ms": "-1",
            "log.segment.delete.delay.ms": "1000",
            "odradek.tiered.store": store,
            "odradek.tiered.cache.bytes": str(CACHE_BYTES),
        }
        options = [word for name, value in keys.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data)]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[1]

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """Return the most memory that it has held."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


@contextmanager
def running(data: Path, store: str, variables: Mapping[str, str]) -> Iterator[Broker]:
    """Run a broker."""
    broker = Broker(data, store, variables)
    try:
        yield broker
    finally:
        broker.process.terminate()
        broker.process.wait()


def read_once(client: Client, topic: str, offset: int, max_wait_ms: int = 500) -> tuple[int, int]:
    """Fetch once; return how many bytes came, and the next offset."""
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, topics=[FetchTopic(topic=topic, partitions=[part])]
    )
    response = client.ask(request, 11)
    assert isinstance(response, FetchResponse)
    answer = response.responses[0].partitions[0]
    assert answer.error_code == 0, answer.error_code
    records = cast("memoryview", answer.records or b"")
    for _, header in iterate_batches(records):
        offset = header.next_offset
    return len(records), offset


def read_all(address: str, topic: str, end: int) -> int:
    """Read a topic from its start; return how many bytes came."""
    total = offset = 0
    with Client(address) as client:
        while offset < end:
            size, offset = read_once(client, topic, offset)
            total += size
    return total


def measure_upload(broker: Broker, data: Path, gigabytes: float) -> int:
    """Produce and wait until all but the active segment has left the disk; return the number of batches."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    configs = {
        "odradek.storage": "tiered",
        "segment.bytes": str(SEGMENT_BYTES),
        "local.retention.bytes": "1",
    }
    admin.create_topics([NewTopic("big", 1, 1, config=configs)])["big"].result(30)
    count = int(gigabytes * 1_000 * MB / BATCH_BYTES)
    batch = batch_of(*(os.urandom(1_000) for _ in range(BATCH_BYTES // 1_010)))
    begun, cpu_s = time.perf_counter(), broker.cpu_s()
    with Client(broker.address) as client:
        end = 0
        for _ in range(count):
            code, base = produce(client, "big", batch)
            assert code == 0
            end = base + BATCH_BYTES // 1_010
    while len(list((data / "big-0").glob("*.log"))) > 1:
        time.sleep(0.05)
    seconds = time.perf_counter() - begun
    size = count * len(batch)
    print(
        f"  upload   {size / MB / seconds:7.0f} MB/s  {(broker.cpu_s() - cpu_s) / size * 1e9:5.2f} CPU s/GB"
        f"   {size / 1e9:.1f} GB, peak memory {broker.peak_mib():.0f} MiB"
    )
    return end


def measure_read(broker: Broker, name: str, end: int) -> None:
    """Read everything once."""
    begun, cpu_s = time.perf_counter(), broker.cpu_s()
    size = read_all(broker.address, "big", end)
    seconds = time.perf_counter() - begun
    print(f"  {name:8} {size / MB / seconds:7.0f} MB/s  {(broker.cpu_s() - cpu_s) / size * 1e9:5.2f} CPU s/GB")


def measure_hot(broker: Broker, name: str) -> None:
    """Produce single records and read each at once; print how long it took from one to the other."""
    batch = batch_of(bytes(100))
    times_ms = []
    with Client(broker.address) as producer, Client(broker.address) as consumer:
        create(producer, "hot")
        _, offset = produce(producer, "hot", batch)
        read_once(consumer, "hot", offset)
        for _ in range(LATENCIES):
            begun = time.perf_counter()
            _, offset = produce(producer, "hot", batch)
            read_once(consumer, "hot", offset)
            times_ms.append((time.perf_counter() - begun) * 1e3)
    times_ms.sort()
    middle, late = times_ms[LATENCIES // 2], times_ms[LATENCIES * 99 // 100]
    print(f"  hot      p50 {middle:6.2f} ms   p99 {late:6.2f} ms   {name}")


def measure(title: str, store: str, variables: Mapping[str, str], folder: Path, gigabytes: float) -> None:
    """Measure everything with one store."""
    print(title, flush=True)
    data = folder / "data"
    with running(data, store, variables) as broker:
        end = measure_upload(broker, data, gigabytes)
        measure_read(broker, "cold", end)
        measure_read(broker, "again", end)
        measure_hot(broker, "alone")
        stop = threading.Event()

        def read_cold() -> None:
            while not stop.is_set():
                read_all(broker.address, "big", end)

        reader = threading.Thread(target=read_cold)
        reader.start()
        measure_hot(broker, "beside a reader of cold records")
        stop.set()
        reader.join()
        print(f"  peak memory {broker.peak_mib():.0f} MiB", flush=True)


def main() -> None:
    """Measure with a folder, and with an S3 server if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="how large the topic is (default 2)")
    parser.add_argument("--store", choices=["folder", "s3"], help="only this one (default both)")
    arguments = parser.parse_args()
    gigabytes = arguments.gigabytes
    if arguments.store != "s3":
        with tempfile.TemporaryDirectory() as name:
            store = Path(name) / "store"
            measure("folder", store.as_uri(), {}, Path(name) / "folder", gigabytes)
    if arguments.store == "folder":
        return
    try:
        build()
    except ServerMissingError as error:
        print(f"no S3 server: {error}")
        return
    with tempfile.TemporaryDirectory() as name:
        buckets = Path(name) / "buckets"
        (buckets / "bench").mkdir(parents=True)
        with serving(buckets) as port:
            measure("S3 server", "s3://bench/tiers", environment(port), Path(name) / "s3", gigabytes)


if __name__ == "__main__":
    main()
