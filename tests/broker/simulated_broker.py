"""A broker on the simulator's time and disk, for work with its parts: what comes every hour is seen in a moment."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire import APIS, FrameBuffer, decode, decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from odradek.lab.simulator.cluster import DATA_DIR, PORT, Cluster
from odradek.lab.simulator.disk import Directory
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, WALL_START_MS, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.partitions.replica import Replica
    from odradek.kernel.wire import Message
    from odradek.lab.simulator.disk import Disk

NOW_MS: Final = WALL_START_MS
"""The wall clock at the start."""
LIMIT_S: Final = 100_000
STEP_S: Final = 0.005
SYNC_S: Final = 1.0
"""Longer than threads and the disk take for anything here."""


@attrs.frozen
class SimulatedBroker:
    """A broker that serves.

    Attributes:
        cluster: Where.
        parts: What it consists of.
    """

    cluster: Cluster
    parts: BrokerParts

    @property
    def disk(self) -> Disk:
        """Its disk."""
        return self.cluster.brokers[1].host.disk

    def files(self, pattern: str) -> list[str]:
        """Return the paths of files, below its data directory, that match."""
        return [path for path, _ in self.disk.walk() if fnmatch(path, f"{DATA_DIR}/{pattern}")]

    def names(self, folder: str, pattern: str) -> list[str]:
        """Return what lies in a folder of its data directory, "" for that itself; nothing if there is no folder."""
        try:
            found = self.disk.directory(DATA_DIR / folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in found.entries if fnmatch(name, pattern))

    def text(self, name: str) -> str:
        """Return what a file of its data directory says."""
        file = self.disk.entry(Path(DATA_DIR / name))
        assert not isinstance(file, Directory)
        return file.data.decode()

    async def until(self, condition: Callable[[], bool], *, limit_s: float = SYNC_S) -> None:
        """Wait for what threads and the disk take a little time for, or what comes some time within `limit_s`."""
        with trio.fail_after(limit_s):
            while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
                await trio.sleep(STEP_S)

    async def ask(self, request: Message, version: int) -> Any:
        """Ask it as a client does, over a connection of its own."""
        network = self.cluster.client_machine("client").network
        (address,) = await network.resolve("broker-1", PORT)
        frames = FrameBuffer(1 << 30)
        async with await network.connect(address, send_buffer_bytes=0, receive_buffer_bytes=0) as stream:
            await stream.send_all(encode_request(request, version, 1, "test").join())
            while (frame := frames.next_frame()) is None:
                frames.receive(await stream.receive_some())
        _, position = decode_response_header(frame, request.__api_key__, version)
        return decode(APIS[request.__api_key__].response, memoryview(frame), version, position=position, exact=True)

    async def put(self, topic: str, batch: bytes) -> Replica:
        """Produce a batch to partition 0."""
        data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
        response = await self.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        return self.parts.logs.replicas.get(topic, 0)


def work_in_world(settings: Mapping[str, str], work: Callable[[SimulatedBroker], Awaitable[None]]) -> None:
    """Run a broker, do work with it while it serves, and stop it."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            host = cluster.add_broker(settings)
            host.start()
            await host.wait_serving()
            assert host.broker is not None
            await work(SimulatedBroker(cluster, host.broker.parts))
            await host.stop()

    world = World(Seeds(1))
    run_in_world(world, main, limit_ns=LIMIT_S * SECOND)
