"""Shell: the segments of a log in memory: as it keeps them, as they are read, and written anew, by somebody else."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import define, frozen, read_header
from odradek.storage_base import LogSegment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.api import Buffer


@define(eq=False)
class MemorySegment(LogSegment):
    """Batches from a base offset on; the three lists run in step."""

    batches: list[bytes] = attrs.field(factory=list, repr=False)
    last_offsets: list[int] = attrs.field(factory=list, repr=False)
    max_timestamps: list[int] = attrs.field(factory=list, repr=False)

    def add(self, batch: bytes, last_offset: int, max_timestamp: int) -> None:
        """Put a batch at the end; whoever calls it counts its bytes."""
        self.batches.append(batch)
        self.last_offsets.append(last_offset)
        self.max_timestamps.append(max_timestamp)

    def number_of(self, offset: int) -> int:
        """Return the number of the first batch that ends at or after `offset`."""
        return bisect_left(self.last_offsets, offset)

    def cut(self, number: int) -> None:
        """Drop the batches from `number` on."""
        del self.batches[number:], self.last_offsets[number:], self.max_timestamps[number:]


@frozen
class MemorySource:
    """A closed segment. See `SegmentSource`; its list is never changed, only replaced."""

    base_offset: int
    next_offset: int
    size_bytes: int
    stored: Sequence[bytes]
    index_bytes: int = 0
    paths: Mapping[str, Path] = attrs.field(factory=dict)

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        """See `SegmentSource.batches`."""
        for batch in self.stored:
            if read_header(batch).last_offset >= start_offset:
                yield memoryview(batch)


class MemoryWriter:
    """A segment on its way. See `SegmentWriter`."""

    def __init__(self, segment: MemorySegment) -> None:
        self.segment = segment
        self.sidecars: Mapping[str, bytes] = {}

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """See `SegmentWriter.append`."""
        self.segment.add(bytes(batch), last_offset, max_timestamp)
        self.segment.size_bytes += len(batch)
        self.segment.max_timestamp = max(self.segment.max_timestamp, max_timestamp)

    def finish(self, sidecars: Mapping[str, bytes]) -> None:
        """See `SegmentWriter.finish`."""
        self.sidecars = dict(sidecars)


class MemoryPlace:
    """Segments that wait to take the place of others. See `RewritePlace`."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.segments: dict[int, MemoryWriter] = {}
        self._now_ms = now_ms

    def clear(self) -> None:
        """See `RewritePlace.clear`."""
        self.segments.clear()

    def new_segment(self, base_offset: int) -> MemoryWriter:
        """See `RewritePlace.new_segment`."""
        writer = self.segments[base_offset] = MemoryWriter(MemorySegment(base_offset, self._now_ms()))
        return writer
