"""Pure core: the values that planning passes around: offsets by partition, and ranges of one partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from odradek.kernel.types import TopicPartition

__all__ = ["EARLIEST", "LATEST", "OffsetRange", "Offsets", "TopicPartition", "total_size"]

LATEST: Final = -1
"""Stands for the next offset to be written, in offsets that a user gives and in a ListOffsets request."""

EARLIEST: Final = -2
"""Stands for the log start offset, in offsets that a user gives and in a ListOffsets request."""

Offsets: TypeAlias = Mapping[TopicPartition, int]
"""Partition to an offset: for a position the first record that is not yet read, as everywhere in Kafka."""


@attrs.frozen(order=True)
class OffsetRange:
    """The offsets `[start, end)` of one partition, resolved: no -1 or -2.

    A range says nothing about how many records there are: compaction, control batches and aborted transactions leave
    gaps, so `size` is the most that may come.
    """

    topic: str
    partition: int
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        assert 0 <= self.start <= self.end, f"a range that is none: {self}"

    @property
    def size(self) -> int:
        """How many offsets there are, >= 0."""
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition alone."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"

    def intersection(self, start: int, end: int) -> OffsetRange:
        """Return what of this range lies in `[start, end)`; nothing is an empty range inside this one."""
        low = min(max(self.start, start), self.end)
        return attrs.evolve(self, start=low, end=max(low, min(self.end, end)))


def total_size(ranges: Iterable[OffsetRange]) -> int:
    """Return how many offsets some ranges have together."""
    return sum(one.size for one in ranges)
