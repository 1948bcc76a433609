"""Replicas over real segment files, as handlers meet them."""

import random
import uuid
from collections.abc import Callable, Collection
from pathlib import Path

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.contracts.tiering import Tier, TierSettings
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import Files, OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.delays import Delays
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.log_moves import LogMoves
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.validation import ValidationRules
from odradek.plugins.storage_segment.engine import SegmentEngine

from .local_replicas import make_replicas, nothing

PLAIN = LogConfig()


def unlimited() -> Throttle:
    """Return one that no disk reaches."""
    return Throttle(lambda: 1e300, lambda: 0.0, SystemThreads().new_event())


class Hosted:
    """Replicas over real segment files in two log directories, with what a test needs to fill it."""

    def __init__(
        self,
        directory: Path,
        on_progress: Callable[[Collection[Replica]], None] = lambda replicas: None,
        files: Files | None = None,
        tier: Tier | None = None,
        delays: Delays | None = None,
    ) -> None:
        self.files = files or OsFiles()
        self.on_progress = on_progress
        self.on_flush_wanted: Callable[[], None] = nothing
        self.on_staged: Callable[[], None] = nothing
        self.tier = tier
        self.delays = delays
        self.clock = ManualClock()
        self.dirs = [str(directory / name) for name in ("one", "two")]
        self.begin()

    def restart(self) -> None:
        """End, and start again on the same directories; nothing is open then."""
        self.lifecycle.close()
        self.begin()

    def begin(self) -> None:
        self.local = make_replicas(
            self.clock,
            {"segment": self.make_engine()},
            on_progress=self.on_progress,
            on_staged=lambda: self.on_staged(),
            on_flush_wanted=lambda: self.on_flush_wanted(),
            tier=self.tier,
            delays=self.delays,
        )
        self.replicas, self.lifecycle, self.writes = self.local
        self.lifecycle.start()

    def moves(
        self, on_moved: Callable[[], None] = nothing, new_throttle: Callable[[], Throttle] = unlimited
    ) -> LogMoves:
        return LogMoves(*self.local, on_moved=on_moved, new_throttle=new_throttle, threads=SystemThreads())

    def make_engine(self) -> SegmentEngine:
        return SegmentEngine(
            StorageContext(
                log_dirs=self.dirs,
                node_id=1,
                cluster_id="",
                settings={},
                now_ms=self.clock.now_ms,
                monotonic_ms=self.clock.monotonic_ms,
                random=random.Random(0),
                new_id=RandomIds(random.Random(0)).new_id,
                files=self.files,
                threads=SystemThreads(),
            )
        )

    def open(
        self,
        topic: str,
        partitions: int = 1,
        *,
        leader: int = 1,
        epoch: int = 0,
        log_config: LogConfig = PLAIN,
        tier: TierSettings | None = None,
        delay: DelaySettings | None = None,
        dead_letters_of: str = "",
    ) -> None:
        state = PartitionState(
            leader=leader, leader_epoch=epoch, partition_epoch=0, replicas=tuple({1, leader}), isr=tuple({1, leader})
        )
        self.lifecycle.open_topic(
            topic,
            uuid.uuid5(uuid.NAMESPACE_DNS, topic),
            self.plan(log_config, tier, delay, dead_letters_of),
            dict.fromkeys(range(partitions), state),
        )

    @staticmethod
    def plan(
        log_config: LogConfig = PLAIN,
        tier: TierSettings | None = None,
        delay: DelaySettings | None = None,
        dead_letters_of: str = "",
    ) -> TopicPlan:
        return TopicPlan(
            storage="segment",
            election="isr",
            stages=(),
            log_config=log_config,
            settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1, dead_letters_of=dead_letters_of),
            values={},
            tier=tier,
            delay=delay,
        )

    def produce(
        self,
        topic: str,
        sequence: int,
        count: int = 1,
        *,
        partition: int = 0,
        producer_id: int = 5,
        epoch: int = 0,
        txn: bool = False,
    ) -> Replica:
        replica = self.replicas.get(topic, partition)
        builder = BatchBuilder(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=txn
        )
        for _ in range(count):
            builder.append(None, b"v", timestamp=self.clock.now_ms())
        batch = builder.build()
        append_as_leader(replica, memoryview(batch), read_header(batch), 1, verified=NOT_NEEDED)
        self.writes.stage(replica)
        self.writes.write_staged()
        return replica

    def stage(self, topic: str) -> Replica:
        """Stage one record; nothing is written."""
        replica = self.replicas.get(topic, 0)
        builder = BatchBuilder()
        builder.append(None, b"v", timestamp=self.clock.now_ms())
        batch = builder.build()
        append_as_leader(replica, memoryview(batch), read_header(batch), 1)
        self.writes.stage(replica)
        return replica
