"""Controllers in a simulated world: real logs on disks that lose power, real elections, and messages by plain calls.

What asks and answers is as brief as it can be: a fetch is compared with the leader's log before it counts, what came is
flushed before the next fetch says so. Latency is a millisecond each way.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import trio

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import ElectionFactory, FetchEnded, PeerMessage, PeerRefused, Role
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.contracts.storage import KnownEnd, LogConfig, PartitionLog
from odradek.kernel.contracts.storage_context import StorageContext, StorageFactory
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import Slices, run_at_once
from odradek.kernel.quorum.log_epochs import NO_SNAPSHOT
from odradek.kernel.quorum.opening import BesideLog, open_quorum_log
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from odradek.lab.simulator.machine import Process, SimulatedHost
from odradek.lab.simulator.network import Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.faults import PowerLoss
from tests.plugins.election_quorum.nodes import directory_of, over_the_wire, voters_of

T = TypeVar("T")

PARTITION = TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0)
ELECTIONS: Mapping[str, ElectionFactory] = {"quorum": QuorumElectionFactory(), "isr": IsrElectionFactory()}
LATENCY_S = 0.001
WAIT_S = 0.5
FETCH_BYTES = 1 << 16
LIMIT_S = 600


def config_of(node_id: int, election: str = "quorum") -> BrokerConfig:
    """The settings of a controller."""
    static = {"node.id": str(node_id), "odradek.metadata.election": election}
    return BrokerConfig(Registry.of(), static={key: Setting(text, "test") for key, text in static.items()})


class Answer(NamedTuple):
    """What a leader gives to a fetch."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    records: bytes = b""
    high_watermark: int = 0
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None


