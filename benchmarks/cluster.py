"""What three brokers cost, and how soon another one leads: `python -m benchmarks.cluster [--beside] [--only CASE ...]`.

| case | what |
|---|---|
| `start` | start of the command to the last of three `ready` lines; memory (PSS) and processor time when nobody asks |
| `kill` | `kill -9` of a broker, not the controller's, that leads 1, 10, 100, 1,000 partitions: to the next record |
| | that is acknowledged in the first of them, which gets one each millisecond, and to one in each |
| `drain` | SIGTERM to a broker that leads 100: the slowest of records sent one after the other until it has ended |
| `controller` | both, of the broker beside the controller: another node becomes the controller first |
| `idle` | nobody asks for anything of 1,000 partitions with three replicas, spread over all, whose leaders the |
| | controller chooses, or their replicas: the processor time of each broker |
| `scaling` | small produces at one replica, to one broker and spread over two: the brokers' processor time for each |

Clients have their default settings. Each kill and each drain has a cluster of its own. With `--beside` Apache Kafka's
three brokers take their turns in all of it but `idle` and `scaling`, where the peers are. `scaling` counts processor
time, since on two cores the client would be in the brokers' way: two brokers on cores of their own take
2 * (time of one) / (time of two) as many.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from confluent_kafka import Producer

from benchmarks.broker import batch_of
from benchmarks.processes import cpu_seconds, pss_mib
from benchmarks.rivals import PEERS, Rival, Wire, flood, frame_of
from odradek.client import BlockingProducer
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

BROKERS: Final = 3
TOPIC: Final = "orders"
COUNTS: Final = (1, 10, 100, 1_000)
DRAINED_COUNT: Final = 100
IDLE_SECONDS: Final = 10.0
IDLE_PARTITIONS: Final = 1_000
IDLE_LOOK_SECONDS: Final = 60.0
ELECTIONS: Final = ("isr", "quorum")
FLOOD_SECONDS: Final = 5.0
CONNECTIONS: Final = 8
PATIENCE_S: Final = 120.0
WARM_RECORDS: Final = 50
STREAM_SECONDS: Final = 0.5
STREAM_PAUSE_SECONDS: Final = 0.001


class Fleet(NamedTuple):
    """Three brokers that run.

    Attributes:
        name: Whose.
        bootstraps: Their addresses, by id.
        pids: Their processes, by id.
        all_pids: All processes, also one that only watches the others.
        ready_s: From the start of the command until all were ready.
        data_dir: Below it each has its logs, in a directory with its id for a name.
        keeper: The process that starts again who died; 0 where nobody does.
    """

    name: str
    bootstraps: Mapping[int, str]
    pids: Mapping[int, int]
    all_pids: Sequence[int]
    ready_s: float
    data_dir: Path
    keeper: int

    @property
    def bootstrap(self) -> str:
        """All addresses, as clients take them."""
        return ",".join(self.bootstraps.values())

    def cpu_seconds(self) -> float:
        """Return what all of them have used of the processors."""
        return sum(cpu_seconds(pid) for pid in self.all_pids)

    def victim(self, *, is_controller: bool = False) -> int:
        """Return the id of the broker beside the controller, or of another one."""
        asked = DescribeQuorumRequest(
            topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
        )
        answer = Wire(self.bootstraps[1]).ask(asked, 0)
        controller = answer.topics[0].partitions[0].leader_id
        return controller if is_controller else min(each for each in self.bootstraps if each != controller)

    def create(self, name: str, leaders: Sequence[int], replicas: int, **configs: str) -> None:
        """Create a topic whose partitions these brokers lead, or would at first, and wait until every broker knows it.

        Args:
            name: The topic's.
            leaders: One for each partition.
            replicas: How many each has.
            configs: Its own, with `_` for `.`.
        """
        ids = sorted(self.bootstraps)
        assignments = [
            CreatableReplicaAssignment(
                partition_index=number, broker_ids=[leader, *(each for each in ids if each != leader)][:replicas]
            )
            for number, leader in enumerate(leaders)
        ]
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        wires = {each: Wire(address) for each, address in self.bootstraps.items()}
        answer = wires[1].ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
        if code := answer.topics[0].error_code:
            raise RuntimeError(f"{self.name} did not create {name}: error {code}")
        for wire in wires.values():
            while not self._is_led(wire, name, len(leaders)):
                time.sleep(0.05)

    def _is_led(self, wire: Wire, name: str, count: int) -> bool:
        topics = wire.ask(MetadataRequest(topics=None), 9).topics
        partitions = [part for topic in topics for part in topic.partitions if topic.name == name]
        return len(partitions) == count and all(part.leader_id >= 0 and not part.error_code for part in partitions)


@contextlib.contextmanager
def ours() -> Iterator[Fleet]:
    """Run three brokers of ours by one command."""
    with tempfile.TemporaryDirectory() as folder:
        port = _free_ports(BROKERS + 1)
        command = [sys.executable, "-m", "odradek", "serve", "--brokers", str(BROKERS)]
        command += ["--listen", f"127.0.0.1:{port}", "--data-dir", folder]
        begin = time.perf_counter()
        process = subprocess.Popen(  # a session of its own, as the peers': Linux may share processors out by session
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        try:
            assert process.stdout is not None
            for _ in range(BROKERS):
                process.stdout.readline()
            ready_s = time.perf_counter() - begin
            children = sorted(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
            bootstraps = {number: f"127.0.0.1:{port + number - 1}" for number in range(1, BROKERS + 1)}
            pids = dict(enumerate(children, start=1))  # they are forked in the order of their ids
            everybody = [process.pid, *children]
            yield Fleet("odradek", bootstraps, pids, everybody, ready_s, Path(folder), process.pid)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _free_ports(count: int) -> int:
    """Return the first of so many ports in a row that nobody has now."""
    for port in range(20_000 + os.getpid() % 10_000, 60_000, count):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for number in range(count):
                held.enter_context(socket.create_server(("127.0.0.1", port + number)))
            return port
    raise RuntimeError("no ports are free")


@contextlib.contextmanager
def kafka() -> Iterator[Fleet]:
    """Run Apache Kafka's three brokers."""
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    from peers import start  # type: ignore[import-not-found] # a script outside of the project

    begin = time.perf_counter()
    with start("kafka", brokers=BROKERS) as peer:
        ready_s = time.perf_counter() - begin
        addresses = dict(enumerate(peer.bootstrap.split(","), start=1))
        with _standing_still(_parent_of(peer.pids[0])):
            pids = dict(enumerate(peer.pids, start=1))
            yield Fleet("kafka", addresses, pids, peer.pids, ready_s, Path(peer.data_dir), 0)


