"""Pure core: first in, first out, whatever waits in it packed but for both ends.

    taken from here                                             put in here
    | head, unpacked as it is read | packed | packed | ... | tail, packed when it is full |

What is packed are columns, each as the differences of its neighbours, compressed: records of one level that came
together are due together, and their offsets follow each other, so that one takes a byte or two.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain
from operator import sub
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.kernel.api import WaitingRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Key: TypeAlias = tuple[int, int]
"""Due time and offset: what waits is in this order."""
Columns: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""Due times, offsets, and the companions' offsets."""

CHUNK_ENTRIES: Final = 1024
FASTEST: Final = 1
_NUMBERS: Final = "q"
_CHUNK: Final = struct.Struct(">qqqqqqqqii")


class Chunk(NamedTuple):
    """Packed entries.

    Attributes:
        first_due_ms: Of the first entry.
        first_origin: Of that, too.
        last_due_ms: Of the last one.
        last_origin: Of that, too.
        due_ms_min: Of all.
        companion_min: Of all.
        companion_max: Of all.
        look_ms: When the first one came in, by the clock that `Fifo.append` was given.
        entries_count: How many they are.
        data: They.
    """

    first_due_ms: int
    first_origin: int
    last_due_ms: int
    last_origin: int
    due_ms_min: int
    companion_min: int
    companion_max: int
    look_ms: int
    entries_count: int
    data: bytes

    @classmethod
    def of(cls, columns: Columns, look_ms: int) -> Chunk:
        """Pack entries, at least one."""
        dues, origins, companions = columns
        data = zlib.compress(b"".join(map(_differences, columns)), FASTEST)
        ends = dues[0], origins[0], dues[-1], origins[-1]
        return cls(*ends, min(dues), min(companions), max(companions), look_ms, len(dues), data)

    @property
    def first(self) -> Key:
        """The first entry's place in the order."""
        return self.first_due_ms, self.first_origin

    @property
    def last(self) -> Key:
        """The last entry's place in the order."""
        return self.last_due_ms, self.last_origin

    def unpacked(self) -> Columns:
        """Return the entries."""
        raw = zlib.decompress(self.data)
        width = len(raw) // 3
        dues, origins, companions = (_sums(raw[at : at + width]) for at in range(0, 3 * width, width))
        return dues, origins, companions


def _differences(column: array[int]) -> bytes:
    changes = array(_NUMBERS, map(sub, column, chain((0,), column)))
    if sys.byteorder == "big":  # what is kept beside a log may go on with another machine
        changes.byteswap()
    return changes.tobytes()


def _sums(data: bytes) -> array[int]:
    changes = array(_NUMBERS, data)
    if sys.byteorder == "big":
        changes.byteswap()
    return array(_NUMBERS, accumulate(changes))


def _no_entries() -> Columns:
    return array(_NUMBERS), array(_NUMBERS), array(_NUMBERS)