class Controller:
    """A host, and the controller that lives on it; `log` is None while nothing does.

    Attributes:
        gone: Set when its process ends.
        founding: Who votes by what lies beside its log; a tuple of ids where nothing does.
        snapshot: What it begins behind.
        failure: What its process ended by.
        follows: Whether it fetches.
        known_end: What its log is opened with; without it, a log that is begun may be on no disk yet.
        log_config: How its log is kept: in small segments.
        observes: Whether it looks for a leader by itself: nobody founded anything on it.
    """

    def __init__(self, quorum: Quorum, node_id: int, founding: KRaftVoters | tuple[int, ...]) -> None:
        self.quorum, self.node_id, self.founding = quorum, node_id, founding
        self.host = SimulatedHost(quorum.world, quorum.network, f"controller-{node_id}")
        self.directory_id = directory_of(node_id)
        self.snapshot: tuple[SnapshotId, KRaftVoters | None] = (NO_SNAPSHOT, None)
        self.partition_log: PartitionLog | None = None
        self.log: QuorumLog | None = None
        self.failure: Exception | None = None
        self.follows = True
        self.known_end: KnownEnd | None = lambda _directory: 0
        self.log_config = LogConfig(segment_bytes=4096, segment_index_bytes=240)
        self.observes = isinstance(founding, KRaftVoters) and not founding.voters
        self._asked_count = 0
        self.gone = trio.Event()
        self.epochs_led: list[int] = []

    def start(self) -> None:
        """Let a process begin over what is on the disk."""
        process, self.gone = self.host.start_process(), trio.Event()
        self.quorum.nursery.start_soon(process.run, partial(self._run, process))

    def crash(self, style: PowerLoss | None = None) -> None:
        """Kill the process, or have the host lose power."""
        self.log = None
        self.gone.set()
        if style is None:
            self.host.kill_process()
        else:
            self.host.lose_power(style)
            self.host.power_on()

    def open_log(self, process: Process) -> PartitionLog:
        """Open its log as its storage has it."""
        machine = process.machine
        context = StorageContext(
            log_dirs=["/data"],
            node_id=self.node_id,
            cluster_id="",
            settings={},
            now_ms=machine.clock.now_ms,
            monotonic_ms=machine.clock.monotonic_ms,
            random=machine.random,
            new_id=machine.ids.new_id,
            files=machine.files,
            threads=machine.threads,
        )
        engine = self.quorum.engine(context)
        engine.start()
        return engine.open_log(PARTITION, self.log_config, known_end=self.known_end)

    def opened(self, process: Process) -> QuorumLog:
        """Open its replica."""
        machine, config = process.machine, config_of(self.node_id)
        self.partition_log = self.open_log(process)
        founding = self.founding
        return open_quorum_log(
            log=self.partition_log,
            config=config,
            live_config=lambda: config,
            elections=ELECTIONS,
            machine=machine,
            directory_id=self.directory_id,
            beside=BesideLog(
                snapshot=self.snapshot[0],
                voters=self.snapshot[1],
                founding=None if isinstance(founding, tuple) else founding,
                static_voters=founding if isinstance(founding, tuple) else (),
            ),
        )

    async def _run(self, process: Process) -> None:
        try:
            log = self.opened(process)
            await trio.lowlevel.checkpoint()  # it may have died meanwhile
            self.log = log
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.run, partial(self._send, nursery, log))
                nursery.start_soon(self._follow, log)
                nursery.start_soon(self._watch, log)
        except Exception as error:
            if process.is_dead:
                raise
            self.failure = error
            self.crash()

    async def _watch(self, log: QuorumLog) -> None:
        while True:
            if log.role is Role.LEADER and log.leader_epoch not in self.epochs_led:
                self.epochs_led.append(log.leader_epoch)
            await log.wait_changed()

    # -- messages ----------------------------------------------------------------------------------------------------

    def _send(self, nursery: trio.Nursery, log: QuorumLog, messages: Sequence[PeerMessage]) -> None:
        for message in messages:
            nursery.start_soon(self._exchange, log, message)

    async def _exchange(self, log: QuorumLog, message: PeerMessage) -> None:
        await trio.sleep(LATENCY_S)
        peer = self.quorum.reached(self.node_id, message.broker_id)
        if peer is None or peer.log is None:
            if peer is not None:
                log.step(PeerRefused(message.broker_id))
            return
        asked = peer.log
        with trio.move_on_after(WAIT_S):
            try:
                response = await asked.ask(self.node_id, over_the_wire(message.message))
            except KafkaError:  # it died: the connection ends
                return
            await trio.sleep(LATENCY_S)
            if peer.log is asked and self.quorum.reached(message.broker_id, self.node_id) is not None:
                log.step(PeerMessage(message.broker_id, over_the_wire(response)))

    # -- fetching ----------------------------------------------------------------------------------------------------

    async def _follow(self, log: QuorumLog) -> None:
        while True:
            if log.role is Role.FOLLOWER and log.leader_id >= 0 and self.follows:
                await self._fetch(log, log.leader_id)
            elif self.observes and log.leader_id < 0 and self.follows:
                others = sorted(self.quorum.controllers.keys() - {self.node_id})
                await self._fetch(log, others[self._asked_count % len(others)])
                self._asked_count += 1
            else:
                with trio.move_on_after(WAIT_S):
                    await log.wait_changed()

    async def _fetch(self, log: QuorumLog, leader_id: int) -> None:
        await log.flush()  # what it had appended as the leader, or was not told of yet
        epoch, offset, last, known = log.leader_epoch, log.end_offset, max(log.latest_epoch, 0), log.high_watermark
        await trio.sleep(LATENCY_S)
        leader = self.quorum.reached(self.node_id, leader_id)
        if leader is None:
            await trio.sleep(WAIT_S)
            return
        if leader.log is None:
            log.step(PeerRefused(leader_id))
            await trio.sleep(0.05)
            return
        answers: list[Answer] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, leader.gone, nursery.cancel_scope)
            answer = await _answered(leader.log, self.node_id, self.directory_id, (epoch, last, offset, known))
            await trio.sleep(LATENCY_S)
            answers.append(answer)
            nursery.cancel_scope.cancel()
        if answers and self.quorum.reached(leader_id, self.node_id) is not None:
            await self._take(log, leader, answers[0])

    async def _take(self, log: QuorumLog, leader: Controller, answer: Answer) -> None:
        if answer.error is ErrorCode.NONE and log.follows(answer.leader_epoch):
            if answer.snapshot is not None:
                self.snapshot = (answer.snapshot, leader.snapshot[1])
                log.begin_anew(*self.snapshot)
            elif answer.diverging is not None:
                log.truncate(log.diverging_offset(*answer.diverging))
                await log.flush()
            else:
                await Slices().run(log.append_fetched_in_steps(answer.records, answer.leader_epoch))
                await log.flush()
                if log.follows(answer.leader_epoch):
                    log.learn_high_watermark(answer.high_watermark)
        log.step(FetchEnded(leader.node_id, answer.error, answer.leader_id, answer.leader_epoch))


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _answered(log: QuorumLog, node_id: int, directory_id: uuid.UUID, fetch: tuple[int, int, int, int]) -> Answer:
    epoch, last, offset, known = fetch
    if not log.leads(epoch):
        is_old = epoch < log.leader_epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return Answer(error, log.leader_id, log.leader_epoch)
    if log.epochs.needs_snapshot(last, offset):
        return Answer(ErrorCode.NONE, log.leader_id, epoch, snapshot=log.epochs.start)
    diverging = log.diverges(last, offset)
    if diverging is not None:
        return Answer(ErrorCode.NONE, log.leader_id, epoch, diverging=diverging)
    log.follower_fetch(node_id, directory_id, offset)
    with trio.move_on_after(WAIT_S):
        while log.leads(epoch) and log.end_offset <= offset and log.high_watermark <= known:
            await log.wait_changed()
    if not log.leads(epoch):
        return Answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, log.leader_id, log.leader_epoch)
    records = log.batches(offset, log.end_offset, FETCH_BYTES) if log.end_offset > offset else b""
    return Answer(ErrorCode.NONE, log.leader_id, epoch, records, log.high_watermark)


