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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from tests.waiting import is_readable

from . import namespaces, proxies
from .billing import Bills, create_topics
from .node_processes import Build, Node
from .test_real_faults import Load, await_agreement, check, read_all

ROUNDS_OF_THE_SOAK = 30
SESSION_MS = 1_500


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
        bills.check()

    assert load.failures == []
    check(found, load.acknowledged)


def test_proxies_stand_for_a_network_that_is_cut() -> None:
    with proxies.machines() as found:
        (front, port), *_ = found[2].ports.items()
        listening = socket.create_server(("127.0.0.1", port))
        with listening, socket.create_connection(("127.0.0.1", front)) as client:
            server, _ = listening.accept()
            with server:
                found[2].cut()
                client.sendall(b"late")
                assert not is_readable(server, 0.1)
                found[2].heal()
                assert server.recv(4) == b"late"
