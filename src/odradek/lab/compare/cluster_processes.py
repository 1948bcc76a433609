"""Shell: a cluster of broker processes, each with a folder of its own, that can be killed, stopped and started again.

    controller (node 0)  <──  broker 1, broker 2, broker 3 ...

The controller has a process of its own and is never struck: what is compared is what becomes of a topic's replicas.
"""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

import attrs
import trio

from .broker_process import BrokerFolder, address_of, end, launch, watch
from .faults import STANDS_S, WORKS_S
from .folders import size_bytes
from .process_use import process_use

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

CONTROLLER_ID: Final = 0
_CONTROLLERS: Final = "CONTROLLER"


@attrs.define
class Node:
    """One process, with what it is started with. Life: `start` and `kill`, in turn, as often as you like.

    Attributes:
        node_id: Its number.
        folder: Its own; another life of it finds what the last one left.
        address: `HOST:PORT`, the same in all its lives; empty before the first.
    """

    node_id: int
    folder: BrokerFolder
    _settings: Mapping[str, str]
    _config: Path | None
    address: str = ""
    _process: trio.Process | None = attrs.field(default=None, init=False)
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start it, and wait until it serves; should it end by itself later, an error ends `nursery`.

        Raises:
            OdradekError: It did not start.
        """
        name = _CONTROLLERS if self.node_id == CONTROLLER_ID else "PLAINTEXT"
        listeners = {"listeners": f"{name}://{self.address or '127.0.0.1:0'}"}
        self._process = process = await launch(self.folder, {**self._settings, **listeners}, self._config)
        self.address = await address_of(process, self.folder.log_file)
        self._watching = trio.CancelScope()
        nursery.start_soon(self._watch, process)

    async def _watch(self, process: trio.Process) -> None:
        with self._watching:
            await watch(process, self.folder.log_file)

    async def kill(self) -> None:
        """End its process as `kill -9` does; nothing happens where it has none."""
        process, self._process = self._process, None
        self._watching.cancel()
        if process is not None:
            await end(process)

    @property
    def cpu_s(self) -> float | None:
        """The processor time of its process and of that one's children; None where the system does not tell."""
        return None if self._process is None else process_use(self._process.pid).cpu_s

    def pause(self) -> None:
        """Have its process stand still."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    async def stutter(self) -> None:
        """Have its process stand still again and again, until cancelled: then it goes on."""
        try:
            while True:
                self.pause()
                await trio.sleep(STANDS_S)
                self.resume()
                await trio.sleep(WORKS_S)
        finally:
            self.resume()


@attrs.frozen
class ClusterProcesses:
    """A cluster that serves.

    Attributes:
        brokers: By their numbers, from 1.
        nursery: In which processes are watched; who starts a broker again gives it.
    """

    brokers: Mapping[int, Node]
    nursery: trio.Nursery

    @property
    def bootstrap(self) -> str:
        """Where its brokers serve, for clients; those that are down are among them."""
        return ",".join(node.address for node in self.brokers.values())

    @property
    def cpu_s(self) -> float | None:
        """The processor time of all brokers that live; None where the system does not tell."""
        told = [node.cpu_s for node in self.brokers.values()]
        known = [each for each in told if each is not None]
        return sum(known) if known else None

    @property
    def data_bytes(self) -> int:
        """What the folders of all brokers hold."""
        return sum(size_bytes(node.folder.data) for node in self.brokers.values())


@asynccontextmanager
async def serving_cluster(
    folder: Path, settings: Mapping[str, str], config: Path | None, count: int
) -> AsyncIterator[ClusterProcesses]:
    """Run a cluster for the time of an `async with`; at its end all processes are killed.

    Args:
        folder: Of the cluster; each node has one in it.
        settings: For all nodes.
        config: A configuration file that they read first; None for none.
        count: How many brokers.

    Raises:
        OdradekError: One did not start, or ended by itself. In a group with what that broke.

    Cancelled, all are killed too.
    """
    async with AsyncExitStack() as stack:
        controller = _node(CONTROLLER_ID, folder, settings, config, "127.0.0.1:0")
        stack.push_async_callback(controller.kill)
        nursery = await stack.enter_async_context(trio.open_nursery())
        await controller.start(nursery)
        brokers = {each: _node(each, folder, settings, config, controller.address) for each in range(1, count + 1)}
        for node in brokers.values():
            stack.push_async_callback(node.kill)
        async with trio.open_nursery() as starting:
            for node in brokers.values():
                starting.start_soon(node.start, nursery)
        yield ClusterProcesses(brokers, nursery)
        nursery.cancel_scope.cancel()


def _node(node_id: int, folder: Path, settings: Mapping[str, str], config: Path | None, controller: str) -> Node:
    own = folder / str(node_id)
    own.mkdir(parents=True, exist_ok=True)
    return Node(
        node_id,
        BrokerFolder(own),
        {
            **settings,
            "node.id": str(node_id),
            "process.roles": "controller" if node_id == CONTROLLER_ID else "broker",
            "controller.listener.names": _CONTROLLERS,
            "controller.quorum.voters": f"{CONTROLLER_ID}@{controller}",
        },
        config,
    )