class Fifo:
    """What waits behind each other. Owned by its queue.

    Attributes:
        count: How many records wait in it.
    """

    __slots__ = ("_at", "_chunk_entries", "_chunks", "_head", "_head_look_ms", "_tail", "_tail_look_ms", "count")

    def __init__(self, chunk_entries: int = CHUNK_ENTRIES) -> None:
        """Begin with nothing.

        Args:
            chunk_entries: How many entries are packed together.
        """
        self._chunk_entries = chunk_entries
        self._head: Columns | None = None
        self._at = 0
        self._head_look_ms = 0
        self._chunks: list[Chunk] = []
        self._tail = _no_entries()
        self._tail_look_ms = 0
        self.count = 0

    def append(self, waiting: WaitingRecord, look_ms: int = 0) -> None:
        """Put a record behind all others; `look_ms` rises from one to the next."""
        dues, origins, companions = self._tail
        if not dues:
            self._tail_look_ms = look_ms
        dues.append(waiting.due_ms)
        origins.append(waiting.origin)
        companions.append(waiting.companion)
        self.count += 1
        if len(dues) >= self._chunk_entries:
            self._pack_tail()

    def _pack_tail(self) -> None:
        if self._tail[0]:
            self._chunks.append(Chunk.of(self._tail, self._tail_look_ms))
            self._tail = _no_entries()

    # --------------------------------------------------------------------------------------------------- what is first

    @property
    def read_count(self) -> int:
        """How many entries were unpacked to be read, and are still there."""
        return 0 if self._head is None else len(self._head[0])

    @property
    def first(self) -> Key:
        """The place in the order of the first record; there is one."""
        if self._head is not None:
            return self._head[0][self._at], self._head[1][self._at]
        if self._chunks:
            return self._chunks[0].first
        return self._tail[0][0], self._tail[1][0]

    @property
    def last(self) -> Key:
        """The place in the order of the last record; there is one."""
        if self._tail[0]:
            return self._tail[0][-1], self._tail[1][-1]
        if self._chunks:
            return self._chunks[-1].last
        assert self._head is not None, "there is one"
        return self._head[0][-1], self._head[1][-1]

    @property
    def look_ms(self) -> int:
        """What was said of the first record, or of one before it, as it came in; there is one."""
        if self._head is not None:
            return self._head_look_ms
        return self._chunks[0].look_ms if self._chunks else self._tail_look_ms

    def read(self) -> None:
        """Unpack what is first, unless it is; there is something."""
        if self._head is not None:
            return
        self._at = 0
        if self._chunks:
            chunk = self._chunks.pop(0)
            self._head, self._head_look_ms = chunk.unpacked(), chunk.look_ms
        else:
            self._head, self._head_look_ms, self._tail = self._tail, self._tail_look_ms, _no_entries()

    def put_back(self) -> None:
        """Pack again what was unpacked and is not taken yet."""
        if self._head is not None:
            self._chunks.insert(0, Chunk.of(self._left_of_head(), self._head_look_ms))
            self._head = None

    def _left_of_head(self) -> Columns:
        assert self._head is not None, "it was read"
        dues, origins, companions = (column[self._at :] for column in self._head)
        return dues, origins, companions

    def due(self, now_ms: int, count_max: int) -> tuple[list[WaitingRecord], bool]:
        """Return the first records that are due, of those that were read; and whether others behind may be, too.

        The records are in their order.
        """
        if self._head is None:
            return [], bool(self.count)
        dues = self._head[0]
        end = bisect_right(dues, now_ms, self._at)
        is_cut = end == len(dues) and self.count > end - self._at
        return self._entries(self._at, min(end, self._at + count_max)), is_cut

    def _entries(self, start: int, end: int) -> list[WaitingRecord]:
        assert self._head is not None, "it was read"
        return list(map(WaitingRecord._make, zip(*(column[start:end] for column in self._head), strict=True)))

    def drop_through(self, key: Key) -> None:
        """Take out all up to a place in the order, in which they are."""
        while self.count and self.first <= key:
            if self._head is None and not self._drop_chunks_through(key):
                self.read()
            if self._head is not None:
                dues, origins, _ = self._head
                low = bisect_left(dues, key[0], self._at)
                end = bisect_right(origins, key[1], low, bisect_right(dues, key[0], low))
                self._leave_head(end)

    def _drop_chunks_through(self, key: Key) -> bool:
        """Take out what is packed and lies before a place as a whole; return whether there was any."""
        dropped_count = 0
        while dropped_count < len(self._chunks) and self._chunks[dropped_count].last <= key:
            self.count -= self._chunks[dropped_count].entries_count
            dropped_count += 1
        del self._chunks[:dropped_count]
        return dropped_count > 0

    def _leave_head(self, end: int) -> None:
        self.count -= end - self._at
        self._at = end
        if end == self.read_count:
            self._head = None

    def take(self) -> list[WaitingRecord]:
        """Take out the first ones, as many as are packed together at most; there is one."""
        self.read()
        found = self._entries(self._at, self.read_count)
        self._leave_head(self.read_count)
        return found

    def put_back_unread(self, due_ms: int, look_ms: int) -> int:
        """Put the first ones behind all others where they are packed, and none is due before a time; return how many.

        Args:
            due_ms: That time.
            look_ms: As for `append`.
        """
        if self._head is not None or not self._chunks or self._chunks[0].due_ms_min < due_ms:
            return 0
        self._pack_tail()
        chunk = self._chunks.pop(0)
        self._chunks.append(chunk._replace(look_ms=look_ms))
        return chunk.entries_count

    # ----------------------------------------------------------------------------------------- a log that starts later

    def filter(self, offset: int, entries_max: int) -> tuple[int, bool]:
        """Take out what is held by companions below an offset.

        Args:
            offset: Where the log starts.
            entries_max: About how many entries may be looked at, beside both ends.

        Returns:
            How many were looked at, and whether that were all.
        """
        ends_count = self._filter_ends(offset)
        looked_count = 0
        kept: list[Chunk] = []
        for number, chunk in enumerate(self._chunks):
            if chunk.companion_min >= offset:
                kept.append(chunk)
            elif chunk.companion_max < offset:
                self.count -= chunk.entries_count
            elif looked_count >= entries_max:
                self._chunks = kept + self._chunks[number:]
                return ends_count + looked_count, False
            else:
                looked_count += chunk.entries_count
                columns = _from(chunk.unpacked(), offset)
                self.count -= chunk.entries_count - len(columns[0])
                kept.append(Chunk.of(columns, chunk.look_ms))
        self._chunks = kept
        return ends_count + looked_count, True

    def _filter_ends(self, offset: int) -> int:
        looked_count = len(self._tail[0])
        tail = _from(self._tail, offset)
        self.count -= looked_count - len(tail[0])
        self._tail = tail
        if self._head is not None:
            left = self._left_of_head()
            looked_count += len(left[0])
            head = _from(left, offset)
            self.count -= len(left[0]) - len(head[0])
            self._head, self._at = head if head[0] else None, 0
        return looked_count

    # ----------------------------------------------------------------------------------------------------- checkpoints

    def encode(self) -> Iterator[bytes]:
        """Write all of it, in pieces."""
        chunks = list(self._chunks)
        if self._head is not None:
            chunks.insert(0, Chunk.of(self._left_of_head(), self._head_look_ms))
        if self._tail[0]:
            chunks.append(Chunk.of(self._tail, self._tail_look_ms))
        yield len(chunks).to_bytes(4, "big")
        for chunk in chunks:
            yield _CHUNK.pack(*chunk[:-1], len(chunk.data))
            yield chunk.data

    @classmethod
    def decode(cls, data: bytes, position: int, chunk_entries: int = CHUNK_ENTRIES) -> tuple[Fifo, int]:
        """Return what was written at a position, and where it ends.

        Raises:
            struct.error: It breaks off.
        """
        fifo = cls(chunk_entries)
        chunks_count = int.from_bytes(data[position : position + 4], "big")
        position += 4
        for _ in range(chunks_count):
            *values, length = _CHUNK.unpack_from(data, position)
            position += _CHUNK.size
            fifo._chunks.append(Chunk._make((*values, data[position : position + length])))
            position += length
        fifo.count = sum(chunk.entries_count for chunk in fifo._chunks)
        return fifo, position


def _from(columns: Columns, offset: int) -> Columns:
    """Return the entries whose companions are at an offset or behind it."""
    if not columns[2] or min(columns[2]) >= offset:
        return columns
    kept: Iterable[tuple[int, int, int]] = (entry for entry in zip(*columns, strict=True) if entry[2] >= offset)
    found = _no_entries()
    for entry in kept:
        for column, value in zip(found, entry, strict=True):
            column.append(value)
    return found
