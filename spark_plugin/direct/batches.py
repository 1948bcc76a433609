"""Pure core: which batches of a run may be shown, and whether they follow each other as they must.

An aborted transaction is told by its producer and its first and last offset, not by its marker: so it hides the same
batches whatever compaction has taken of it, and no other transaction of the same producer.

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from odradek.kernel.records.batch import CorruptRecordsError, is_crc_valid, iterate_batches
from odradek.kernel.records.columns import follow_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.kernel.records.batch import BatchHeader

    from .pieces import AbortedRange


class Visibility:
    """Says which batches are hidden; made of the aborted transactions of a piece."""

    __slots__ = ("_by_producer",)

    def __init__(self, aborted: Iterable[AbortedRange]) -> None:
        self._by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer_id, first_offset, last_offset in sorted(aborted):
            self._by_producer.setdefault(producer_id, []).append((first_offset, last_offset))

    @property
    def is_everything(self) -> bool:
        """Whether nothing is hidden."""
        return not self._by_producer

    def hides(self, header: BatchHeader) -> bool:
        """Say whether a batch is an aborted transaction's; control batches are left to who reads them."""
        if not header.is_transactional or header.is_control:
            return False
        ranges = self._by_producer.get(header.producer_id)
        if ranges is None:
            return False
        number = bisect_right(ranges, header.base_offset, key=_first) - 1
        return number >= 0 and header.base_offset <= ranges[number][1]


def _first(entry: tuple[int, int]) -> int:
    return entry[0]


def visible_runs(view: memoryview, visibility: Visibility) -> Iterator[memoryview]:
    """Yield what may be shown of a run, in as few runs as possible; the last batch may be cut off, as it came.

    Raises:
        CorruptRecordsError: There is no batch, or one that would be hidden is damaged: it may be another's, and who
            decodes what is shown never sees it.
    """
    begin = end = 0
    for position, header in iterate_batches(view):
        if visibility.hides(header):
            if not is_crc_valid(view, position, header):
                raise CorruptRecordsError(f"batch at offset {header.base_offset}: wrong checksum", position=position)
            if begin < position:
                yield view[begin:position]
            begin = position + header.length_bytes
        end = position + header.length_bytes
    if begin < end:
        yield view[begin:end]


class BatchChain:
    """Checks that batches of a segment rise, and lie inside of it; one piece, one owner.

    The checksum of a batch does not cover its base offset: that the offsets rise without overlap, from the segment's
    first to its last, is what shows damage there.

    Attributes:
        next_offset: The offset after the last batch that was taken, at first the segment's base offset.
        has_gaps: Whether offsets are missing between batches, as compaction leaves them. Without gaps the offsets of
            each batch are the only ones that it can have.
    """

    __slots__ = ("_end_offset", "_place", "has_gaps", "next_offset")

    def __init__(self, base_offset: int, end_offset: int, place: str) -> None:
        """Begin.

        Args:
            base_offset: The first offset that may come.
            end_offset: The offset after the last that may come.
            place: Where the batches are, for errors.
        """
        self.next_offset = base_offset
        self.has_gaps = False
        self._end_offset = end_offset
        self._place = place

    def take(self, view: memoryview) -> int:
        """Check the whole batches at the beginning of `view`; return how many bytes they are.

        Raises:
            CorruptRecordsError: One is none, or out of place.
        """
        end, self.next_offset, has_gaps = follow_batches(view, self.next_offset, self._end_offset)
        self.has_gaps |= has_gaps
        self._check_rest(view, end)
        return end

    def _check_rest(self, view: memoryview, position: int) -> None:
        """Say why the batch at `position` does not follow, unless it is one that is cut off."""
        try:
            following = next(iterate_batches(view, position), None)
        except CorruptRecordsError as exc:
            raise exc.found_in(self._place) from exc
        if following is not None:
            _, header = following
            raise CorruptRecordsError(
                f"{self._place}: a batch has the offsets {header.base_offset} to {header.last_offset}, and the next "
                f"ones are from {self.next_offset} on, below {self._end_offset}",
                position=position,
            )
