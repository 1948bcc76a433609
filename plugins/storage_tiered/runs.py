"""Shell: runs of whole, checked batches out of a cold segment, and reading from one.

A run is what one ranged get brought, cut to whole batches. It stands for the offsets from `start_offset` up to
`next_offset`: what lies in them is in it, whatever gaps compaction left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import attrs

from odradek.kernel.api import (
    EMPTY_READ,
    HEADER_SIZE,
    LOG_OVERHEAD,
    CorruptRecordsError,
    LogRead,
    OpenSlice,
    is_crc_valid,
    iterate_batches,
    read_header,
)

if TYPE_CHECKING:
    from odradek.kernel.api import Buffer, FileHandle, Files


class Extent(NamedTuple):
    """Where in a segment's log batches lie.

    Attributes:
        start_offset: The offset that the reader wanted, or the first one of the segment.
        position: Of the first batch that the run holds, or of one before it.
        size_bytes: How many bytes to get.
    """

    start_offset: int
    position: int
    size_bytes: int


class RunTooShortError(Exception):
    """What was got does not hold a whole batch behind the offset that is wanted.

    Attributes:
        size_bytes: How much is to be got instead, from the same position on.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


@attrs.frozen
class BatchTable:
    """Where the batches of a run lie.

    Attributes:
        start_offset: The first offset that the run stands for.
        next_offset: The first offset that it no more stands for.
        first_position: Where its first batch begins in the bytes that were got.
        positions: Where each batch begins, counted from the first, and at last where they end.
        last_offsets: The last offset of each.
    """

    start_offset: int
    next_offset: int
    first_position: int
    positions: array[int]
    last_offsets: array[int]

    @property
    def size_bytes(self) -> int:
        """Of all batches."""
        return self.positions[-1]

    def find(self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool) -> tuple[int, int, int]:
        """Return (position, size, next offset) of what `PartitionLog.read` gives; size 0 for nothing."""
        first = bisect_left(self.last_offsets, offset)
        last = bisect_left(self.last_offsets, end_offset)
        start = self.positions[first]
        fits = bisect_right(self.positions, start + max_bytes) - 1
        end = min(last, max(fits, first + 1 if at_least_one else first))
        if end <= first:
            return start, 0, offset
        return start, self.positions[end] - start, self.last_offsets[end - 1] + 1

    def holds(self, offset: int) -> bool:
        """Say whether there is a batch at or behind an offset that it stands for."""
        return bool(self.last_offsets) and offset <= self.last_offsets[-1]


def read_table(data: Buffer, extent: Extent, *, segment_size_bytes: int, segment_next_offset: int) -> BatchTable:
    """Check the bytes of an extent, and return where its batches lie; those before the wanted offset are left out.

    Raises:
        RunTooShortError: More bytes are needed.
        CorruptRecordsError: They are no batches, or a batch is damaged.
    """
    positions, last_offsets = array("q"), array("q")
    end = first_position = 0
    is_at_end = extent.position + len(data) >= segment_size_bytes
    for position, header in iterate_batches(data):
        end = position + header.length_bytes
        if header.last_offset < extent.start_offset:
            first_position = end
            continue
        if not is_crc_valid(data, position, header):
            raise CorruptRecordsError(f"the batch at offset {header.base_offset} is damaged", position=position)
        positions.append(position - first_position)
        last_offsets.append(header.last_offset)
    if is_at_end and end < len(data):
        raise CorruptRecordsError("the last batch of the segment is cut off", position=end)
    if not positions and not is_at_end:
        raise RunTooShortError(_needed(data, end))
    positions.append(end - first_position)
    next_offset = segment_next_offset if is_at_end else last_offsets[-1] + 1
    return BatchTable(extent.start_offset, next_offset, first_position, positions, last_offsets)


def _needed(data: Buffer, end: int) -> int:
    """Return how many bytes bring one batch more than what lies before `end`."""
    if len(data) - end < LOG_OVERHEAD + HEADER_SIZE:
        return len(data) * 2 + HEADER_SIZE
    return end + read_header(data, end).length_bytes


@attrs.frozen(eq=False)
class Run:
    """A run that is at hand, in a file that has no name any more, or soon: holding it keeps it.

    Attributes:
        table: Where its batches lie.
        files: Where the file is.
        handle: The file, which holds the batches and nothing else.
    """

    table: BatchTable
    files: Files
    handle: FileHandle

    def read(self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool) -> LogRead:
        """See `PartitionLog.read`; the offset is one that the run stands for."""
        start, size, next_offset = self.table.find(offset, max_bytes, end_offset, at_least_one=at_least_one)
        if not size:
            return EMPTY_READ
        return LogRead(OpenSlice(self.files, self.handle, start, size), size, next_offset)
