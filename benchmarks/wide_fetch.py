"""What a consumer of many partitions costs, in a session: a fetch that waits, one append, the answer.

    python -m benchmarks.wide_fetch

One of so many partitions gets a record; the others have nothing new. Handler, session, purgatory and real segment
files, without the network and the codec. Prints the best of five rounds, in microseconds:

| column | what |
|---|---|
| `poll` | a Fetch that finds nothing and is parked |
| `append` | one record to one of the partitions, and with it the wake-up and the answer |
"""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

import attrs

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.dispatch.current_leaders import CurrentLeaders
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.dispatch.handlers.api_01_fetch import FetchHandler
from odradek.kernel.dispatch.wide_fetch import AT_ONCE_MAX
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.partitions.delays import Delays, Retries
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.replica_lifecycle import ReplicaLifecycle
from odradek.kernel.partitions.replica_opener import ReplicaOpener
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.partitions.staged_writes import StagedWrites
from odradek.kernel.partitions.tiers import Tiers
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.storage_segment.engine import SegmentEngine

ROUNDS = 5
VERSION = 13
TOPIC_ID = uuid.UUID(int=77)


@attrs.define(eq=False)
class Connection:
    """Where a request comes from, as far as Fetch looks at it."""

    listener_name: str = "PLAINTEXT"


@attrs.define
class Context:
    """A request's context, as far as Fetch looks at it."""

    answers: list[FetchResponse]
    api_version: int = VERSION
    connection: Connection = attrs.field(factory=Connection)

    def hold(self) -> None:
        """Keep what the request was made of: here nobody takes it away."""

    def reply(self, answer: FetchResponse) -> None:
        """Take the answer of a fetch that waited."""
        self.answers.append(answer)


def report(operation: object, error: Exception) -> None:
    """Fail the benchmark."""
    raise SystemExit(f"{operation}: {error!r}")


class House:
    """Replicas, purgatory and handler."""

    def __init__(self, folder: Path, partitions_count: int) -> None:
        clock = ManualClock()
        context: Any = StorageContext(
            log_dirs=(str(folder),),
            node_id=1,
            cluster_id="",
            settings={},
            now_ms=clock.now_ms,
            monotonic_ms=clock.monotonic_ms,
            random=random.Random(0),
            new_id=RandomIds(random.Random(0)).new_id,
            files=OsFiles(),
            threads=SystemThreads(),
        )
        self.purgatory = Purgatory("Fetch", TimingWheel(now_ms=clock.monotonic_ms()), on_error=report)
        engines = {"segment": SegmentEngine(context)}
        self.replicas = Replicas(engines, on_progress=self.progressed)
        self.writes = StagedWrites(self.replicas, on_staged=lambda: None, on_flush_wanted=lambda: None)
        opener = ReplicaOpener(
            broker_id=1,
            engines=engines,
            elections={"isr": IsrElectionFactory()},
            config=lambda: BrokerConfig(Registry.of()),
            stages={},
            tiers=Tiers(None),
            clock=clock,
            random=random.Random(0),
            producer_id_expiration_ms=86_400_000,
            known_directory=lambda _topic_id, _index: ZERO_ID,
            broker=lambda _broker_id: None,
            workers=Workers(SystemThreads(), 1),
            delays=Delays({}, clock.now_ms),
            retries=Retries({}, clock.now_ms, random.Random(0), {}),
        )
        self.lifecycle = ReplicaLifecycle(
            self.replicas, opener, on_leader_changed=lambda partition, leader_id, leader_epoch: None
        )
        self.lifecycle.start()
        plan = TopicPlan(
            storage="segment",
            election="isr",
            stages=(),
            log_config=LogConfig(),
            settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1),
            values={},
        )
        state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
        self.lifecycle.open_topic("t", TOPIC_ID, plan, dict.fromkeys(range(partitions_count), state))
        self.fetch = FetchHandler(
            replicas=self.replicas,
            sessions=FetchSessionCache(slots=10, random_source=random.Random(0)),
            purgatory=self.purgatory,
            clock=clock,
            max_bytes=1 << 24,
            cold_wait_ms=lambda: 500,
            broker=lambda _broker_id: None,
            leaders=CurrentLeaders.configured(BrokerConfig(Registry.of()), self.replicas, MetadataImage),
        )

    def progressed(self, replicas: Collection[Replica]) -> None:
        """Wake who waits for them."""
        self.purgatory.check(replicas)

    def append(self, partition: int) -> None:
        """Append one record of 100 bytes and end the turn."""
        replica = self.replicas.get("t", partition)
        builder = BatchBuilder()
        builder.append(None, bytes(100), timestamp=1)
        batch = builder.build()
        append_as_leader(replica, memoryview(batch), read_header(batch), 1)
        self.writes.stage(replica)
        self.writes.write_staged()


def request(session_id: int, epoch: int, wanted: list[FetchPartition], max_wait_ms: int) -> FetchRequest:
    """Return a Fetch."""
    topics = [FetchTopic(topic_id=TOPIC_ID, partitions=wanted)] if wanted else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, max_wait_ms=max_wait_ms, min_bytes=1)


def measure(partitions_count: int, appends_count: int) -> tuple[float, float]:
    """Return the microseconds of a poll and of an append that ends it."""
    with tempfile.TemporaryDirectory(prefix="odradek-wide-") as name:
        house = House(Path(name), partitions_count)
        context: Any = Context([])
        partitions = [
            FetchPartition(partition=number, partition_max_bytes=1 << 20) for number in range(partitions_count)
        ]
        session_id = epoch = 0
        for begin in range(0, partitions_count, AT_ONCE_MAX):
            opened = house.fetch.handle(request(session_id, epoch, partitions[begin : begin + AT_ONCE_MAX], 0), context)
            assert isinstance(opened, FetchResponse)
            session_id, epoch = opened.session_id, epoch + 1
        polls, appends = [], []
        for number in range(ROUNDS * appends_count):
            wanted = [FetchPartition(partition=7, fetch_offset=number, partition_max_bytes=1 << 20)]
            poll = request(session_id, epoch + number, wanted, 60_000)
            start_ns = time.perf_counter_ns()
            house.fetch.handle(poll, context)
            parked_ns = time.perf_counter_ns()
            house.append(7)
            answered_ns = time.perf_counter_ns()
            assert len(context.answers) == number + 1, "the append ends the wait"
            polls.append(parked_ns - start_ns)
            appends.append(answered_ns - parked_ns)
        house.lifecycle.close()
    return min(polls) / 1000, min(appends) / 1000


def main() -> None:
    """Print the table."""
    for count in (10, 100, 1000):
        poll_us, append_us = measure(count, 20)
        print(f"{count:5} partitions: poll {poll_us:8.1f} us   append and answer {append_us:8.1f} us", flush=True)


if __name__ == "__main__":
    main()
