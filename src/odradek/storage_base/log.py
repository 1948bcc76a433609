"""Pure core: a whole `PartitionLog` over a few methods that a storage gives.

    PartitionLog                      LogBase                                 the storage (`LogStore`)
    append, write_pending      ──>    offsets, when to roll            ──>    new_segment, write_batches
    read, batches, time        ──>    which segment, how much          ──>    stored
    truncate, delete           ──>    what goes, bounds, epochs        ──>    cut_segment, drop_segments, keep_bounds
    begin_flush, begin_close   ──>    recovery point, late outcomes    ──>    sync
    begin_rewrite, ...         ──>    is it still what it was?         ──>    rewrite_of, take_rewritten

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.log_values import SegmentInfo
from odradek.kernel.contracts.storage import EMPTY_READ, NO_LIMIT, LogRead
from odradek.kernel.errors import StorageError
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.types import NO_EPOCH

from .epochs import EpochCache
from .store import LogBounds, LogSegment, LogStore, SegmentT, StoredBatch
from .work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from odradek.kernel.contracts.disk_work import DiskWork
    from odradek.kernel.contracts.log_values import EpochEnd
    from odradek.kernel.contracts.rewriting import SegmentRewrite
    from odradek.kernel.contracts.storage import LogConfig
    from odradek.kernel.types import Buffer, TopicIdPartition


NEW_LOG: Final = LogBounds()


class LogBase(LogStore[SegmentT]):
    """A `PartitionLog` over what its subclass keeps. Owned, as every log, by the reactor's task.

    A failure of the storage (`StorageError`) inside a change takes the log offline until it is opened again.
    """

    def __init__(
        self,
        partition: TopicIdPartition,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        segments: Iterable[SegmentT] = (),
        log_end_offset: int = 0,
        bounds: LogBounds = NEW_LOG,
    ) -> None:
        """Take what was kept; nothing for a new log, which gets its first segment by `new_segment`."""
        self.partition = partition
        self.directory: Path | None = None
        self.log_dir = ""
        self.log_start_offset = bounds.log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = log_end_offset if bounds.is_closed else min(bounds.recovery_point, log_end_offset)
        self.clean_end = bounds.clean_end
        self.was_clean = bounds.is_closed
        self.offline_reason: str | None = None
        self.config = config
        self.now_ms = now_ms
        self._written_end = log_end_offset
        self._cuts_count = 0
        self._staged: list[tuple[Buffer, int]] = []
        self._epochs = EpochCache(bounds.epochs)
        self._epochs.fit(self.log_start_offset, log_end_offset)  # whoever leads next begins one there
        self._segments = list(segments) or [self.new_segment(self.log_start_offset)]
        self._roll_timestamp = -1
        self._is_closing = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.partition} [{self.log_start_offset}, {self.log_end_offset})>"

    # --------------------------------------------------------------------------------------------------------- state

    @property
    def active_base_offset(self) -> int:
        """See `PartitionLog.active_base_offset`."""
        return self._segments[-1].base_offset

    @property
    def size_bytes(self) -> int:
        """See `PartitionLog.size_bytes`."""
        return sum(s.size_bytes for s in self._segments) + sum(len(batches) for batches, _ in self._staged)

    @property
    def log_segments(self) -> Sequence[SegmentT]:
        """The storage's own segments, oldest first, the one that grows last; not to be changed."""
        return self._segments

    @property
    def written_end(self) -> int:
        """The first offset that is not written; the log end offset counts what is staged, too."""
        return self._written_end

    @property
    def bounds(self) -> LogBounds:
        """What `LogStore.keep_bounds` keeps."""
        return LogBounds(
            self.log_start_offset,
            self.recovery_point,
            self.clean_end,
            self._epochs.entries(),
            is_closed=self._is_closing,
        )

    @property
    def is_closed(self) -> bool:
        """Whether it serves nothing: closed, or failed."""
        return self.offline_reason is not None

    def reopen(self, config: LogConfig) -> None:
        """Take a closed log into use again, for a storage that keeps its logs in memory while it lives.

        Raises:
            AssertionError: It is open.
        """
        assert self.is_closed, f"{self.partition} is open already"
        self.offline_reason, self._is_closing = None, False
        self.reconfigure(config)

    def check_open(self) -> None:
        """Refuse what a closed or failed log is asked.

        Raises:
            StorageError: It is closed, or failed.
        """
        if self.offline_reason is not None:
            raise StorageError(self.offline_reason)

    def segments(self) -> Sequence[SegmentInfo]:
        """See `PartitionLog.segments`."""
        ends = [s.base_offset for s in self._segments[1:]] + [self._written_end]
        return [
            SegmentInfo(s.base_offset, end, s.size_bytes, s.max_timestamp, s.modified_ms, s is self._segments[-1])
            for s, end in zip(self._segments, ends, strict=True)
        ]

    def reconfigure(self, config: LogConfig) -> None:
        """See `PartitionLog.reconfigure`."""
        self.config = config
        self._roll_timestamp = -1

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self.check_open()
        try:
            with self.atomically():
                yield
        except StorageError as error:
            self._fail(error)
            raise

    def _fail(self, error: Exception) -> None:
        self.offline_reason = self.offline_reason or f"{self.partition} is offline: {error}"

    def segment_number(self, offset: int) -> int:
        """Return the number in `log_segments` of the one that holds an offset, or would."""
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    # ------------------------------------------------------------------------------------------------------- writing

    def append(self, batches: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """See `PartitionLog.append`."""
        self.check_open()
        assert base_offset >= self.log_end_offset, f"{base_offset} is before the log's end {self.log_end_offset}"
        self._staged.append((batches, last_offset))
        self.log_end_offset = last_offset + 1

    def write_pending(self) -> bool:
        """See `PartitionLog.write_pending`."""
        self.check_open()
        staged, self._staged = self._staged, []
        if staged:
            try:
                with self._changing():
                    self.write_batches([placed for batches, _ in staged for placed in self._placed(batches)])
            except StorageError:
                self.log_end_offset = self._written_end
                raise
            self._segments[-1].modified_ms = self.now_ms()
            self._written_end = self.log_end_offset
        return self._written_end - self.recovery_point >= self.config.flush_messages

    def _placed(self, batches: Buffer) -> Iterator[tuple[SegmentT, StoredBatch]]:
        """Give each batch of a run its segment; begins new ones."""
        view = memoryview(batches)
        for at, header in iterate_batches(view):
            active = self._segments[-1]
            if active.size_bytes and self._must_roll(active, header.length_bytes, header.max_timestamp):
                active = self.new_segment(header.base_offset)
                self._segments.append(active)
            if not active.size_bytes:
                self._roll_timestamp = header.max_timestamp + self.config.segment_ms
            active.size_bytes += header.length_bytes
            active.max_timestamp = max(active.max_timestamp, header.max_timestamp)
            yield active, StoredBatch(view[at : at + header.length_bytes], header.last_offset, header.max_timestamp)

    def _must_roll(self, active: SegmentT, size: int, timestamp: int) -> bool:
        if self._roll_timestamp < 0:  # the log was opened, or its settings changed
            first = next(self.stored(active, active.base_offset), None)
            self._roll_timestamp = (first.max_timestamp if first is not None else timestamp) + self.config.segment_ms
        return active.size_bytes + size > self.config.segment_bytes or timestamp > self._roll_timestamp

    def roll(self) -> None:
        """See `PartitionLog.roll`."""
        self.write_pending()
        if self._segments[-1].size_bytes:
            with self._changing():
                self._segments.append(self.new_segment(self._written_end))

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`."""
        self.check_open()
        taken, size = self._run_of(offset, max_bytes, end_offset, at_least_one)
        if not taken:
            return EMPTY_READ
        data = bytes(taken[0].data) if len(taken) == 1 else b"".join(batch.data for batch in taken)
        return LogRead(data, size, taken[-1].last_offset + 1)

    def _run_of(
        self, offset: int, max_bytes: int, end_offset: int, at_least_one: bool
    ) -> tuple[Sequence[StoredBatch], int]:
        taken: list[StoredBatch] = []
        size = 0
        for number in range(self.segment_number(offset), len(self._segments)):
            for batch in self.stored(self._segments[number], offset):
                is_too_much = size + len(batch.data) > max_bytes and (taken or not at_least_one)
                if is_too_much or batch.last_offset >= end_offset:
                    return taken, size
                taken.append(batch)
                size += len(batch.data)
            if taken:
                break
        return taken, size

    def _from(self, offset: int) -> Iterator[StoredBatch]:
        for segment in self._segments[self.segment_number(offset) :]:
            yield from self.stored(segment, offset)

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`."""
        for batch in self._from(start_offset):
            if batch.last_offset >= end_offset:
                return
            yield memoryview(batch.data)

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """See `PartitionLog.begin_time_lookup`: by default nothing is worth a thread."""
        del timestamp
        return None

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        for segment in self._segments[self.segment_number(start_offset) :]:
            if segment.max_timestamp >= timestamp:
                for batch in self.stored(segment, start_offset):
                    if batch.max_timestamp >= timestamp:
                        return bytes(batch.data)
        return None

    def max_timestamp(self) -> tuple[int, int]:
        """See `PartitionLog.max_timestamp`."""
        newest = max(self._segments, key=lambda segment: segment.max_timestamp)
        if newest.max_timestamp >= 0:
            for batch in self.stored(newest, newest.base_offset):
                if batch.max_timestamp == newest.max_timestamp:
                    return batch.max_timestamp, batch.last_offset
        return -1, -1

    # -------------------------------------------------------------------------------------------------------- epochs

    @property
    def latest_epoch(self) -> int:
        """See `PartitionLog.latest_epoch`."""
        return self._epochs.latest_epoch

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """See `PartitionLog.assign_epoch`."""
        if self._epochs.assign(leader_epoch, start_offset):
            with self._changing():
                self.keep_bounds()

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """See `PartitionLog.epoch_entries`."""
        return self._epochs.entries()

    # ------------------------------------------------------------------------------------------------------- dropping

    def truncate_to(self, offset: int) -> None:
        """See `PartitionLog.truncate_to`."""
        self.write_pending()
        if offset < self._segments[0].base_offset:
            self.truncate_fully(offset)
            return
        with self._changing():
            if offset < self.log_end_offset:
                kept = self.segment_number(offset) + 1
                gone, self._segments = self._segments[kept:], self._segments[:kept]
                if gone:
                    self.drop_segments(gone)
                self.cut_segment(self._segments[-1], offset)
                self._end_at(self._measure(self._segments[-1]))
            self._epochs.truncate_from_end(offset)
            self.keep_bounds()
        self.sync()

    def truncate_fully(self, start_offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """See `PartitionLog.truncate_fully`."""
        self.write_pending()
        with self._changing():
            self.drop_segments(self._segments)
            self._segments = [self.new_segment(start_offset)]
            self._end_at(start_offset)
            self.log_start_offset = start_offset
            self._epochs.begin_anew(leader_epoch, start_offset)
            self.keep_bounds()
        self.sync()

    def _measure(self, segment: SegmentT) -> int:
        """Look anew what is in a segment; return where it ends."""
        end, segment.size_bytes, segment.max_timestamp = segment.base_offset, 0, -1
        for batch in self.stored(segment, segment.base_offset):
            end = batch.last_offset + 1
            segment.size_bytes += len(batch.data)
            segment.max_timestamp = max(segment.max_timestamp, batch.max_timestamp)
        return end

    def _end_at(self, offset: int) -> None:
        self._cuts_count += 1
        for kind, place in list(self.sidecar_places()):
            if place > offset:
                self.put_sidecar(place, kind, None)
        self.log_end_offset = self._written_end = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.clean_end = min(self.clean_end, offset)
        self._roll_timestamp = -1

    def advance_log_start(self, offset: int) -> None:
        """See `PartitionLog.advance_log_start`."""
        assert offset <= self.log_end_offset, "the log does not start behind its end"
        if offset > self.log_start_offset:
            with self._changing():
                self.log_start_offset = offset
                self._epochs.truncate_from_start(offset)
                self.keep_bounds()

    def delete_segments_below(self, offset: int) -> int:
        """See `PartitionLog.delete_segments_below`."""
        count = 0
        while count + 1 < len(self._segments) and self._segments[count + 1].base_offset <= offset:
            count += 1
        if count:
            with self._changing():
                self.drop_segments(self._segments[:count])
                del self._segments[:count]
            self.advance_log_start(self._segments[0].base_offset)
        return count

    # ------------------------------------------------------------------------------------------------------ rewriting

    @property
    def rewritable_end(self) -> int:
        """See `PartitionLog.rewritable_end`."""
        return max((s.base_offset for s in self._segments if s.base_offset <= self.recovery_point), default=0)

    def note_clean_end(self, offset: int) -> None:
        """See `PartitionLog.note_clean_end`."""
        with self._changing():
            self.clean_end = min(offset, self._written_end)
            self.keep_bounds()

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """See `PartitionLog.begin_rewrite`."""
        self.check_open()
        ends = [s.base_offset for s in self._segments[1:]]
        closed = zip(self._segments, ends, strict=False)
        return self.rewrite_of([(segment, end) for segment, end in closed if segment.base_offset < end_offset])

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        """See `PartitionLog.begin_replacement`."""
        old = self._neighbours(base_offsets)
        if [segment.base_offset for segment in old] != list(base_offsets):
            raise StorageError(
                f"{self.partition}: segments {list(base_offsets)} were deleted while they were rewritten"
            )
        return Work(partial(self._end_replacement, base_offsets, old, self._cuts_count))

    def _neighbours(self, base_offsets: Sequence[int]) -> list[SegmentT]:
        self.check_open()
        first = self.segment_number(base_offsets[0])
        return self._segments[first : min(first + len(base_offsets), len(self._segments) - 1)]

    def _end_replacement(self, base_offsets: Sequence[int], old: Sequence[SegmentT], cuts_count: int) -> None:
        if self._neighbours(base_offsets) != old or cuts_count != self._cuts_count:
            raise StorageError(f"{self.partition}: segments changed while they were rewritten")
        with self._changing():
            fresh, sidecars = self.take_rewritten(base_offsets[0])
            first = self._segments.index(old[0])
            self._segments[first : first + len(old)] = [fresh]
            self.drop_segments(old)
            for base_offset in base_offsets:
                self.put_sidecar(base_offset, "txnindex", None)
            for kind, data in sidecars.items():
                self.put_sidecar(base_offsets[0], kind, data)

    # ----------------------------------------------------------------------------------------------------- small files

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`."""
        return sorted(offset for found, offset in self.sidecar_places() if found == kind)

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        self.put_sidecar(offset, kind, data)

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        self.put_sidecar(offset, kind, None)

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.append_sidecar`."""
        before = self.read_sidecar(offset, kind) if offset in self.sidecars(kind) else b""
        self.put_sidecar(offset, kind, before + data)

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> DiskWork:
        """See `PartitionLog.begin_sidecar`."""
        self.check_open()
        return Work(partial(self._end_sidecar, offset, kind, data, self._cuts_count))

    def _end_sidecar(self, offset: int, kind: str, data: bytes, cuts_count: int) -> None:
        self.check_open()
        if cuts_count != self._cuts_count:
            raise StorageError(f"{self.partition} was truncated: its {kind} at {offset} is not kept")
        self.put_sidecar(offset, kind, data)

    # ------------------------------------------------------------------------------------------------ flushing, closing

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        """See `PartitionLog.begin_flush`."""
        self.check_open()
        end_offset = self.active_base_offset if closed_only else self._written_end
        return Work(partial(self._end_flush, end_offset, self._cuts_count), self.sync, self._fail)

    def _end_flush(self, end_offset: int, cuts_count: int) -> None:
        self.check_open()
        if cuts_count == self._cuts_count:
            self.recovery_point = max(self.recovery_point, end_offset)

    def flush(self) -> int:
        """See `PartitionLog.flush`."""
        do_now(self.begin_flush())
        return self.recovery_point

    def begin_close(self) -> DiskWork:
        """See `PartitionLog.begin_close`."""
        self.write_pending()
        self._is_closing, self.recovery_point = True, self._written_end
        with self._changing():
            self.keep_bounds()
        self.offline_reason = f"{self.partition} is closed"
        return Work(on_thread=self.sync)

    def close(self) -> None:
        """See `PartitionLog.close`."""
        if not self.is_closed:
            do_now(self.begin_close())


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
