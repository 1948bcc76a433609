"""Shell: what a broker does for its logs now and then: checkpoints, timed flushes, forgetting, removing.

| what | how often |
|---|---|
| high watermarks, recovery points, log start offsets are kept | `replica.high.watermark.checkpoint.interval.ms` |
| producers silent for `producer.id.expiration.ms` are forgotten | `producer.id.expiration.check.interval.ms` |
| producer snapshots and delay ledgers are kept, for a quick start | `log.flush.offset.checkpoint.interval.ms` |
| snapshots of many producers that a tiered log began as it rolled are written | every second |
| segments whose records are all deleted are given up | every ten seconds (Kafka: `log.retention.check.interval.ms`) |
| files of deleted logs and segments are removed | every second; each waits for its `file.delete.delay.ms` |
| closed segments are flushed, so that a crash need not check them again | every second |
| logs that could not be opened are tried again | every ten seconds |
| topics with `flush.ms` are flushed | every `flush.ms`, looked at each `log.flush.scheduler.interval.ms` |

All but the forgetting and the trying again look at what changed since their last look (`changed_replicas.py`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..classes import frozen
from ..contracts.storage import NO_LIMIT
from ..errors import StorageError
from ..machine.threads import Workers
from ..machine.turnstile import SLICE_STEPS, run_in_slices, take_turn
from ..purgatory.timing_wheel import until_beat_ms
from .changed_replicas import Look
from .delay_recovery import DELAY_KIND, is_worth_keeping, remove_old_checkpoints
from .producer_snapshot import SNAPSHOT_KIND
from .recovery import remove_old_snapshots
from .unkept_snapshots import keep_first, keep_many_producers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..contracts.services import ConfigView
    from ..delay.ledger import DelayLedger
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..types import TopicIdPartition
    from .flush_service import FlushService
    from .replica import Replica
    from .replica_lifecycle import ReplicaLifecycle
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

SECOND_S: Final = 1.0
SECOND_MS: Final = 1000
TEN_SECONDS_S: Final = 10.0
_FLUSH_PAUSE_S: Final = 0.25
REPLICAS_PER_PIECE: Final = 200
"""After how many replicas others get their turn."""
PAUSE_S_MIN: Final = 0.1
"""Kafka's keys allow an interval of zero and less, and no work is worth a core of its own."""


@frozen
class UpkeepSettings:
    """How often, in milliseconds; each after the broker's key.

    `flush_check_interval_ms` is `NO_LIMIT` where it was not set.
    """

    checkpoint_interval_ms: int
    snapshot_interval_ms: int
    producer_expiration_interval_ms: int
    flush_check_interval_ms: int

    @classmethod
    def of(cls, config: ConfigView) -> UpkeepSettings:
        """Take them from the broker's configuration."""
        return cls(
            checkpoint_interval_ms=config.get_int("replica.high.watermark.checkpoint.interval.ms"),
            snapshot_interval_ms=config.get_int("log.flush.offset.checkpoint.interval.ms"),
            producer_expiration_interval_ms=config.get_int("producer.id.expiration.check.interval.ms"),
            flush_check_interval_ms=config.get_int("log.flush.scheduler.interval.ms"),
        )


