"""Shell: opens one replica: its log, its producers' state, its election and its append stages, as its plan says.

Nothing is kept of what was opened; who asks decides what becomes of a replica, and of one that cannot be opened.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from ..contracts.election import ElectionContext
from ..contracts.storage import PartitionLog
from ..errors import PluginError, StorageError
from ..plugin_manager import choose_offer, missing_members
from .producer_state import ProducerStateTable
from .recovery import recover_producers
from .replica import Replica

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from ..clock import Clock
    from ..contracts.append_stage import AppendStage, AppendStageFactory
    from ..contracts.election import ElectionFactory
    from ..contracts.services import ConfigView
    from ..contracts.storage import StorageEngine
    from ..contracts.tiering import TieredLog
    from ..types import TopicIdPartition
    from .tiers import Tiers
    from .topic_plan import TopicPlan


@attrs.define(eq=False)
class ReplicaOpener:
    """What replicas are made of on this broker.

    Attributes:
        broker_id: This broker.
        engines: Storage engines by name; they were started.
        elections: Election factories by name.
        config: Returns the broker's configuration as it is now, for elections.
        stages: Append stage factories by name.
        tiers: Wraps the logs of topics that want it.
        clock: Both clocks.
        random: For elections.
        producer_id_expiration_ms: `producer.id.expiration.ms`, of replicas opened from now on.
        kept_high_watermarks: What the last run had reached, by partition.
    """

    broker_id: int
    engines: Mapping[str, StorageEngine]
    elections: Mapping[str, ElectionFactory]
    config: Callable[[], ConfigView]
    stages: Mapping[str, AppendStageFactory]
    tiers: Tiers
    clock: Clock
    random: random.Random
    producer_id_expiration_ms: int
    kept_high_watermarks: dict[TopicIdPartition, int] = attrs.field(factory=dict, init=False)
    _checked_logs: set[type] = attrs.field(factory=set, init=False)

    def open(self, partition: TopicIdPartition, plan: TopicPlan) -> Replica:
        """Open the replica of a partition; if it fails, its log is closed, and it can be tried again.

        Raises:
            StorageError: The log cannot be opened or read.
            PluginError: A plugin that the plan names is missing or broken.
            Exception: A plugin raised it.
        """
        engine = choose_offer(self.engines, plan.storage, "storage", "odradek.storage")
        factory = choose_offer(self.elections, plan.election, "election", "odradek.election")
        opened = engine.open_log(partition, plan.log_config)
        self._check_methods(plan.storage, opened)
        try:
            return self._replica_over(opened, self.tiers.wrap(opened, plan.tier), factory, plan)
        except Exception:
            with suppress(StorageError):
                opened.close()
            raise

    def make_stages(self, partition: TopicIdPartition, plan: TopicPlan) -> tuple[AppendStage, ...]:
        """Return the append stages of a partition, in the plan's order, without those that do not want it."""
        made = (self.stages[name](partition, plan.values) for name in plan.stages)
        return tuple(stage for stage in made if stage is not None)

    def _check_methods(self, storage: str, opened: PartitionLog) -> None:
        """Refuse a log that lacks methods, which would be missed when they are needed; once for each class."""
        if type(opened) not in self._checked_logs:
            missing = missing_members(opened, PartitionLog)
            if missing:
                raise PluginError(
                    "", f"a log of storage {storage!r} has no {missing}: see the contract kit for storages"
                )
            self._checked_logs.add(type(opened))

    def _replica_over(
        self, opened: PartitionLog, tiered_log: TieredLog | None, factory: ElectionFactory, plan: TopicPlan
    ) -> Replica:
        log = opened if tiered_log is None else tiered_log
        partition = log.partition
        if log.recovery_point < log.log_end_offset and plan.log_config.wants_flushes:
            log.flush()  # what a crash left in the page cache is shown only once it is safe
        producers = ProducerStateTable(self.producer_id_expiration_ms)
        recover_producers(log, producers, self.clock.now_ms())
        high_watermark = self.kept_high_watermarks.get(partition, log.log_start_offset)
        election = factory.new_election(
            ElectionContext(
                partition=partition,
                broker_id=self.broker_id,
                log_end_offset=log.log_end_offset,
                high_watermark=min(high_watermark, log.log_end_offset),
                latest_epoch=log.latest_epoch,
                hard_state=None,
                config=self.config,
                settings=plan.values,
                random=self.random,
            )
        )
        return Replica(
            partition=partition,
            log=opened,
            tiered_log=tiered_log,
            election=election,
            producers=producers,
            settings=plan.settings,
            stages=self.make_stages(partition, plan),
        )
