"""Three broker processes under a real client: leaders are killed and stopped; what was acknowledged is there once.

A round is a `kill -9` of one broker, which its parent starts again, and a SIGSTOP of another one for longer than its
session. The controller's broker is spared. The soak has many rounds; with it goes a disk that is really full:

    pytest -m sweep tests/cluster/test_real_faults.py
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker.small_disk import SmallDisk, small_disk_or_skip
from tests.waiting import until

from .test_processes import PATIENCE_S, Served
from .workers import Worker

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

TOPIC = "orders"
REPLICAS = [[2, 3, 1], [3, 1, 2], [1, 2, 3]]
"""By partition: each broker leads one."""
SESSION_MS = 2_000
MORE = 200
"""How many records more have to be acknowledged, of every partition, before the next accident."""
ROUNDS_OF_THE_SOAK = 30
Settings: TypeAlias = Mapping[str, str | int | float | bool]
NO_SETTINGS: Settings = MappingProxyType({})
Acknowledged: TypeAlias = dict[int, int | None]
"""Where each number is; None where only the answer to a later batch says that it is there (librdkafka's #2081)."""


class Faulty(Served):
    """Three brokers whose sessions are short, and which process is whose."""

    def __init__(self, data_dir: Path, *, within: Sequence[str] = ()) -> None:
        settings = f"broker.session.timeout.ms={SESSION_MS}", "broker.heartbeat.interval.ms=200"
        super().__init__(data_dir, *settings, within=within)
        self.pids = dict(enumerate(sorted(self.children()), start=1))

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def kill_and_await_another(self, node_id: int) -> None:
        os.kill(self.pids[node_id], signal.SIGKILL)
        others = {pid for each, pid in self.pids.items() if each != node_id} | {self.pids[node_id]}
        until(lambda: bool(set(self.children()) - others))
        (self.pids[node_id],) = set(self.children()) - others


class Load(Worker):
    """Sends numbers to all partitions until it is told to end, and knows what was acknowledged where."""

    patience_s = PATIENCE_S
    hung = "some records were never acknowledged"

    def __init__(self, bootstrap: str, security: Settings = NO_SETTINGS, *, first: int = 0) -> None:
        """Take where the brokers are, how they are spoken to, and the first number to send."""
        super().__init__()
        self._first = first
        times = {"socket.timeout.ms": 5_000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
        kind = {"enable.idempotence": True, "acks": "all", "linger.ms": 1}
        self._producer = Producer({"bootstrap.servers": bootstrap, **kind, **times, **security})
        self.acknowledged: list[Acknowledged] = [{} for _ in REPLICAS]
        self.failures: list[KafkaError] = []

    def work(self) -> None:
        """See `Worker.work`."""
        number = self._first
        while not self.is_ending.is_set():
            if len(self._producer) < 1_000:  # a partition without a leader does not take all the memory
                for partition in range(len(REPLICAS)):
                    self._producer.produce(TOPIC, b"%d" % number, partition=partition, on_delivery=self._told)
                number += 1
            self._producer.poll(0.002)
        assert self._producer.flush(PATIENCE_S) == 0

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        partition, value, offset = message.partition(), message.value(), message.offset()
        assert partition is not None
        assert isinstance(value, bytes)
        self.acknowledged[partition][int(value)] = offset

    def await_more(self) -> None:
        """Wait until every partition has taken more records than it had."""
        had = [len(each) for each in self.acknowledged]
        try:
            until(
                lambda: all(len(now) >= before + MORE for now, before in zip(self.acknowledged, had, strict=True)),
                self.check_works,
            )
        except AssertionError as error:
            told = self._producer.list_topics(TOPIC, PATIENCE_S).topics[TOPIC].partitions
            for number, (now, before) in enumerate(zip(self.acknowledged, had, strict=True)):
                led = f"led by {told[number].leader}, in sync are {told[number].isrs}"
                error.add_note(f"partition {number}: {len(now) - before} more of {MORE}; {led}")
            raise


def await_agreement(bootstrap: str, security: Settings = NO_SETTINGS) -> None:
    """Wait until all replicas are in sync, and every broker says so and names the same leaders.

    Who led, and was stopped or cut off, believes that it leads until it hears otherwise: what it tells readers is old.
    """

    def known_to(address: str) -> list[tuple[str, int, int, list[int]]]:
        client = AdminClient({"bootstrap.servers": address, **security})  # a new one: it knows nobody else to ask
        return sorted(
            (name, number, partition.leader, sorted(partition.isrs))
            for name, topic in client.list_topics(timeout=PATIENCE_S).topics.items()
            for number, partition in topic.partitions.items()
        )

    def is_agreed() -> bool:
        first, *others = map(known_to, bootstrap.split(","))
        return all(isr == [1, 2, 3] for *_, isr in first) and all(each == first for each in others)

    until(is_agreed)


def read_all(bootstrap: str, security: Settings = NO_SETTINGS) -> list[list[tuple[int, int]]]:
    """Return what each partition has: offsets and numbers, in their order."""
    own = {"group.id": "checker", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **own, **security})
    partitions = [TopicPartition(TOPIC, number, 0) for number in range(len(REPLICAS))]
    ends = [consumer.get_watermark_offsets(each, timeout=PATIENCE_S)[1] for each in partitions]
    consumer.assign(partitions)
    found: list[list[tuple[int, int]]] = [[] for _ in REPLICAS]
    read_to = [0] * len(REPLICAS)  # not all that is there is a record: voters begin a term with a control record
    while any(position < end for position, end in zip(read_to, ends, strict=True)):
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "a partition ends before its end"
        number, offset, error = message.partition() or 0, message.offset() or 0, message.error()
        if error is None:
            found[number].append((offset, int(message.value() or b"")))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            read_to[number] = offset
    consumer.close()
    return found


def check(found: list[list[tuple[int, int]]], acknowledged: Sequence[Acknowledged]) -> None:
    """Nothing lost, doubled or reordered, and each record where its acknowledgement said."""
    for records, told in zip(found, acknowledged, strict=True):
        numbers = [number for _, number in records]
        assert told.keys() - set(numbers) == set(), "lost"
        assert [number for number, count in Counter(numbers).items() if count > 1] == [], "doubled"
        assert numbers == sorted(numbers), "reordered"
        assert set(numbers) - told.keys() == set(), "never acknowledged"
        offsets = {number: offset for offset, number in records}
        last = max((number for number, said in told.items() if said is not None), default=-1)
        implied = [number for number, said in told.items() if said is None and number > last]
        assert implied == [], "no later batch was answered that implies it"
        elsewhere = {number: offsets[number] for number, said in told.items() if said not in {None, offsets[number]}}
        assert elsewhere == {}, f"not where its acknowledgement said: {elsewhere}"


TOLD: Sequence[Acknowledged] = [{0: 0, 1: None, 2: 2}]
"""What one partition's records were acknowledged with: offsets by number."""


def test_the_checker_takes_what_is_right() -> None:
    check([[(0, 0), (1, 1), (2, 2)]], TOLD)


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ([(0, 0), (1, 1)], "lost"),
        ([(0, 0), (1, 1), (2, 2), (3, 1)], "doubled"),
        ([(0, 0), (1, 2), (2, 1)], "reordered"),
        ([(0, 0), (1, 1), (2, 2), (3, 3)], "never acknowledged"),
        ([(0, 0), (1, 1), (3, 2)], "{2: 3}"),
    ],
)
def test_the_checker_finds(found: list[tuple[int, int]], what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        check([found], TOLD)


def test_the_checker_finds_what_no_answer_implies() -> None:
    with pytest.raises(AssertionError, match="implies"):
        check([[(0, 0), (1, 1)]], [{0: 0, 1: None}])


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS_OF_THE_SOAK, marks=pytest.mark.sweep, id="soak")])
def test_what_a_real_client_was_told_is_there_once_whoever_is_killed_or_stopped(tmp_path: Path, rounds: int) -> None:
    with Faulty(tmp_path) as brokers:
        client = AdminClient({"bootstrap.servers": brokers.bootstrap})
        topic = NewTopic(TOPIC, len(REPLICAS), replica_assignment=REPLICAS, config={"min.insync.replicas": "2"})
        client.create_topics([topic])[TOPIC].result(timeout=PATIENCE_S)
        load = Load(brokers.bootstrap)
        with load.running():
            for turn in range(rounds):
                killed, stopped = (2, 3) if turn % 2 == 0 else (3, 2)
                load.await_more()
                brokers.kill_and_await_another(killed)
                load.await_more()
                os.kill(brokers.pids[stopped], signal.SIGSTOP)
                load.await_more()  # others lead what it led
                os.kill(brokers.pids[stopped], signal.SIGCONT)
                load.await_more()
        await_agreement(brokers.bootstrap)
        found = read_all(brokers.bootstrap)
        status, err = brokers.terminate()

    assert load.failures == []
    check(found, load.acknowledged)
    assert err.count("ended by SIGKILL; it is started again") == rounds
    assert status == 0, err


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """The disk of the third broker."""
    with small_disk_or_skip(tmp_path / "3", "24m") as disk:
        yield disk


