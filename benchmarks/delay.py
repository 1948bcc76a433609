"""Delayed records: what taking, keeping and delivering them costs, by how many wait.

    python -m benchmarks.delay [--waiting 10000,100000,1000000] [--due 5000] [--seconds 10] [--queue wheel]

A broker of its own for each row, its data in a temporary folder; the client here shares the machine's cores. Records
have values of 100 bytes and come in batches of 100, all delayed.

| column | what |
|---|---|
| `taken/s`, `us` | records that are to wait for a day, several requests at once; the broker's processor time for one |
| `bytes` | of the broker's memory for each that waits |
| `send` | the median of single records without a delay on the same partition, microseconds, one after the other |
| `late p50`, ... | ms from when a record is due until a consumer has it, at `--due` a second, for `--seconds` |
| `delivered us` | the broker's processor time for one of these, until it is at the consumer |
| `start`, `after a kill` | seconds from a process's start until what became due meanwhile is at a consumer |
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import trio

from benchmarks.processes import cpu_seconds, pss_mib
from odradek.client import Admin, Consumer, NewTopic, Producer
from odradek.kernel.delay.headers import DELIVER_AT
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData

PLACE = TopicPartition("later", 0)
VALUE = b"x" * 100
DAY_MS = 86_400_000
BATCH = 100
REQUESTS_AT_ONCE = 8
SENDS = 300
LAST_VERSION_WITH_NAMES = 12
LEAD_MS = 3_000
LEVELS = "250ms,500ms,1s,2s,5s,10s,20s,30s,1m,1h,12h,24h"
"""Of topics with the queue `levels`: late is then what comes after its delay, rounded up to one of these."""
COLUMNS = "taken/s|us|bytes|send|late p50|p99|p99.9|most|delivered us|start|after a kill"


class Broker:
    """A broker's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(self._folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.settings = {"bootstrap.servers": self.process.stdout.readline().split()[1]}

    def end(self, *, is_clean: bool) -> None:
        """Have it end, or kill it."""
        (self.process.terminate if is_clean else self.process.kill)()
        self.process.wait()

    @property
    def cpu_s(self) -> float:
        """What it has used of the processors."""
        return cpu_seconds(self.process.pid)


def now_ms() -> int:
    """Return the wall clock, which delays are by."""
    return time.time_ns() // 1_000_000


def batches(dues_ms: Sequence[int]) -> Iterator[bytes]:
    """Yield batches of records that are due at these times."""
    for start in range(0, len(dues_ms), BATCH):
        builder = BatchBuilder()
        for due_ms in dues_ms[start : start + BATCH]:
            builder.append(None, VALUE, timestamp=now_ms(), headers=[(DELIVER_AT, b"%d" % due_ms)])
        yield bytes(builder.build())


async def produce(broker: Broker, dues_ms: Sequence[int]) -> float:
    """Produce records that are due at these times, and return for how many seconds the broker was asked."""
    left = list(batches(dues_ms))
    left.reverse()
    async with Admin(broker.settings) as admin:
        await admin.know((PLACE,))

        async def ask() -> None:
            while left:
                data = PartitionProduceData(index=PLACE.partition, records=left.pop())
                topic = TopicProduceData(name=PLACE.topic, partition_data=[data])
                request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
                await admin.call(request, check, node_of=admin.leader(PLACE), version_max=LAST_VERSION_WITH_NAMES)

        def check(answer: object) -> None:
            code = answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
            assert not code, code

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(REQUESTS_AT_ONCE):
                nursery.start_soon(ask)
        return time.perf_counter() - began


async def median_send_us(broker: Broker) -> float:
    """Return how long a record without a delay takes."""
    took = []
    async with Producer({**broker.settings, "linger.ms": 0}) as producer:
        for _ in range(SENDS):
            began = time.perf_counter()
            await producer.send(PLACE.topic, VALUE, partition=PLACE.partition)
            took.append((time.perf_counter() - began) * 1e6)
    return statistics.median(took)