class Upkeep:
    """The regular work on all replicas. Owned by the broker's nursery."""

    def __init__(
        self,
        *,
        replicas: Replicas,
        lifecycle: ReplicaLifecycle,
        writes: StagedWrites,
        flushes: FlushService,
        clock: Clock,
        threads: Threads,
        settings: UpkeepSettings,
    ) -> None:
        self._replicas = replicas
        self._lifecycle = lifecycle
        self._writes = writes
        self._flushes = flushes
        self._clock = clock
        self._settings = settings
        self._worker = Workers(threads, 1)
        self._wants_flushes = trio.Event()
        if settings.flush_check_interval_ms != NO_LIMIT:
            self._wants_flushes.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; a piece of work under way on a thread is waited for."""
        settings = self._settings
        async with trio.open_nursery() as nursery:
            for pause_s, works in (
                (settings.checkpoint_interval_ms / 1000, (self.checkpoint,)),
                (settings.snapshot_interval_ms / 1000, (self.keep_producers,)),
                (settings.producer_expiration_interval_ms / 1000, (self.forget_producers,)),
                (SECOND_S, (self.keep_rolled, self.remove_files, self.flush_closed_segments, self.find_timed_flushes)),
                (TEN_SECONDS_S, (self.give_up_segments, self.retry_failed_logs)),
            ):
                nursery.start_soon(self._repeat, pause_s, works, name=works[0].__name__)
            nursery.start_soon(self._flush_for_ever, name=self.flush_by_time.__name__)
            task_status.started()

    async def _repeat(self, pause_s: float, works: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Work now and then. Works of one pause share a task: an idle broker is woken for all of them at once."""
        while True:
            await self._pause(pause_s)
            for work in works:
                await self._do(work)

    async def _flush_for_ever(self) -> None:
        await self._wants_flushes.wait()
        interval_ms = self._settings.flush_check_interval_ms
        pause_s = _FLUSH_PAUSE_S if interval_ms == NO_LIMIT else interval_ms / 1000
        while True:
            await self._pause(pause_s)
            await self._do(self.flush_by_time)

    async def find_timed_flushes(self) -> None:
        """Look for a log that `flush.ms` wants flushed, until there is one: then `flush_by_time` looks often.

        Kafka never looks unless `log.flush.scheduler.interval.ms` is set, so that `flush.ms` alone does nothing there.
        """
        if not self._wants_flushes.is_set():
            await self.flush_by_time()

    async def _pause(self, pause_s: float) -> None:
        """Sleep; what is done every second, in every broker that does nothing else, is done together."""
        if pause_s == SECOND_S:
            pause_s = until_beat_ms(self._clock.monotonic_ms(), SECOND_MS) / SECOND_MS
        else:
            pause_s = max(pause_s, PAUSE_S_MIN)
        await trio.sleep(pause_s)

    async def _do(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except StorageError as error:
            log.error("%s: %s", work.__name__, error)
        except Exception:  # a storage's bug: the other kinds of upkeep go on, and this one next time
            log.exception("%s failed", work.__name__)

    async def checkpoint(self) -> None:
        """Keep high watermarks, recovery points and log start offsets."""
        replicas = self._replicas
        marks: dict[str, dict[TopicIdPartition, int]] = {name: {} for name in replicas.engines}
        for number, replica in enumerate(replicas.changed.take(Look.HIGH_WATERMARK), 1):
            if number % REPLICAS_PER_PIECE == 0:
                await take_turn()
            if replicas.is_served(replica):
                marks[replicas.topics[replica.partition.topic].plan.storage][replica.partition] = replica.high_watermark
                if replica.high_watermark < replica.log.log_end_offset:
                    replicas.changed.again(Look.HIGH_WATERMARK, replica)
        for name, engine in replicas.engines.items():
            work = engine.begin_checkpoint(marks[name])
            if work is not None:
                await self._worker.do(work)
        await trio.lowlevel.checkpoint()

    async def keep_producers(self) -> None:
        """Keep a producer snapshot of every log that grew since its last one."""
        changed = self._replicas.changed
        for number, replica in enumerate(changed.take(Look.PRODUCERS), 1):
            if number % REPLICAS_PER_PIECE == 0:
                await take_turn()
            offset = replica.log.log_end_offset
            # Of a log that has rolled also when it knows no producer: after a crash it is read from there on.
            is_worth_it = len(replica.producers) or replica.log.active_base_offset > replica.log.log_start_offset
            if self._replicas.is_served(replica) and is_worth_it and replica.snapshot_offset != offset:
                try:
                    await self._keep_producers(replica, offset)
                except StorageError as error:
                    if replica.offline_reason is None:
                        log.error("producers of %s are not kept: %s", replica.partition, error)
                        changed.again(Look.PRODUCERS, replica)
            if replica.delays is not None and self._replicas.is_served(replica):
                await self._keep_delays(replica, replica.delays)
        await trio.lowlevel.checkpoint()

    async def _keep_producers(self, replica: Replica, offset: int) -> None:
        partition_log, unkept = replica.log, replica.unkept
        data = await run_in_slices(replica.producers.snapshot_in_steps())
        if replica.log is not partition_log or replica.unkept is not unkept:
            return  # it was moved or truncated meanwhile
        await self._worker.do(partition_log.begin_sidecar(offset, SNAPSHOT_KIND, data))
        replica.snapshot_offset = offset
        remove_old_snapshots(partition_log, replica.tiered_log)

    async def _keep_delays(self, replica: Replica, ledger: DelayLedger) -> None:
        partition_log = replica.local_log
        offset = partition_log.log_end_offset
        try:
            if is_worth_keeping(partition_log, ledger):
                data = b"".join(ledger.encode())
                await self._worker.do(partition_log.begin_sidecar(offset, DELAY_KIND, data))
                remove_old_checkpoints(partition_log)
        except StorageError as error:
            if replica.offline_reason is None:
                log.error("what waits in %s is not kept: %s", replica.partition, error)
                self._replicas.changed.again(Look.PRODUCERS, replica)
        except Exception:  # a delay queue's bug: the next start reads the log, and other replicas are kept
            log.exception("what waits in %s is not kept", replica.partition)

    async def keep_rolled(self) -> None:
        """Write the snapshots of producers that were begun as logs rolled."""
        for number, replica in enumerate(self._replicas.changed.take(Look.ROLLED_SNAPSHOTS), 1):
            if number % REPLICAS_PER_PIECE == 0:
                await take_turn()
            while replica.unkept.first is not None:
                try:
                    await keep_first(replica, self._worker)
                except StorageError as error:
                    log.error("producers of %s are not kept: %s", replica.partition, error)

    async def keep_at_end(self) -> None:
        """Keep many producers in slices before the broker ends; of the others it keeps them as it closes."""
        for replica in list(self._replicas):
            if replica.offline_reason is None:
                try:
                    await keep_many_producers(replica, self._worker)
                except StorageError as error:
                    log.error("producers of %s are not kept: %s", replica.partition, error)

    async def forget_producers(self) -> None:
        """Forget producers that were silent for too long."""
        now_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        for place, replica in enumerate(list(self._replicas), 1):
            if place % REPLICAS_PER_PIECE == 0:
                await take_turn()
            for number, _ in enumerate(replica.producers.remove_expired_in_steps(now_ms), 1):
                if number % SLICE_STEPS == 0:
                    await take_turn()
            replica.producers.give_up_verifications(monotonic_ms)
        await trio.lowlevel.checkpoint()

    async def give_up_segments(self) -> None:
        """Give up the segments that lie wholly below their log's start; who reads them goes on reading."""
        changed = self._replicas.changed
        for number, replica in enumerate(changed.take(Look.DELETED_RECORDS)):
            if replica.is_in_pass:  # which reads them: they are given up when it is over
                changed.again(Look.DELETED_RECORDS, replica)
            elif self._replicas.is_served(replica):
                try:
                    replica.log.delete_segments_below(replica.log.log_start_offset)
                except StorageError as error:
                    self._replicas.fail(replica, error)
                if replica.tiered_log is not None:  # its start follows the store, too
                    changed.again(Look.DELETED_RECORDS, replica)
            if number % REPLICAS_PER_PIECE == 0:
                await trio.lowlevel.checkpoint()

    async def remove_files(self) -> None:
        """Remove files of deleted logs and segments whose time has come."""
        for engine in self._replicas.engines.values():
            removal = engine.begin_removal(self._clock.monotonic_ms())
            if removal is not None:
                await self._worker.do(removal)

    async def flush_closed_segments(self) -> None:
        """Ask for a flush of the logs that rolled since their last one; nobody waits for it."""
        rolled = []
        changed = self._replicas.changed
        for number, replica in enumerate(changed.take(Look.CLOSED_SEGMENTS), 1):
            if number % REPLICAS_PER_PIECE == 0:
                await take_turn()
            if self._replicas.is_served(replica) and replica.log.recovery_point < replica.log.active_base_offset:
                rolled.append(replica)
                changed.again(Look.CLOSED_SEGMENTS, replica)  # until it was
        if rolled:
            self._flushes.flush_closed_segments(rolled)

    async def retry_failed_logs(self) -> None:
        """Try again to open logs that could not be opened."""
        await self._lifecycle.retry_failed_logs()
        await trio.lowlevel.checkpoint()

    async def flush_by_time(self) -> None:
        """Ask for a flush of the logs whose topic wants one by time and that have something to flush."""
        now_ms = self._clock.monotonic_ms()
        replicas, changed = self._replicas, self._replicas.changed
        for number, replica in enumerate(changed.take(Look.TIMED_FLUSH), 1):
            if number % REPLICAS_PER_PIECE == 0:
                await take_turn()
            if not replicas.is_served(replica) or replica.log.recovery_point >= replica.log.log_end_offset:
                continue
            flush_ms = replicas.topics[replica.partition.topic].plan.log_config.flush_ms
            if flush_ms == NO_LIMIT:
                continue
            self._wants_flushes.set()
            changed.again(Look.TIMED_FLUSH, replica)  # until it was
            if now_ms - replica.flushed_ms >= flush_ms:
                replica.flushed_ms = now_ms
                self._writes.ask_for_flush(replica)
