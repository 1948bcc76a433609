"""A replica manager over real segment files, as handlers meet it."""

import random
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig, StorageContext, StorageEngine
from odradek.kernel.contracts.tiering import Tier, TierSettings
from odradek.kernel.machine.clock import Clock, ManualClock
from odradek.kernel.machine.files import Files, OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.replica_manager import ReplicaManager
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.validation import ValidationRules
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.storage_segment.engine import SegmentEngine

PLAIN = LogConfig()


def make_manager(
    clock: Clock,
    engines: Mapping[str, StorageEngine],
    on_progress: Callable[[Collection[Replica]], None] = lambda replicas: None,
    tier: Tier | None = None,
) -> ReplicaManager:
    """Make the manager of broker 1, of which nobody else wants to know anything."""
    return ReplicaManager(
        broker_id=1,
        engines=engines,
        elections={"isr": IsrElectionFactory()},
        config=lambda: BrokerConfig(Registry.of()),
        stages={},
        clock=clock,
        random_source=random.Random(0),
        producer_id_expiration_ms=86_400_000,
        on_progress=on_progress,
        on_staged=lambda: None,
        on_flush_wanted=lambda: None,
        on_leader_changed=lambda partition, leader_id, leader_epoch: None,
        tier=tier,
    )


def unlimited() -> Throttle:
    """Return one that no disk reaches."""
    return Throttle(lambda: 1e300, lambda: 0.0, SystemThreads().new_event())


class Hosted:
    """A replica manager over real segment files in two log directories, with what a test needs to fill it."""

    def __init__(
        self,
        directory: Path,
        on_progress: Callable[[Collection[Replica]], None] = lambda replicas: None,
        files: Files | None = None,
        tier: Tier | None = None,
    ) -> None:
        self.files = files or OsFiles()
        self.on_progress = on_progress
        self.tier = tier
        self.clock = ManualClock()
        self.dirs = [str(directory / name) for name in ("one", "two")]
        self.replicas = make_manager(self.clock, {"segment": self.make_engine()}, on_progress, tier)
        self.replicas.start()

    def restart(self) -> None:
        """End, and start again on the same directories; nothing is open then."""
        self.replicas.close()
        self.replicas = make_manager(self.clock, {"segment": self.make_engine()}, self.on_progress, self.tier)
        self.replicas.start()

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
    ) -> None:
        state = PartitionState(
            leader=leader, leader_epoch=epoch, partition_epoch=0, replicas=tuple({1, leader}), isr=tuple({1, leader})
        )
        self.replicas.open_topic(
            topic,
            uuid.uuid5(uuid.NAMESPACE_DNS, topic),
            self.plan(log_config, tier),
            dict.fromkeys(range(partitions), state),
        )

    @staticmethod
    def plan(log_config: LogConfig = PLAIN, tier: TierSettings | None = None) -> TopicPlan:
        return TopicPlan(
            storage="segment",
            election="isr",
            stages=(),
            log_config=log_config,
            settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1),
            values={},
            tier=tier,
        )

    def produce(
        self, topic: str, sequence: int, count: int = 1, *, producer_id: int = 5, epoch: int = 0, txn: bool = False
    ) -> Replica:
        replica = self.replicas.get(topic, 0)
        builder = BatchBuilder(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=txn
        )
        for _ in range(count):
            builder.append(None, b"v", timestamp=self.clock.now_ms())
        batch = builder.build()
        replica.append_as_leader(memoryview(batch), read_header(batch), 1, verified=NOT_NEEDED)
        self.replicas.stage(replica)
        self.replicas.write_staged()
        return replica

    def stage(self, topic: str) -> Replica:
        """Stage one record; nothing is written."""
        replica = self.replicas.get(topic, 0)
        builder = BatchBuilder()
        builder.append(None, b"v", timestamp=self.clock.now_ms())
        batch = builder.build()
        replica.append_as_leader(memoryview(batch), read_header(batch), 1)
        self.replicas.stage(replica)
        return replica