async def late_ms(broker: Broker, position: int, count: int) -> list[int]:
    """Return, in order, how late each of so many delayed records was that a consumer from a position on gets."""
    late: list[int] = []
    async with Consumer({**broker.settings, "max.poll.records": 10_000}) as consumer:
        consumer.assign([PLACE])
        consumer.seek(PLACE, position)
        while len(late) < count:
            records = await consumer.poll(timeout_ms=1_000)
            late += [now_ms() - each.timestamp for each in records if each.headers]
    return sorted(late)


async def end_offset(broker: Broker) -> int:
    """Return where the log ends."""
    async with Consumer(broker.settings) as consumer:
        return (await consumer.end_offsets([PLACE]))[PLACE]


async def fill(broker: Broker, waiting_count: int, queue: str) -> list[str]:
    """Have records wait, and return what that costs."""
    configs = {"odradek.delay.enable": "true", "odradek.delay.queue": queue}
    if queue == "levels":
        configs["odradek.delay.levels"] = LEVELS
    async with Admin(broker.settings) as admin:
        await admin.create_topic(NewTopic(PLACE.topic, 1, configs=configs))
    await produce(broker, [now_ms() + DAY_MS] * BATCH)
    before_mib, before_s = pss_mib(broker.process.pid), broker.cpu_s
    begin_ms = now_ms() + DAY_MS
    took_s = await produce(broker, [begin_ms + number * 7919 % DAY_MS for number in range(waiting_count)])
    used_us = (broker.cpu_s - before_s) / waiting_count * 1e6
    held_bytes = (pss_mib(broker.process.pid) - before_mib) * 2**20 / waiting_count
    send_us = await median_send_us(broker)
    return [f"{waiting_count / took_s:,.0f}", f"{used_us:.1f}", f"{held_bytes:.1f}", f"{send_us:.0f}"]


async def deliver(broker: Broker, due_count: int, seconds: int) -> list[str]:
    """Have records become due, and return how late they are, and what that costs."""
    position = await end_offset(broker)
    count = due_count * seconds
    begin_ms = now_ms() + LEAD_MS + count // 20
    await produce(broker, [begin_ms + number * 1_000 // due_count for number in range(count)])
    assert now_ms() < begin_ms, "they are to wait, all of them: a slower rate, please"
    before_s = broker.cpu_s
    late = await late_ms(broker, position, count)
    used_us = (broker.cpu_s - before_s) / count * 1e6
    places = (0.5, 0.99, 0.999)
    return [*(str(late[int(count * place)]) for place in places), str(late[-1]), f"{used_us:.1f}"]


async def come_back(broker: Broker, *, is_clean: bool) -> str:
    """End a broker, and return after how many seconds the next one has delivered what became due meanwhile."""
    position = await end_offset(broker)
    await produce(broker, [now_ms() + LEAD_MS // 2])
    broker.end(is_clean=is_clean)
    await trio.sleep(LEAD_MS / 1_000)
    began = time.perf_counter()
    broker.start()
    await late_ms(broker, position, 1)
    return f"{time.perf_counter() - began:.2f}"


async def row(broker: Broker, waiting_count: int, due_count: int, seconds: int, queue: str) -> list[str]:
    """Measure one broker."""
    cells = [*await fill(broker, waiting_count, queue), *await deliver(broker, due_count, seconds)]
    return [*cells, await come_back(broker, is_clean=True), await come_back(broker, is_clean=False)]


def main() -> None:
    """Measure row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", default="10000,100000,1000000", help="how many wait, by row")
    parser.add_argument("--due", type=int, default=5_000, help="how many are due a second")
    parser.add_argument("--seconds", type=int, default=10, help="for how long")
    parser.add_argument("--queue", default="wheel", help="the topic's odradek.delay.queue")
    arguments = parser.parse_args()
    print(f"{'waiting':>10}", *(f"{name:>12}" for name in COLUMNS.split("|")))
    for waiting_count in map(int, arguments.waiting.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            broker = Broker(Path(folder))
            try:
                cells = trio.run(row, broker, waiting_count, arguments.due, arguments.seconds, arguments.queue)
            finally:
                broker.end(is_clean=False)
        print(f"{waiting_count:>10,}", *(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