@contextlib.contextmanager
def _standing_still(pid: int) -> Iterator[None]:
    """Have a process stand still: it ends all brokers as soon as it sees that one has ended."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Sending(NamedTuple):
    """A client that sends records to partitions of `TOPIC`, and calls back when one is acknowledged.

    Attributes:
        send: Begins to send a record to a partition.
        wait: Lets at most so many seconds pass, in which it calls back.
    """

    send: Callable[[int, Callable[[], None]], None]
    wait: Callable[[float], object]

    def one(self) -> float:
        """Return how long a record to the first partition takes, in seconds."""
        return self.each(1)

    def each(self, count: int) -> float:
        """Return how long one record to each partition takes, in seconds."""
        begin, told = time.perf_counter(), list[float]()
        for partition in range(count):
            self.send(partition, lambda: told.append(time.perf_counter()))
        self._until(lambda: len(told) == count, begin)
        return told[-1] - begin

    def stream(self, begun: Callable[[], None]) -> float:
        """Send to the first partition all the while; return how long the first record after `begun` takes."""
        told = list[float]()
        end = time.perf_counter() + STREAM_SECONDS
        while time.perf_counter() < end:
            self.send(0, lambda: None)
            self.wait(STREAM_PAUSE_SECONDS)
        begin = time.perf_counter()
        begun()
        while not told:
            self.send(0, lambda: told.append(time.perf_counter()))
            self.wait(STREAM_PAUSE_SECONDS)
            self._check(begin)
        return told[0] - begin

    def _until(self, is_done: Callable[[], bool], begin: float) -> None:
        while not is_done():
            self.wait(0.001)
            self._check(begin)

    @staticmethod
    def _check(begin: float) -> None:
        if time.perf_counter() - begin > PATIENCE_S:
            raise TimeoutError("a record was not acknowledged")


@contextlib.contextmanager
def librdkafka(bootstrap: str) -> Iterator[Sending]:
    """Send by librdkafka with its default settings."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def send(partition: int, told: Callable[[], None]) -> None:
        def on_delivery(error: object, _message: object) -> None:
            if error is None:  # else nobody is told, and patience ends
                told()

        producer.produce(TOPIC, b"record", partition=partition, on_delivery=on_delivery)

    yield Sending(send, producer.poll)
    producer.flush()


