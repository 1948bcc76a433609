"""Pure core: cuts ranges of offsets into pieces, each of which becomes a task.

Three options cut, in this order where brokers are read; what one cut, the next cuts on:

    maxBytesPerPartition      at the marks of a partition, where known bytes add up      (ours alone)
    maxRecordsPerPartition    into equal pieces of at most so many offsets
    minPartitions             when there are fewer pieces than that: the larger ones, by their share of the offsets

The last two count offsets, as Spark's Kafka connector does, and give the same pieces as it: gaps count like records.
Where files are read bytes come last: what the other two cut is cut on, or packed, by what indexes and manifests say.

*Source:* `KafkaOffsetRangeCalculator` of Spark's Kafka connector 4.2.0, whose answers the tests hold.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from ..ranges import OffsetRange, TopicPartition, total_size

__all__ = ["Marks", "split", "split_by_bytes", "split_by_records", "split_to_reach", "warning_of_small_pieces"]

SMALL_PIECE: Final = 50_000
"""Offsets of a piece below which a task's own cost is felt: tens of milliseconds, as much as that many records."""

Marks: TypeAlias = Sequence[tuple[int, int]]
"""Offsets of a partition with the bytes of the log before each, both rising: from a segment's index, from a tier's
manifest, or just the two ends of the log. Between two marks bytes are taken to be spread evenly."""


def split(
    ranges: Sequence[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    max_bytes: int | None = None,
    marks: Mapping[TopicPartition, Marks] | None = None,
) -> list[OffsetRange]:
    """Return the pieces that become tasks, in the order of the ranges; empty ranges are left out.

    Args:
        ranges: Of different partitions, or at least without overlap.
        min_partitions: As the option, > 0; None when it is not given.
        max_records: As the option, > 0; None when it is not given.
        max_bytes: As the option, > 0; None when it is not given.
        marks: What is known of bytes; a partition without marks is not cut by bytes.
    """
    pieces = [one for one in ranges if one.size]
    if max_bytes is not None:
        known = marks or {}
        pieces = [
            piece for one in pieces for piece in split_by_bytes(one, known.get(one.topic_partition, ()), max_bytes)
        ]
    if max_records is not None:
        pieces = split_by_records(pieces, max_records)
    if min_partitions is not None:
        pieces = split_to_reach(pieces, min_partitions)
    return pieces


def split_by_records(ranges: Sequence[OffsetRange], max_records: int) -> list[OffsetRange]:
    """Return pieces of at most `max_records` offsets, those of a range as equal as can be."""
    return [piece for one in ranges for piece in _divided(one, -(-one.size // max_records))]


def split_to_reach(ranges: Sequence[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Return about `min_partitions` pieces; ranges whose share is less than two pieces stay whole.

    It may be more or less, by rounding. Ranges of no size are left out.
    """
    filled = [one for one in ranges if one.size]
    if not filled or len(filled) >= min_partitions:
        return filled
    total = total_size(filled)
    # Ranges of one partition stay whole together: the connector keeps the partitions, not the ranges.
    whole = {one.topic_partition for one in filled if _share(one.size, total, min_partitions) == 1}
    whole_ranges = [one for one in filled if _share(one.size, total, min_partitions) == 1]
    total_cut = total - total_size(whole_ranges)
    pieces_cut = max(min_partitions - len(whole_ranges), 1)
    found: list[OffsetRange] = []
    for one in filled:
        pieces = 1 if one.topic_partition in whole else _share(one.size, total_cut, pieces_cut)
        found += _divided(one, pieces)
    return found


def split_by_bytes(one: OffsetRange, marks: Marks, max_bytes: int) -> list[OffsetRange]:
    """Return pieces of at most about `max_bytes`, cut at marks wherever one is near enough.

    A piece may be larger when a single offset is, or when the marks do not tell how bytes are spread.

    Args:
        one: The range.
        marks: Of its partition; fewer than two say nothing, and the range stays whole.
        max_bytes: > 0.
    """
    if len(marks) < 2 or one.size < 2:
        return [one] if one.size else []
    spread = _Spread.of(marks)
    total = spread.bytes_before(one.end) - spread.bytes_before(one.start)
    pieces = math.ceil(total / max_bytes)
    if pieces < 2:
        return [one]
    wanted = total / pieces
    cuts, start = [one.start], one.start
    while spread.bytes_before(one.end) - spread.bytes_before(start) > max_bytes:
        start = spread.cut_after(start, one.end, wanted, max_bytes)
        if start >= one.end:
            break
        cuts.append(start)
    return [attrs.evolve(one, start=low, end=high) for low, high in pairwise([*cuts, one.end])]


def warning_of_small_pieces(ranges: Sequence[OffsetRange], pieces: Sequence[OffsetRange]) -> str | None:
    """Return what to tell a user whose options cut so small that the tasks cost more than the records; else None."""
    if len(pieces) <= sum(1 for one in ranges if one.size):
        return None
    average = total_size(pieces) // len(pieces)
    if average >= SMALL_PIECE:
        return None
    return (
        f"minPartitions, maxRecordsPerPartition or maxBytesPerPartition cut {total_size(pieces)} offsets into"
        f" {len(pieces)} tasks of about {average} each; a task costs as much as {SMALL_PIECE} records, so larger pieces"
        " are faster"
    )


@attrs.frozen
class _Spread:
    """How the bytes of a partition are spread over its offsets."""

    offsets: Sequence[int]
    sizes: Sequence[int]

    @classmethod
    def of(cls, marks: Marks) -> _Spread:
        return cls([offset for offset, _ in marks], [size for _, size in marks])

    def bytes_before(self, offset: int) -> float:
        """Return about how many bytes there are before an offset; the ends go on as the nearest two marks do."""
        high = min(max(bisect_right(self.offsets, offset), 1), len(self.offsets) - 1)
        low = high - 1
        wide = self.offsets[high] - self.offsets[low]
        rate = (self.sizes[high] - self.sizes[low]) / wide if wide else 0.0
        return self.sizes[low] + (offset - self.offsets[low]) * rate

    def cut_after(self, start: int, end: int, wanted: float, most: int) -> int:
        """Return where a piece of `[start, end)` ends: with about as many bytes as wanted; always after the start."""
        before = self.bytes_before(start)
        low, high = start + 1, end
        while low < high:  # the last offset up to which the bytes are not more than wanted
            middle = (low + high + 1) // 2
            if self.bytes_before(middle) - before <= wanted:
                low = middle
            else:
                high = middle - 1
        at = bisect_right(self.offsets, low)
        # A mark begins a record batch: a cut there lets no batch be read by two tasks.
        for mark in self.offsets[max(at - 1, 0) : at + 1]:
            size = self.bytes_before(mark) - before
            if start < mark < end and wanted / 2 <= size <= most:
                return mark
        return low


def _share(size: int, total: int, pieces: int) -> int:
    # In doubles and rounded half up, as on the JVM: so that we cut where the connector cuts.
    return max(math.floor(size / total * pieces + 0.5), 1) if total else 1


def _divided(one: OffsetRange, pieces: int) -> list[OffsetRange]:
    found, start, remaining = [], one.start, one.size
    for place in range(pieces):
        size = remaining // (pieces - place)
        if size:
            found.append(attrs.evolve(one, start=start, end=start + size))
        start += size
        remaining -= size
    return found
