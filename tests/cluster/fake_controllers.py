"""Controllers of a simulated cluster that only say who of them leads, and a broker that has to find out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import attrs
import trio

from odradek.kernel import wire
from odradek.kernel.cluster.controller_nodes import ControllerNodes
from odradek.kernel.cluster.followed_metadata import FollowedMetadata
from odradek.kernel.cluster.member import ClusterMember
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.roles import ControllerAddress
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.controller.brokers import Registration
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.machine import Machine
from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.image import BrokerEndpoint
from odradek.kernel.metadata.records import FORMAT_VERSION, BrokerRecord, FormatRecord, MetadataRecord, encode_record
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from odradek.kernel.wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from odradek.kernel.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
)
from odradek.kernel.wire.messages.api_59_fetch_snapshot import LeaderIdAndEpoch as SnapshotLeader
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterResponse
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationResponse
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatResponse
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsResponse
from odradek.lab.simulator.machine import SimulatedHost
from odradek.lab.simulator.network import Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import make_context

from ..client.offered_versions import every_api

T = TypeVar("T")

CLUSTER_ID = "Odradek-cluster-000001"
PORT = 9093
BROKER_EPOCH = 1
"""The offset that a registration gets here: of the second record."""
IDS = (1, 2, 3)


def address_of(node_id: int) -> ControllerAddress:
    """Where a controller listens."""
    return ControllerAddress(f"controller-{node_id}", PORT)


@attrs.define(eq=False)
class Quorum:
    """What the controllers agree on; a test changes it.

    Attributes:
        leader_id: Who leads; -1 for nobody.
        epoch: In which.
        is_active: Whether who leads does what a controller does, by now.
        answered: Which controllers did something, and what, by API key.
        unaware: Controllers that still believe in this leader and epoch.
        silent: Controllers that answer nothing.
        swallowed: APIs whose next request is the last thing that is heard of its connection.
        strangers: Controllers of another cluster, where they are asked for the log.
        batches: The log, a record in each.
        changed: Set when a fetch that waits is to look again.
        diverging: Where the leader says that the log of who fetches goes another way, once.
        snapshot: Bytes that the leader has in the place of the records up to `start_offset`.
        start_offset: Where its log begins.
        fetches: Who fetched what: from which offset, after which epoch, with which high watermark.
    """

    leader_id: int = 1
    epoch: int = 1
    is_active: bool = True
    answered: list[tuple[int, int]] = attrs.field(factory=list)
    unaware: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    silent: set[int] = attrs.field(factory=set)
    swallowed: set[int] = attrs.field(factory=set)
    strangers: set[int] = attrs.field(factory=set)
    batches: list[bytes] = attrs.field(factory=list)
    changed: trio.Event = attrs.field(factory=trio.Event)
    diverging: EpochEndOffset | None = None
    snapshot: bytes = b""
    start_offset: int = 0
    fetches: list[tuple[int, int, int, int]] = attrs.field(factory=list)

    def append(self, record: MetadataRecord) -> None:
        """Commit a record."""
        builder = BatchBuilder(base_offset=len(self.batches), partition_leader_epoch=self.epoch)
        builder.append(None, encode_record(record, METADATA_VERSION_MAX), timestamp=0)
        self.batches.append(bytes(builder.build()))
        self.tell()

    def elect(self, leader_id: int, *, is_active: bool = True) -> None:
        """Have another one lead, in the next epoch."""
        self.leader_id, self.epoch, self.is_active = leader_id, self.epoch + 1, is_active
        self.tell()

    def tell(self) -> None:
        """Wake fetches that wait."""
        self.changed.set()
        self.changed = trio.Event()

    def done_by(self, node_id: int, api_key: int) -> int:
        """How often a controller has done something."""
        return self.answered.count((node_id, api_key))


class FakeController:
    """One of them, as a process of a host."""

    def __init__(self, node_id: int, quorum: Quorum, host: SimulatedHost) -> None:
        self.node_id = node_id
        self.host = host
        self._quorum = quorum

    async def live(self, nursery: trio.Nursery) -> None:
        """Begin to listen."""
        process = self.host.start_process()
        listeners = await process.machine.network.listen_streams(self.host.name, PORT)
        nursery.start_soon(process.run, lambda: listeners.serve(self._serve))

    async def _serve(self, stream: trio.abc.Stream) -> None:
        frames = wire.FrameBuffer(2**20)
        try:
            while data := await stream.receive_some(65536):
                frames.receive(data)
                while (frame := frames.next_frame()) is not None:
                    await stream.send_all(await self._answered(bytes(frame)))
        except trio.BrokenResourceError:
            pass

    async def _answered(self, frame: bytes) -> bytes:
        header = wire.decode_request_header(frame)
        if self.node_id in self._quorum.silent or header.api_key in self._quorum.swallowed:
            self._quorum.swallowed.discard(header.api_key)
            await trio.sleep_forever()
        api = wire.APIS[header.api_key]
        request = wire.decode(api.request, memoryview(frame), header.api_version, position=header.size_bytes)
        answer = await self._answer(header.api_key, request)
        return wire.encode_response(answer, header.api_version, header.correlation_id).join()

    async def _answer(self, api_key: int, request: Any) -> Any:
        if api_key == 18:
            return every_api({})
        if api_key == 1:
            return await self._fetched(request)
        if api_key == 59:
            return self._part(request)
        if api_key == 60:
            return DescribeClusterResponse(endpoint_type=2, cluster_id=CLUSTER_ID, controller_id=1)
        leader_id, _ = self._believed()
        if leader_id != self.node_id or not self._quorum.is_active:
            return {
                62: BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER),
                63: BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER),
                67: AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER),
            }[api_key]
        self._quorum.answered.append((self.node_id, api_key))
        return {
            62: BrokerRegistrationResponse(broker_epoch=BROKER_EPOCH),
            63: BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False),
            67: AllocateProducerIdsResponse(producer_id_start=self.node_id * 1000, producer_id_len=1000),
        }[api_key]

    def _believed(self) -> tuple[int, int]:
        return self._quorum.unaware.get(self.node_id, (self._quorum.leader_id, self._quorum.epoch))

    async def _fetched(self, request: FetchRequest) -> FetchResponse:
        quorum, wanted = self._quorum, request.topics[0].partitions[0]
        if self.node_id in quorum.strangers:
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        offset = wanted.fetch_offset
        quorum.fetches.append((self.node_id, offset, wanted.last_fetched_epoch, wanted.high_watermark))
        error = self._refusal(wanted.current_leader_epoch)
        if error is ErrorCode.NONE and offset >= len(quorum.batches) and quorum.diverging is None:
            with trio.move_on_after(request.max_wait_ms / 1000):
                await quorum.changed.wait()
            error = self._refusal(wanted.current_leader_epoch)
        leader_id, epoch = self._believed()
        partition = PartitionData(
            error_code=error,
            high_watermark=len(quorum.batches),
            current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
            records=b"",
        )
        if error is ErrorCode.NONE:
            if quorum.diverging is not None:
                partition.diverging_epoch, quorum.diverging = quorum.diverging, None
            elif offset < quorum.start_offset:
                partition.snapshot_id = SnapshotId(end_offset=quorum.start_offset, epoch=epoch)
            else:
                partition.records = b"".join(quorum.batches[offset:])
        endpoints = [NodeEndpoint(node_id=each, host=address_of(each).host, port=PORT) for each in IDS]
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        return FetchResponse(responses=[topic], node_endpoints=endpoints)

    def _part(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        wanted = request.topics[0].partitions[0]
        leader_id, epoch = self._believed()
        part = ResponsePartitionSnapshot(
            error_code=self._refusal(wanted.current_leader_epoch),
            snapshot_id=ResponseSnapshotId(end_offset=wanted.snapshot_id.end_offset, epoch=wanted.snapshot_id.epoch),
            current_leader=SnapshotLeader(leader_id=leader_id, leader_epoch=epoch),
            size=len(self._quorum.snapshot),
            position=wanted.position,
            unaligned_records=self._quorum.snapshot[wanted.position : wanted.position + request.max_bytes],
        )
        return FetchSnapshotResponse(topics=[ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[part])])

    def _refusal(self, epoch: int) -> ErrorCode:
        leader_id, own = self._believed()
        if epoch != own:
            return ErrorCode.FENCED_LEADER_EPOCH if epoch < own else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if leader_id == self.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER


class Controllers:
    """Three controllers, and the host of a node beside them.

    Attributes:
        controllers: By id.
        quorum: What they agree on.
        config: The node's.
        machine: The node's.
        nodes: What the node knows of them.
    """

    def __init__(self, world: World, nursery: trio.Nursery, settings: Mapping[str, str]) -> None:
        self.world = world
        self.network = Network(world)
        self.nursery = nursery
        self.quorum = Quorum()
        self.controllers = {
            each: FakeController(each, self.quorum, SimulatedHost(world, self.network, address_of(each).host))
            for each in IDS
        }
        self.config = config_of(settings)
        self.host = SimulatedHost(world, self.network, f"node-{self.config.node_id}")
        self.machine: Machine = self.host.start_process().machine
        self.nodes = ControllerNodes((), {each: address_of(each) for each in IDS})

    async def start(self) -> None:
        """Have all controllers live, with a little metadata."""
        self.quorum.append(FormatRecord(format_version=FORMAT_VERSION, cluster_id=CLUSTER_ID))
        self.quorum.append(
            BrokerRecord(broker_id=9, broker_epoch=BROKER_EPOCH, incarnation_id=UUID(int=9), is_fenced=False)
        )
        for controller in self.controllers.values():
            await controller.live(self.nursery)

    def elapsed_ms(self) -> int:
        """The world's time."""
        return self.world.now_ns // 1_000_000

    async def until(self, condition: Callable[[], bool]) -> int:
        """Let time pass until something is so; return how long that took, in milliseconds."""
        began_ms = self.elapsed_ms()
        while not condition():  # noqa: ASYNC110 - the world tells nobody what happens in it
            await trio.sleep(0.001)
        return self.elapsed_ms() - began_ms


