"""Pure core: Kafka's sparse offset index as planning asks it: where to begin, how many bytes, where to cut.

    an entry: (offset - base offset: int32, position: int32): the batch at `position` ends with `offset`

So an entry knows where its batch begins in the file, and where it ends in offsets. A range is cut *behind* such a
batch, at `offset + 1`, which is a boundary of batches; who reads on from there begins at `position`, and passes over
that one batch.

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import attrs

from odradek.plugins.storage_segment.formats import INDEX_ENTRY
from odradek.plugins.storage_tiered.indexes import without_padding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.types import Buffer


class Place(NamedTuple):
    """Where to begin to look for an offset.

    Attributes:
        position: Where a batch begins.
        last_offset: The last offset of that batch; -1 at the file's beginning, where nothing is known of it.
    """

    position: int
    last_offset: int


BEGINNING = Place(0, -1)


@attrs.frozen
class SparseIndex:
    """The entries of a segment's index, or those from some offset on: then nothing before is asked.

    Attributes:
        base_offset: The segment's.
        data: The entries, without what a file that was allocated in advance ends with.
    """

    base_offset: int
    data: Buffer = attrs.field(repr=False)

    @classmethod
    def of(cls, base_offset: int, data: bytes) -> SparseIndex:
        """Return the index of a file's bytes."""
        whole = without_padding(data, INDEX_ENTRY.size)
        return cls(base_offset, whole[: len(whole) - len(whole) % INDEX_ENTRY.size])

    def __len__(self) -> int:
        return len(self.data) // INDEX_ENTRY.size

    def entry(self, number: int) -> Place:
        """Return an entry."""
        relative, position = INDEX_ENTRY.unpack_from(self.data, number * INDEX_ENTRY.size)
        return Place(position, self.base_offset + relative)

    def find(self, offset: int) -> Place:
        """Return where to begin to look for an offset: at its batch, or before it."""
        number = self._count_below(offset + 1)
        return self.entry(number - 1) if number else BEGINNING

    def end_position(self, offset: int, size_bytes: int) -> int:
        """Return a position behind all batches that begin before an offset; the file's size where none is known."""
        number = self._count_below(offset) + 1
        return min(self.entry(number).position, size_bytes) if number < len(self) else size_bytes

    def cuts(self, start: Place, end_position: int, size_bytes: int) -> Iterator[Place]:
        """Iterate over places behind which to cut, so that parts between them have about `size_bytes`, or a bit more.

        Args:
            start: Where the first part begins.
            end_position: Where the last one ends.
            size_bytes: > 0.
        """
        position = start.position
        while end_position - position > size_bytes:
            number = self._count_before_position(position + size_bytes)
            while number < len(self) and self.entry(number).position <= position:
                number += 1
            if number >= len(self) or self.entry(number).position >= end_position:
                return
            place = self.entry(number)
            yield place
            position = place.position

    def _count_below(self, offset: int) -> int:
        """Return how many entries have a smaller offset."""
        return bisect_left(range(len(self)), offset, key=lambda number: self.entry(number).last_offset)

    def _count_before_position(self, position: int) -> int:
        """Return how many entries have a smaller position."""
        return bisect_left(range(len(self)), position, key=lambda number: self.entry(number).position)
