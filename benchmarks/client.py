"""What our client reaches, beside librdkafka where it is installed: `python benchmarks/client.py [--rounds N]`.

A broker of ours runs as a process of its own, the clients in this one; they share the machine's cores. Prints records a
second, the best of several alternating rounds, for 100-byte records without a key, and the time of a single send.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from odradek.client import BlockingProducer, Consumer, Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RECORDS = 200_000
VALUE = b"x" * 100


@contextmanager
def broker_process() -> Iterator[str]:
    """Run a broker and yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(sys.executable).with_name("odradek"))
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()
            process.wait()


def produce(bootstrap: str) -> float:
    """Return records a second through `enqueue`."""

    async def run() -> float:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await producer.partitions_for("bench")
            start = time.perf_counter()
            for _ in range(RECORDS):
                await producer.enqueue("bench", VALUE)
            await producer.flush()
            return RECORDS / (time.perf_counter() - start)

    return trio.run(run)


def produce_blocking(bootstrap: str) -> float:
    """Return records a second through the facade's `enqueue`."""
    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:
        producer.partitions_for("bench")
        start = time.perf_counter()
        for _ in range(RECORDS):
            producer.enqueue("bench", VALUE)
        producer.flush()
        return RECORDS / (time.perf_counter() - start)


def consume(bootstrap: str) -> float:
    """Return records a second through `poll`."""

    async def run() -> float:
        settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "max.poll.records": 5_000}
        async with Consumer(settings) as consumer:
            consumer.assign([("bench", 0)])
            start = time.perf_counter()
            count = 0
            while count < RECORDS:
                count += len(await consumer.poll())
            return count / (time.perf_counter() - start)

    return trio.run(run)


def send_one_by_one(bootstrap: str) -> float:
    """Return acknowledged sends a second, one after the other, without lingering."""

    async def run() -> float:
        async with Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}) as producer:
            await producer.send("single", VALUE)
            start = time.perf_counter()
            for _ in range(1_000):
                await producer.send("single", VALUE)
            return 1_000 / (time.perf_counter() - start)

    return trio.run(run)


def produce_by_librdkafka(bootstrap: str) -> float:
    """Return the same of librdkafka through its Python binding."""
    from confluent_kafka import Producer as Peer

    producer = Peer({"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": RECORDS + 1})
    start = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce("bench", VALUE)
    producer.flush()
    return RECORDS / (time.perf_counter() - start)


def main() -> None:
    """Run the rounds and print the best of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    rows: dict[str, Callable[[str], float]] = {
        "produce": produce,
        "produce, blocking facade": produce_blocking,
        "consume": consume,
        "send, one by one": send_one_by_one,
    }
    try:
        import confluent_kafka  # noqa: F401 - only whether it is there
    except ImportError:
        print("confluent-kafka is not installed: no peer in this run", file=sys.stderr)
    else:
        rows["produce, librdkafka from Python"] = produce_by_librdkafka
    best = dict.fromkeys(rows, 0.0)
    with broker_process() as bootstrap:
        for _ in range(rounds):
            for name, measure in rows.items():
                best[name] = max(best[name], measure(bootstrap))
    for name, rate in best.items():
        print(f"{name:<36}{rate:>12,.0f}/s")


if __name__ == "__main__":
    main()