def fill(disk: SmallDisk) -> Path:
    """Leave no room on a disk; return what takes it."""
    ballast = disk.seen / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast


@pytest.mark.sweep
def test_while_the_disk_of_one_is_full_others_lead_and_it_comes_back_when_there_is_room(
    tmp_path: Path, disk: SmallDisk
) -> None:
    with Faulty(tmp_path, within=disk.command) as brokers:
        client = AdminClient({"bootstrap.servers": brokers.bootstrap})
        topic = NewTopic(TOPIC, len(REPLICAS), replica_assignment=REPLICAS, config={"min.insync.replicas": "2"})
        client.create_topics([topic])[TOPIC].result(timeout=PATIENCE_S)

        def in_sync() -> list[list[int]]:
            partitions = client.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions
            return [sorted(partitions[number].isrs) for number in range(len(REPLICAS))]

        load = Load(brokers.bootstrap)
        with load.running():
            load.await_more()
            ballast = fill(disk)
            until(lambda: not any(3 in isr for isr in in_sync()))
            load.await_more()  # also of the partition that the third one led
            ballast.unlink()
            until(lambda: all(isr == [1, 2, 3] for isr in in_sync()))
            load.await_more()
        found = read_all(brokers.bootstrap)
        children = set(brokers.children())
        status, err = brokers.terminate()

    assert load.failures == []
    check(found, load.acknowledged)
    assert children == set(brokers.pids.values()), "nobody was started again"
    assert "the disk is full" in err
    assert status == 0, err