@contextlib.contextmanager
def our_client(bootstrap: str) -> Iterator[Sending]:
    """Send by our client with its default settings."""
    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:

        def send(partition: int, told: Callable[[], None]) -> None:
            def on_delivery(_metadata: object, error: Exception | None) -> None:
                if error is None:  # else nobody is told, and patience ends
                    told()

            producer.enqueue(TOPIC, b"record", partition=partition, on_delivery=on_delivery)

        yield Sending(send, time.sleep)


CLIENTS: Final = {"librdkafka": librdkafka, "ours": our_client}


def measure_start(fleet: Fleet) -> None:
    """Print how soon three brokers are ready, and what they need when nobody asks."""
    time.sleep(2)  # what a broker does right after its start is over
    before = fleet.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    idle = (fleet.cpu_seconds() - before) / IDLE_SECONDS * 100
    memory = sum(pss_mib(pid) for pid in fleet.all_pids)
    show("start", fleet, f"ready {fleet.ready_s:.2f} s   idle {memory:.0f} MiB, {idle:.1f} % of a core")


def measure_idle(fleet: Fleet, election: str) -> None:
    """Print what many partitions cost in which nothing happens."""
    leaders = [number % BROKERS + 1 for number in range(IDLE_PARTITIONS)]
    fleet.create(TOPIC, leaders, BROKERS, odradek_election=election)
    time.sleep(IDLE_SECONDS)  # what follows from the creation is over
    before = {number: cpu_seconds(pid) for number, pid in fleet.pids.items()}
    time.sleep(IDLE_LOOK_SECONDS)
    used = [(cpu_seconds(pid) - before[number]) / IDLE_LOOK_SECONDS * 100 for number, pid in fleet.pids.items()]
    each = ", ".join(f"{share:.1f}" for share in used)
    show("idle", fleet, f"{IDLE_PARTITIONS:5} {election:<6}  {each} % of a core, {sum(used):.1f} % in all")


def measure_kill(fleet: Fleet, client: str, count: int, *, is_controller: bool = False) -> None:
    """Print how long the next record takes when the broker that leads its partition is killed."""
    victim = fleet.victim(is_controller=is_controller)
    fleet.create(TOPIC, [victim] * count, BROKERS)
    with CLIENTS[client](fleet.bootstrap) as sending:
        sending.each(count)
        begin = time.perf_counter()
        first_s = sending.stream(lambda: os.kill(fleet.pids[victim], signal.SIGKILL))
        sending.each(count)
        all_s = time.perf_counter() - begin - STREAM_SECONDS
    case = "controller" if is_controller else "kill"
    show(case, fleet, f"{count:5} led, {client:<10} next {first_s:7.3f} s, one of each {all_s:7.3f} s")


