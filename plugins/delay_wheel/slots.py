"""Pure core: what waits, packed by when it is due, in slots that are divided as their time comes.

A wheel whose slots are as wide as they can be: all that waits may lie in one slot of years. Only the first slot is ever
divided, into 64, and the first of those again, until it is small enough to be sorted::

    first     sorted, some thousands                           what is due next
    slots     4 ms | 4 ms | ... | 256 ms | ... | 16 s | ... | 17 min | ... | 19 h | ... | 50 days | 50 days | ...

So there are few slots whatever waits; an entry is moved a few times, and not looked at while it is far off.
Slots go by (due, offset of the record) as one number, so that a crowd with one due time is divided by offsets.

An entry takes 20 bytes: the low 32 bits of its due time (its slot knows the others), two offsets. No time is too far.

Work is bounded where the caller wants it to be: `prepare` moves so many entries and says whether that was all.
"""

from __future__ import annotations

import heapq
import struct
from bisect import insort
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.kernel.api import WaitingRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENTRY: Final = struct.Struct("<Iqq")
CHUNK_ENTRIES: Final = 1024
SORTED_CHUNKS_MAX: Final = 4
"""Slots with more full chunks are divided; the others are sorted at once."""
_DIGIT: Final = 6
_LOW_SIZE: Final = 32
_LOW_BITS: Final = (1 << _LOW_SIZE) - 1
_DUE_SHIFT: Final = 64
_TOP_SHIFT: Final = _DUE_SHIFT + _LOW_SIZE
_NO_KEY: Final = 1 << 128

Cursor: TypeAlias = tuple[int, int, int]
FIRST_CHUNK: Final[Cursor] = (0, -_TOP_SHIFT, 0)


class Slot:
    """Entries whose keys agree from bit `shift` on: `key >> shift == index`; divided, or not, or partly.

    `low` and `high` are bounds of the keys that are not in a child.
    """

    __slots__ = ("children", "chunk_bytes", "chunks", "high", "index", "low", "shift", "tail")

    def __init__(self, shift: int, index: int, chunk_bytes: int) -> None:
        self.shift = shift
        self.index = index
        self.chunk_bytes = chunk_bytes
        self.children: dict[int, Slot] = {}
        self._clear()

    def __repr__(self) -> str:
        return f"<Slot {self.index} << {self.shift}: {len(self.chunks)} full chunks, {len(self.children)} children>"

    def _clear(self) -> None:
        self.chunks: list[bytes] = []
        self.tail = bytearray()
        self.low = _NO_KEY
        self.high = -1

    @property
    def begin(self) -> int:
        """The first key of its range."""
        return self.index << self.shift

    @property
    def is_large(self) -> bool:
        """Whether it has to be divided, or is being divided."""
        return self.shift > 0 and (bool(self.children) or len(self.chunks) > SORTED_CHUNKS_MAX)

    def append(self, key: int, waiting: WaitingRecord) -> None:
        """Take an entry of its range."""
        due_ms, origin, companion = waiting
        tail = self.tail
        tail += ENTRY.pack(due_ms & _LOW_BITS, origin, companion)
        if key < self.low:
            self.low = key
        if key > self.high:
            self.high = key
        if len(tail) >= self.chunk_bytes:
            self.chunks.append(bytes(tail))
            self.tail = bytearray()

    def child(self, key: int) -> Slot:
        """Return the part of it that a key belongs to."""
        shift = self.shift - _DIGIT
        index = key >> shift
        child = self.children.get(index)
        if child is None:
            child = self.children[index] = Slot(shift, index, self.chunk_bytes)
        return child

    def divide(self) -> int:
        """Move one chunk into the children; all of it, where all belongs to one. Return how many entries were moved."""
        shift = self.shift - _DIGIT
        if not self.children and self.low >> shift == self.high >> shift:
            child = self.child(self.low)
            child.chunks, child.tail, child.low, child.high = self.chunks, self.tail, self.low, self.high
            self._clear()
            return 1
        if self.tail:
            chunk, self.tail = bytes(self.tail), bytearray()
        else:
            chunk = self.chunks.pop()
        for waiting in self.unpacked(chunk):
            key = key_of(waiting.due_ms, waiting.origin)
            self.child(key).append(key, waiting)
        return len(chunk) // ENTRY.size

    def take_sorted(self) -> list[WaitingRecord]:
        """Give up what is not in a child, the first one last."""
        found = [waiting for chunk in self.all_chunks() for waiting in self.unpacked(chunk)]
        self._clear()
        found.sort(reverse=True)
        return found

    def all_chunks(self) -> list[bytes]:
        """Return what is not in a child, in chunks."""
        return [*self.chunks, bytes(self.tail)] if self.tail else list(self.chunks)

    def unpacked(self, chunk: bytes) -> Iterator[WaitingRecord]:
        """Iterate over the entries of a chunk of this slot."""
        bits = self.index >> (_TOP_SHIFT - self.shift) << _LOW_SIZE
        for low, origin, companion in ENTRY.iter_unpack(chunk):
            yield WaitingRecord(bits | low, origin, companion)


