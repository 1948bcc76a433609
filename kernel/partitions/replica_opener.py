"""Shell: opens one replica: its log, its producers' state, its election and its append stages, as its plan says.

Nothing is kept of what was opened; who asks decides what becomes of a replica, and of one that cannot be opened.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from ..classes import define, frozen
from ..contracts.append_stage import AppendStage
from ..contracts.election import Election, ElectionContext, is_among_replicas
from ..contracts.log_values import EpochEnd
from ..contracts.storage import PartitionLog
from ..errors import ErrorCode, KafkaError, PluginError, StorageError
from ..machine.turnstile import run_at_once, run_in_slices
from ..plugin_system.manager import choose_offer, failed
from ..plugin_system.offers import check_made, plugin_of_object
from ..types import ZERO_ID
from .delays import Delays, Retries
from .producer_table import ProducerStateTable
from .recovery import have_producers_read, recover_in_steps
from .replica import Replica
from .voting import Votes

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from uuid import UUID

    from ..contracts.append_stage import AppendStageFactory
    from ..contracts.election import ElectionFactory, IsrChange, KnownBroker
    from ..contracts.log_values import LogDirInfo
    from ..contracts.services import ConfigView
    from ..contracts.storage import StorageEngine
    from ..contracts.tiering import TieredLog
    from ..machine.clock import Clock
    from ..machine.threads import Workers
    from ..types import TopicIdPartition, TopicPartition
    from .tiers import Tiers
    from .topic_plan import TopicPlan
    from .voting import Voting

_logger = logging.getLogger(__name__)


@frozen
class StartedStorage:
    """What a storage had at the start.

    Attributes:
        found: The logs in its directories.
        directories: The paths of the directories that work, by id.
        broken: The paths of those that could not be used.
        missing: Whose logs were to be in one of these.
    """

    found: frozenset[TopicPartition]
    directories: Mapping[UUID, str]
    broken: tuple[str, ...]
    missing: set[TopicIdPartition] = attrs.field(factory=set)


@frozen
class RefusingStage:
    """In the place of a stage that its plugin could not make: no batch gets past it, and none waits.

    Attributes:
        reason: For the producer.
    """

    reason: str

    def accept(self, batch: memoryview) -> memoryview:
        """Refuse a batch.

        Raises:
            KafkaError: Always, with a code that no client tries again.
        """
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, self.reason)


@define(eq=False)
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
        broker: Returns a broker as the metadata knows it now, for elections.
        workers: The threads that recover logs while others are served.
        delays: Makes what topics with delayed records have.
        retries: Makes what topics with failed records have.
        ask_isr: Brings a replica's change of its in-sync set before the controller.
        voting: Carries out what elections decide that vote; None where nobody does.
        known_directory: Returns the log directory that the metadata has for this broker's replica of (topic id, index).
        is_starting: Whether what is opened was there before the start: none of it begins.
        started: Storages that have log directories, by name.
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
    known_directory: Callable[[UUID, int], UUID]
    broker: Callable[[int], KnownBroker | None]
    workers: Workers
    delays: Delays
    retries: Retries
    ask_isr: Callable[[Replica, IsrChange], None] | None = None
    voting: Voting | None = None
    is_starting: bool = attrs.field(default=True, init=False)
    started: dict[str, StartedStorage] = attrs.field(factory=dict, init=False)
    kept_high_watermarks: dict[TopicIdPartition, int] = attrs.field(factory=dict, init=False)
    _told_stages: set[str] = attrs.field(factory=set, init=False)

    def note_started(self, storage: str, log_dirs: Sequence[LogDirInfo], found: Iterable[TopicIdPartition]) -> None:
        """Take note of a storage's log directories, and of the logs in them."""
        if log_dirs:
            self.started[storage] = StartedStorage(
                frozenset(partition.topic_partition for partition in found),
                {info.directory_id: info.path for info in log_dirs if not info.error},
                tuple(info.path for info in log_dirs if info.error),
            )

    def open(self, partition: TopicIdPartition, plan: TopicPlan) -> Replica:
        """Open the replica of a partition; if it fails, its log is closed, and it can be tried again.

        Raises:
            StorageError: The log cannot be opened or read.
            PluginError: A plugin that the plan names is missing or broken.
            Exception: A plugin raised it.
        """
        return run_at_once(self.open_in_steps(partition, plan))

    def open_in_steps(self, partition: TopicIdPartition, plan: TopicPlan) -> Generator[None, None, Replica]:
        """Open a replica as `open` does; yield while its producers are read from its log, as of many batches."""
        opened, factory = self._open_log(partition, plan)
        try:
            if _is_to_be_flushed(opened, plan):
                opened.flush()
            return (yield from self._replica_over(opened, self.tiers.wrap(opened, plan.tier), factory, plan))
        except (Exception, GeneratorExit):
            _close_again(opened)
            raise

    def _open_log(self, partition: TopicIdPartition, plan: TopicPlan) -> tuple[PartitionLog, ElectionFactory]:
        engine = choose_offer(self.engines, plan.storage, "storage", "odradek.storage")
        factory = choose_offer(self.elections, plan.election, "election", "odradek.election")
        started = self.started.get(plan.storage)
        if self.voting is not None and started is not None and is_among_replicas(factory):
            self.voting.begin(started.directories.values())
        opened = engine.open_log(partition, plan.log_config, log_dir=self._directory(partition, plan.storage))
        check_made(opened, PartitionLog, f"a log of storage {plan.storage!r}", engine)
        return opened, factory

    async def open_beside(
        self, partition: TopicIdPartition, plan: TopicPlan, is_wanted: Callable[[], bool]
    ) -> Replica | None:
        """Open a replica as `open` does while others are served: what reads much of its log is done on a thread.

        Args:
            partition: Whose.
            plan: Its topic's.
            is_wanted: Asked before the log is opened: it may be deleted while a thread recovers it.

        Returns:
            None when nobody wanted it any more. Cancelled: its log is closed.
        """
        begin = getattr(self.engines.get(plan.storage), "begin_opening", None)
        work = begin(partition, plan.log_config) if begin is not None else None
        if work is not None:
            await self.workers.do(work)
            if not is_wanted():
                return None
        opened, factory = self._open_log(partition, plan)
        try:
            if _is_to_be_flushed(opened, plan):
                await self.workers.do(opened.begin_flush())
            return await run_in_slices(self._replica_over(opened, self.tiers.wrap(opened, plan.tier), factory, plan))
        except BaseException:
            _close_again(opened)
            raise

    async def open_again(self, replica: Replica, plan: TopicPlan, is_wanted: Callable[[], bool]) -> Replica | None:
        """Open a replica once more beside the one that went offline, as `open_beside` does."""
        self.kept_high_watermarks[replica.partition] = replica.high_watermark
        return await self.open_beside(replica.partition, plan, is_wanted)

    def _directory(self, partition: TopicIdPartition, storage: str) -> str | None:
        """Return where a log goes that is not on the disk: where the metadata has it, whether it ever was there or not.

        Raises:
            StorageError: See `_check_directory`.
        """
        started = self.started.get(storage)
        if started is None:
            return None
        if self.is_starting or started.broken:
            self._check_directory(partition, started)
        return started.directories.get(self.known_directory(partition.topic_id, partition.partition))

    def _check_directory(self, partition: TopicIdPartition, storage: StartedStorage) -> None:
        """Refuse to begin a log anew that lies where it cannot be reached: it would be served without its records.

        Where every directory works, it is told that a log is gone, as when a disk was replaced.

        *Source:* Partition.createLogInAssignedDirectoryId and LogManager.getOrCreateLog of Kafka 4.3 (KIP-858).
        """
        directory = self.known_directory(partition.topic_id, partition.partition)
        if partition.topic_partition in storage.found or directory in storage.directories:
            return
        if not storage.broken:
            if directory != ZERO_ID:
                _logger.warning(
                    "partition %s begins anew: the log directory it was in is empty or not in log.dirs", partition
                )
            return
        if self.is_starting:
            storage.missing.add(partition)
        if directory == ZERO_ID and partition not in storage.missing:
            return  # created since
        raise StorageError(
            f"its log is not in the log directories that work; it may lie in {', '.join(storage.broken)}: repair that, "
            "or take it out of log.dirs to begin the partition anew"
        )

    def _is_at_home(self, opened: PartitionLog, plan: TopicPlan) -> bool:
        """Return whether a log lies in the directory in which the metadata has it."""
        started = self.started.get(plan.storage)
        known = self.known_directory(opened.partition.topic_id, opened.partition.partition)
        return started is not None and started.directories.get(known) == opened.log_dir

    def make_stages(self, partition: TopicIdPartition, plan: TopicPlan) -> tuple[AppendStage, ...]:
        """Return the append stages of a partition, in the plan's order, without those that do not want it."""
        made = (self._make_stage(name, partition, plan) for name in plan.stages)
        return (*[stage for stage in made if stage is not None], *self._waiting_stages(partition, plan))

    def _waiting_stages(self, partition: TopicIdPartition, plan: TopicPlan) -> tuple[AppendStage, ...]:
        """Return the stage that has records wait, which is the last one: nothing may change what it has split."""
        try:
            if plan.retry is None:
                return self.delays.stage(plan.delay, plan.values)
            return (self.retries.stage(partition, plan.retry, plan.values),)
        except PluginError as error:
            queue = plan.delay.queue if plan.delay is not None else ""
            what = f"delay queue {queue!r}" if plan.retry is None else f"retry policy {plan.retry.policy!r}"
            return (self._refusing(what, partition, error),)

    def _make_stage(self, name: str, partition: TopicIdPartition, plan: TopicPlan) -> AppendStage | None:
        """Make a stage; where its plugin fails, one that refuses: what is there can be read, and producers are told."""
        factory, what = self.stages[name], f"append stage {name!r}"
        try:
            stage = factory(partition, plan.values)
            if stage is not None:
                check_made(stage, AppendStage, f"what {what} makes", factory)
        except PluginError as error:
            return self._refusing(what, partition, error)
        except Exception as error:
            told = failed(plugin_of_object(factory), f"{what} cannot be made", error)
            told.__cause__ = error
            return self._refusing(what, partition, told)
        return stage

    def _refusing(self, what: str, partition: TopicIdPartition, error: PluginError) -> RefusingStage:
        """Return what stands in for a stage that is not to be had; each reason is told for its first partition."""
        reason = re.sub(r" at 0x\w+", "", str(error))  # the address of an object is no other reason
        if reason not in self._told_stages:
            self._told_stages.add(reason)
            told = "%s; producers to %s, and wherever else it is so, are refused"
            _logger.error(told, reason, partition, exc_info=error.__cause__)
        return RefusingStage(f"the {what} cannot be made; the broker's log says why")

    def _replica_over(
        self, opened: PartitionLog, tiered_log: TieredLog | None, factory: ElectionFactory, plan: TopicPlan
    ) -> Generator[None, None, Replica]:
        # Before anything can fail: what is closed in good order then tells nothing of how it was found.
        voting = self.voting if is_among_replicas(factory) else None
        votes = Votes() if voting is None else voting.votes_of(opened, is_at_home=self._is_at_home(opened, plan))
        log = opened if tiered_log is None else tiered_log
        partition = log.partition
        producers = ProducerStateTable(self.producer_id_expiration_ms)
        yield from recover_in_steps(log, producers, self.clock.now_ms())
        delays = yield from self.delays.recover_in_steps(opened, plan.delay)
        high_watermark = self.kept_high_watermarks.get(partition, log.log_start_offset)
        election = factory.new_election(
            ElectionContext(
                partition=partition,
                broker_id=self.broker_id,
                directory_id=ZERO_ID,
                log_end_offset=log.log_end_offset,
                high_watermark=min(high_watermark, log.log_end_offset),
                log_end=lambda: EpochEnd(log.latest_epoch, log.log_end_offset),
                hard_state=votes.hard_state,
                config=self.config,
                settings=plan.values,
                random=self.random,
                broker=self.broker,
                may_have_lost=votes.may_have_lost,
            )
        )
        check_made(election, Election, f"an election of {plan.election!r}", factory)
        return Replica(
            partition=partition,
            log=opened,
            tiered_log=tiered_log,
            election=election,
            producers=producers,
            settings=plan.settings,
            stages=self.make_stages(partition, plan),
            ask_isr=self.ask_isr,
            voting=voting,
            delays=delays,
        )


def _is_to_be_flushed(opened: PartitionLog, plan: TopicPlan) -> bool:
    """Return whether what a crash left in the page cache may be shown only once it is safe."""
    return opened.recovery_point < opened.log_end_offset and plan.log_config.wants_flushes


def _close_again(opened: PartitionLog) -> None:
    """Close a log whose replica could not be made; what a crash has left of it is not taken for clean the next time."""
    if not opened.was_clean:
        have_producers_read(opened)
    with suppress(StorageError):
        opened.close()


def discard(replica: Replica) -> None:
    """Close the log of a replica that nobody wants any more, whatever became of its files."""
    with suppress(Exception):
        have_producers_read(replica.log)
        replica.close()