def measure_drain(fleet: Fleet, client: str, *, is_controller: bool = False) -> None:
    """Print the slowest record while a broker ends in order."""
    victim = fleet.victim(is_controller=is_controller)
    fleet.create(TOPIC, [victim] * DRAINED_COUNT, BROKERS)
    with CLIENTS[client](fleet.bootstrap) as sending:
        for _ in range(WARM_RECORDS):
            sending.one()
        usual_s = statistics.median(sending.one() for _ in range(WARM_RECORDS))
        begin = time.perf_counter()
        os.kill(fleet.pids[victim], signal.SIGTERM)
        times = list[float]()
        while time.perf_counter() - begin < PATIENCE_S and (is_alive(fleet.pids[victim]) or len(times) < WARM_RECORDS):
            times.append(sending.one())
        ended_s = time.perf_counter() - begin
    text = f"slowest {max(times):7.3f} s of {len(times)}, usual {usual_s * 1e3:.2f} ms, ended after {ended_s:.2f} s"
    case = "controller" if is_controller else "drain"
    show(case, fleet, f"{DRAINED_COUNT:5} led, {client:<10} {text}")


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def measure_scaling(fleet: Fleet, rounds: int) -> None:
    """Print what a small produce costs one broker, and two that share them."""
    fleet.create(TOPIC, [2, 3], 1)
    places = {number: Rival(fleet.name, fleet.bootstraps[number], [fleet.pids[number]]) for number in (2, 3)}
    ratios, rates = [], []
    for number in range(rounds + 1):
        single = flood(places[2], [_produce(0)] * CONNECTIONS, 4, FLOOD_SECONDS)
        halves = [
            flood(places[2 + index], [_produce(index)] * (CONNECTIONS // 2), 4, FLOOD_SECONDS) for index in (0, 1)
        ]
        if number:  # the first round warms them
            cost = sum(half.cpu_thousand for half in halves) / 2
            ratios.append(2 * single.cpu_thousand / cost)
            rates.append(single.rate)
    show(
        "scaling",
        fleet,
        f"two brokers take {statistics.median(ratios):.2f} times what one does ({statistics.median(rates):.0f}/s here)",
    )


def _produce(partition: int) -> bytes:
    records = batch_of(100)
    part = PartitionProduceData(index=partition, records=records)
    return frame_of(
        ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[part])]), 9
    )


def show(case: str, fleet: Fleet, text: str) -> None:
    """Print a row."""
    print(f"{case:<8} {fleet.name:<8} {text}", flush=True)


CASES: Final = ("start", "kill", "drain", "controller", "idle", "scaling")


Start: TypeAlias = "Callable[[], contextlib.AbstractContextManager[Fleet]]"


def measure_failovers(starts: Sequence[Start], client: str, only: Collection[str], counts: Sequence[int]) -> None:
    """Print what becomes of a client's records when a broker goes: one beside the controller, or another."""
    cases = (("kill", "drain", False), ("controller", "controller", True))
    for kill, drain, is_controller in cases:
        for count in counts if kill in only else ():
            for start in starts:
                with start() as fleet:
                    measure_kill(fleet, client, count, is_controller=is_controller)
        for start in starts if drain in only else ():
            with start() as fleet:
                measure_drain(fleet, client, is_controller=is_controller)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Three brokers: start, failover, drain, and what two do.")
    parser.add_argument("--beside", action="store_true", help="Apache Kafka's three, too, where the peers are")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, metavar="N", help="partitions led by who goes")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    starts = (ours, kafka) if options.beside and PEERS.is_dir() else (ours,)
    for _ in range(options.rounds):
        for start in starts if "start" in options.only else ():
            with start() as fleet:
                measure_start(fleet)
        for client in CLIENTS:
            measure_failovers(starts, client, options.only, options.counts)
    for election in ELECTIONS if "idle" in options.only else ():
        with ours() as fleet:
            measure_idle(fleet, election)
    if "scaling" in options.only:
        with ours() as fleet:
            measure_scaling(fleet, options.rounds)


if __name__ == "__main__":
    main()
