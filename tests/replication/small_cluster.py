"""Three brokers, or more, as far as replication goes: real replicas, handlers, controller; a transport that can be cut.

Time is trio's, which a test makes virtual (`MockClock`). Metadata reaches a node when the test says so, or at once.
"""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.storage_context import StorageContext, StorageFactory
from odradek.kernel.dispatch.current_leaders import CurrentLeaders
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.dispatch.handlers.api_01_fetch import FetchHandler
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.dispatch.router import Router
from odradek.kernel.errors import KafkaError
from odradek.kernel.machine.clock import TrioClock
from odradek.kernel.machine.files import Files, OsFiles
from odradek.kernel.metadata.image import BrokerImage, MetadataImage
from odradek.kernel.metadata.record_makers import partition_record
from odradek.kernel.metadata.records import TopicRecord
from odradek.kernel.network.connection import Connection
from odradek.kernel.partitions.byte_rate import ByteRate
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ConnectionFailedError, NobodyListensError
from odradek.kernel.purgatory.delayed_operation import DelayedOperation
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.replication.fetcher import FetcherParts
from odradek.kernel.replication.fetchers import Fetchers
from odradek.kernel.replication.in_sync_checks import InSyncChecks
from odradek.kernel.replication.isr_reports import IsrReports
from odradek.kernel.replication.settings import FetcherSettings
from odradek.kernel.replication.throttling import NO_RATE, ReplicationQuota
from odradek.kernel.replication.tier_starts import TierStarts
from odradek.kernel.replication.traffic import ReplicationTraffic
from odradek.kernel.replication.vote_log import VoteLogs
from odradek.kernel.replication.vote_messages import APIS as VOTES
from odradek.kernel.replication.voting_parts import VotingParts
from odradek.kernel.replication.voting_replicas import VotingReplicas
from odradek.kernel.types import ZERO_ID, TopicIdPartition
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import ReplicaState
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import make_context
from tests.controller.controller_requests import create_topics, topic
from tests.controller.metadata_helpers import DrivenController, registration
from tests.dispatch.memory_client import MemoryClient
from tests.partitions.local_replicas import make_replicas

ENGINES: dict[str, StorageFactory] = {"memory": MemoryEngine, "segment": SegmentEngine}
BOOT = uuid.UUID(int=1)
LAG_MS = 30_000
POLL_S = 0.001
VERSIONS = {1: 18, 2: 11}
SETTINGS = FetcherSettings(
    fetchers_count=1,
    partition_bytes_max=1 << 20,
    response_bytes_max=10 << 20,
    bytes_min=1,
    wait_ms_max=500,
    timeout_ms=30_000,
    voters_wait_ms_max=500,
)


def raise_it(operation: DelayedOperation, error: Exception) -> None:
    raise AssertionError(operation) from error


def context_of(directory: Path) -> StorageContext:
    """Return what a node's storage is made with; every disk has an id of its own."""
    return attrs.evolve(make_context(directory), new_id=lambda: uuid.uuid5(uuid.NAMESPACE_URL, directory.name))


class VirtualThreads:
    """Threads that are none: what they are given takes a moment of virtual time, or all there is while a disk hangs."""

    def __init__(self) -> None:
        self.is_hanging = False
        self.duration_s = POLL_S
        self.flush_s = 0.0  # longer, where a log is flushed

    async def run_sync(self, function: Callable[..., Any], /, *args: Any, **_options: Any) -> Any:
        """See `Threads.run_sync`."""
        if self.is_hanging:
            await trio.sleep_forever()
        is_flush = type(getattr(function, "__self__", None)).__name__ == "LogFlush"  # of whichever storage
        await trio.sleep(self.duration_s + (self.flush_s if is_flush else 0))
        return function(*args)


