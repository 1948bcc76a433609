"""Shell: the growing end of a log: staging, gathered writes, rolls, and what a failing disk does to it.

Whatever is rare (the first append, a roll, a run of several batches, an error) leaves the limits so set that `append`
takes its careful branch; so the usual branch looks at five limits and no state.

*Source:* UnifiedLog.append, LogSegment.shouldRoll of Kafka 4.3.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from odradek.kernel.api import (
    IOV_MAX,
    LOG_OVERHEAD,
    NO_LIMIT,
    CorruptionError,
    StorageError,
    disk_error,
    iterate_batches,
    replace_file,
    write_all,
)

from .formats import CLEAN_SHUTDOWN, EPOCH_CHECKPOINT, encode_epochs
from .segment import FAR, OFFSETS_MAX, POSITION_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.kernel.api import Buffer, DiskError, LogConfig, StorageContext, TopicIdPartition

    from .recovery import OpenedLog
    from .segment import Segment

CAREFUL: Final = -2
"""A limit that every append exceeds."""
UNMADE_BYTES_MAX: Final = 64 * 1024
"""So much may be staged for a log that is not on the disk before it is made for the sake of its index."""

_batch_length = struct.Struct(">i").unpack_from


class LogOwner(Protocol):
    """What a log asks of the engine that opened it."""

    def make_directory(self, partition: TopicIdPartition) -> None:
        """Make the directory of a log that is not on the disk yet.

        Raises:
            OSError: The disk fails.
            StorageError: Somebody's records are there by now.
        """
        ...

    def log_failed(self, partition: TopicIdPartition, error: DiskError) -> None:
        """Take note that the log went offline."""
        ...

    def named_recovery_point(self, partition: TopicIdPartition) -> int:
        """Return the recovery point in the checkpoint that has its name; it lasts once the directory is synced."""
        ...

    def make_room(self, partition: TopicIdPartition, error: OSError) -> bool:
        """Say whether a write that failed may be tried again: it had no room, and its log gets some of the reserve.

        Raises:
            OSError: The disk fails.
        """
        ...

    def offsets_changed(self, partition: TopicIdPartition) -> None:
        """Take note that what checkpoints hold of a log is not what it is any more."""
        ...

    def keep_offsets(self, partition: TopicIdPartition, recovery_point: int, log_start_offset: int) -> None:
        """Put these into the checkpoints; durable on return.

        Raises:
            OSError: The disk fails.
        """
        ...


class LogWriter:
    """What a log needs to grow. `SegmentLog` adds reading and changing.

    Invariants: `recovery_point <= written end <= log_end_offset`; what is staged lies behind the active segment's
    `size_bytes`; every entry of `_places` is a batch's beginning or a segment's end.
    """

    def __init__(
        self,
        partition: TopicIdPartition,
        opened: OpenedLog,
        config: LogConfig,
        context: StorageContext,
        *,
        owner: LogOwner,
    ) -> None:
        self.partition = partition
        self.was_clean = opened.was_clean
        self.log_start_offset = opened.log_start_offset
        self.recovery_point = opened.recovery_point
        self._directory = opened.directory
        self._files = opened.directory.files
        self._epochs = opened.epochs
        self._context = context
        self._owner = owner
        self._offline: str | None = None
        self.clean_end = 0
        self._cuts_count = self._replacements_count = 0
        self._epochs_version, self._durable_epochs = int(opened.has_new_epochs), 0
        self._has_unsaved_epoch = self._is_epoch_file_behind = False
        # Nobody knows what the process that made the directory had synced of it, its own name included.
        self._durable_entries = -1
        self._sidecars_begun = 0
        self._grown_sidecars: set[Path] = set()
        self._places: dict[int, tuple[Segment, int]] = {}
        self._staged: list[Buffer] = []
        self._unsynced: list[Segment] = []
        self._flushed_ms = context.monotonic_ms()
        self._active: Segment = opened.directory.segments[-1]
        self.is_closed = False
        self.log_end_offset = self._written_end = self._active.find_next_offset()
        self._closed_bytes = 0
        self.reconfigure(config)
        self._settle()

    def _settle(self) -> None:
        """Take the last segment for the active one; the next append opens it."""
        self._places.clear()
        self._active = active = self._directory.segments[-1]
        self._closed_bytes = sum(s.size_bytes for s in self._directory.segments[:-1])
        self._end_position = self._warm_position = active.size_bytes
        self._size_limit = CAREFUL
        self._offset_limit = active.base_offset + OFFSETS_MAX
        self._roll_timestamp = CAREFUL
        self._is_open = False
        self._since_index = 0

    def reconfigure(self, config: LogConfig) -> None:
        """See `PartitionLog.reconfigure`."""
        if self._staged:
            self._write_staged()
        self.config = config
        jitter = min(config.segment_jitter_ms, config.segment_ms)
        self._segment_ms = config.segment_ms - (self._context.random.randrange(0, jitter) if jitter > 0 else 0)
        self._segment_bytes = config.segment_bytes
        self._index_bytes = config.segment_index_bytes
        self._index_interval = config.index_interval_bytes
        self._flush_messages = config.flush_messages
        self._flush_ms = config.flush_ms
        self._wants_flushes = config.wants_flushes
        self._delete_delay_ms = config.file_delete_delay_ms
        self._size_limit = CAREFUL
        self._roll_timestamp = CAREFUL
        self._is_open = False

    @property
    def directory(self) -> Path:
        """See `PartitionLog.directory`."""
        return self._directory.path

    @property
    def log_dir(self) -> str:
        """See `PartitionLog.log_dir`."""
        return str(self._directory.path.parent)

    @property
    def size_bytes(self) -> int:
        """See `PartitionLog.size_bytes`."""
        return self._closed_bytes + self._end_position

    @property
    def active_base_offset(self) -> int:
        """See `PartitionLog.active_base_offset`."""
        return self._active.base_offset

    @property
    def latest_epoch(self) -> int:
        """See `PartitionLog.latest_epoch`."""
        return self._epochs.latest_epoch

    @property
    def is_offline(self) -> bool:
        """Whether a failure took the log out of use."""
        return self._offline is not None

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, batches: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """See `PartitionLog.append`."""
        size = len(batches)
        position = self._end_position
        if (
            position + size > self._size_limit
            or last_offset > self._offset_limit
            or max_timestamp > self._roll_timestamp
            or base_offset < self.log_end_offset
            or _batch_length(batches, 8)[0] + LOG_OVERHEAD != size
        ):
            self._append_with_care(batches, base_offset, last_offset, max_timestamp)
            return
        self._staged.append(batches)
        active = self._active
        if max_timestamp > active.max_timestamp:
            active.max_timestamp = max_timestamp
            active.max_timestamp_offset = last_offset
        if self._since_index > self._index_interval:
            self._add_index_entry(last_offset, position)
        self._since_index += size
        self._end_position = position + size
        self.log_end_offset = last_offset + 1

    def _append_with_care(self, batches: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        assert base_offset >= self.log_end_offset, f"{base_offset} is before the log's end {self.log_end_offset}"
        with self._disk("append to"):
            if _batch_length(batches, 8)[0] + LOG_OVERHEAD == len(batches):
                self._stage(batches, base_offset, last_offset, max_timestamp)
                return
            view = memoryview(batches)
            for at, header in iterate_batches(view):
                batch = view[at : at + header.length_bytes]
                self._stage(batch, header.base_offset, header.last_offset, header.max_timestamp)

    def _stage(self, batch: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        if self._has_unsaved_epoch:
            # Its file follows with the flush: until then recovery finds it in the batches, which it reads anyway.
            self._has_unsaved_epoch = False
            self._is_epoch_file_behind = True
        if not self._is_open:
            self._open_active()
        if self._must_roll(len(batch), last_offset, max_timestamp):
            # Not at the batch's own offset, unless it is too far away: recovery takes a gap between two segments for
            # a hole that a loss of power left.
            self._roll(self.log_end_offset if base_offset - self.log_end_offset < FAR else base_offset)
        if not self._end_position and max_timestamp >= 0:
            # Without a timestamp the wall clock decides, and every append is looked at.
            self._roll_timestamp = max_timestamp + self._segment_ms
        self._active.note_timestamp(max_timestamp, last_offset)
        if self._since_index > self._index_interval:
            self._add_index_entry(last_offset, self._end_position)
        self._staged.append(batch)
        self._since_index += len(batch)
        self._end_position += len(batch)
        self.log_end_offset = last_offset + 1

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        if last_offset > self._offset_limit:
            return True
        if not self._end_position:
            return False
        if self._roll_timestamp >= 0:
            is_old = max_timestamp > self._roll_timestamp
        else:
            is_old = self._context.monotonic_ms() - self._created_ms > self._segment_ms
        return is_old or self._end_position + size > self._size_limit

    def make(self) -> None:
        """Have the log on the disk from now on; nothing is synced before the first flush.

        Raises:
            StorageError: It cannot be made: it is offline.
        """
        with self._disk("make"):
            self._make()

    def _make(self) -> None:
        if self._directory.is_made:
            return
        try:
            self._owner.make_directory(self.partition)
        except StorageError as error:
            self.set_offline(str(error))
            raise
        self._directory.make(self.config)

    def _open_active(self) -> None:
        active = self._active
        if self._staged:
            # A new epoch in the middle of what a follower takes: an index entry of it points behind what is scanned.
            self._write_staged()
        trusted, active.next_offset = active.next_offset, -1
        if active.find_next_offset() != trusted:
            reason = f"{active.path} ends at {active.next_offset}, its checkpoint of a clean shutdown says {trusted}"
            self.set_offline(reason)
            raise CorruptionError(f"{reason}: start the broker again without {CLEAN_SHUTDOWN} to have the log checked")
        if self._directory.is_made:  # else what is staged first is to make it: see `_write_staged`
            active.handle()
        # Not later: an entry must not be staged beside a scan of what is already there.
        active.find_max_timestamp()
        found = active.find_first_timestamp()
        self._roll_timestamp = found + self._segment_ms if found >= 0 else CAREFUL
        self._created_ms = self._context.monotonic_ms()
        self._size_limit = min(self._segment_bytes, POSITION_MAX)
        self._is_open = True

    def _save_epochs(self, *, is_durable: bool = False) -> None:
        write = partial(self._write_epochs, is_durable=is_durable)
        with self._disk("write the epochs of"):
            self._make()
            try:
                write()
            except OSError as exc:
                self._try_in_reserve(write, exc)
            self._has_unsaved_epoch = self._is_epoch_file_behind = False
            self._epochs_version += 1

    def _write_epochs(self, *, is_durable: bool) -> None:
        data = encode_epochs(self._epochs.entries())
        replace_file(self._files, self.directory / EPOCH_CHECKPOINT, data, is_durable=is_durable)

    def _add_index_entry(self, last_offset: int, position: int) -> None:
        if not self._directory.is_made:
            if self._end_position < UNMADE_BYTES_MAX:
                return  # an entry behind this batch will do
            with self._disk("make"):
                self._make()
        active = self._active
        try:
            active.add_index_entry(last_offset, position, self._index_bytes)
        except OSError as exc:
            raise self._go_offline(disk_error(exc, "write the index of", active.path)) from exc
        self._since_index = 0
        if active.index.is_full or active.time_index.is_full:
            self._size_limit = CAREFUL

    def write_pending(self) -> bool:
        """See `PartitionLog.write_pending`."""
        if self._staged:
            self._write_staged()
        if self._offline is not None:
            raise StorageError(self._offline)
        if not self._wants_flushes:
            return False
        if self._written_end - self.recovery_point >= self._flush_messages:
            return True
        return (
            self._flush_ms != NO_LIMIT
            and self._written_end > self.recovery_point
            and self._context.monotonic_ms() - self._flushed_ms >= self._flush_ms
        )

    def _write_staged(self) -> None:
        if not self._directory.is_made:
            with self._disk("make"):
                self._make()
        active, staged = self._active, self._staged
        position = active.size_bytes
        try:
            fd = active.handle().fd
            written = self._files.pwritev(fd, staged, position) if len(staged) <= IOV_MAX else 0
            if position + written != self._end_position:
                # Rare: the disk is nearly full, a signal came, or there are more buffers than one call takes.
                write_all(self._files, fd, staged, position)
        except OSError as exc:
            self._write_in_reserve(staged, position, exc)
        staged.clear()
        active.size_bytes = self._end_position
        active.next_offset = self._written_end = self.log_end_offset

    def _write_in_reserve(self, staged: list[Buffer], position: int, failure: OSError) -> None:
        active = self._active
        try:
            self._try_in_reserve(lambda: write_all(self._files, active.handle().fd, staged, position), failure)
        except OSError as exc:
            self._give_up_staged()
            raise self._go_offline(disk_error(exc, "write to", active.path)) from exc

    def _try_in_reserve(self, act: Callable[[], None], failure: OSError) -> None:
        """Do again what failed, as long as there is more room for it each time."""
        while self._owner.make_room(self.partition, failure):
            try:
                act()
            except OSError as exc:
                failure = exc
            else:
                return
        raise failure

    def _give_up_staged(self) -> None:
        active = self._active
        self._staged.clear()
        self.log_end_offset = self._written_end
        self._end_position = active.size_bytes
        try:
            self._files.truncate(active.handle().fd, active.size_bytes)
        except OSError:
            # Recovery cuts the torn tail when the log is opened again.
            return

    def _roll(self, base_offset: int) -> None:
        if self._staged:
            self._write_staged()
        old = self._active
        if not old.size_bytes:
            # Only a gap of 2^31 offsets leads here: an empty segment has no past to keep.
            self._directory.discard_segments(len(self._directory.segments) - 1, len(self._directory.segments), 0)
        else:
            old.close_indexes(self._index_bytes)
            old.trim()
            old.next_offset = base_offset
            self._unsynced.append(old)
        self._directory.add_segment(base_offset, self.config)
        self._settle()
        self._open_active()

    # -- failures ------------------------------------------------------------------------------------------------

    @contextmanager
    def _disk(self, what: str) -> Iterator[None]:
        if self._offline is not None:
            raise StorageError(self._offline)
        try:
            yield
        except OSError as exc:
            raise self._go_offline(disk_error(exc, what, self.directory)) from exc

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if self._offline is not None:
            raise StorageError(self._offline)
        try:
            yield
        except OSError as exc:
            raise self._read_failed(exc) from exc

    def _read_failed(self, exc: OSError) -> DiskError:
        error = disk_error(exc, "read", self.directory)
        return self._go_offline(error) if error.is_device_failing else error

    def _go_offline(self, error: DiskError) -> DiskError:
        self.set_offline(str(error))
        self._owner.log_failed(self.partition, error)
        return error

    def set_offline(self, reason: str) -> None:
        """Refuse everything from now on, with `reason`; what is staged is given up."""
        self._offline = reason
        self._staged.clear()
        self.log_end_offset = self._written_end
        self._end_position = self._active.size_bytes
        self._size_limit = CAREFUL
