"""A partition with delayed records in two tiers: real segment files, a store in memory, visits made by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import attrs
import trio
import trio.testing

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.following import append_as_follower, begin_at_store, note_leader, rebuild_after_cut
from odradek.kernel.records.batch import read_header
from odradek.kernel.types import LogOffsets
from odradek.plugins.storage_tiered.log import TieredPartitionLog
from odradek.plugins.storage_tiered.tier import TieredStorage
from odradek.testing.object_stores import MemoryObjectStore
from tests.machines import machine_with
from tests.plugins.storage_tiered.tiered_house import CLUSTER_ID, HouseCluster, HouseConfig

from .delayed_partition import WAITS, DelayedPartition

NOTHING_LOCAL: Final = TierSettings(
    -1, local_retention_bytes=0, remote_log_copy_disable=False, cleanup=CleanupSettings()
)
EVERYTHING_LOCAL: Final = attrs.evolve(NOTHING_LOCAL, local_retention_bytes=-1)
SMALL: Final = LogConfig(segment_bytes=400)


class Handle:
    """The broker, as far as its tier asks."""

    cluster_id = CLUSTER_ID

    def __init__(self, directory: Path, partition: TieredDelays) -> None:
        self.node_id = 1
        self.machine = machine_with(clock=ManualClock(), random=random.Random(str(directory)))
        self.config = HouseConfig(directory, {})
        self.cluster = HouseCluster()
        self._partition = partition

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        return self._partition.replica.offsets

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        self._partition.asked_below = below
        return self._partition.delivery.carrying.may_leave_disk(topic, partition, below)


class TieredDelays(DelayedPartition):
    """Led by broker 1, or followed by it; all that is in the store and may leave its disk does so at a visit."""

    def __init__(
        self,
        directory: Path,
        store: MemoryObjectStore,
        *,
        leader: int = 1,
        log_config: LogConfig = SMALL,
        settings: DelaySettings | None = WAITS,
        tier_settings: TierSettings | None = NOTHING_LOCAL,
        dead_letters_of: str = "",
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.asked_below = 0
        self.tier = TieredStorage(Handle(directory, self), store=store)  # type: ignore[arg-type] # as far as it is asked
        super().__init__(
            directory,
            leader=leader,
            log_config=log_config,
            settings=settings,
            dead_letters_of=dead_letters_of,
            tier=self.tier,
            tier_settings=tier_settings,
        )

    @property
    def log(self) -> TieredPartitionLog:
        log = self.replica.log
        assert isinstance(log, TieredPartitionLog)
        return log

    @property
    def local_start(self) -> int:
        return self.log.local_log_start_offset

    def switch_tier(self, *, is_on: bool) -> None:
        """Have the topic get the tier while it serves, or lose it."""
        self.tier_settings = NOTHING_LOCAL if is_on else None
        plan = self.hosted.plan(self.log_config, self.tier_settings, self.settings)
        run_at_once(self.hosted.lifecycle.reconfigure_topic_in_steps("t", plan))

    def flush(self) -> None:
        """Make everything durable, and known to be."""
        self.write_staged()
        self.replica.log.flush()
        self.hosted.writes.note_flushed(self.replica, self.replica.log, None)
        engine = self.hosted.replicas.engines["segment"]
        work = engine.begin_checkpoint({self.replica.partition: self.replica.high_watermark})
        if work is not None:
            work.run()
            work.finish(None)

    def visit(self) -> None:
        """Have the tier look at the log once, as its leader or as a follower."""
        self.flush()
        passes = self.tier.passes

        async def look() -> None:
            if not self.replica.is_leader:
                await passes.follow(self.log, lambda: True)
            elif self.log.manifest is not None or passes.has_due(self.log):
                await passes.take_over(self.log, self.replica.leader_epoch)
                await passes.run(self.log, self.replica.leader_epoch, lambda: True)

        trio.run(look, clock=trio.testing.MockClock())  # all visits at one time: what was sent is paid for by that

    def carry_asked(self) -> None:
        """Have carried what the tier has asked for, as far as it is committed."""
        self.carry(self.asked_below)

    def leave(self) -> None:
        """Have all that may leave the disk do so, and what waits there carried."""
        self.visit()
        self.carry_asked()
        self.visit()

    def begin_at_store(self, leader: TieredDelays) -> None:
        """Begin where the leader's local log does, as a follower that lacks what is before that; fetch the rest."""
        start = self.log.begin_at_store(leader.local_start, is_exact=True)
        start.run()
        for work in start.begin_keeping():
            work.run()
            work.finish(None)
        begin_at_store(self.replica, start)
        self.rebuild()
        self.fetch(leader)

    def rebuild(self) -> None:
        """Read again what the log says that was cut, or has begun anew."""
        trio.run(rebuild_after_cut, self.hosted.lifecycle, self.replica, self.now_ms)
        assert self.replica.offline_reason is None

    def fetch(self, leader: TieredDelays, batches_max: int = 1_000) -> None:
        end = self.replica.log.log_end_offset
        ahead = [batch for batch in leader.batches() if read_header(batch).base_offset >= end]
        for batch in ahead[:batches_max]:
            append_as_follower(self.replica, batch)
        self.replica.write()
        note_leader(self.replica, leader.replica.high_watermark, leader.replica.log.log_start_offset)

    def fail_over_to(self, follower: TieredDelays) -> None:
        """Have a follower lead, and this one follow."""
        follower.leader, follower.epoch = 1, self.epoch + 1
        follower.take_state()
        self.leader, self.epoch = 2, follower.epoch
        self.take_state()
