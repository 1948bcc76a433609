"""Shell: one log of one partition in memory: lists of batches, searched by bisection.

A batch is copied once, when it is written; what a read gives is the stored bytes, or a join of several.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import (
    EMPTY_READ,
    NO_LIMIT,
    EpochCache,
    LogRead,
    SegmentInfo,
    SegmentRewrite,
    StorageError,
    do_now,
    iterate_batches,
)

from .rewriting import MemoryPlace, MemorySegment, MemorySource
from .work import NoWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.kernel.api import Buffer, DiskWork, EpochEnd, LogConfig, TopicIdPartition


class MemoryLog:
    """A log in memory. Owned by the reactor's task. It ends with the process, so a flush only moves a number."""

    def __init__(self, partition: TopicIdPartition, config: LogConfig, now_ms: Callable[[], int]) -> None:
        self.partition = partition
        self.directory = None
        self.log_dir = ""
        self.was_clean = True
        self.is_closed = False
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self._config = config
        self._now_ms = now_ms
        self._written_end = 0
        self._cuts_count = 0
        self._segments = [MemorySegment(0, now_ms())]
        self._staged: list[tuple[Buffer, int, int, int]] = []
        self._epochs = EpochCache()
        self._sidecars: dict[tuple[str, int], bytes] = {}
        self._rewritten = MemoryPlace(0)
        self.clean_end = 0

    @property
    def active_base_offset(self) -> int:
        """See `PartitionLog.active_base_offset`."""
        return self._segments[-1].base_offset

    @property
    def size_bytes(self) -> int:
        """See `PartitionLog.size_bytes`."""
        return sum(s.size_bytes for s in self._segments) + sum(len(staged[0]) for staged in self._staged)

    @property
    def latest_epoch(self) -> int:
        """See `PartitionLog.latest_epoch`."""
        return self._epochs.latest_epoch

    def append(self, batches: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """See `PartitionLog.append`."""
        self._check_open()
        assert base_offset >= self.log_end_offset, f"{base_offset} is before the log's end {self.log_end_offset}"
        self._staged.append((batches, base_offset, last_offset, max_timestamp))
        self.log_end_offset = last_offset + 1

    def write_pending(self) -> bool:
        """See `PartitionLog.write_pending`."""
        self._check_open()
        for batches, _, _, _ in self._staged:
            for at, header in iterate_batches(batches):
                self._make_room(header.length_bytes, header.base_offset)
                batch = bytes(batches[at : at + header.length_bytes])
                self._segments[-1].add(batch, header.last_offset, header.max_timestamp)
        if self._staged:
            self._staged.clear()
            self._segments[-1].modified_ms = self._now_ms()
            self._written_end = self.log_end_offset
        return self._written_end - self.recovery_point >= self._config.flush_messages

    def _make_room(self, size: int, base_offset: int) -> None:
        active = self._segments[-1]
        if active.size_bytes and active.size_bytes + size > self._config.segment_bytes:
            self._segments.append(MemorySegment(base_offset, self._now_ms()))

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """See `PartitionLog.assign_epoch`."""
        self._epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """See `PartitionLog.epoch_entries`."""
        return self._epochs.entries()

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`."""
        self._check_open()
        if offset >= self._written_end:
            return EMPTY_READ
        segment, first = self._locate(offset)
        last, size = first, 0
        while last < len(segment.batches) and segment.last_offsets[last] < end_offset:
            size += len(segment.batches[last])
            if size > max_bytes and not (at_least_one and last == first):
                break
            last += 1
        if last == first:
            return EMPTY_READ
        data = segment.batches[first] if last == first + 1 else b"".join(segment.batches[first:last])
        return LogRead(data, len(data), segment.last_offsets[last - 1] + 1)

    def _floor(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    def _locate(self, offset: int) -> tuple[MemorySegment, int]:
        number = self._floor(offset)
        first = self._segments[number].number_of(offset)
        while first == len(self._segments[number].batches) and number + 1 < len(self._segments):
            number, first = number + 1, 0
        return self._segments[number], first

    def _batches_from(self, offset: int) -> Iterator[tuple[bytes, int, int]]:
        for segment in self._segments[self._floor(offset) :]:
            first = segment.number_of(offset)
            yield from zip(
                segment.batches[first:], segment.last_offsets[first:], segment.max_timestamps[first:], strict=True
            )

    def begin_time_lookup(self, timestamp: int) -> None:
        """See `PartitionLog.begin_time_lookup`: memory never waits."""

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        for batch, _, max_timestamp in self._batches_from(start_offset):
            if max_timestamp >= timestamp:
                return batch
        return None

    def max_timestamp(self) -> tuple[int, int]:
        """See `PartitionLog.max_timestamp`."""
        found = (-1, -1)
        for _, last_offset, max_timestamp in self._batches_from(0):
            if max_timestamp > found[0]:
                found = (max_timestamp, last_offset)
        return found

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`."""
        for batch, last_offset, _ in self._batches_from(start_offset):
            if last_offset >= end_offset:
                return
            yield memoryview(batch)

    def truncate_to(self, offset: int) -> None:
        """See `PartitionLog.truncate_to`."""
        self.write_pending()
        if offset < self._segments[0].base_offset:
            self.truncate_fully(offset)
        elif offset < self.log_end_offset:
            del self._segments[self._floor(offset) + 1 :]
            active = self._segments[-1]
            active.cut(active.number_of(offset))
            self._end_at(active.last_offsets[-1] + 1 if active.batches else active.base_offset)
        self._epochs.truncate_from_end(offset)

    def truncate_fully(self, start_offset: int) -> None:
        """See `PartitionLog.truncate_fully`."""
        self.write_pending()
        self._segments = [MemorySegment(start_offset, self._now_ms())]
        self._end_at(start_offset)
        self.log_start_offset = start_offset
        self._epochs.clear()

    def _end_at(self, offset: int) -> None:
        self._cuts_count += 1
        self._sidecars = {place: data for place, data in self._sidecars.items() if place[1] <= offset}
        self.log_end_offset = self._written_end = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.clean_end = min(self.clean_end, offset)

    def advance_log_start(self, offset: int) -> None:
        """See `PartitionLog.advance_log_start`."""
        assert offset <= self.log_end_offset, "the log does not start behind its end"
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)

    def segments(self) -> Sequence[SegmentInfo]:
        """See `PartitionLog.segments`."""
        ends = [s.base_offset for s in self._segments[1:]] + [self._written_end]
        return [
            SegmentInfo(s.base_offset, end, s.size_bytes, max(s.max_timestamps, default=-1), s.modified_ms, is_last)
            for s, end in zip(self._segments, ends, strict=True)
            for is_last in [s is self._segments[-1]]
        ]

    def roll(self) -> None:
        """See `PartitionLog.roll`."""
        self.write_pending()
        if self._segments[-1].batches:
            self._segments.append(MemorySegment(self._written_end, self._now_ms()))

    def delete_segments_below(self, offset: int) -> int:
        """See `PartitionLog.delete_segments_below`."""
        gone = 0
        while len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            del self._segments[0]
            gone += 1
        self.advance_log_start(max(self.log_start_offset, self._segments[0].base_offset))
        return gone

    def replace_segments(self, base_offsets: Sequence[int], batches: Sequence[Sequence[Buffer]]) -> None:
        """See `PartitionLog.replace_segments`."""
        bases = [s.base_offset for s in self._segments[:-1]]
        first = bases.index(base_offsets[0]) if base_offsets[0] in bases else len(bases)
        if bases[first : first + len(base_offsets)] != list(base_offsets):
            raise StorageError(f"{self.partition}: {list(base_offsets)} are no neighbouring closed segments")
        fresh = []
        for number, run in enumerate(batches):
            base = base_offsets[0] if not number else next(iterate_batches(run[0]))[1].base_offset
            segment = MemorySegment(base, self._now_ms())
            for buffer in run:
                for at, header in iterate_batches(buffer):
                    batch = bytes(buffer[at : at + header.length_bytes])
                    segment.add(batch, header.last_offset, header.max_timestamp)
            fresh.append(segment)
        self._segments[first : first + len(base_offsets)] = fresh

    @property
    def rewritable_end(self) -> int:
        """See `PartitionLog.rewritable_end`."""
        return self.active_base_offset

    def note_clean_end(self, offset: int) -> None:
        """See `PartitionLog.note_clean_end`."""
        self.clean_end = min(offset, self._written_end)

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """See `PartitionLog.begin_rewrite`."""
        self._check_open()
        self._rewritten = MemoryPlace(self._now_ms())
        closed = [info for info in self.segments()[:-1] if info.base_offset < end_offset]
        sources = [
            MemorySource(info.base_offset, info.next_offset, info.size_bytes, segment.batches)
            for info, segment in zip(closed, self._segments, strict=False)
        ]
        return SegmentRewrite(sources, self._rewritten, is_portable=False)

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        """See `PartitionLog.begin_replacement`."""
        old = self._neighbours(base_offsets)
        if [segment.base_offset for segment in old] != list(base_offsets):
            raise StorageError(
                f"{self.partition}: segments {list(base_offsets)} were deleted while they were rewritten"
            )
        return NoWork(partial(self._end_replacement, base_offsets, old, self._rewritten, self._cuts_count))

    def _neighbours(self, base_offsets: Sequence[int]) -> list[MemorySegment]:
        self._check_open()
        first = self._floor(base_offsets[0])
        return self._segments[first : first + len(base_offsets)]

    def _end_replacement(
        self, base_offsets: Sequence[int], old: Sequence[MemorySegment], place: MemoryPlace, cuts_count: int
    ) -> None:
        if self._neighbours(base_offsets) != old or cuts_count != self._cuts_count or old[-1] is self._segments[-1]:
            raise StorageError(f"{self.partition}: segments changed while they were rewritten")
        first = self._segments.index(old[0])
        fresh = place.segments.pop(base_offsets[0])
        self._segments[first : first + len(old)] = [fresh.segment]
        for base_offset in base_offsets:
            self._sidecars.pop(("txnindex", base_offset), None)
        for kind, data in fresh.sidecars.items():
            self.write_sidecar(base_offsets[0], kind, data)

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        self._sidecars[kind, offset] = data

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.append_sidecar`."""
        self._sidecars[kind, offset] = self._sidecars.get((kind, offset), b"") + data

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`."""
        return sorted(offset for found, offset in self._sidecars if found == kind)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        if (kind, offset) not in self._sidecars:
            raise StorageError(f"{self.partition} has no {kind} at {offset}")
        return self._sidecars[kind, offset]

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        self._sidecars.pop((kind, offset), None)

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> DiskWork:
        """See `PartitionLog.begin_sidecar`."""
        self._check_open()
        return NoWork(partial(self._end_sidecar, offset, kind, data, self._cuts_count))

    def _end_sidecar(self, offset: int, kind: str, data: bytes, cuts_count: int) -> None:
        self._check_open()
        if cuts_count != self._cuts_count:
            raise StorageError(f"{self.partition} was truncated: its {kind} at {offset} is not kept")
        self.write_sidecar(offset, kind, data)

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        """See `PartitionLog.begin_flush`."""
        self._check_open()
        end_offset = self.active_base_offset if closed_only else self._written_end
        return NoWork(partial(self._end_flush, end_offset, self._cuts_count))

    def _end_flush(self, end_offset: int, cuts_count: int) -> None:
        self._check_open()
        if cuts_count == self._cuts_count:
            self.recovery_point = max(self.recovery_point, end_offset)

    def flush(self) -> int:
        """See `PartitionLog.flush`."""
        do_now(self.begin_flush())
        return self.recovery_point

    def reconfigure(self, config: LogConfig) -> None:
        """See `PartitionLog.reconfigure`."""
        self._config = config

    def begin_close(self) -> DiskWork:
        """See `PartitionLog.begin_close`; the engine keeps the log, and gives it again while it lives."""
        self.write_pending()
        self.recovery_point = self._written_end
        self.is_closed = True
        return NoWork(lambda: None)

    def close(self) -> None:
        """See `PartitionLog.close`."""
        if not self.is_closed:
            do_now(self.begin_close())

    def reopen(self) -> None:
        """Take the log into use again."""
        self.is_closed = False

    def _check_open(self) -> None:
        if self.is_closed:
            raise StorageError(f"{self.partition} is closed")

    def __repr__(self) -> str:
        return f"<MemoryLog {self.partition} [{self.log_start_offset}, {self.log_end_offset})>"


def _base_offset(segment: MemorySegment) -> int:
    return segment.base_offset
