"""Three brokers for a soak, each a controller too, on machines of their own, and what may befall them.

Two log directories each, the third one's on a small disk. Where this process may make namespaces of the network, each
has a cable, which can be pulled; where it may mount a disk, that one can be full. What cannot be had here is left out.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
from confluent_kafka.admin import AdminClient

from odradek.cli.serve_many import free_port
from tests.broker.small_disk import NoSmallDiskError, SmallDisk, small_disk
from tests.waiting import until

from . import namespaces
from .billing import BILLS
from .node_processes import THIS, Node
from .test_processes import PATIENCE_S
from .test_real_faults import NO_SETTINGS, REPLICAS, TOPIC, Settings, fill
from .test_secured_brokers import Authority

NODES: Final = (1, 2, 3)
ON_SMALL_DISK: Final = 3
DISK_SIZE: Final = "384m"
SESSION_MS: Final = 2_000
STUTTERS: Final = 40
STANDS_S, GOES_S = 0.3, 0.03


@attrs.frozen
class Spot:
    """A machine, or what stands for one.

    Attributes:
        host: Its address.
        ports: Of its broker and of its controller.
        where: The command that starts another one there.
        machine: Has its cable; None where it has none.
    """

    host: str
    ports: tuple[int, int]
    where: Sequence[str] = ()
    machine: namespaces.Machine | None = None


@contextmanager
def spots() -> Iterator[Mapping[int, Spot]]:
    """Three machines, by their numbers."""
    if namespaces.can_have_namespaces():
        with namespaces.machines() as machines:
            yield {number: Spot(each.address, (9092, 9093), each.where, each) for number, each in machines.items()}
    else:
        with ExitStack() as held:
            ports = {number: (free_port("127.0.0.1", held), free_port("127.0.0.1", held)) for number in NODES}
            yield {number: Spot("127.0.0.1", own) for number, own in ports.items()}


@contextmanager
def disk_or_none(folder: Path) -> Iterator[SmallDisk | None]:
    """Mount a small disk on a new folder, where that can be."""
    folder.mkdir()
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(folder, DISK_SIZE))
        except NoSmallDiskError:
            disk = None
        yield disk


class Machines:
    """Three brokers on their machines. Life: `serving`, and accidents within it, one after the other."""

    def __init__(
        self, spots: Mapping[int, Spot], folder: Path, disk: SmallDisk | None, authority: Authority | None
    ) -> None:
        """Make them.

        Args:
            spots: Where they are.
            folder: Of their data; that of the third is there.
            disk: Of the third; None if it has none of its own.
            authority: Whoever has its certificates; None for plaintext.
        """
        self._spots, self._folder, self._disk = spots, folder, disk
        self.security: Settings = NO_SETTINGS if authority is None else _with_certificate(authority)
        self._authority = authority
        self._nodes = {number: self._node(number) for number in NODES}
        self.bootstrap = ",".join(f"{each.host}:{each.ports[0]}" for each in spots.values())
        self.accidents: dict[str, Callable[[Callable[[], None], random.Random], None]] = {
            "a broker is killed": lambda meanwhile, chance: self._kill(chance.choice(self._others()), meanwhile),
            "the controller is killed": lambda meanwhile, _chance: self._kill(self.controller(), meanwhile),
            "a broker is stopped and started": lambda meanwhile, chance: self._restart(chance.choice(NODES), meanwhile),
            "a broker stands still": lambda meanwhile, chance: self._pause(chance.choice(NODES), meanwhile),
            "a broker is slow": lambda meanwhile, chance: self._stutter(chance.choice(NODES), meanwhile),
            "a broker is drained": lambda meanwhile, chance: self._drain(chance.choice(NODES), meanwhile),
            "a log directory fails": lambda meanwhile, chance: self._lose_directory(chance.choice(NODES), meanwhile),
        }
        if all(each.machine is not None for each in spots.values()):
            self.accidents["a broker is cut off"] = lambda meanwhile, chance: self._cut(chance.choice(NODES), meanwhile)
        if disk is not None:
            self.accidents["a disk is full"] = lambda meanwhile, _chance: self._fill(disk, meanwhile)

    def _node(self, number: int) -> Node:
        spot = self._spots[number]
        protocol = "PLAINTEXT" if self._authority is None else "SSL"
        voters = ",".join(f"{each}@{other.host}:{other.ports[1]}" for each, other in self._spots.items())
        data = self._folder / str(number)
        options = [
            f"node.id={number}",
            "process.roles=broker,controller",
            f"listeners={protocol}://{spot.host}:{spot.ports[0]},CONTROLLER://{spot.host}:{spot.ports[1]}",
            f"listener.security.protocol.map={protocol}:{protocol},CONTROLLER:{protocol}",
            f"security.inter.broker.protocol={protocol}",
            "controller.listener.names=CONTROLLER",
            f"controller.quorum.voters={voters}",
            f"log.dirs={data / 'one'},{data / 'two'}",
            f"broker.session.timeout.ms={SESSION_MS}",
            "broker.heartbeat.interval.ms=200",
            "log.flush.offset.checkpoint.interval.ms=1000",  # by which a directory that is gone is noticed
        ]
        if self._authority is not None:
            options += [
                "ssl.keystore.type=PEM",
                f"ssl.keystore.location={self._authority.signed(f'broker-{number}', spot.host)}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={self._authority.file}",
                "ssl.client.auth=required",
            ]
        has_disk = number == ON_SMALL_DISK and self._disk is not None
        return Node(options, data, where=(*spot.where, *(self._disk.command if has_disk and self._disk else ())))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """They serve."""
        try:
            for node in self._nodes.values():
                node.launch(THIS)
            for node in self._nodes.values():
                node.wait_ready()
            yield
            for node in reversed(self._nodes.values()):
                node.stop()
        finally:
            for node in self._nodes.values():
                node.kill()

    # -- who does what -----------------------------------------------------------------------------------------------

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours on the cluster."""
        options = [word for pair in self._of_our_client() for word in ("-X", "=".join(pair))]
        return subprocess.run(
            [sys.executable, "-m", "odradek", *words, "-b", self.bootstrap, *options],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )

    def _of_our_client(self) -> list[tuple[str, str]]:
        if self._authority is None:
            return []
        own, others = str(self.security["ssl.certificate.location"]), str(self._authority.file)
        return [
            ("security.protocol", "SSL"),
            *(("ssl.keystore.type", "PEM"), ("ssl.keystore.location", own)),
            *(("ssl.truststore.type", "PEM"), ("ssl.truststore.location", others)),
        ]

    def controller(self) -> int:
        """Return who is the active controller."""
        found: dict[str, Any] = json.loads(self.command("cluster", "describe", "--json").stdout)
        return int(found["controller"])

    def _others(self) -> list[int]:
        active = self.controller()
        return [number for number in NODES if number != active]

    def in_sync(self) -> list[set[int]]:
        """Return the in-sync replicas of the partitions of the clients' topics; nobody where a topic is not known."""
        topics = AdminClient({"bootstrap.servers": self.bootstrap, **self.security}).list_topics(timeout=PATIENCE_S)
        found: list[set[int]] = []
        for name in (TOPIC, BILLS):
            topic = topics.topics.get(name)
            found += [set()] if topic is None else [{*part.isrs} for part in topic.partitions.values()]
        return found

    def wait_whole(self) -> None:
        """Wait until all are in sync."""
        until(lambda: all(isr == {*NODES} for isr in self.in_sync()))

    # -- accidents ---------------------------------------------------------------------------------------------------

    def _kill(self, number: int, meanwhile: Callable[[], None]) -> None:
        self._nodes[number].kill()
        meanwhile()
        self._nodes[number].start(THIS)

    def _restart(self, number: int, meanwhile: Callable[[], None]) -> None:
        self._nodes[number].stop()
        meanwhile()
        self._nodes[number].start(THIS)

    def _pause(self, number: int, meanwhile: Callable[[], None]) -> None:
        self._nodes[number].pause()
        try:
            meanwhile()
        finally:
            self._nodes[number].resume()

    def _stutter(self, number: int, meanwhile: Callable[[], None]) -> None:
        for _ in range(STUTTERS):
            self._nodes[number].pause()
            time.sleep(STANDS_S)
            self._nodes[number].resume()
            time.sleep(GOES_S)
        meanwhile()

    def _cut(self, number: int, meanwhile: Callable[[], None]) -> None:
        machine = self._spots[number].machine
        assert machine is not None, "only who has a cable is cut off"
        machine.cut()
        try:
            meanwhile()
        finally:
            machine.heal()

    def _drain(self, number: int, meanwhile: Callable[[], None]) -> None:
        """Have it lead nothing; then each leads again what it did."""
        self.command("cluster", "drain", str(number))
        meanwhile()
        plan = self._folder / "plan.json"
        plan.write_text(
            json.dumps(
                {
                    "version": 1,
                    "partitions": [
                        {"topic": topic, "partition": partition, "replicas": replicas}
                        for topic in (TOPIC, BILLS)
                        for partition, replicas in enumerate(REPLICAS)
                    ],
                }
            )
        )
        self.command("reassign", "execute", str(plan))
        self.command("elect", TOPIC, BILLS)

    def _lose_directory(self, number: int, meanwhile: Callable[[], None]) -> None:
        """Have something else stand where its second log directory was; put that back once it has ended."""
        node = self._nodes[number]
        data = self._folder / str(number)
        if number == ON_SMALL_DISK and self._disk is not None:
            data = self._disk.seen
        lost = data / "two"
        lost.rename(data / "away")
        lost.write_text("no directory")
        until(lambda: any(number not in isr for isr in self.in_sync()))
        meanwhile()
        node.kill()
        lost.unlink()
        (data / "away").rename(lost)
        node.start(THIS)

    def _fill(self, disk: SmallDisk, meanwhile: Callable[[], None]) -> None:
        ballast = fill(disk)
        try:
            until(lambda: any(ON_SMALL_DISK not in isr for isr in self.in_sync()))
            meanwhile()
        finally:
            with suppress(FileNotFoundError):
                ballast.unlink()


def _with_certificate(authority: Authority) -> Settings:
    own = str(authority.signed("client", "client.example"))
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": own,
        "ssl.key.location": own,
    }
