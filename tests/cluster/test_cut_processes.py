"""Three broker processes on a network that is cut, under real clients: killed, stopped or cut off, nothing is lost.

Nothing acknowledged is lost, doubled or reordered; of transactions that were aborted nothing is read. In the gate one
broker is cut off, in a namespace of the network where this process may make one, else behind proxies. The soak takes
thirty accidents by chance:

    tox -e soak
"""

from __future__ import annotations

import random
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.waiting import is_readable

from . import namespaces, proxies
from .node_processes import Build, Node
from .test_processes import PATIENCE_S
from .test_real_faults import REPLICAS, TOPIC, Load, await_agreement, check, read_all
from .workers import Worker

ROUNDS_OF_THE_SOAK = 30
SESSION_MS = 1_500
BILLS = "bills"
OF_A_TRANSACTION = 5
TIMES = {"socket.timeout.ms": 3_000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


class Bills(Worker):
    """Sends transactions, of which every third is aborted, and knows how each ended."""

    patience_s = 2 * PATIENCE_S
    hung = "a transaction never ended"

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "biller", **TIMES})
        self.committed: list[int] = []
        self.aborted: set[int] = set()
        self.failures: list[str] = []

    def work(self) -> None:
        """See `Worker.work`."""
        try:
            self._producer.init_transactions(PATIENCE_S)
            number = 0
            while not self.is_ending.wait(0.02):
                self._transaction(number)
                number += 1
        except KafkaException as error:
            self.failures.append(str(error))

    def _transaction(self, number: int) -> None:
        self._producer.begin_transaction()
        for part in range(OF_A_TRANSACTION):
            self._producer.produce(BILLS, b"%d" % number, partition=part % len(REPLICAS))
        if number % 3 == 2:
            self._abort(number)
            return
        while True:
            try:
                self._producer.commit_transaction(PATIENCE_S)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    self._abort(number)
                    return
                if not error.args[0].retriable():
                    raise
            else:
                self.committed.append(number)
                return

    def _abort(self, number: int) -> None:
        self.aborted.add(number)
        while True:
            try:
                self._producer.abort_transaction(PATIENCE_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return


def read_committed(bootstrap: str) -> Counter[int]:
    """Return how often each transaction's number is read by who reads what is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = [TopicPartition(BILLS, number, 0) for number in range(len(REPLICAS))]
    consumer.assign(partitions)
    found: Counter[int] = Counter()
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "a partition does not end"
        if message.error() is None:
            found[int(message.value() or b"")] += 1
        else:
            ended.add(message.partition() or 0)
    consumer.close()
    return found


class Place(Protocol):
    """A machine, or what stands for one."""

    @property
    def where(self) -> Sequence[str]: ...

    @property
    def options(self) -> list[str]: ...

    def cut(self) -> None: ...

    def heal(self) -> None: ...


class Accidents:
    """Three brokers, each on a machine of its own, and what may befall two of them; the first is the controller."""

    def __init__(self, places: Mapping[int, Place], folder: Path) -> None:
        self._places = places
        self._build = Build(Path(sys.executable))
        self._nodes = {
            number: Node(
                [
                    f"node.id={number}",
                    f"process.roles={'broker,controller' if number == 1 else 'broker'}",
                    "controller.listener.names=CONTROLLER",
                    f"broker.session.timeout.ms={SESSION_MS}",
                    "broker.heartbeat.interval.ms=200",
                    *place.options,
                ],
                folder / str(number),
                where=place.where,
            )
            for number, place in places.items()
        }

    @contextmanager
    def serving(self) -> Iterator[str]:
        """They serve; where they do."""
        try:
            for node in self._nodes.values():
                node.launch(self._build)
            for node in self._nodes.values():
                node.wait_ready()
            yield ",".join(node.address for node in self._nodes.values())
            for node in reversed(self._nodes.values()):
                node.stop()
        finally:
            for node in self._nodes.values():
                node.kill()

    def befall(self, number: int, kind: str, meanwhile: Callable[[], None]) -> None:
        """Have something happen to a broker, something else meanwhile, and an end to it."""
        node, place = self._nodes[number], self._places[number]
        ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "kill": (node.kill, partial(node.start, self._build)),
            "stop": (node.pause, node.resume),
            "cut": (place.cut, place.heal),
        }
        begin, end = ways[kind]
        begin()
        try:
            meanwhile()
        finally:
            end()


KINDS = ("kill", "stop", "cut")


@pytest.fixture
def places() -> Iterator[Mapping[int, Place]]:
    """Three machines in namespaces of the network, or proxies in their stead."""
    with namespaces.machines() if namespaces.can_have_namespaces() else proxies.machines() as found:
        yield found


def create_topics(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    config = {"min.insync.replicas": "2"}
    topics = [NewTopic(name, len(REPLICAS), replica_assignment=REPLICAS, config=config) for name in (TOPIC, BILLS)]
    for future in client.create_topics(topics).values():
        future.result(timeout=PATIENCE_S)


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS_OF_THE_SOAK, marks=pytest.mark.sweep, id="soak")])
def test_what_real_clients_were_told_holds_whoever_is_killed_stopped_or_cut_off(
    tmp_path: Path, places: Mapping[int, Place], rounds: int
) -> None:
    chance = random.Random(rounds)
    accidents = Accidents(places, tmp_path)
    with accidents.serving() as bootstrap:
        create_topics(bootstrap)
        load, bills = Load(bootstrap), Bills(bootstrap)
        with load.running(), bills.running():
            for turn in range(rounds):
                load.await_more()
                kind = chance.choice(KINDS) if turn else "cut"
                accidents.befall(chance.choice((2, 3)), kind, load.await_more)
            load.await_more()
        await_agreement(bootstrap)
        found = read_all(bootstrap)
        billed = read_committed(bootstrap)

    assert load.failures == []
    check(found, load.acknowledged)
    assert bills.failures == []
    assert bills.committed
    assert billed.keys() & bills.aborted == set(), "aborted, and read"
    assert billed == Counter(dict.fromkeys(bills.committed, OF_A_TRANSACTION))


def test_proxies_stand_for_a_network_that_is_cut() -> None:
    with proxies.machines() as found, socket.socket() as listening:
        (front, port), *_ = found[2].ports.items()
        listening.bind(("127.0.0.1", port))
        listening.listen()
        with socket.create_connection(("127.0.0.1", front)) as client:
            server, _ = listening.accept()
            with server:
                found[2].cut()
                client.sendall(b"late")
                assert not is_readable(server, 0.1)
                found[2].heal()
                assert server.recv(4) == b"late"
