"""Shell: brokers and clients of one simulated run: hosts with brokers on them, started, crashed and started again.

A broker is the real one, `kernel.broker.Broker`, with the plugins that its settings choose.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.client.admin import Admin
from odradek.client.consumer import Consumer
from odradek.client.producer import Producer
from odradek.kernel.broker import Broker, read_broker_options

from .machine import SimulatedHost
from .network import Network

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.machine.machine import Machine
    from odradek.testing.faults import PowerLoss

    from .machine import Process
    from .network import LinkSettings
    from .world import World

PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
DATA_DIR: Final = Path("/data")
BROKER_SETTINGS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "65536",
    "log.retention.check.interval.ms": "60000",
    "log.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
"""What differs from a broker that nobody simulates: little data fills several segments, and its indexes are small."""


class BrokerHost:
    """A host with a broker. Life: made; `start`, and `crash` or `stop`, as often as you like.

    Attributes:
        host: Where it lives.
        broker: The one that lives there now, if any.
        on_failure: Given what a broker ended by; without it, the run ends by that.
        on_parts: Given the parts of each broker that begins to live here, before it serves.
    """

    def __init__(self, cluster: Cluster, host: SimulatedHost, settings: Mapping[str, str]) -> None:
        """Make one; nothing lives there yet."""
        self._cluster = cluster
        self._settings = settings
        self._ended = trio.Event()
        self._serves = trio.Event()
        self.host = host
        self.broker: Broker | None = None
        self.on_failure: Callable[[Exception], None] | None = None
        self.on_parts: Callable[[BrokerParts], None] = lambda _parts: None

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Let a broker begin to live here.

        Args:
            settings: What it is set to from now on, over what it was set to before.
        """
        self._settings = {**self._settings, **(settings or {})}
        process = self.host.start_process()
        self._ended, self._serves = trio.Event(), trio.Event()
        options = read_broker_options(
            config=None,
            environment={},
            options=[f"{key}={value}" for key, value in self._settings.items()],
            data_dir=None if "log.dirs" in self._settings else DATA_DIR,
        )
        broker = self.broker = Broker(options, machine=process.machine, on_parts=self.on_parts)
        self._cluster.nursery.start_soon(process.run, self._run_of(broker, process), name=self.host.name)

    def _run_of(self, broker: Broker, process: Process) -> Any:
        serves, ended = self._serves, self._ended

        async def run() -> None:
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(broker.run)
                    self.host.world.note("serves", self.host.name)
                    serves.set()
            except Exception as error:
                if self.on_failure is None or process.is_dead:
                    raise
                self.host.world.note("failed", self.host.name, type(error).__name__)
                self.on_failure(error)
                process.kill()
            finally:
                ended.set()

        return run

    async def wait_serving(self) -> None:
        """Wait until it serves clients."""
        await self._serves.wait()

    def leads(self, topics: Collection[str]) -> bool:
        """Say whether its broker lives and leads a partition of these topics."""
        if self.broker is None:
            return False
        return any(
            replica.is_leader and replica.topic_partition.topic in topics for replica in self.broker.parts.logs.replicas
        )

    async def wait_ended(self) -> None:
        """Wait until nothing of it runs any more."""
        await self._ended.wait()

    async def stop(self) -> None:
        """Stop it as SIGTERM does."""
        if self.broker is not None:
            self.broker.stop()
            await self._ended.wait()
            self.broker = None
            if self.host.process is not None:
                self.host.process.kill()

    def pause(self) -> None:
        """Let it stand still as SIGSTOP does, until `resume`."""
        if self.host.process is not None:
            self.host.world.note("paused", self.host.name)
            self.host.process.pause()

    def resume(self) -> None:
        """Let it go on as SIGCONT does; nothing is wrong if it does already, or has ended."""
        if self.host.process is not None:
            self.host.world.note("resumed", self.host.name)
            self.host.process.resume()

    def crash(self, style: PowerLoss | None = None) -> None:
        """End it now: as `kill -9` does, or with its host, by a loss of power of that style."""
        self.broker = None
        if style is None:
            self.host.kill_process()
        else:
            self.host.lose_power(style)


