"""How replication grows, beside Apache Kafka's three: `python -m benchmarks.growth [--only CASE ...]`.

| case | what |
|---|---|
| `partitions` | topics of 1, 100, 1,000 partitions with three replicas, spread over all brokers: a stream of 1 KiB |
| | records, each to the next partition, and one record at a time |
| `replicas` | the same of one partition on one and on two of the three brokers |
| `behind` | a follower ends in order, is 1 GiB behind, and is started again, while a producer sends a quarter of |
| | what it could: when it is in sync again, how fast it catches up, what the producer notices meanwhile |

Three brokers each, in turns, after a round that warms them; in `behind` each turn has a cluster of its own. The client
is librdkafka, with acks=all and `min.insync.replicas` 2 (1 of one replica). Processor time is that of all brokers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Producer

from benchmarks.cluster import BROKERS, Fleet, is_alive, kafka, ours
from benchmarks.rivals import PEERS, Wire, alternate, row
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COUNTS: Final = (1, 100, 1_000)
RECORD: Final = bytes(1024)
LINGER_MS: Final = 5
STREAM_MB: Final = 300
SYNC_SECONDS: Final = 3.0
BEHIND_MB: Final = 1024
BEHIND_PARTITIONS: Final = 10
STEADY_SECONDS: Final = 10.0
STEADY_SHARE: Final = 0.25
WARM_SECONDS: Final = 2.0
TICK_SECONDS: Final = 0.005
LOOK_SECONDS: Final = 0.05
PATIENCE_S: Final = 120.0
CASES: Final = ("partitions", "replicas", "behind")


def producer_of(fleet: Fleet, **settings: object) -> Producer:
    """Return a producer that tells of no record but of those that are to be told of."""
    return Producer(
        {
            "bootstrap.servers": fleet.bootstrap,
            "acks": "all",
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 200_000,
            "message.timeout.ms": int(PATIENCE_S * 1000),
            "log_level": 0,
            **settings,
        }
    )


class Stream(NamedTuple):
    """What a stream of records came to: MB a second, the brokers' processor seconds for a GB."""

    mb_second: float
    cpu_gb: float


def stream(fleet: Fleet, topic: str, partitions: int, megabytes: int) -> Stream:
    """Produce as fast as it goes, each record to the next partition, until all are acknowledged."""
    failures: list[object] = []
    producer = producer_of(fleet, **{"delivery.report.only.error": True})

    def failed(error: object, _message: object) -> None:
        failures.append(error)

    producer.list_topics(topic, timeout=PATIENCE_S)
    count = megabytes * 1_000_000 // len(RECORD)
    before, begin = fleet.cpu_seconds(), time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, RECORD, partition=number % partitions, on_delivery=failed)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(PATIENCE_S)
    elapsed, used = time.perf_counter() - begin, fleet.cpu_seconds() - before
    if left or failures:
        raise RuntimeError(f"{fleet.name}: {left} records of {topic} were not acknowledged; {failures[:1]}")
    return Stream(megabytes / elapsed, used / megabytes * 1000)


def sync_times(fleet: Fleet, topic: str, partitions: int, seconds: float) -> list[float]:
    """Send one record after the other, each when the one before is acknowledged; return how long each took, in ms."""
    producer = producer_of(fleet, **{"linger.ms": 0})
    producer.list_topics(topic, timeout=PATIENCE_S)
    told: list[object] = []
    for partition in range(partitions):  # so that leaders and connections are known
        producer.produce(topic, RECORD, partition=partition)
    producer.flush(PATIENCE_S)
    times = list[float]()
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        partition = len(times) % partitions
        producer.produce(topic, RECORD, partition=partition, on_delivery=lambda error, _: told.append(error))
        while len(told) == len(times):
            producer.poll(1)
        times.append((time.perf_counter() - begin) * 1e3)
    if any(told):
        raise RuntimeError(f"{fleet.name}: a record of {topic} was refused: {next(filter(None, told))}")
    return times


