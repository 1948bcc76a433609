"""Shell: deletes what policies say is too old or too much, every `log.retention.check.interval.ms`.

What lies below a log's start (DeleteRecords) goes by `partitions/upkeep.py`, whatever the policy. Who reads a segment
that is deleted goes on reading: an open file outlives its name, and names live for `file.delete.delay.ms`.

A pass of compaction opens segments by their names, the oldest last: one that was deleted meanwhile would cost it all
its work. So nothing is deleted of a log during a pass, and at once after it, before the next one begins. A pass that
altered settings cut short is made up for when the compactor begins anew, or here, whatever comes first.

*Source:* LogManager.cleanupLogs, UnifiedLog.deleteOldSegments, LogCleanerManager.deletableLogs of Kafka 4.3.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..classes import frozen
from ..contracts.storage import NO_LIMIT
from ..errors import StorageError
from ..machine.threads import Workers
from ..partitions.delay_recovery import kept_end
from .log_states import state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..config.broker import BrokerConfig
    from ..contracts.cleanup import CleanupSettings, Deletion
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.full_disks import FullDisks
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..types import TopicIdPartition
    from .log_states import Policies

log = logging.getLogger(__name__)

FIRST_PAUSE_S_MAX: Final = 30.0
PAUSE_S_MIN: Final = 0.05


@frozen
class RetentionSettings:
    """When logs are looked at, in milliseconds.

    Attributes:
        check_interval_ms: How often.
        initial_delay_ms: For the first time; None for the interval, but 30 s at most.
    """

    check_interval_ms: int
    initial_delay_ms: int | None = None

    @classmethod
    def of(cls, config: BrokerConfig) -> RetentionSettings:
        """Take them from the configuration: who has logs looked at often wants that at once, unless told otherwise."""
        delay = "log.initial.task.delay.ms"
        return cls(
            check_interval_ms=config.get_int("log.retention.check.interval.ms"),
            initial_delay_ms=config.get_int(delay) if config.is_set(delay) else None,
        )


class Retention:
    """The service that deletes. Owned by the broker's nursery; works on the reactor's task and one worker thread."""

    def __init__(
        self,
        *,
        replicas: Replicas,
        full_disks: FullDisks,
        policies: Policies,
        clock: Clock,
        threads: Threads,
        settings: Callable[[], RetentionSettings],
        carry: Callable[[Replica, int], None],
    ) -> None:
        self._replicas = replicas
        self._full_disks = full_disks
        self._policies = policies
        self._clock = clock
        self._settings = settings
        self._carry = carry
        self._worker = Workers(threads, 1)
        self._passed_over: set[TopicIdPartition] = set()
        self.deleted_segments = 0
        self.topics_without_policy = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; a log that is looked at is looked at to the end."""
        task_status.started()
        delay_ms = self._settings().initial_delay_ms
        pause_s = min(FIRST_PAUSE_S_MAX, self._pause_s()) if delay_ms is None else delay_ms / 1000
        while True:
            await trio.sleep(pause_s)
            await self.clean()
            pause_s = self._pause_s()

    def _pause_s(self) -> float:
        return max(self._settings().check_interval_ms / 1000, PAUSE_S_MIN)

    async def clean(self) -> None:
        """Look at every log once, and delete what its topic's policies want deleted."""
        missing = 0
        self._passed_over.clear()  # what is in a pass still comes back
        for topic in list(self._replicas.topics.values()):
            await trio.lowlevel.checkpoint()
            missing += bool(self._policies.missing(topic.name, topic.plan.cleanup))
            for replica in [*topic.partitions.values(), *self._full_disks.waiting(topic)]:
                with self._guarding(replica):
                    await self._clean(replica, topic.plan.cleanup)
        self.topics_without_policy = missing

    async def after_pass(self, replica: Replica, settings: CleanupSettings) -> None:
        """Delete of a log what was left there for a pass that is over now."""
        was_passed_over = replica.partition in self._passed_over
        self._passed_over.discard(replica.partition)
        with self._guarding(replica):
            if replica.offline_reason is None:
                replica.log.delete_segments_below(replica.log.log_start_offset)
            if was_passed_over:
                await self._clean(replica, settings)

    @contextmanager
    def _guarding(self, replica: Replica) -> Iterator[None]:
        """Have a partition pay for what goes wrong with its log, and nobody for a policy."""
        try:
            yield
        except StorageError as error:
            if replica.offline_reason is None:
                self._replicas.fail(replica, error)
        except Exception:  # a policy's bug: the other logs go on, and this one next time
            log.exception("retention of %s failed", replica.topic_partition)

    async def _clean(self, replica: Replica, settings: CleanupSettings) -> None:
        is_empty = not replica.log.size_bytes and replica.tiered_log is None
        is_leaders = replica.tiered_log is not None and not replica.is_leader  # what is in the store expires once
        if replica.offline_reason is not None or is_empty or is_leaders:
            return
        await trio.lowlevel.checkpoint()
        lookup = replica.log.begin_time_lookup(NO_LIMIT)
        if lookup is not None:
            await self._worker.do(lookup)
        if replica.is_in_pass:
            self._passed_over.add(replica.partition)
            return
        plan = self._policies.plan(state_of(replica, settings, self._clock.now_ms()))
        if plan.deletion is not None:
            spared = sparing_delayed(replica, plan.deletion)
            self.deleted_segments += delete_segments(replica, spared)
            if spared.below < plan.deletion.below and replica.is_leader:
                self._carry(replica, plan.deletion.below)


def sparing_delayed(replica: Replica, deletion: Deletion) -> Deletion:
    """Return a deletion that leaves what holds records that wait, and all behind it.

    Of a leader it goes later, once what waits was carried forward; a follower hears of its leader where the log starts.

    As long as it is not known what waits, nothing is deleted.
    """
    if replica.delay_beginning is not None:
        return attrs.evolve(deletion, below=min(deletion.below, replica.log.log_start_offset))
    needed_from = None if replica.delays is None else replica.delays.needed_from(kept_end(replica))
    if needed_from is None or needed_from >= deletion.below:
        return deletion
    return attrs.evolve(deletion, below=min(needed_from, replica.log.active_base_offset))


def delete_segments(replica: Replica, deletion: Deletion) -> int:
    """Delete a log's segments below an offset, the active one too if it lies below; return how many.

    Raises:
        StorageError: The log is offline now.
    """
    partition_log = replica.log
    assert deletion.below <= replica.high_watermark, "what is not committed stays"
    if deletion.below > partition_log.active_base_offset:
        partition_log.roll()
    count = partition_log.delete_segments_below(deletion.below)
    if count:
        replica.producers.transactions.advance_log_start(partition_log.log_start_offset)
        if replica.delays is not None:
            replica.delays.start_advanced(partition_log.log_start_offset)
        log.info(
            "%s: deleted %d segments below offset %d: %s",
            replica.topic_partition,
            count,
            partition_log.log_start_offset,
            deletion.reason,
        )
    return count
