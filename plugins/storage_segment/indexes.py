"""Shell: the two sparse indexes of a segment, memory-mapped; found by binary search over Kafka's big-endian entries.

An index is cheap while nobody asks: no descriptor, no mapping. The first look-up maps a closed segment's file; the
first entry of an active one maps it at its full size (sparse), and `seal` trims it, as Kafka does on roll and close.
Before entries are stored into the mapping the disk is made to give room for them: a store into a hole on a full disk
has nobody to tell, and the system ends the process (SIGBUS).
A search by hand over the mapping costs 2 to 4 us for a full index; swapping the bytes for `bisect` would cost a
millisecond and 2 MB for each index touched, and sequential readers do not search at all (`log.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import CREATE, NO_TIMESTAMP, READ, READ_WRITE, CorruptionError, sync_file, write_all

from .formats import INDEX_ENTRY, TIME_INDEX_ENTRY

if TYPE_CHECKING:
    import mmap
    import struct
    from pathlib import Path

    from odradek.kernel.api import Files

_ROOM_BYTES: Final = 4096
"""How much room is taken on the disk at once: the entries of 2 MiB of log."""
_NO_ENTRIES: Final = bytes(_ROOM_BYTES)


class _MappedIndex:
    """What the two indexes have in common. `entries_count` is -1 until the file was looked at."""

    __slots__ = (
        "_capacity",
        "_file_bytes",
        "_files",
        "_is_writable",
        "_map",
        "_room_bytes",
        "base_offset",
        "entries_count",
        "path",
    )

    entry: struct.Struct

    def __init__(self, files: Files, path: Path, base_offset: int) -> None:
        self._files = files
        self._map: mmap.mmap | None = None
        self._is_writable = False
        self._capacity = 0
        self._file_bytes = 0
        self._room_bytes = 0
        self.path = path
        self.base_offset = base_offset
        self.entries_count = -1

    def create(self, size_bytes_max: int, *, is_allocated: bool = True) -> None:
        """Make the file anew, empty; allocated for as many entries as fit `size_bytes_max`, or by the first one."""
        self._unmap()
        self._file_bytes = self._allocated(size_bytes_max) if is_allocated else 0
        fd = self._files.open(self.path, CREATE)
        try:
            self._files.truncate(fd, 0)
            if is_allocated:
                self._files.truncate(fd, self._file_bytes)
        finally:
            self._files.close(fd)
        self.entries_count = 0
        self._capacity = size_bytes_max // self.entry.size

    def activate(self, size_bytes_max: int) -> None:
        """Prepare a closed index for more entries: allocate and map it for writing.

        An index that outgrew a lowered limit keeps its entries and is full.
        """
        self.load()
        count = self.entries_count
        self._unmap()
        size = max(self._allocated(size_bytes_max), count * self.entry.size)
        fd = self._files.open(self.path, READ_WRITE)
        try:
            self._files.truncate(fd, size)
            self._map = self._files.mmap(fd, size, is_writable=True)
        finally:
            self._files.close(fd)
        self._is_writable = True
        self._file_bytes = size
        self._capacity = size // self.entry.size
        self._room_bytes = count * self.entry.size

    def load(self) -> None:
        """Map the file for reading, unless it is mapped.

        Raises:
            CorruptionError: It is not a whole number of entries.
        """
        if self._map is not None or self.entries_count == 0:
            return
        fd = self._files.open(self.path, READ)
        try:
            size = self._files.size(fd)
            if size % self.entry.size:
                raise CorruptionError(f"{self.path} has {size} bytes: not a whole number of entries")
            self._file_bytes = size
            if self.entries_count < 0:
                self.entries_count = self._capacity = size // self.entry.size
                if self.entries_count > 1 and not any(self._files.pread(fd, self.entry.size, 0)):
                    # Allocated, and the trimming of an empty index was lost with the power.
                    self.entries_count = 0
            if size:
                self._map = self._files.mmap(fd, size, is_writable=False)
        finally:
            self._files.close(fd)

    @property
    def is_full(self) -> bool:
        """Whether no entry fits any more."""
        return self.entries_count >= self._capacity

    def seal(self) -> None:
        """Cut the file behind its last entry and let go of it; look-ups map it again."""
        size = self.entries_count * self.entry.size
        if size < 0:
            return
        self._unmap()
        if size == self._file_bytes:
            return
        fd = self._files.open(self.path, READ_WRITE)
        try:
            self._files.truncate(fd, size)
            self._file_bytes = size
        finally:
            self._files.close(fd)

    def sync(self) -> None:
        """Make the entries durable. Blocks."""
        sync_file(self._files, self.path)

    def forget(self) -> None:
        """Let go of the file without touching it; the object is used no more, or loaded anew."""
        self._unmap()
        self.entries_count = -1

    def _allocated(self, size_bytes_max: int) -> int:
        return max(size_bytes_max // self.entry.size, 1) * self.entry.size

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
            self._is_writable = False

    def _append(self, first: int, second: int, size_bytes_max: int) -> None:
        if not self._is_writable:
            self.activate(size_bytes_max)
        assert self._map is not None
        assert self.entries_count < self._capacity, "the log rolls before an index is full"
        position = self.entries_count * self.entry.size
        if position + self.entry.size > self._room_bytes:
            self._take_room(position)
        self.entry.pack_into(self._map, position, first, second)
        self.entries_count += 1

    def _take_room(self, position: int) -> None:
        """Have the disk give room for entries from `position` on.

        Raises:
            OSError: It has none, or fails.
        """
        end = min(position + _ROOM_BYTES, self._capacity * self.entry.size)
        fd = self._files.open(self.path, READ_WRITE)
        try:
            write_all(self._files, fd, [_NO_ENTRIES[: end - position]], position)
        finally:
            self._files.close(fd)
        self._room_bytes = end

    def _entry_at(self, number: int) -> tuple[int, int]:
        assert self._map is not None
        first, second = self.entry.unpack_from(self._map, number * self.entry.size)
        return first, second

    def _count_up_to(self, target: int, column: int) -> int:
        """Return how many entries have `column` at most `target`."""
        self.load()
        mapped = self._map
        if mapped is None or not self.entries_count:
            return 0
        unpack, size = self.entry.unpack_from, self.entry.size
        low, high = 0, self.entries_count
        # Most who search want the tail.
        if unpack(mapped, (high - 1) * size)[column] <= target:
            return high
        while low < high:
            middle = (low + high) >> 1
            if unpack(mapped, middle * size)[column] <= target:
                low = middle + 1
            else:
                high = middle
        return low


class OffsetIndex(_MappedIndex):
    """`.index`: the last offset of a batch, and where the batch begins."""

    __slots__ = ()

    entry = INDEX_ENTRY

    def append(self, offset: int, position: int, size_bytes_max: int) -> None:
        """Add an entry; both columns must grow. `size_bytes_max` is the size to allocate if nothing is yet."""
        self._append(offset - self.base_offset, position, size_bytes_max)

    def count_before_offset(self, offset: int) -> int:
        """Return how many entries are of batches of which none ends behind `offset`."""
        return self._count_up_to(offset - self.base_offset, 0)

    def count_before_position(self, position: int) -> int:
        """Return how many entries are of batches that begin at `position` or before."""
        return self._count_up_to(position, 1)

    def entry_at(self, number: int) -> tuple[int, int]:
        """Return (offset, position) of an entry, which there is."""
        relative, position = self._entry_at(number)
        return self.base_offset + relative, position

    def truncate(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        self.load()
        self.entries_count = self._count_up_to(offset - self.base_offset - 1, 0)

    def check(self, size_bytes: int) -> None:
        """See that the file can be the index of a log of `size_bytes`.

        Raises:
            CorruptionError: It cannot.
        """
        self.load()
        if not self.entries_count:
            return
        offset, position = self._entry_at(self.entries_count - 1)
        if offset < 0 or not 0 <= position < max(size_bytes, 1) or (self.entries_count > 1 and position == 0):
            raise CorruptionError(f"{self.path} ends with an impossible entry ({offset}, {position})")


class TimeIndex(_MappedIndex):
    """`.timeindex`: the largest timestamp so far, and the last offset of the batch that has it."""

    __slots__ = ()

    entry = TIME_INDEX_ENTRY

    @property
    def is_full(self) -> bool:
        """Whether only the entry that closes a segment fits."""
        return self.entries_count >= self._capacity - 1

    def append(self, timestamp: int, offset: int, size_bytes_max: int) -> None:
        """Add an entry if the timestamp is larger than the last one's."""
        if timestamp > self.last_entry()[0]:
            self._append(timestamp, offset - self.base_offset, size_bytes_max)

    def append_last(self, timestamp: int, offset: int, size_bytes_max: int) -> None:
        """Do so before the file is sealed: where it would be the only entry, it is not mapped for it."""
        if self.entries_count or self._map is not None:
            self.append(timestamp, offset, size_bytes_max)
            return
        fd = self._files.open(self.path, READ_WRITE)
        try:
            write_all(self._files, fd, [self.entry.pack(timestamp, offset - self.base_offset)], 0)
        finally:
            self._files.close(fd)
        self.entries_count = 1
        self._file_bytes = max(self._file_bytes, self.entry.size)

    def last_entry(self) -> tuple[int, int]:
        """Return (timestamp, offset), `(-1, base offset)` when there is none."""
        self.load()
        if not self.entries_count:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self._entry_at(self.entries_count - 1)
        return timestamp, self.base_offset + relative

    def count_before_timestamp(self, timestamp: int) -> int:
        """Return how many entries have a timestamp of at most `timestamp`."""
        return self._count_up_to(timestamp, 0)

    def entry_at(self, number: int) -> tuple[int, int]:
        """Return (timestamp, offset) of an entry, which there is."""
        timestamp, relative = self._entry_at(number)
        return timestamp, self.base_offset + relative

    def truncate(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        self.load()
        self.entries_count = self._count_up_to(offset - self.base_offset - 1, 1)

    def check(self) -> None:
        """See that the file can be a time index.

        Raises:
            CorruptionError: It cannot.
        """
        self.load()
        if not self.entries_count:
            return
        first, (last, relative) = self._entry_at(0)[0], self._entry_at(self.entries_count - 1)
        if last < first or relative < 0 or (self.entries_count > 1 and last == 0):
            raise CorruptionError(f"{self.path} ends with an impossible entry ({last}, {relative})")
