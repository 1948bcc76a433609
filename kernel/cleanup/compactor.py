"""Shell: has logs compacted, the most urgent first, by workers beside the reactor, and puts in place what they wrote.

A round asks the policies about every log that may be compacted, gives the most urgent ones to workers, at most
`log.cleaner.threads` at once, and begins anew; with nothing to do it sleeps for `log.cleaner.backoff.ms`. While one
worker is busy, with a large log or a disk that hangs, it asks again for the places of those that are done.

| what goes wrong | what becomes of it |
| --- | --- |
| a damaged batch, a policy that fails | the partition is uncleanable: log line, metric, tried again much later |
| a segment is missing, a disk refuses | the new segments are given up; tried again after a growing pause |
| what was read is truncated meanwhile | the same: what they were made of is not the log any more |
| the log moves to another directory | the same; it is not compacted until it has moved |
| a worker that dies | the same; after some in a row the partition is uncleanable; see `setbacks.py` |
| a worker that gives nothing for long | a log line every ten minutes: it may wait for a disk, or be throttled |
| this service fails | restarted with a growing pause (`services.py`) |

*Source:* Kafka 4.3: LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..classes import define, frozen
from ..contracts.storage import NO_LIMIT
from ..errors import StorageError
from ..machine.threads import Workers
from ..partitions.delay_recovery import kept_end
from ..records.batch import CorruptRecordsError
from .batch_filter import LastRecord
from .compaction_job import CompactionDone, CompactionJob, GroupRewritten, SegmentLooked
from .due_times import DueTimes
from .first_times import FirstTimes
from .log_states import state_of
from .setbacks import Circumstances, Failure, Setbacks
from .workers import UncleanableError, WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ..contracts.cleanup import CleanupSettings, LogState
    from ..contracts.rewriting import SegmentRewrite
    from ..contracts.services import ConfigView
    from ..contracts.storage import PartitionLog
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.topic_replicas import TopicReplicas
    from ..types import TopicIdPartition, TopicPartition
    from .log_states import JoinedPlan, Policies
    from .workers import Worker

log = logging.getLogger(__name__)

PAUSE_S_MIN: Final = 0.05
SILENCE_S: Final = 600.0
"""How long a worker may give nothing before that is logged."""
_THREADS_MAX: Final = 16


@frozen
class CompactorSettings:
    """The keys `log.cleaner.*`, without their prefix; sizes in bytes, times in milliseconds."""

    enable: bool
    threads: int
    dedupe_buffer_size: int
    io_buffer_load_factor: float
    io_buffer_size: int
    io_max_bytes_per_second: float
    backoff_ms: int

    @classmethod
    def of(cls, config: ConfigView) -> CompactorSettings:
        """Take them from the broker's configuration."""
        return cls(
            enable=config.get_bool("log.cleaner.enable"),
            threads=config.get_int("log.cleaner.threads"),
            dedupe_buffer_size=config.get_int("log.cleaner.dedupe.buffer.size"),
            io_buffer_load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            io_buffer_size=config.get_int("log.cleaner.io.buffer.size"),
            io_max_bytes_per_second=config.get_float("log.cleaner.io.max.bytes.per.second"),
            backoff_ms=config.get_int("log.cleaner.backoff.ms"),
        )

    @property
    def table_bytes(self) -> int:
        """How much memory the table of one thread may take."""
        return self.dedupe_buffer_size // max(self.threads, 1)

    def differs_from(self, other: CompactorSettings) -> bool:
        """Say whether a pass would be another one with other settings."""
        return attrs.evolve(self, backoff_ms=other.backoff_ms) != other


@define
class CompactorStatistics:
    """What compaction came to since the start; read by the metrics."""

    rounds_count: int = 0
    compactions_count: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    deaths_count: int = 0
    duration_ms_max: int = 0
    dirty_percent_max: int = 0
    last_run_ms: int = 0


@frozen(eq=False)
class _Candidate:
    topic: TopicReplicas
    replica: Replica
    plan: JoinedPlan
    urgency: float


