"""What Spark's workers pay for a topic's bytes: `python -m benchmarks light_client [--rounds N]`.

The light client reads a topic of a broker of its own, on another process, in ranges of a whole partition: fetch alone
(the batches are walked, no record is looked at), and fetch with decoding into Arrow's columns as Spark gets them. CPU
seconds are this process's alone; medians of rounds in which every case has its turn.

| topic | records |
|---|---|
| `b100` | 100 B of value, 11 B of key |
| `k1` | 1 KiB of value, 11 B of key |
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Final, NamedTuple

import trio

from benchmarks.client import broker_process
from odradek.client import Producer
from odradek.kernel.records.columns import ALL_COLUMNS, Column, ColumnReader
from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.client import Client, ClientSettings
from odradek.spark_plugin.ranges import OffsetRange

BYTES: Final = 240_000_000
TOPICS: Final = {"b100": 100, "k1": 1_024}
ALL: Final = ALL_COLUMNS & ~Column.HEADERS


class Case(NamedTuple):
    """Something to be timed."""

    topic: str
    name: str
    options: dict[str, str]
    wanted: Column | None


CASES: Final = tuple(
    Case(topic, name, options, wanted)
    for topic in TOPICS
    for name, options, wanted in (
        ("fetch, 1 MiB", {"max.partition.fetch.bytes": "1048576"}, None),
        ("fetch, 4 MiB", {}, None),
        ("fetch, 16 MiB", {"max.partition.fetch.bytes": "16777216"}, None),
        ("fetch, 4 MiB, receive.buffer.bytes=65536", {"receive.buffer.bytes": "65536"}, None),
        ("fetch and decode: value", {}, Column.VALUE),
        ("fetch and decode: all columns", {}, ALL),
    )
)


def fill(bootstrap: str, topic: str, size: int) -> None:
    """Write as many records as make `BYTES`."""
    value = (b"odradek has a laugh without lungs " * 40)[:size]

    async def run() -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "batch.size": 131_072,
            "linger.ms": 20,
            "max.request.size": 4_000_000,
        }
        async with Producer(settings) as producer:
            for number in range(BYTES // size // 4):
                await producer.enqueue(topic, value, key=b"key-%07d" % number, partition=0)
            await producer.flush()

    trio.run(run)


def read(bootstrap: str, case: Case) -> tuple[int, int, float, float]:
    """Return bytes, records, CPU seconds and seconds of one reading."""
    settings = ClientSettings.of({"bootstrap.servers": bootstrap, **case.options})
    with Client(settings) as client:
        partition = TopicPartition(case.topic, 0)
        end = client.list_offsets({partition: -1}, is_read_committed=False)[partition].offset
        wanted = OffsetRange(case.topic, 0, 0, end)
        reader = None if case.wanted is None else ColumnReader(0, end, case.wanted, is_read_committed=False)
        size = 0
        began_cpu, began = time.process_time(), time.perf_counter()
        for fetched in client.fetch(wanted, is_read_committed=False):
            size += len(fetched.data)
            if reader is not None:
                for _ in reader.feed(fetched.data, fetched.aborted):
                    pass
        return size, end, time.process_time() - began_cpu, time.perf_counter() - began


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    found: list[list[tuple[int, int, float, float]]] = [[] for _ in CASES]
    with broker_process() as bootstrap:
        for topic, size in TOPICS.items():
            fill(bootstrap, topic, size)
        for _ in range(rounds):
            for case, runs in zip(CASES, found, strict=True):
                runs.append(read(bootstrap, case))
    print(f"{'topic':<6} {'case':<42} {'MB/CPU s':>9} {'Mrec/CPU s':>11} {'MB/s':>7}")
    for case, runs in zip(CASES, found, strict=True):
        cpu = statistics.median(size / seconds for size, _, seconds, _ in runs) / 1e6
        records = statistics.median(count / seconds for _, count, seconds, _ in runs) / 1e6
        wall = statistics.median(size / seconds for size, _, _, seconds in runs) / 1e6
        print(f"{case.topic:<6} {case.name:<42} {cpu:>9.0f} {records:>11.2f} {wall:>7.0f}")


if __name__ == "__main__":
    main()