class Quorum:
    """Controllers, and who reaches whom."""

    def __init__(self, world: World, nursery: trio.Nursery, *founding: int, static: bool = False) -> None:
        self.world, self.nursery, self.network = world, nursery, Network(world)
        self.cut: set[tuple[int, int]] = set()
        self.engine: StorageFactory = SegmentEngine
        named = tuple(founding) if static else voters_of(*founding)
        self.controllers = {node_id: Controller(self, node_id, named) for node_id in founding}

    def reached(self, source: int, target: int) -> Controller | None:
        """Whom a message reaches."""
        return None if (source, target) in self.cut else self.controllers[target]

    def isolate(self, node_id: int) -> None:
        """Cut a controller off."""
        others = self.controllers.keys() - {node_id}
        self.cut |= {(node_id, other) for other in others} | {(other, node_id) for other in others}

    @property
    def logs(self) -> dict[int, QuorumLog]:
        """Those that live."""
        return {node_id: each.log for node_id, each in self.controllers.items() if each.log is not None}

    async def leader(self, *, but: int = -1) -> QuorumLog:
        """Wait until somebody leads whose epoch has begun."""
        while True:
            for node_id, log in self.logs.items():
                is_committed = log.epoch_start is not None and log.high_watermark > log.epoch_start
                if node_id != but and is_committed and log.leads(log.leader_epoch):
                    return log
            await trio.sleep(0.001)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        while not condition():  # noqa: ASYNC110 - the world tells nobody what happens in it
            await trio.sleep(0.001)

    async def settled(self) -> QuorumLog:
        """Wait until all who live have what the leader has, and know that it is committed."""
        while True:
            leader = await self.leader()
            ends = {(log.end_offset, log.high_watermark) for log in self.logs.values()}
            if ends == {(leader.end_offset, leader.end_offset)}:
                return leader
            await trio.sleep(0.001)


def values(log: QuorumLog) -> list[bytes]:
    """The records that are committed."""
    return [record.value for record in log.records(log.start_offset) if record.offset < log.high_watermark]


def batch_of(value: bytes, offset: int, epoch: int) -> bytes:
    """A batch of one record, as a leader sends it."""
    builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch)
    builder.append(None, value, timestamp=0)
    return bytes(builder.build())


async def append(log: QuorumLog, *records: bytes) -> int:
    """Append records and commit them."""
    offset = run_at_once(log.append_in_steps(records, 0))
    await log.commit()
    return offset


@asynccontextmanager
async def running(
    world: World, *founding: int, static: bool = False, engine: StorageFactory = SegmentEngine
) -> AsyncIterator[Quorum]:
    """Controllers that live; what is left of them ends with the block."""
    async with trio.open_nursery() as nursery:
        quorum = Quorum(world, nursery, *founding, static=static)
        quorum.engine = engine
        for controller in quorum.controllers.values():
            controller.start()
        yield quorum
        for controller in quorum.controllers.values():
            controller.crash()
        nursery.cancel_scope.cancel()


def in_quorum(
    main: Callable[[Quorum], Awaitable[T]],
    *founding: int,
    seed: int = 1,
    static: bool = False,
    engine: StorageFactory = SegmentEngine,
) -> T:
    """Run a task in a world with these voters, and return what it returns."""
    world = World(Seeds(seed))

    async def root() -> T:
        async with running(world, *(founding or (1, 2, 3)), static=static, engine=engine) as quorum:
            return await main(quorum)

    return run_in_world(world, root, limit_ns=LIMIT_S * SECOND)
