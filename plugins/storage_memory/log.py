"""Shell: one log of one partition in memory: lists of batches, searched by bisection.

A batch is copied once, when it is written; what a read gives is the stored bytes, or a join of several. It ends with
the process, so a flush only moves a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import EMPTY_READ, NO_LIMIT, LogRead, SegmentRewrite, StorageError
from odradek.storage_base import LogBase, StoredBatch

from .rewriting import MemoryPlace, MemorySegment, MemorySource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from odradek.kernel.api import LogConfig, TopicIdPartition


class MemoryLog(LogBase[MemorySegment]):
    """A log in memory. Owned by the reactor's task."""

    def __init__(self, partition: TopicIdPartition, config: LogConfig, now_ms: Callable[[], int]) -> None:
        self._small_files: dict[tuple[str, int], bytes] = {}
        self._rewritten = MemoryPlace(now_ms)
        super().__init__(partition, config, now_ms=now_ms)

    # -- batches -------------------------------------------------------------------------------------------------

    def new_segment(self, base_offset: int) -> MemorySegment:
        """See `LogStore.new_segment`."""
        return MemorySegment(base_offset, self.now_ms())

    def write_batches(self, batches: Sequence[tuple[MemorySegment, StoredBatch]]) -> None:
        """See `LogStore.write_batches`."""
        for segment, batch in batches:
            segment.add(bytes(batch.data), batch.last_offset, batch.max_timestamp)

    def stored(self, segment: MemorySegment, offset: int) -> Iterator[StoredBatch]:
        """See `LogStore.stored`."""
        first = segment.number_of(offset)
        columns = (segment.batches[first:], segment.last_offsets[first:], segment.max_timestamps[first:])
        return map(StoredBatch, *columns)

    def cut_segment(self, segment: MemorySegment, offset: int) -> None:
        """See `LogStore.cut_segment`."""
        segment.cut(segment.number_of(offset))

    def drop_segments(self, segments: Sequence[MemorySegment]) -> None:
        """See `LogStore.drop_segments`: who still reads one holds its batches."""

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`; a look-up by bisection, and no copy of a batch that comes alone."""
        self.check_open()
        if offset >= self.written_end:
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

    def _locate(self, offset: int) -> tuple[MemorySegment, int]:
        segments, number = self.log_segments, self.segment_number(offset)
        first = segments[number].number_of(offset)
        while first == len(segments[number].batches) and number + 1 < len(segments):
            number, first = number + 1, 0
        return segments[number], first

    # -- rewriting -----------------------------------------------------------------------------------------------

    def rewrite_of(self, segments: Sequence[tuple[MemorySegment, int]]) -> SegmentRewrite:
        """See `LogStore.rewrite_of`."""
        sources = [MemorySource(s.base_offset, end, s.size_bytes, s.batches) for s, end in segments]
        return SegmentRewrite(sources, self._rewritten, is_portable=False)

    def take_rewritten(self, base_offset: int) -> tuple[MemorySegment, Mapping[str, bytes]]:
        """See `LogStore.take_rewritten`."""
        written = self._rewritten.segments.pop(base_offset)
        return written.segment, written.sidecars

    # -- small files -----------------------------------------------------------------------------------------------

    def sidecar_places(self) -> Iterable[tuple[str, int]]:
        """See `LogStore.sidecar_places`."""
        return self._small_files

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `LogStore.read_sidecar`."""
        if (kind, offset) not in self._small_files:
            raise StorageError(f"{self.partition} has no {kind} at {offset}")
        return self._small_files[kind, offset]

    def put_sidecar(self, offset: int, kind: str, data: bytes | None) -> None:
        """See `LogStore.put_sidecar`."""
        if data is None:
            self._small_files.pop((kind, offset), None)
        else:
            self._small_files[kind, offset] = data