class Node:
    """One broker: its replicas, what answers for them, and what follows others."""

    def __init__(
        self,
        cluster: Cluster,
        broker_id: int,
        directory: Path,
        *,
        boot_id: uuid.UUID = BOOT,
        votes_files: Files | None = None,
    ) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.directory = directory
        self._scope = trio.CancelScope()
        self.threads = VirtualThreads()
        threads = cast("Any", self.threads)
        self.clock = TrioClock()
        self.wheel = TimingWheel(now_ms=self.clock.monotonic_ms())
        self.fetches = Purgatory("Fetch", self.wheel, on_error=raise_it)
        self.replicas, self.lifecycle, self.writes = make_replicas(
            self.clock,
            {cluster.storage: ENGINES[cluster.storage](context_of(directory))},
            broker_id=broker_id,
            on_progress=self._progressed,
            on_leader_changed=self._leader_changed,
            broker=self.broker,
            ask_isr=lambda replica, change: self.reports.ask(replica, change),
            known_directory=lambda _topic_id, _index: self.home,
        )
        self.router = Router(
            timer=lambda: 0.0, turn_enders=(self.writes.write_staged,), on_connection_closed=self._closed
        )
        self.router.add(
            FetchHandler(
                replicas=self.replicas,
                sessions=FetchSessionCache(slots=cluster.fetch_slots, random_source=random.Random(0)),
                purgatory=self.fetches,
                clock=self.clock,
                max_bytes=1 << 24,
                cold_wait_ms=lambda: 500,
                broker=self.broker,
                leaders=CurrentLeaders.configured(BrokerConfig(Registry.of()), self.replicas, MetadataImage),
                quota=ReplicationQuota(lambda: cluster.leader_rate, ByteRate(self.clock)),
            )
        )
        self.router.add(ListOffsetsHandler(replicas=self.replicas, cold_timeout_ms=lambda: 500, threads=threads))
        self.voting = VotingReplicas(
            VotingParts(
                replicas=self.replicas,
                writes=self.writes,
                votes=VoteLogs(votes_files or OsFiles(), boot_id),
                threads=threads,
                brokers=self,
                broker_id=broker_id,
                broker=self.broker,
                clock=self.clock,
                cluster_id=lambda: "Odradek-cluster-000001",
                timeout_ms=lambda: 2000,
                fetch_timeout_ms=lambda: 2000,
                role_changed=lambda replica: self.fetchers.leader_changed(replica.partition),
                forget=lambda partition: self.fetchers.forget(partition),
                tell_controller=lambda replica, change: self.reports.ask(replica, change),
            )
        )
        self.fetchers = Fetchers(
            broker_id,
            FetcherParts(
                brokers=self,
                replicas=self.replicas,
                lifecycle=self.lifecycle,
                writes=self.writes,
                state=lambda: ReplicaState(replica_id=broker_id, replica_epoch=self.epoch),
                settings=lambda: cluster.settings,
                backoff=self._backoff,
                clock=self.clock,
                threads=threads,
                tier_starts=TierStarts(self.lifecycle, threads, self.clock),
                quota=ReplicationQuota(lambda: cluster.follower_rate, ByteRate(self.clock)),
                traffic=ReplicationTraffic(),
                voting=self.voting,
            ),
        )
        self.reports = IsrReports(
            self,
            self.replicas,
            broker_id=broker_id,
            broker_epoch=lambda: self.epoch,
            backoff=self._backoff,
            timeout_ms=lambda: 1000,
        )
        self.checks = InSyncChecks(self.replicas, self.clock, lambda: LAG_MS)
        self.lifecycle.let_vote(self.voting)
        self.lifecycle.start()
        log_dirs = self.replicas.engines[cluster.storage].log_dirs()
        self.home = log_dirs[0].directory_id if log_dirs else ZERO_ID

    @property
    def epoch(self) -> int:
        return self.cluster.driven.image.brokers[self.broker_id].broker_epoch

    def broker(self, broker_id: int) -> BrokerImage | None:
        return self.cluster.driven.image.brokers.get(broker_id)

    @staticmethod
    def _backoff() -> Backoff:
        return Backoff(20, 1000, random.Random(1))

    def _progressed(self, replicas: Collection[Replica]) -> None:
        self.fetches.check(replicas)
        self.cluster.stir()

    def _closed(self, connection: Connection) -> None:
        self.fetches.cancel_for(connection)

    def _leader_changed(self, partition: TopicIdPartition, leader_id: int, leader_epoch: int) -> None:
        self.fetchers.leader_changed(partition)

    async def request(self, node_id: int, message: Message, *, timeout_ms: int, purpose: str = "") -> Any:
        """See `BrokerRequests.request`: through whole frames and the other's router, unless the two are cut."""
        other = self.cluster.nodes[node_id]
        if node_id in self.cluster.refusing:
            await trio.sleep(POLL_S)
            self.voting.peer_refused(node_id)  # as its channel tells
            raise NobodyListensError(f"nobody listens at {node_id}")
        if message.__api_key__ in VOTES:
            return await self._ask_vote(other, message)
        client = MemoryClient(other.router)
        self.cluster.check_reaches(self.broker_id, node_id)
        client.send(message, VERSIONS[message.__api_key__])
        try:
            while True:
                client.turn()
                answers = client.received()
                if answers:
                    await trio.sleep(POLL_S)
                else:
                    await self.cluster.stirred()
                self.cluster.check_reaches(self.broker_id, node_id)
                if answers:
                    return answers[0]
        finally:
            other.router.connection_closed(client.connection)

    async def _ask_vote(self, other: Node, message: Message) -> Any:
        """Ask for votes; silence ends as a request's time does."""
        self.cluster.asked.append(message)
        with trio.move_on_after(1):
            while True:
                await trio.sleep(POLL_S)
                if frozenset((self.broker_id, other.broker_id)) not in self.cluster.cuts:
                    answer = await other.voting.answer(message)
                    await trio.sleep(POLL_S)
                    self.cluster.check_reaches(self.broker_id, other.broker_id)
                    return answer
                await trio.sleep(0.1)
        raise ConnectionFailedError(f"{other.broker_id} is silent")

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`: the controller's node is number 0."""
        await trio.sleep(POLL_S)
        self.cluster.check_reaches(self.broker_id, 0)
        response = self.cluster.decide(request)
        await trio.sleep(POLL_S)
        self.cluster.check_reaches(self.broker_id, 0)
        return response

    async def run(self) -> None:
        """Live until cancelled, or ended."""
        with self._scope:
            await self._serve()

    def end(self) -> None:
        """End it as `kill -9` does, but for its files, which stay open: the next life begins on a copy of them."""
        self._scope.cancel()

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.fetchers.run)
            await nursery.start(self.reports.run)
            await nursery.start(self.checks.run)
            await nursery.start(self.voting.run)
            while True:
                await trio.sleep(0.02)
                for entry in self.wheel.advance(self.clock.monotonic_ms(), 1000):
                    entry.expire()
                    self.cluster.stir()

    def replica(self, partition: int = 0) -> Replica:
        return self.replicas.get("t", partition)

    def produce(self, *values: bytes, acks: int = -1, partition: int = 0, producer_id: int = -1) -> int:
        """Append a batch, and return the first offset after it; it is acknowledged once the high watermark is there.

        With a producer it is its first.
        """
        replica = self.replica(partition)
        builder = BatchBuilder()
        if producer_id >= 0:
            builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0)
        for value in values:
            builder.append(None, value, timestamp=self.clock.now_ms())
        batch = builder.build()
        append_as_leader(replica, memoryview(batch), read_header(batch), acks)
        self.writes.stage(replica)
        self.writes.write_staged()
        return replica.log.log_end_offset

    def values(self, end_offset: int | None = None) -> list[tuple[int, bytes]]:
        """Return the records of the log below an offset, with their offsets."""
        found = []
        log = self.replica().log
        for batch in log.batches(log.log_start_offset):
            header = read_header(batch)
            found += [(record.offset, bytes(record.value or b"")) for record in read_batch(batch, 0, header)]
        return [each for each in found if end_offset is None or each[0] < end_offset]


class Cluster:
    """Some nodes and a controller, which is at once where everybody asks. Made by `running`."""

    def __init__(
        self, directory: Path, min_isr: int, log_config: LogConfig, election: str, brokers: int, fetch_slots: int
    ) -> None:
        self.settings = SETTINGS
        self.fetch_slots = fetch_slots
        self.leader_rate = self.follower_rate = NO_RATE
        self.throttled: dict[str, Any] = {}
        self.driven = DrivenController(brokers=brokers)
        self.cuts: set[frozenset[int]] = set()
        self.deaf: set[int] = set()
        self.refusing: set[int] = set()
        self.asked: list[Message] = []
        self._told: dict[Node, object] = {}
        self.min_isr = min_isr
        self._log_config = log_config
        self._election = election
        self.storage = "memory" if election == "isr" else "segment"
        rules = self.driven.rules
        elections = {**rules.elections, "quorum": QuorumElectionFactory()}
        self.driven.controller._rules = self.driven.rules = attrs.evolve(rules, elections=elections)
        self._stirred = trio.Event()
        self._lives = 0
        self.nursery: trio.Nursery | None = None
        self.nodes = {number: Node(self, number, directory / str(number)) for number in range(1, brokers + 1)}

    def stir(self) -> None:
        """Something may have changed that somebody waits for."""
        self._stirred.set()
        self._stirred = trio.Event()

    async def stirred(self) -> None:
        """Wait until something may have changed, or for a moment."""
        with trio.move_on_after(0.05):
            await self._stirred.wait()

    def check_reaches(self, one: int, other: int) -> None:
        if frozenset((one, other)) in self.cuts:
            raise ConnectionFailedError(f"{one} does not reach {other}")

    def decide(self, request: Message) -> Any:
        """Have the controller answer, and tell everybody."""
        self.asked.append(request)
        try:
            response = self.driven.apply(self.driven.controller.decide(request))
        finally:
            self.publish()
        return response

    def create(self, *replicas: int, partitions: int = 1) -> None:
        if self._election == "isr":
            self.decide(create_topics(topic("t", -1, -1, {index: list(replicas) for index in range(partitions)})))
        else:
            state = self.driven.rules.elections[self._election].initial_state(
                replicas, self.driven.image.live_brokers()
            )
            topic_id = uuid.UUID(int=77)
            record = TopicRecord(name="t", topic_id=topic_id, storage=self.storage, election=self._election)
            self.driven.controller.replay(record)
            for index in range(partitions):
                self.driven.controller.replay(partition_record(topic_id, index, state, [ZERO_ID] * len(replicas)))
            self.publish()

    def fence(self, broker_id: int) -> None:
        """Take a broker for dead."""
        self._change(broker_id, fence=True)

    def unfence(self, broker_id: int) -> None:
        self._change(broker_id, fence=False)

    def _change(self, broker_id: int, *, fence: bool) -> None:
        epoch = self.driven.image.brokers[broker_id].broker_epoch
        self.driven.apply(self.driven.controller.change_broker(broker_id, epoch, fence=fence))
        self.publish()

    def register_again(self, broker_id: int, seed: int) -> None:
        """Have a new process of a broker, which is fenced, register."""
        self.driven.register(registration(broker_id, seed=seed))
        self.publish()

    @property
    def plan(self) -> TopicPlan:
        return TopicPlan(
            storage=self.storage,
            election=self._election,
            stages=(),
            log_config=self._log_config,
            settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=self.min_isr, **self.throttled),
            values={},
        )

    def publish(self) -> None:
        """Bring the metadata to every node that is not deaf; what says nothing new of the topic is no news to it."""
        topic_image = self.driven.image.topics_by_name.get("t")
        if topic_image is None:
            return
        for number, node in self.nodes.items():
            self.stir()
            news = (topic_image, self.plan.settings)
            if number not in self.deaf and self._told.get(node) != news:
                self._told[node] = news
                node.lifecycle.open_topic("t", topic_image.topic_id, self.plan, dict(enumerate(topic_image.partitions)))

    @property
    def state(self) -> PartitionState:
        return self.driven.image.topics_by_name["t"].partitions[0]

    @property
    def topic_id(self) -> uuid.UUID:
        return self.driven.image.topics_by_name["t"].topic_id

    @property
    def leader(self) -> Node:
        return self.nodes[self.state.leader]

    async def restart(
        self,
        number: int,
        *,
        boot_id: uuid.UUID = BOOT,
        is_clean: bool = False,
        change: Callable[[Path], object] = lambda _directory: None,
        votes_files: Files | None = None,
    ) -> Node:
        """End a node's process, and begin another one on its disk.

        Args:
            number: Whose.
            boot_id: Of the machine on which it begins.
            is_clean: Whether it closes its logs.
            change: What becomes of its disk meanwhile.
            votes_files: Where its votes lie; those of the system unless given.
        """
        old = self.nodes[number]
        old.end()
        await trio.testing.wait_all_tasks_blocked()
        if is_clean:
            old.lifecycle.close()
        self._lives += 1
        directory = old.directory.parent / f"{number} life {self._lives}"
        shutil.copytree(old.directory, directory)
        change(directory)
        self.nodes[number] = fresh = Node(self, number, directory, boot_id=boot_id, votes_files=votes_files)
        fresh.home = old.home
        assert self.nursery is not None, "it runs"
        self.nursery.start_soon(fresh.run)
        self.publish()
        return fresh

    def cut(self, one: int, *others: int) -> None:
        self.cuts |= {frozenset((one, other)) for other in others}

    def heal(self) -> None:
        """Reach everybody, and tell everybody what is."""
        self.cuts.clear()
        self.deaf.clear()
        self.publish()

    async def wait(self, what: str, condition: Any, seconds: float = 60) -> None:
        """Let time pass until something holds."""
        with trio.move_on_after(seconds):
            while not condition():
                await self.stirred()
            return
        raise AssertionError(f"{what}: not within {seconds} s; {[node.replica() for node in self.nodes.values()]}")

    async def acknowledged(self, offset: int) -> None:
        """Wait until everything below an offset is committed."""
        leader = self.leader
        await self.wait(f"{offset} is committed", lambda: leader.replica().high_watermark >= offset)


@asynccontextmanager
async def running(
    directory: Path,
    *replicas: int,
    min_isr: int = 2,
    log_config: LogConfig | None = None,
    election: str = "isr",
    partitions: int = 1,
    brokers: int = 3,
    fetch_slots: int = 10,
) -> AsyncIterator[Cluster]:
    """Run a cluster with topic `t`, one partition, or some, on these brokers."""
    cluster = Cluster(directory, min_isr, log_config or LogConfig(), election, brokers, fetch_slots)
    async with trio.open_nursery() as nursery:
        cluster.nursery = nursery
        for node in cluster.nodes.values():
            nursery.start_soon(node.run)
        await trio.testing.wait_all_tasks_blocked()
        cluster.create(*(replicas or (1, 2, 3)), partitions=partitions)
        try:
            yield cluster
        finally:
            nursery.cancel_scope.cancel()


__all__ = ["Cluster", "KafkaError", "Node", "running"]
