"""Controllers on simulated hosts that come into a cluster as real ones do, and then say only that they are in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import attrs
import trio

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.api_handler import Answer, ApiHandler, RequestContext
from odradek.kernel.controller.founding_checkpoint import FoundingCheckpoint, encode_founding
from odradek.kernel.dispatch.controller.listener import receiver_of
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.files import Files
from odradek.kernel.machine.machine import Machine
from odradek.kernel.network.configure import network_settings
from odradek.kernel.network.server import NetworkServer
from odradek.kernel.quorum.founding import FoundingVoter
from odradek.kernel.quorum.founding_messages import founding_answer
from odradek.kernel.quorum.founding_shell import FoundingOutcome, founded_config
from odradek.kernel.quorum.voters_record import voters_record
from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.kernel.wire.messages.api_59_fetch_snapshot import FetchSnapshotRequest
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.lab.simulator.machine import SimulatedHost
from odradek.lab.simulator.network import Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

T = TypeVar("T")

DATA_DIR = Path("/data")
IDS = (1, 2, 3)
BY_VOTERS = {"controller.quorum.voters": "1@node-1:9093,2@node-2:9093,3@node-3:9093"}
BY_SERVERS = {"controller.quorum.bootstrap.servers": "node-1:9093,node-2:9093,node-3:9093"}


OF_KAFKA = encode_founding(
    FoundingCheckpoint(voters_record([FoundingVoter(9, UUID(int=9), "node-9", 9093)], "CONTROLLER")), 0
)
"""What `kafka-storage format` leaves: it says who votes, and not whose it is."""


def config_of(node_id: int, settings: Mapping[str, str]) -> BrokerConfig:
    """The configuration of a controller."""
    chosen = {
        "node.id": str(node_id),
        "process.roles": "controller",
        "listeners": f"CONTROLLER://node-{node_id}:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(DATA_DIR),
        **settings,
    }
    return BrokerConfig(Registry.of(), static={key: Setting(value, "a test") for key, value in chosen.items()})


@attrs.define
class Fixed:
    """Answers an API always with the same."""

    api_key: int
    response: Any

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer at once."""
        return self.response

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return type(self.response)(error_code=code)


def of_cluster(cluster_id: str) -> list[ApiHandler]:
    """What a controller of a cluster answers that does not lead it."""
    part = ResponsePartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])
    return [
        Fixed(DescribeQuorumRequest.__api_key__ or 0, DescribeQuorumResponse(topics=[topic])),
        Fixed(FetchSnapshotRequest.__api_key__ or 0, founding_answer(OF_KAFKA)),
        Fixed(DescribeClusterRequest.__api_key__ or 0, DescribeClusterResponse(cluster_id=cluster_id)),
    ]


class Nodes:
    """Hosts with a controller each. Life: made in a world; `start`, `end`, `replace_disk` as often as you like."""

    def __init__(self, world: World, nursery: trio.Nursery, settings: Mapping[str, str]) -> None:
        self._world, self._nursery, self._settings = world, nursery, settings
        self._network = Network(world)
        self.hosts = {each: SimulatedHost(world, self._network, f"node-{each}") for each in IDS}
        self.outcomes: dict[int, FoundingOutcome] = {}
        self.failures: dict[int, Exception] = {}

    def start(self, *node_ids: int, settings: Mapping[str, str] | None = None) -> None:
        """Begin processes."""
        for node_id in node_ids:
            process = self.hosts[node_id].start_process()
            self.outcomes.pop(node_id, None)
            config = config_of(node_id, {**self._settings, **(settings or {})})
            self._nursery.start_soon(process.run, partial(self._run, node_id, config, process.machine))

    async def _run(self, node_id: int, config: BrokerConfig, machine: Machine) -> None:
        try:
            found, outcome = await founded_config(
                config, machine, lambda handlers: receiver_of(config, handlers, machine.timer)
            )
        except Exception as error:
            self.failures[node_id] = error
            return
        assert outcome is not None
        assert outcome.cluster_id == found.get_text("odradek.cluster.id")
        router = receiver_of(config, of_cluster(outcome.cluster_id), machine.timer)
        with ExitStack() as closing:
            network = NetworkServer(router, network_settings(config), machine)
            closing.callback(network.close)
            async with trio.open_nursery() as nursery:
                await nursery.start(network.run)
                self.outcomes[node_id] = outcome

    def end(self, node_id: int) -> None:
        """End a process as `kill -9` does."""
        self.hosts[node_id].kill_process()

    def replace_disk(self, node_id: int) -> None:
        """End a process, and empty its disk."""
        self.end(node_id)
        old = self.hosts[node_id]
        old.disk = type(old.disk)(self._world, f"{old.name}, replaced")

    def cut_off(self, node_id: int) -> None:
        """Let nothing go between a host and the others."""
        for other in IDS:
            if other != node_id:
                self._network.cut(self.hosts[other].host, self.hosts[node_id].host)
                self._network.cut(self.hosts[node_id].host, self.hosts[other].host)

    def machine(self, node_id: int) -> Machine:
        """What a process on its host lives on: the one there, or a new one."""
        host = self.hosts[node_id]
        return (host.process or host.start_process()).machine

    def files(self, node_id: int) -> Files:
        """Its disk, as its process sees it, or the next one."""
        return self.machine(node_id).files

    async def wait_founded(self, *node_ids: int) -> None:
        """Let time pass until they are of a cluster."""
        while not self.outcomes.keys() >= set(node_ids):  # noqa: ASYNC110 - the world tells nobody what happens in it
            await trio.sleep(0.01)


def in_world(main: Callable[[Nodes], Awaitable[T]], settings: Mapping[str, str], *, seed: int = 1) -> T:
    """Run a task beside nodes that are not started yet, and return what it returns."""
    world = World(Seeds(seed))

    async def root() -> T:
        async with trio.open_nursery() as nursery:
            nodes = Nodes(world, nursery, settings)
            result = await main(nodes)
            for node_id in IDS:
                nodes.end(node_id)
            nursery.cancel_scope.cancel()
        return result

    return run_in_world(world, root, limit_ns=60 * SECOND)