class Joined(Controllers):
    """A broker beside three controllers.

    Attributes:
        member: The broker.
    """

    def __init__(self, world: World, nursery: trio.Nursery, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(world, nursery, settings)
        engine = MemoryEngine(make_context(directory))
        engine.start()
        opened = engine.open_log(TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), LogConfig())
        followed = FollowedMetadata(self.config, self.machine, self.nodes, opened, CLUSTER_ID)
        self.member = ClusterMember(
            self.config, self.machine, self.nodes, followed.observer, CLUSTER_ID, follow=followed.run
        )

    async def join(self) -> None:
        """Have it be a member that lives."""
        await self.register()
        await self.member.go_live()

    async def register(self) -> None:
        """Have it be known."""
        registration = Registration(
            broker_id=9, incarnation_id=UUID(int=9), listeners=[BrokerEndpoint("PLAINTEXT", "broker-9", 9092)]
        )
        await self.member.register(registration)


def config_of(settings: Mapping[str, str]) -> BrokerConfig:
    """A broker's configuration."""
    keys = {"node.id": "9", "controller.listener.names": "CONTROLLER", **settings}
    return BrokerConfig(Registry.of(), static={key: Setting(text, "test") for key, text in keys.items()})


def beside_controllers(
    main: Callable[[Joined], Awaitable[T]], directory: Path, *, settings: Mapping[str, str] | None = None
) -> T:
    """Run a task in a world with three controllers, the first of which leads, and a broker that runs."""
    world = World(Seeds(1))

    async def root() -> T:
        async with _joined(world, directory, settings or {}) as joined:
            return await main(joined)

    return run_in_world(world, root, limit_ns=600 * SECOND)


@asynccontextmanager
async def _joined(world: World, directory: Path, settings: Mapping[str, str]) -> AsyncIterator[Joined]:
    async with trio.open_nursery() as nursery:
        joined = Joined(world, nursery, directory, settings)
        await joined.start()
        await nursery.start(joined.member.run)
        yield joined
        nursery.cancel_scope.cancel()