def share(values: Sequence[float], part: float) -> float:
    """Return the value below which a part of all lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def measure_topic(fleet: Fleet, partitions: int, replicas: int, megabytes: int, seconds: float) -> tuple[float, ...]:
    """Return what a topic takes: MB/s, CPU s/GB, p50 and p99 of one record at a time."""
    name = f"growth-{partitions}-{replicas}"
    leaders = [number % BROKERS + 1 for number in range(partitions)] if partitions > 1 else [fleet.victim()]
    fleet.create(name, leaders, replicas, min_insync_replicas=str(min(replicas, 2)), file_delete_delay_ms="1000")
    streamed = stream(fleet, name, partitions, megabytes)
    times = sync_times(fleet, name, partitions, seconds)
    Wire(fleet.bootstraps[1]).ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5)
    return *streamed, share(times, 0.5), share(times, 0.99)


COLUMNS: Final = ("{:6.1f} MB/s", "{:6.2f} CPU s/GB", "sync p50 {:6.2f}", "p99 {:6.2f} ms")


def measure_topics(shapes: Sequence[tuple[int, int]], options: argparse.Namespace) -> None:
    """Print what topics of so many partitions and replicas take."""
    with contextlib.ExitStack() as stack:
        fleets = [stack.enter_context(start()) for start in options.starts]
        for partitions, replicas in shapes:

            def measure(
                fleet: Fleet, _round: int, *, partitions: int = partitions, replicas: int = replicas
            ) -> tuple[float, ...]:
                return measure_topic(fleet, partitions, replicas, options.megabytes, options.sync_seconds)

            samples = alternate(fleets, options.rounds, measure)
            row(f"{partitions:5} partitions, RF {replicas}", samples, COLUMNS)


# ------------------------------------------------------------------------------------------------- a follower behind


class Phase(NamedTuple):
    """What a producer noticed of some time: MB a second that were acknowledged, p50 and p99 in ms."""

    mb_second: float
    p50_ms: float
    p99_ms: float


class Steady:
    """A producer that sends at one rate, each record to the next partition. One in each tick is timed."""

    def __init__(self, fleet: Fleet, topic: str, mb_second: float) -> None:
        """Make it; it sends while `until` runs."""
        self._topic = topic
        self._producer = producer_of(fleet)
        self._each_tick = max(1, round(mb_second * 1e6 / len(RECORD) * TICK_SECONDS))
        self._times: list[float] = []
        self._count = 0

    def until(self, is_over: Callable[[], bool]) -> Phase:
        """Send until something is over; return what of it was noticed."""
        self._times = []
        begin, acknowledged, ticks = time.perf_counter(), self._count - len(self._producer), 0
        while not is_over():
            self._tick()
            ticks += 1
            self._producer.poll(max(0.0, begin + ticks * TICK_SECONDS - time.perf_counter()))
            while time.perf_counter() < begin + ticks * TICK_SECONDS:
                self._producer.poll(TICK_SECONDS / 10)
        elapsed, acknowledged = time.perf_counter() - begin, self._count - len(self._producer) - acknowledged
        times = self._times or [float("inf")]
        return Phase(acknowledged * len(RECORD) / 1e6 / elapsed, share(times, 0.5), share(times, 0.99))

    def _tick(self) -> None:
        begin = time.perf_counter()

        def told(error: object, _message: object) -> None:
            if error is None:
                self._times.append((time.perf_counter() - begin) * 1e3)

        with contextlib.suppress(BufferError):  # what there is no room for is not sent: its rate tells
            self._producer.produce(self._topic, RECORD, partition=self._count % BEHIND_PARTITIONS, on_delivery=told)
            self._count += 1
            for _ in range(self._each_tick - 1):
                self._producer.produce(self._topic, RECORD, partition=self._count % BEHIND_PARTITIONS)
                self._count += 1

    def end(self) -> None:
        """Wait for what is under way."""
        self._producer.flush(PATIENCE_S)


class Lag:
    """Looks at one follower of a topic, on a thread of its own, until it is in sync again.

    Attributes:
        has_begun: Whether its logs grow.
        is_over: Whether it is in the in-sync set of every partition.
    """

    def __init__(self, fleet: Fleet, node_id: int, topic: str) -> None:
        """Make it, with a follower that has ended."""
        self.has_begun, self.is_over = threading.Event(), threading.Event()
        self._fleet, self._node_id, self._topic = fleet, node_id, topic
        self._size_before = self._size()
        self._begin = self._grown = self._end = 0.0
        self._wire = Wire(fleet.bootstraps[fleet.victim(is_controller=True)])

    def _size(self) -> int:
        folders = (self._fleet.data_dir / str(self._node_id)).glob(f"{self._topic}-*/*.log")
        return sum(path.stat().st_size for path in folders)

    def watch(self) -> None:
        """Look until it is over, from the moment on in which its process was started."""
        self._begin = time.perf_counter()
        while not self.is_in_sync():
            if not self.has_begun.is_set() and self._size() > self._size_before:
                self._grown = time.perf_counter()
                self.has_begun.set()
            if time.perf_counter() - self._begin > PATIENCE_S:
                break
            time.sleep(LOOK_SECONDS)
        self._end = time.perf_counter()
        self._grown = self._grown or self._end
        self.has_begun.set()
        self.is_over.set()

    def is_in_sync(self) -> bool:
        """Return whether it is in every in-sync set."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self._topic)])
        (topic,) = self._wire.ask(asked, 9).topics
        return all(self._node_id in part.isr_nodes for part in topic.partitions)

    def outcome(self) -> tuple[float, float, float]:
        """Return seconds from the start to its first records, to the end, and MB a second between the two."""
        grown_mb = (self._size() - self._size_before) / 1e6
        return self._grown - self._begin, self._end - self._begin, grown_mb / max(self._end - self._grown, 1e-3)


