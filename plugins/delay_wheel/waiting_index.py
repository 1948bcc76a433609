"""Pure core: the waiting index: which records of a partition wait, in what order; all of it follows from the log.

Whoever reads the log tells the index what it says, batch by batch. So each replica has the same one, and a new leader
goes on with its own:

    a record waits                     `waits`
    a record was delivered             `delivered`: nothing that was due before it waits any more
    the log starts later               `start_advanced`: what is held by companions below it is withdrawn

What was delivered is taken out in slices, since a follower is told of a delivery that it has prepared nothing for: so
much of it at once, and the others as `prepare` is called. What comes meanwhile, and is due before it, waits beside.

`encode` writes all of it, to be kept with the offset that the log was read to; `decode` gives it back about as fast as
bytes are copied, whatever waits.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from .slots import CHUNK_ENTRIES, FIRST_CHUNK, Slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import WaitingRecord

    from .slots import Cursor

CHUNKS_AT_ONCE: Final = 4
PREPARED_AT_ONCE: Final = CHUNKS_AT_ONCE * CHUNK_ENTRIES
BEFORE_ALL_MS: Final = -1
_MAGIC: Final = b"odrw"
_VERSION: Final = 2
_HEAD: Final = struct.Struct(">4sbq")
_SLOT: Final = struct.Struct(">b16s16s16si")
_NO_SLOT: Final = -1
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_KEY_BYTES: Final = 16


class WaitingIndex:
    """What waits in one partition. Owned by the task that reads its log."""

    def __init__(self, chunk_entries: int = CHUNK_ENTRIES) -> None:
        """Begin with nothing: before the log's first offset.

        Args:
            chunk_entries: How many entries are packed together; the work of `prepare` is cut into as many.
        """
        self._chunk_entries = chunk_entries
        self._at_once = CHUNKS_AT_ONCE * chunk_entries
        self._slots = Slots(chunk_entries)
        self._start_offset = 0
        self._sweep: Cursor | None = None
        self._through: tuple[int, int] | None = None  # what is still to be taken out lies up to here
        self._late: list[WaitingRecord] = []  # came after that delivery, and is in the order before it

    def __repr__(self) -> str:
        return f"<WaitingIndex: {self.waiting_count} wait>"

    @property
    def waiting_count(self) -> int:
        """How many records wait, withdrawn ones that are not due yet included.

        Exact when `prepare` returned True.
        """
        return len(self._slots) + len(self._late)

    # ----------------------------------------------------------------------------------------------- what the log says

    def waits(self, waiting: WaitingRecord) -> None:
        """Take note of a record that waits."""
        if self._through is not None and waiting[:2] <= self._through:
            self._late.append(waiting)
        else:
            self._slots.add(waiting)

    def delivered(self, due_ms: int, origin: int) -> None:
        """Take note that a record was delivered: whatever is in the order before it does not wait any more."""
        through = due_ms, origin
        self._late = [waiting for waiting in self._late if waiting[:2] > through]
        self._through = through if self._through is None else max(self._through, through)
        if self._sweep is None:  # which would not look at what was sorted meanwhile
            self._take_out(self._at_once)

    def _take_out(self, entries_max: int) -> int:
        """Take out what was delivered, as far as that takes no longer; return how many entries were looked at."""
        if self._through is None:
            return 0
        looked_count, is_all = self._slots.drop_through(*self._through, entries_max)
        if is_all:
            self._through = None
            late, self._late = self._late, []
            for waiting in late:
                self._slots.add(waiting)
        return looked_count

    def start_advanced(self, offset: int) -> None:
        """Take note that the log starts at an offset: what is held by companions below it does not wait any more."""
        if offset > self._start_offset:
            self._start_offset = offset
            self._slots.filter_first(offset)
            self._late = [waiting for waiting in self._late if waiting.companion >= offset]
            self._sweep = FIRST_CHUNK

    # ---------------------------------------------------------------------------------------------------- what is due

    def prepare(self, now_ms: int, entries_max: int = PREPARED_AT_ONCE) -> bool:
        """Work towards what is due; return False when there is more to do.

        Args:
            now_ms: The wall clock, or some time after it, to be ready by then.
            entries_max: About how many entries may be looked at.
        """
        looked_count = 0
        while self._sweep is not None:
            if looked_count >= entries_max:
                return False
            self._sweep = self._slots.filter_chunk(self._sweep, self._start_offset)
            looked_count += self._chunk_entries
        looked_count += self._take_out(max(entries_max - looked_count, 1))
        return self._through is None and self._slots.prepare(now_ms, max(entries_max - looked_count, 1))

    def due(self, now_ms: int, count_max: int) -> list[WaitingRecord]:
        """Return the first records that are due, in order, as far as they are prepared; they wait until `delivered`."""
        if self._through is not None:
            return []
        while True:
            peeked = self._slots.peek(now_ms, count_max)
            found = [waiting for waiting in peeked if waiting.companion >= self._start_offset]
            if found or not peeked:
                return found
            self._slots.drop(len(peeked))

    def next_due_ms(self) -> int | None:
        """Return when to look again, perhaps too early; None when nothing waits."""
        first_ms = self._slots.next_due_ms()
        return min([waiting.due_ms for waiting in self._late] + ([] if first_ms is None else [first_ms]), default=None)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def encode(self) -> Iterator[bytes]:
        """Write all of it, in pieces; nothing may be changed meanwhile."""
        while self._through is not None:
            self.prepare(BEFORE_ALL_MS)
        crc = 0
        for piece in self._pieces():
            crc = zlib.crc32(piece, crc)
            yield piece
        yield _CRC.pack(crc)

    def _pieces(self) -> Iterator[bytes]:
        yield _HEAD.pack(_MAGIC, _VERSION, self._start_offset)
        for slot in self._slots.all_slots():
            chunks = slot.all_chunks()
            if chunks:
                keys = (key.to_bytes(_KEY_BYTES, "big") for key in (slot.begin, slot.low, slot.high))
                yield _SLOT.pack(slot.shift, *keys, len(chunks))
            for chunk in chunks:
                yield _LENGTH.pack(len(chunk))
                yield chunk
        yield _SLOT.pack(_NO_SLOT, b"", b"", b"", 0)

    @classmethod
    def decode(cls, data: bytes, chunk_entries: int = CHUNK_ENTRIES) -> WaitingIndex:
        """Return the index that was written, its entries packed as they were.

        Raises:
            ValueError: It is damaged, or of another version.
        """
        if len(data) < _CRC.size or zlib.crc32(data[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
            raise ValueError("the checkpoint of a waiting index does not carry its own CRC")
        magic, version, start_offset = _HEAD.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise ValueError(f"a checkpoint of a waiting index has version {version}, {_VERSION} is known")
        index = cls(chunk_entries)
        index._start_offset = start_offset
        index._restore_slots(data, _HEAD.size)
        index._sweep = FIRST_CHUNK if start_offset else None  # perhaps one was under way
        return index

    def _restore_slots(self, data: bytes, position: int) -> None:
        while True:
            shift, *keys, chunks_count = _SLOT.unpack_from(data, position)
            position += _SLOT.size
            if shift == _NO_SLOT:
                return
            chunks = []
            for _ in range(chunks_count):
                (length,) = _LENGTH.unpack_from(data, position)
                position += _LENGTH.size
                chunks.append(data[position : position + length])
                position += length
            begin, low, high = (int.from_bytes(key, "big") for key in keys)
            self._slots.restore_slot(shift, begin >> shift, (low, high), chunks)
