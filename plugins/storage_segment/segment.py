"""Shell: one segment of a log: a `.log` file of whole batches and the two indexes beside it.

Nothing is opened until it is used: a closed segment that nobody reads is a few numbers, and so is an empty one.
"""

from __future__ import annotations

import logging
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import (
    CREATE,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_LIMIT,
    NO_TIMESTAMP,
    READ_WRITE,
    CorruptionError,
    CorruptRecordsError,
    FileHandle,
    OpenSlice,
    is_crc_valid,
    read_header,
)

from .formats import LOG, OFFSET_INDEX, TIME_INDEX, segment_file_name
from .indexes import OffsetIndex, TimeIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.api import BatchHeader, Buffer, Files
    from odradek.storage_base import EpochCache


_logger: Final = logging.getLogger(__name__)

OFFSETS_MAX: Final = (1 << 31) - 1
"""An index holds offsets relative to the base offset, in a signed 32-bit number."""

FAR: Final = 1 << 30
"""A gap in the offsets so large that a new segment begins behind it."""

POSITION_MAX: Final = (1 << 31) - 1

_HEADERS_CHUNK: Final = 4096
_begin_of_header = struct.Struct(">qiibIhi").unpack_from
_BATCHES_CHUNK: Final = 256 << 10
_CUTS_MAX: Final = 64