@contextlib.contextmanager
def ended(fleet: Fleet, node_id: int) -> Iterator[Callable[[], None]]:
    """Have a broker end in order; what is yielded starts it again."""
    pid = fleet.pids[node_id]
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    with contextlib.ExitStack() as stack:
        if fleet.keeper:
            os.kill(fleet.keeper, signal.SIGSTOP)
            stack.callback(os.kill, fleet.keeper, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
        begin = time.perf_counter()
        while is_alive(pid):
            if time.perf_counter() - begin > PATIENCE_S:
                raise TimeoutError("a broker did not end")
            time.sleep(LOOK_SECONDS)

        def begin_again() -> None:
            if fleet.keeper:
                os.kill(fleet.keeper, signal.SIGCONT)
                return
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait, PATIENCE_S)
            stack.callback(process.kill)

        yield begin_again


def measure_behind(fleet: Fleet, options: argparse.Namespace) -> list[tuple[float, ...]]:
    """Return what becomes of a follower that is behind, and of a producer before, during and after that."""
    leader, topic, seconds = fleet.victim(), "growth-behind", options.steady_seconds
    node_id = next(each for each in fleet.bootstraps if each not in (leader, fleet.victim(is_controller=True)))
    fleet.create(topic, [leader] * BEHIND_PARTITIONS, BROKERS, min_insync_replicas="2")
    stream(fleet, topic, BEHIND_PARTITIONS, options.megabytes)  # warms them
    could = stream(fleet, topic, BEHIND_PARTITIONS, options.megabytes).mb_second
    steady = Steady(fleet, topic, could * STEADY_SHARE)
    steady.until(_after(WARM_SECONDS))
    phases = [steady.until(_after(seconds))]
    with ended(fleet, node_id) as begin_again:
        stream(fleet, topic, BEHIND_PARTITIONS, options.behind_megabytes)
        steady.until(_after(WARM_SECONDS))
        lag = Lag(fleet, node_id, topic)
        begin_again()
        watcher = threading.Thread(target=lag.watch, daemon=True)
        watcher.start()
        steady.until(lag.has_begun.is_set)
        phases.append(steady.until(lag.is_over.is_set))
        watcher.join()
        phases.append(steady.until(_after(seconds)))
        steady.end()
        return [lag.outcome(), *phases]


def _after(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


def measure_followers(options: argparse.Namespace) -> None:
    """Print what becomes of followers that are behind."""
    rounds: dict[str, list[list[tuple[float, ...]]]] = {}
    for _ in range(options.rounds):
        for start in options.starts:
            with start() as fleet:
                rounds.setdefault(fleet.name, []).append(measure_behind(fleet, options))
    caught_up = ("{:6.2f} s to its first records", "{:6.2f} s until in sync", "{:6.1f} MB/s between")
    producer = ("{:6.1f} MB/s", "p50 {:7.2f}", "p99 {:7.2f} ms")
    cases = (f"{options.behind_megabytes} MB behind", "  producer before", "  producer meanwhile", "  producer after")
    for number, case in enumerate(cases):
        samples = {name: [each[number] for each in measured] for name, measured in rounds.items()}
        row(case, samples, producer if number else caught_up)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Replication by partitions, by replicas, and of a follower behind.")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, metavar="N", help="partitions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--megabytes", type=int, default=STREAM_MB, help="of a stream")
    parser.add_argument("--behind-megabytes", type=int, default=BEHIND_MB, help="that a follower is behind")
    parser.add_argument("--sync-seconds", type=float, default=SYNC_SECONDS)
    parser.add_argument("--steady-seconds", type=float, default=STEADY_SECONDS)
    options = parser.parse_args()
    options.starts = (ours,) if options.alone or not PEERS.is_dir() else (ours, kafka)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that brokers end with it
    if "partitions" in options.only:
        measure_topics([(count, BROKERS) for count in options.counts], options)
    if "replicas" in options.only:
        measure_topics([(1, replicas) for replicas in range(1, BROKERS)], options)
    if "behind" in options.only:
        measure_followers(options)


if __name__ == "__main__":
    main()