class Cluster:
    """All hosts of a run.

    Attributes:
        world: Whose time it is.
        network: What connects them.
        nursery: Whose tasks they are.
        brokers: By node id, from 1.
    """

    def __init__(self, world: World, nursery: trio.Nursery, links: LinkSettings | None = None) -> None:
        """Make one without hosts."""
        self.world = world
        self.nursery = nursery
        self.network = Network(world, links)
        self.brokers: dict[int, BrokerHost] = {}
        self._clients: dict[str, SimulatedHost] = {}

    def add_broker(self, settings: Mapping[str, str]) -> BrokerHost:
        """Add a host with a broker, which does not live yet.

        Args:
            settings: Kafka's broker keys, over `BROKER_SETTINGS`.
        """
        node_id = len(self.brokers) + 1
        host = SimulatedHost(self.world, self.network, f"broker-{node_id}")
        own = {"node.id": str(node_id), "listeners": f"PLAINTEXT://{host.name}:{PORT}"}
        self.brokers[node_id] = BrokerHost(self, host, {**BROKER_SETTINGS, **own, **settings})
        return self.brokers[node_id]

    def add_brokers(self, count: int, settings: Mapping[str, str], *, voters: int = 1) -> list[BrokerHost]:
        """Add hosts of one cluster, whose first brokers are its controllers, too.

        Args:
            count: How many, >= 2; there are no others.
            settings: Kafka's broker keys, over `BROKER_SETTINGS`.
            voters: How many of them keep the metadata, 1 to `count`.
        """
        assert not self.brokers, "the first brokers are the controllers of all"
        named = ",".join(f"{number}@broker-{number}:{CONTROLLER_PORT}" for number in range(1, voters + 1))
        common = {"controller.listener.names": "CONTROLLER", "controller.quorum.voters": named, **settings}
        for number in range(1, count + 1):
            listeners = f"PLAINTEXT://broker-{number}:{PORT}"
            own = {"process.roles": "broker", "listeners": listeners}
            if number <= voters:
                own = {
                    "process.roles": "broker,controller",
                    "listeners": f"{listeners},CONTROLLER://broker-{number}:{CONTROLLER_PORT}",
                }
            self.add_broker({**own, **common})
        return list(self.brokers.values())

    def set_apart(self, node_id: int, latency_ns_max: int) -> None:
        """Let what goes between one broker and the others take half of this at least: it is behind them, or ahead."""
        far = self.brokers[node_id].host.host
        settings = attrs.evolve(
            self.network.defaults, latency_ns_min=latency_ns_max // 2, latency_ns_max=latency_ns_max
        )
        for other in self.brokers.values():
            if other.host.host is not far:
                for way in ((far, other.host.host), (other.host.host, far)):
                    self.network.link(*way).settings = settings

    async def start(self) -> None:
        """Start all brokers, and wait until they serve."""
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            await broker.wait_serving()

    async def stop(self) -> None:
        """Stop all brokers one after the other, those of the controllers last."""
        for broker in reversed(self.brokers.values()):
            await broker.stop()

    @property
    def bootstrap(self) -> str:
        """All brokers, for `bootstrap.servers`."""
        return ",".join(f"{each.host.name}:{PORT}" for each in self.brokers.values())

    def client_host(self, name: str) -> SimulatedHost:
        """Return the host of this name, on which clients live; made the first time."""
        host = self._clients.get(name)
        if host is None:
            host = self._clients[name] = SimulatedHost(self.world, self.network, name)
        return host

    def client_machine(self, name: str) -> Machine:
        """Return the machine of what lives on the host of this name; a process begins there if there is none."""
        host = self.client_host(name)
        process = host.process or host.start_process()
        return process.machine

    async def run_client(self, name: str, main: Callable[[], Awaitable[object]]) -> None:
        """Run a program on the host of this name, whose clients are made in `main`, until it ends or is killed.

        `client_host(name).kill_process()` kills it, as `kill -9` does.
        """
        process = self.client_host(name).start_process()
        try:
            await process.run(main)
        finally:
            process.kill()

    def admin(self, name: str) -> Admin:
        """Return an admin client that lives on the host of this name."""
        return Admin(self._settings_of(name, None), machine=self.client_machine(name))

    def producer(self, name: str, settings: Mapping[str, object] | None = None) -> Producer:
        """Return a producer that lives on the host of this name."""
        return Producer(self._settings_of(name, settings), machine=self.client_machine(name))

    def consumer(self, name: str, settings: Mapping[str, object] | None = None) -> Consumer:
        """Return a consumer that lives on the host of this name."""
        return Consumer(self._settings_of(name, settings), machine=self.client_machine(name))

    def _settings_of(self, name: str, settings: Mapping[str, object] | None) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "client.id": name, **(settings or {})}