@define(eq=False)
class _Heard:
    """When a worker last gave something, in trio's time."""

    at_s: float


class Compactor:
    """The service that compacts. Owned by the broker's nursery; logs are touched on the reactor's task only."""

    def __init__(
        self,
        *,
        replicas: Replicas,
        policies: Policies,
        clock: Clock,
        threads: Threads,
        settings: Callable[[], CompactorSettings],
        start_worker: Callable[[CompactionJob], Worker],
        after_pass: Callable[[Replica, CleanupSettings], Awaitable[None]],
    ) -> None:
        self._replicas = replicas
        self._policies = policies
        self._clock = clock
        self._settings = settings
        self._start_worker = start_worker
        self._after_pass = after_pass
        self._threads = Workers(threads, _THREADS_MAX)
        self._setbacks = Setbacks()
        self._due = DueTimes()
        self._first_times = FirstTimes(self._threads)
        self._altered = trio.Event()
        self._round_scope = trio.CancelScope()
        self._round_settings: CompactorSettings | None = None
        self._workers: set[Worker] = set()
        self._under_way: dict[TopicIdPartition, _Candidate] = {}
        self._begun: dict[TopicIdPartition, _Candidate] = {}
        self._has_news = trio.Event()
        self.statistics = CompactorStatistics(last_run_ms=clock.monotonic_ms())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled: workers are ended, and what they have not finished is begun anew another time."""
        task_status.started()
        while True:
            await self._rest()
            while self._settings().enable and await self.round():
                pass
            self.statistics.last_run_ms = self._clock.monotonic_ms()

    async def _rest(self) -> None:
        """Wait for `log.cleaner.backoff.ms`, which may be altered meanwhile."""
        begun_s = trio.current_time()
        while (rest_s := begun_s + self._pause_s() - trio.current_time()) > 0:
            self._altered = trio.Event()
            with trio.move_on_after(rest_s):
                await self._altered.wait()

    def _pause_s(self) -> float:
        return max(self._settings().backoff_ms / 1000, PAUSE_S_MIN)

    def settings_altered(self) -> None:
        """Hear that the broker's configuration is another one; on the reactor's task.

        A round under way works with other numbers then: it is ended, and begun anew with these, as Kafka restarts its
        cleaners. What it has put in place stays. A thread cannot be ended, and would write beside the next one: a round
        with such a worker begins no other pass, and ends with those that are under way.
        """
        self._altered.set()
        self._has_news.set()
        can_end = all(worker.ends_at_close for worker in self._workers)
        if can_end and self._round_settings is not None and self._round_settings.differs_from(self._settings()):
            self._round_scope.cancel()

    @property
    def uncleanable(self) -> Mapping[TopicIdPartition, str]:
        """The logs that are given up for now, with the reasons."""
        return self._setbacks.uncleanable

    def silence_ms(self) -> int:
        """Return how long ago all logs were looked at to the end."""
        return self._clock.monotonic_ms() - self.statistics.last_run_ms

    async def round(self) -> bool:
        """Compact the most urgent logs; return whether there may be more to do."""
        settings = self._round_settings = self._settings()
        self.statistics.rounds_count += 1
        try:
            with trio.CancelScope() as self._round_scope:
                return await self._compact_most_urgent(settings)
        finally:
            self._round_settings = None
        return True  # it was ended: what is altered counts at once

    async def _compact_most_urgent(self, settings: CompactorSettings) -> bool:
        for candidate in list(self._begun.values()):  # of passes that were cut short
            await self._end_pass(candidate)
        has_begun = False
        async with trio.open_nursery() as nursery:
            while True:
                self._has_news = trio.Event()
                if len(self._under_way) < settings.threads and not settings.differs_from(self._settings()):
                    has_begun |= await self._begin_most_urgent(settings, nursery)
                if self._under_way:
                    with trio.move_on_after(self._pause_s()):
                        await self._has_news.wait()
                if not self._under_way:
                    return has_begun

    async def _begin_most_urgent(self, settings: CompactorSettings, nursery: trio.Nursery) -> bool:
        candidates = await self._candidates()
        if settings.differs_from(self._settings()):
            return False
        dirty = [each.urgency for each in (*candidates, *self._under_way.values()) if each.plan.compaction is not None]
        self.statistics.dirty_percent_max = int(100 * max(dirty, default=0))
        candidates.sort(key=lambda each: each.urgency, reverse=True)
        for candidate in candidates[: settings.threads - len(self._under_way)]:
            partition = candidate.replica.partition
            self._under_way[partition] = candidate
            nursery.start_soon(self._compact_watched, candidate, settings, name=f"compaction of {partition}")
        if not candidates:
            self.statistics.last_run_ms = self._clock.monotonic_ms()
        return bool(candidates)

    async def _candidates(self) -> list[_Candidate]:
        found = []
        topics = list(self._replicas.topics.values())
        for topic in topics:
            if not self._policies.rewrites(topic.plan.cleanup):
                continue
            await trio.lowlevel.checkpoint()
            for replica in list(topic.partitions.values()):
                if replica.partition in self._under_way:
                    continue
                candidate = await self._candidate_guarded(topic, replica)
                if candidate is not None:
                    found.append(candidate)
        self._due.keep_only(self._is_present)
        self._first_times.keep_only(self._is_present)
        self._setbacks.keep_only(self._is_present)
        return found

    def _is_present(self, partition: TopicIdPartition) -> bool:
        topic = self._replicas.topics_by_id.get(partition.topic_id)
        return topic is not None and partition.partition in topic.partitions

    async def _candidate_guarded(self, topic: TopicReplicas, replica: Replica) -> _Candidate | None:
        partition_log = replica.log
        try:
            return await self._candidate(topic, replica)
        except CorruptRecordsError as error:  # one segment: the log is read, and written, as before
            self._note(topic, replica, self._settings(), Failure.LASTING, str(error))
        except StorageError as error:
            if replica.offline_reason is None and replica.log is partition_log:
                self._replicas.fail(replica, error)
        except OSError as error:  # a segment was deleted while its first batch was to be read
            log.debug("planning the compaction of %s: %s", replica.topic_partition, error)
        except Exception:  # a policy's bug: the other logs go on, and this one later
            self._note(topic, replica, self._settings(), Failure.PUT_OFF, "its policy failed")
            log.exception("planning the compaction of %s failed", replica.topic_partition)
        return None

    async def _candidate(self, topic: TopicReplicas, replica: Replica) -> _Candidate | None:
        partition_log, partition = replica.log, replica.partition
        if replica.offline_reason is not None or (replica.tiered_log is not None and not replica.is_leader):
            return None  # what is in the store is its leader's
        if replica.delay_beginning is not None:
            return None  # nobody knows yet what waits
        if replica.is_moving:
            return None  # all of it would have to be copied once more
        clean_end = partition_log.clean_end if not self._policies.expires(topic.plan.cleanup) else 0
        if partition_log.rewritable_end <= max(clean_end, partition_log.log_start_offset):
            return None
        await trio.lowlevel.checkpoint()  # of most logs there was no more to be seen
        circumstances = circumstances_of(topic, replica, self._settings())
        if self._setbacks.is_resting(partition, circumstances, self._clock.monotonic_ms()):
            return None
        lookup = partition_log.begin_time_lookup(NO_LIMIT)
        if lookup is not None:
            await self._threads.do(lookup)
        state = state_of(replica, topic.plan.cleanup, self._clock.now_ms())
        times = await self._first_times.of(partition, partition_log, state)
        state = attrs.evolve(state, first_timestamps=times)
        if self._policies.expires(topic.plan.cleanup):
            bases = [segment.base_offset for segment in state.segments]
            state = attrs.evolve(state, due_ms=self._due.of(partition, topic.plan.cleanup, bases))
        plan = self._policies.plan(state)
        if plan.compaction is not None:
            return _Candidate(topic, replica, plan, plan.compaction.urgency)
        if plan.segments:
            return _Candidate(topic, replica, plan, _share_of(state, plan.segments))
        return None

    async def _compact_watched(self, candidate: _Candidate, settings: CompactorSettings) -> None:
        heard = _Heard(trio.current_time())
        self._begun[candidate.replica.partition] = candidate
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_tell_of_silence, candidate.replica.topic_partition, heard)
                await self._compact_guarded(candidate, settings, heard)
                nursery.cancel_scope.cancel()
            await self._end_pass(candidate)
        finally:
            del self._under_way[candidate.replica.partition]
            self._has_news.set()

    async def _end_pass(self, candidate: _Candidate) -> None:
        """Have done what was left to a pass that is over. Cancelled: it is done before another one begins."""
        replica, partition = candidate.replica, candidate.replica.partition
        topic = self._replicas.topics_by_id.get(partition.topic_id)
        if topic is not None and topic.partitions.get(partition.partition) is replica:
            await self._after_pass(replica, topic.plan.cleanup)
        del self._begun[partition]

    async def _compact_guarded(self, candidate: _Candidate, settings: CompactorSettings, heard: _Heard) -> None:
        partition = candidate.replica.partition
        begun_ms = self._clock.monotonic_ms()
        try:
            await self._compact(candidate, settings, heard)
        except UncleanableError as error:
            self._note(candidate.topic, candidate.replica, settings, Failure.LASTING, str(error))
        except WorkerDiedError as error:
            self.statistics.deaths_count += 1
            log.error("compaction of %s: %s", partition, error)
            self._note(candidate.topic, candidate.replica, settings, Failure.DEATH, str(error))
        except (StorageError, OSError) as error:
            if candidate.replica.offline_reason is None:
                log.warning("compaction of %s is put off: %s", partition, error)
            self._note(candidate.topic, candidate.replica, settings, Failure.PUT_OFF, str(error))
        except Exception as error:  # a bug of ours, or of a storage: the other logs go on
            log.exception("compaction of %s failed", partition)
            self._note(candidate.topic, candidate.replica, settings, Failure.LASTING, repr(error))
        else:
            self._setbacks.forget(partition)
            self.statistics.compactions_count += 1
        duration_ms = self._clock.monotonic_ms() - begun_ms
        self.statistics.duration_ms_max = max(self.statistics.duration_ms_max, duration_ms)

    def _note(
        self, topic: TopicReplicas, replica: Replica, settings: CompactorSettings, failure: Failure, reason: str
    ) -> None:
        if replica.offline_reason is not None:
            return
        has_become_uncleanable = self._setbacks.note(
            replica.partition,
            circumstances_of(topic, replica, settings),
            failure,
            reason,
            now_ms=self._clock.monotonic_ms(),
            pause_ms=self._settings().backoff_ms,
        )
        if has_become_uncleanable:
            log.error(
                "%s is not compacted, and grows: %s; it is tried again in an hour, or when its topic's cleanup "
                "settings, or the memory of log.cleaner, are changed; see `odradek log dump`",
                replica.partition,
                reason,
            )

    async def _compact(self, candidate: _Candidate, settings: CompactorSettings, heard: _Heard) -> None:
        replica, partition_log = candidate.replica, candidate.replica.log
        replica.lowest_cut, unread_offset = NO_LIMIT, partition_log.active_base_offset
        worker = self._start_worker(self._job_of(candidate, settings))
        self._workers.add(worker)
        try:
            replica.note_pass(is_under_way=True)
            while True:
                step = await self._threads.run_sync(worker.next_step, abandon_on_cancel=True)
                heard.at_s = trio.current_time()
                if replica.log is not partition_log:
                    raise StorageError("the log was moved")
                if replica.lowest_cut < unread_offset:
                    raise StorageError("the log was truncated")
                if isinstance(step, CompactionDone):
                    if step.clean_end is not None:
                        partition_log.note_clean_end(step.clean_end)
                    return
                if replica.is_moving:
                    raise StorageError("its log moves to another directory, and is compacted there")
                if isinstance(step, SegmentLooked):
                    self.statistics.bytes_read += step.bytes_read
                    self._due.note(replica.partition, [step.base_offset], step.due_ms)
                else:
                    await self._put_in_place(replica, partition_log, step)
                    if candidate.plan.expiries:
                        self._due.note(replica.partition, step.base_offsets, step.due_ms)
        finally:
            self._workers.discard(worker)
            worker.close()
            replica.note_pass(is_under_way=False)

    async def _put_in_place(self, replica: Replica, partition_log: PartitionLog, step: GroupRewritten) -> None:
        await self._threads.do(partition_log.begin_replacement(step.base_offsets))
        known, start_offset = replica.producers.transactions.aborted(), step.base_offsets[0]
        others = [each for each in known if not start_offset <= each.last_offset < step.end_offset]
        replica.producers.transactions.replace_aborted([*others, *step.aborted])
        self.statistics.bytes_read += step.bytes_read
        self.statistics.bytes_written += step.bytes_written
        log.info(
            "%s: compacted offsets %d to %d: %d bytes are left of %d",
            replica.topic_partition,
            step.base_offsets[0],
            step.end_offset,
            step.bytes_written,
            step.bytes_read,
        )

    def _job_of(self, candidate: _Candidate, settings: CompactorSettings) -> CompactionJob:
        replica, plan, wanted = candidate.replica, candidate.topic.plan, candidate.plan
        delays = replica.delays
        threads = max(settings.threads, 1)
        return CompactionJob(
            compaction=wanted.compaction,
            rewrite=_rewrite_of(replica.log, wanted),
            aborted=replica.producers.transactions.aborted(),
            last_records={
                state.producer_id: LastRecord(
                    state.batches[-1].last_offset if state.batches else -1, state.producer_epoch
                )
                for state in replica.producers.states()
            },
            memory_bytes=settings.table_bytes,
            load_factor=settings.io_buffer_load_factor,
            buffer_bytes=max(settings.io_buffer_size // threads, 1),
            bytes_per_second=settings.io_max_bytes_per_second / threads,
            segment_bytes=plan.log_config.segment_bytes,
            segment_index_bytes=plan.log_config.segment_index_bytes,
            delete_retention_ms=plan.cleanup.delete_retention_ms,
            now_ms=self._clock.now_ms(),
            expiries=wanted.expiries,
            needed_stretches=None if delays is None else delays.needed_stretches(kept_end(replica)),
        )


async def _tell_of_silence(partition: TopicPartition, heard: _Heard) -> None:
    while True:
        since_s = heard.at_s
        for number in count(1):
            await trio.sleep_until(since_s + number * SILENCE_S)
            if heard.at_s != since_s:
                break
            log.warning(
                "compaction of %s: its worker has given nothing for %d minutes, and the log grows: its disk may hang, "
                "or log.cleaner.io.max.bytes.per.second may be too low",
                partition,
                number * SILENCE_S / 60,
            )


def circumstances_of(topic: TopicReplicas, replica: Replica, settings: CompactorSettings) -> Circumstances:
    """Return what makes a log that failed worth another try when it changes."""
    return Circumstances(
        topic.plan.cleanup, replica.log.log_start_offset, settings.table_bytes, settings.io_buffer_load_factor
    )


def _share_of(state: LogState, bases: Sequence[int]) -> float:
    """Return how much of a log some segments are."""
    wanted = set(bases)
    part_bytes = sum(segment.size_bytes for segment in state.segments if segment.base_offset in wanted)
    return part_bytes / max(sum(segment.size_bytes for segment in state.segments), 1)


def _rewrite_of(partition_log: PartitionLog, plan: JoinedPlan) -> SegmentRewrite:
    """Return the segments that a plan wants read, and where new ones go."""
    if plan.compaction is not None:
        return partition_log.begin_rewrite(plan.compaction.end_offset)
    rewrite = partition_log.begin_rewrite(plan.segments[-1] + 1)
    wanted = set(plan.segments)
    return attrs.evolve(rewrite, sources=[each for each in rewrite.sources if each.base_offset in wanted])