class Segment:
    """One segment. Owned by its log, whose task alone calls it; worker threads get its `syncable`.

    `size_bytes` counts what is written; behind it may lie allocated space. `next_offset` is -1 until it was needed.
    """

    __slots__ = (
        "_cuts",
        "_files",
        "_handle",
        "_is_distrusted",
        "_time_known",
        "base_offset",
        "index",
        "is_new",
        "max_timestamp",
        "max_timestamp_offset",
        "modified_ms",
        "next_offset",
        "path",
        "size_bytes",
        "time_index",
    )

    def __init__(self, files: Files, directory: Path, base_offset: int, mark: str = "") -> None:
        self._files = files
        self._handle: FileHandle | None = None
        self._time_known = False
        self._is_distrusted = False
        self._cuts: dict[tuple[int, int], tuple[int, int]] = {}
        self.base_offset = base_offset
        self.path = directory / segment_file_name(base_offset, LOG, mark)
        self.index = OffsetIndex(files, directory / segment_file_name(base_offset, OFFSET_INDEX, mark), base_offset)
        self.time_index = TimeIndex(files, directory / segment_file_name(base_offset, TIME_INDEX, mark), base_offset)
        self.size_bytes = 0
        self.modified_ms = 0
        self.next_offset = -1
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = -1
        self.is_new = False

    def create(self, index_bytes: int, allocate_bytes: int, *, has_room_for_entries: bool = True) -> None:
        """Make the files anew; what was there under these names is lost.

        Args:
            index_bytes: How large an index may become.
            allocate_bytes: Greater than 0: allocated for the log.
            has_room_for_entries: Whether the indexes are allocated at once, else with their first entries.
        """
        handle = self._handle = FileHandle(self._files, self._files.open(self.path, CREATE))
        self._files.truncate(handle.fd, 0)
        if allocate_bytes:
            self._files.preallocate(handle.fd, allocate_bytes)
        self.index.create(index_bytes, is_allocated=has_room_for_entries)
        self.time_index.create(index_bytes, is_allocated=has_room_for_entries)
        self.next_offset = self.base_offset
        self.is_new = True
        self._time_known = True

    def begin(self, now_ms: int) -> None:
        """Be an empty segment whose files `create` makes later, before anything is written."""
        self.modified_ms = now_ms
        self.next_offset = self.base_offset
        self.is_new = True
        self._time_known = True
        self.index.entries_count = self.time_index.entries_count = 0

    def handle(self) -> FileHandle:
        """Return the open file; opens it, but never makes it: only `create` does."""
        if self._handle is None:
            self._handle = FileHandle(self._files, self._files.open(self.path, READ_WRITE))
        return self._handle

    @property
    def syncable(self) -> FileHandle | Path:
        """What a flush needs of the log: the open file, or its path while it is not open."""
        return self._handle or self.path

    def paths(self) -> tuple[Path, Path, Path]:
        """Return the log's, the index's and the time index's path."""
        return self.path, self.index.path, self.time_index.path

    # -- scanning ------------------------------------------------------------------------------------------------

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each batch from `position`, a batch's beginning, on.

        Raises:
            CorruptRecordsError: There is no batch.
        """
        end = self.size_bytes
        if position >= end:
            return
        handle, pread = self.handle(), self._files.pread  # held: once it is let go its number is another file's
        data, start = b"", position
        while position < end:
            at = position - start
            if at + HEADER_SIZE > len(data):
                data, start, at = pread(handle.fd, min(_HEADERS_CHUNK, end - position), position), position, 0
            header = self._checked_header(data, at, position)
            yield position, header
            position += header.length_bytes

    def batches(
        self, position: int, chunk_bytes: int = _BATCHES_CHUNK
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yield (position, header, bytes) of each batch from `position`, a batch's beginning, on.

        Raises:
            CorruptRecordsError: There is no batch; its `position` says where.
        """
        end = self.size_bytes
        if position >= end:
            return
        handle, pread = self.handle(), self._files.pread  # held, as in `headers`
        data, start = memoryview(b""), position
        while position < end:
            at = position - start
            if at + HEADER_SIZE > len(data):
                data = memoryview(pread(handle.fd, min(chunk_bytes, end - position), position))
                start, at = position, 0
            header = self._checked_header(data, at, position)
            if at + header.length_bytes > len(data):
                data = memoryview(
                    pread(handle.fd, min(max(chunk_bytes, header.length_bytes), end - position), position)
                )
                start, at = position, 0
                if len(data) < header.length_bytes:
                    raise CorruptRecordsError(f"{self.path}: the file ends within a batch", position=position)
            yield position, header, data[at : at + header.length_bytes]
            position += header.length_bytes

    def _checked_header(self, data: Buffer, at: int, position: int) -> BatchHeader:
        if len(data) - at < HEADER_SIZE:
            raise CorruptRecordsError(f"{self.path}: the file ends within a batch header", position=position)
        header = read_header(data, at)
        if header.magic != MAGIC or not HEADER_SIZE <= header.length_bytes <= self.size_bytes - position:
            raise CorruptRecordsError(
                f"{self.path}: no batch (magic {header.magic}, {header.length_bytes} bytes)", position=position
            )
        return header

    def position_of(self, offset: int) -> int:
        """Return where the first batch begins that ends at or after `offset`; the segment's size when there is none."""
        return self._find(self._position_before_offset(offset), offset, self.size_bytes)[0]

    def _position_before_offset(self, offset: int) -> int:
        """Return a batch's position at or before which no batch ends behind `offset`, the largest known."""
        return self._position_by(self.index.count_before_offset(offset), offset, self.size_bytes)

    def _position_before_position(self, position: int) -> int:
        """Return the largest known position of a batch that is at most `position`."""
        return self._position_by(self.index.count_before_position(position), NO_LIMIT, position)

    def _position_by(self, count: int, offset_max: int, position_max: int) -> int:
        """Return where the batch begins of the last of the first `count` index entries that fit one, 0 if none does.

        In a file a bit may turn round. An entry by which a batch would be passed over leads to none that begins at or
        before its offset; and who looked at such an entry counts too many.
        """
        while count:
            offset, position = self.index.entry_at(count - 1)
            if offset <= offset_max and position <= position_max and self._begins_batch(position, offset):
                return position
            self._distrust(self.index.path)
            count -= 1
        return 0

    def _begins_batch(self, position: int, offset: int) -> bool:
        """Say whether a batch that holds `offset`, or is before it, begins at a position."""
        if not 0 <= position <= self.size_bytes - HEADER_SIZE:
            return False
        data = self._files.pread(self.handle().fd, HEADER_SIZE, position)
        if len(data) < HEADER_SIZE:
            return False
        header = read_header(data, 0)
        return header.magic == MAGIC and self.base_offset <= header.base_offset <= offset

    def _distrust(self, path: Path) -> None:
        """Say once that an index is damaged."""
        if not self._is_distrusted:
            self._is_distrusted = True
            _logger.warning("%s: an entry fits no batch: damaged, it is searched for others that do", path)

    def cut(self, start: int, limit: int) -> tuple[int, int]:
        """Return the last boundary between batches in `[start, limit]`, and the base offset of the batch there.

        `limit` is inside the segment, so that there is a batch at or across it. Consumers that read the same ask for
        the same cuts, one after the other: each is looked for once.
        """
        cut = self._cuts.get((start, limit))
        if cut is None:
            cut = self._find(max(start, self._position_before_position(limit)), NO_LIMIT, limit)
            if len(self._cuts) >= _CUTS_MAX:
                del self._cuts[next(iter(self._cuts))]
            self._cuts[start, limit] = cut
        return cut

    def _find(self, position: int, offset: int, limit: int) -> tuple[int, int]:
        """Return position and base offset of the first batch that ends at or after `offset` or reaches past `limit`.

        The same as a loop over `headers`, in a fifth of the time: readers of small batches pass some dozens.
        """
        end = self.size_bytes
        if position >= end:
            return end, -1
        fd, pread = self.handle().fd, self._files.pread
        data, start = b"", position
        while position < end:
            at = position - start
            if at + HEADER_SIZE > len(data):
                data, start, at = pread(fd, min(_HEADERS_CHUNK, end - position), position), position, 0
                if len(data) < HEADER_SIZE:
                    self._checked_header(data, at, position)
            base_offset, length, _, magic, _, _, last_offset_delta = _begin_of_header(data, at)
            if magic != MAGIC or not HEADER_SIZE <= length + LOG_OVERHEAD <= end - position:
                self._checked_header(data, at, position)
            following = position + length + LOG_OVERHEAD
            if following > limit or base_offset + last_offset_delta >= offset:
                return position, base_offset
            position = following
        return end, -1

    def find_next_offset(self) -> int:
        """Return the offset after the segment's last batch, its base offset when it is empty."""
        if self.next_offset < 0:
            found = self.base_offset
            for _, header in self.headers(self._position_before_position(self.size_bytes)):
                found = header.next_offset
            self.next_offset = found
        return self.next_offset

    # -- time ----------------------------------------------------------------------------------------------------

    @property
    def is_time_known(self) -> bool:
        """Whether `max_timestamp` is the whole segment's."""
        return self._time_known

    def copy(self) -> Segment:
        """Return a segment over the same files as they are now, with nothing open; for another thread."""
        copy = Segment(self._files, self.path.parent, self.base_offset)
        copy.size_bytes, copy.next_offset = self.size_bytes, self.next_offset
        copy.index.entries_count = self.index.entries_count
        copy.time_index.entries_count = self.time_index.entries_count
        copy.max_timestamp, copy.max_timestamp_offset = self.max_timestamp, self.max_timestamp_offset
        copy._time_known = self._time_known
        return copy

    def learn_time(self, copy: Segment) -> None:
        """Take over what a copy found out, unless the segment knows itself or has changed since."""
        if copy._time_known and not self._time_known and copy.size_bytes == self.size_bytes:
            self.max_timestamp, self.max_timestamp_offset = copy.max_timestamp, copy.max_timestamp_offset
            self._time_known = True

    def note_timestamp(self, timestamp: int, last_offset: int) -> None:
        """Take note of a batch's max timestamp."""
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset

    def find_max_timestamp(self) -> tuple[int, int]:
        """Return (largest timestamp, last offset of the batch that has it), `(-1, -1)` without one."""
        if not self._time_known:
            self.time_index.load()
            timestamp, offset = self._time_entry_by(self.time_index.entries_count, NO_LIMIT)
            if timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = timestamp, offset
            # The entry that closes the index covers the whole segment, if it was written: look at what follows it.
            for _, header in self.headers(self._position_before_offset(offset)):
                self.note_timestamp(header.max_timestamp, header.last_offset)
            self._time_known = True
        return self.max_timestamp, self.max_timestamp_offset

    def offset_before_timestamp(self, timestamp: int) -> int:
        """Return an offset at or before which no batch is later than `timestamp`, the largest known."""
        return self._time_entry_by(self.time_index.count_before_timestamp(timestamp), timestamp)[1]

    def _time_entry_by(self, count: int, timestamp_max: int) -> tuple[int, int]:
        """Return the last of the first `count` time index entries that fits a batch, else -1 and the base offset."""
        while count:
            timestamp, offset = self.time_index.entry_at(count - 1)
            for _, header in self.headers(self.position_of(offset)):
                if header.base_offset <= offset and header.max_timestamp == timestamp <= timestamp_max:
                    return timestamp, offset
                break
            self._distrust(self.time_index.path)
            count -= 1
        return NO_TIMESTAMP, self.base_offset

    def find_first_timestamp(self) -> int:
        """Return the first batch's max timestamp, as Kafka rolls by; -1 when the segment is empty or has none."""
        for _, header in self.headers(0):
            return header.max_timestamp
        return NO_TIMESTAMP

    # -- changing ------------------------------------------------------------------------------------------------

    def add_index_entry(self, last_offset: int, position: int, index_bytes: int) -> None:
        """Index the batch at `position`, and the timestamps up to it."""
        self.index.append(last_offset, position, index_bytes)
        self.find_max_timestamp()
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset, index_bytes)

    def close_indexes(self, index_bytes: int) -> None:
        """Write the entry that closes the time index and trim both indexes."""
        if self.is_sealable:
            timestamp, offset = self.find_max_timestamp()
            if timestamp >= 0:
                self.time_index.append_last(timestamp, offset, index_bytes)
        self.index.seal()
        self.time_index.seal()

    @property
    def is_sealable(self) -> bool:
        """Whether the indexes were touched since the segment was loaded."""
        return self.time_index.entries_count >= 0 or self.index.entries_count >= 0

    def trim(self) -> None:
        """Give back allocated space behind the last batch."""
        handle = self.handle()
        if self._files.size(handle.fd) != self.size_bytes:
            self._files.truncate(handle.fd, self.size_bytes)

    def truncate(self, position: int, offset: int) -> None:
        """Cut the log at `position`, where no offset at or above `offset` lies before; durable on return."""
        self.index.truncate(offset)
        self.time_index.truncate(offset)
        fd = self.handle().fd
        self._files.truncate(fd, position)
        self._files.fsync(fd)
        self.size_bytes = position
        self._cuts.clear()
        self.next_offset = -1
        self._time_known = False
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, -1

    def recover(self, index_interval: int, index_bytes: int, epochs: EpochCache) -> int:
        """Check every batch, cut the log before the first that is broken, and build the indexes anew.

        Returns:
            How many bytes were cut off.
        """
        self.index.create(index_bytes)
        self.time_index.create(index_bytes)
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, -1
        self._time_known = True
        valid, indexed, next_offset = 0, 0, self.base_offset
        for position, header in self.sound_batches():
            self.note_timestamp(header.max_timestamp, header.last_offset)
            if position - indexed > index_interval and not (self.index.is_full or self.time_index.is_full):
                self.add_index_entry(header.last_offset, position, index_bytes)
                indexed = position
            epochs.assign(header.partition_leader_epoch, header.base_offset)
            valid, next_offset = position + header.length_bytes, header.next_offset
        dropped = self.size_bytes - valid
        self.size_bytes, self.next_offset = valid, next_offset
        self.close_indexes(index_bytes)
        if dropped:
            fd = self.handle().fd
            self._files.truncate(fd, valid)
            self._files.fsync(fd)
        return dropped

    def sound_batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each batch before the first that is broken, out of order or torn off."""
        next_offset, held = self.base_offset, None
        with suppress(CorruptRecordsError):
            for position, header, batch in self.batches(0):
                if not self._is_sound(header, batch, next_offset):
                    if held is not None and header.base_offset < next_offset and is_crc_valid(batch, 0, header):
                        return  # the gap before the one that is held was none: its offset is not what was written
                    break
                if held is not None:
                    yield held
                # No checksum covers an offset: a batch behind a gap is believed when the one behind it is in order.
                has_gap = header.base_offset > next_offset
                held = (position, header) if has_gap else None
                if not has_gap:
                    yield position, header
                next_offset = header.next_offset
        if held is not None:
            yield held

    def has_batch_behind(self, position: int) -> bool:
        """Say whether anything from `position` on, at any byte, is a whole batch of a sound checksum. Reads it all."""
        data = self._files.pread(self.handle().fd, self.size_bytes - position, position)
        found = data.find(MAGIC, MAGIC_POSITION)
        while found >= 0:
            start = found - MAGIC_POSITION
            if len(data) - start >= HEADER_SIZE:
                header = read_header(data, start)
                if HEADER_SIZE <= header.length_bytes <= len(data) - start and is_crc_valid(data, start, header):
                    return True
            found = data.find(MAGIC, found + 1)
        return False

    def _is_sound(self, header: BatchHeader, batch: memoryview, next_offset: int) -> bool:
        return (
            next_offset <= header.base_offset <= header.last_offset <= self.base_offset + OFFSETS_MAX
            and is_crc_valid(batch, 0, header)
        )

    def check_indexes(self) -> None:
        """See whether the indexes can be this log's, by their last entries: what a loss of power tears is the end.

        Raises:
            CorruptionError: They are not.
        """
        self.index.check(self.size_bytes)
        self.time_index.check()
        if self.index.entries_count:
            offset, position = self.index.entry_at(self.index.entries_count - 1)
            self._check_entry(position, offset, None)
        if self.time_index.entries_count:
            timestamp, offset = self.time_index.last_entry()
            self._check_entry(self.position_of(offset), offset, timestamp)

    def _check_entry(self, position: int, last_offset: int, timestamp: int | None) -> None:
        for _, header in self.headers(position):
            if header.last_offset == last_offset and timestamp in (None, header.max_timestamp):
                return
            break
        raise CorruptionError(f"{self.path}: an index ends with an entry for {last_offset} that fits no batch")

    def sync(self) -> None:
        """Make the log durable. Blocks."""
        self._files.fsync(self.handle().fd)

    def forget(self) -> None:
        """Let go of files; those who still read keep theirs."""
        self._handle = None
        self.index.forget()
        self.time_index.forget()

    def slice(self, position: int, size_bytes: int, *, is_recent: bool) -> OpenSlice:
        """Return bytes of the file."""
        return OpenSlice(self._files, self.handle(), position, size_bytes, is_recent=is_recent)

    def __repr__(self) -> str:
        return f"<Segment {self.base_offset}, {self.size_bytes} bytes>"