def key_of(due_ms: int, origin: int) -> int:
    """Return the number that slots go by."""
    return due_ms << _DUE_SHIFT | origin


class Slots:
    """What waits, the first of it sorted. Owned by one task.

    Invariant: every key of the slots is at least `_border`, every one of the sorted entries is below it.
    """

    def __init__(self, chunk_entries: int = CHUNK_ENTRIES) -> None:
        """Begin with nothing.

        Args:
            chunk_entries: How many entries are packed together, at least 1; up to ten times as many are sorted.
        """
        self._chunk_bytes = chunk_entries * ENTRY.size
        self._sorted_max = 2 * (SORTED_CHUNKS_MAX + 1) * chunk_entries
        self._top: dict[int, Slot] = {}
        self._first: list[WaitingRecord] = []  # the next one last
        self._border = 0
        self._count = 0

    def __repr__(self) -> str:
        return f"<Slots: {self._count} entries, {len(self._first)} of them sorted>"

    def __len__(self) -> int:
        """Return how many entries there are."""
        return self._count

    def add(self, waiting: WaitingRecord) -> None:
        """Take one more entry."""
        self._count += 1
        if key_of(waiting.due_ms, waiting.origin) >= self._border:
            self._put(waiting)
            return
        insort(self._first, waiting, key=_descending)
        if len(self._first) > self._sorted_max:
            self._give_back()

    def prepare(self, now_ms: int, entries_max: int) -> bool:
        """Sort what is due first, unless it is far off; return False when there is more to do.

        Args:
            now_ms: The wall clock: slots that begin later are left alone.
            entries_max: About how many entries may be moved.
        """
        moved_count = 0
        while not self._first:
            slot = self._first_slot()
            if slot is None or slot.begin >> _DUE_SHIFT > now_ms:
                return True
            if moved_count >= entries_max:
                return False
            moved_count += self._advance(slot)
        return True

    def peek(self, now_ms: int, count_max: int) -> list[WaitingRecord]:
        """Return the first entries that are due, in order, as far as they are prepared."""
        found = self._first[-1 : -count_max - 1 : -1]
        while found and found[-1].due_ms > now_ms:
            found.pop()
        return found

    def drop(self, count: int) -> None:
        """Take out the first so many of the sorted entries."""
        del self._first[-count:]
        self._count -= count

    def drop_through(self, due_ms: int, origin: int, entries_max: int) -> tuple[int, bool]:
        """Take out the entries up to and with a due time and an origin; prepare what that needs.

        Args:
            due_ms: The last one's due time.
            origin: Its offset.
            entries_max: About how many entries may be moved or taken out.

        Returns:
            How many were moved or taken out, and whether those were all.
        """
        bound = key_of(due_ms, origin)
        moved_count = 0
        while True:
            while self._first and key_of(*self._first[-1][:2]) <= bound:
                if moved_count >= entries_max:
                    return moved_count, False
                moved_count += 1
                self._count -= 1
                self._first.pop()
            slot = None if self._first else self._first_slot()
            if slot is None or slot.begin > bound:
                return moved_count, True
            if moved_count >= entries_max:
                return moved_count, False
            moved_count += self._advance(slot)

    def next_due_ms(self) -> int | None:
        """Return when to look again: the first due time, or an earlier one where that is not known yet; None: never."""
        if self._first:
            return self._first[-1].due_ms
        slot = self._first_slot()
        return None if slot is None else slot.begin >> _DUE_SHIFT

    def all_slots(self) -> Iterator[Slot]:
        """Iterate over all slots in the order of their keys, one before its children; nothing may be changed meanwhile.

        The sorted entries are given back to them first.
        """
        self._give_back()
        yield from self._walk()

    def filter_chunk(self, cursor: Cursor, start_offset: int) -> Cursor | None:
        """Drop the entries of one chunk whose companions lie below an offset.

        Args:
            cursor: Which: `FIRST_CHUNK`, then what this returned.
            start_offset: Where the log starts.

        Returns:
            Where the next one is; None at the end. Entries that are added or moved meanwhile may be left out.
        """
        for slot in self._walk():
            place = (slot.begin, -slot.shift)
            if place < cursor[:2]:
                continue
            number = cursor[2] if place == cursor[:2] else 0
            if number < len(slot.chunks):
                slot.chunks[number] = self._filtered(slot.chunks[number], start_offset)
            elif number == len(slot.chunks) and slot.tail:
                slot.tail = bytearray(self._filtered(bytes(slot.tail), start_offset))
            else:
                continue
            return (*place, number + 1)
        return None

    def filter_first(self, start_offset: int) -> None:
        """Drop the sorted entries whose companions lie below an offset."""
        stay = [waiting for waiting in self._first if waiting.companion >= start_offset]
        self._count -= len(self._first) - len(stay)
        self._first = stay

    def restore_slot(self, shift: int, index: int, bounds: tuple[int, int], chunks: Iterable[bytes]) -> None:
        """Take what a slot of `all_slots` held: its shift and index, its bounds, and `all_chunks`.

        Raises:
            ValueError: There is no such slot, or it is there already.
        """
        if not 0 <= shift <= _TOP_SHIFT or (_TOP_SHIFT - shift) % _DIGIT or index < 0:
            raise ValueError(f"no slot {index} << {shift}")
        key = index << shift
        slot = self._top_of(key)
        while slot.shift > shift:
            slot = slot.child(key)
        if slot.chunks or slot.tail:
            raise ValueError(f"slot {index} << {shift} is there twice")
        slot.low, slot.high = bounds
        slot.chunks = list(chunks)
        if slot.chunks and len(slot.chunks[-1]) < self._chunk_bytes:
            slot.tail = bytearray(slot.chunks.pop())
        self._count += (sum(map(len, slot.chunks)) + len(slot.tail)) // ENTRY.size

    # ------------------------------------------------------------------------------------------------------- inside

    def _put(self, waiting: WaitingRecord) -> None:
        key = key_of(waiting.due_ms, waiting.origin)
        slot = self._top_of(key)
        while slot.children:
            slot = slot.child(key)
        slot.append(key, waiting)

    def _top_of(self, key: int) -> Slot:
        index = key >> _TOP_SHIFT
        slot = self._top.get(index)
        if slot is None:
            slot = self._top[index] = Slot(_TOP_SHIFT, index, self._chunk_bytes)
        return slot

    def _first_slot(self) -> Slot | None:
        """Return the slot of the first entry, or one that has to be divided first; empty ones are dropped."""
        while self._top:
            siblings = self._top
            slot = siblings[min(siblings)]
            while slot.children and not slot.chunks and not slot.tail:
                siblings = slot.children
                slot = siblings[min(siblings)]
            if slot.chunks or slot.tail:
                return slot
            del siblings[slot.index]
        return None

    def _advance(self, slot: Slot) -> int:
        """Divide the first slot once, or sort it where it is small; return how many entries that has moved."""
        if slot.is_large:
            return slot.divide()
        self._first = slot.take_sorted()
        self._border = slot.begin + (1 << slot.shift)
        return len(self._first)

    def _give_back(self) -> None:
        """Give the sorted entries back to the slots."""
        self._border = 0
        entries, self._first = self._first, []
        for waiting in reversed(entries):
            self._put(waiting)

    def _filtered(self, chunk: bytes, start_offset: int) -> bytes:
        size = ENTRY.size
        stay = b"".join(
            chunk[at : at + size]
            for at, (_, _, companion) in zip(range(0, len(chunk), size), ENTRY.iter_unpack(chunk), strict=True)
            if companion >= start_offset
        )
        self._count -= (len(chunk) - len(stay)) // size
        return stay

    def _walk(self) -> Iterator[Slot]:
        coming = [(slot.begin, -slot.shift, slot) for slot in self._top.values()]
        heapq.heapify(coming)
        while coming:
            slot = heapq.heappop(coming)[2]
            yield slot
            for child in slot.children.values():
                heapq.heappush(coming, (child.begin, -child.shift, child))


def _descending(waiting: WaitingRecord) -> tuple[int, int, int]:
    return -waiting.due_ms, -waiting.origin, -waiting.companion
