"""Shell: one log of one partition in Kafka's segment files.

The hot path in numbers: `append` looks at five limits and stages a reference; `write_pending` is one `pwritev`; a
read that goes on where an earlier one ended, as consumers do, is one dictionary look-up and never touches the disk.
The growing end stands in `writer.py`, this module has the rest.

*Source:* UnifiedLog, LogSegment of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import (
    EMPTY_READ,
    NO_EPOCH,
    NO_LIMIT,
    LogRead,
    OsFiles,
    SegmentInfo,
    SegmentRewrite,
    StorageError,
    disk_error,
    do_now,
)

from .flushing import LogFlush, SidecarWork
from .formats import EPOCH_CHECKPOINT, PARTITION_METADATA, encode_epochs
from .moving import CopyPlan, GrowingFile
from .rewriting import FolderPlace, SwapWork, source_of
from .segment import OFFSETS_MAX
from .time_lookup import TimeLookup, may_wait
from .writer import CAREFUL, LogWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from odradek.kernel.api import EpochEnd

    from .flushing import Syncable
    from .segment import Segment

_PLACES_MAX: Final = 64
_RECENT_BYTES: Final = 32 << 20


class SegmentLog(LogWriter):
    """A log in segment files. Owned by the reactor's task; worker threads get what `flushing.py` describes.

    Invariants: `recovery_point <= written end <= log_end_offset`; what is staged lies behind the active segment's
    `size_bytes`; every entry of `_places` is a batch's beginning or a segment's end.
    """

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`."""
        if self._offline is not None:
            raise StorageError(self._offline)
        if offset >= self._written_end or offset >= end_offset:
            return EMPTY_READ
        try:
            place = self._places.get(offset)
            if place is None or place[1] >= place[0].size_bytes:
                place = self._locate(offset)
            segment, start = place
            end, next_offset = segment.size_bytes, segment.next_offset
            if end_offset < next_offset:
                end, next_offset = self._locate_within(segment, end_offset), end_offset
            if end - start > max_bytes and start < end:
                end, next_offset = segment.cut(start, start + max_bytes)
                if end == start and at_least_one:
                    end, next_offset = self._end_of_first(segment, start)
            size = end - start
            if size <= 0:
                return EMPTY_READ
            is_recent = segment is self._active and start >= self._warm_position and start >= end - _RECENT_BYTES
            data = segment.slice(start, size, is_recent=is_recent)
        except OSError as exc:
            raise self._read_failed(exc) from exc
        self._remember(next_offset, segment, end)
        return LogRead(data, size, next_offset)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        places = self._places
        if len(places) >= _PLACES_MAX and offset not in places:
            del places[next(iter(places))]
        places[offset] = (segment, position)

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """Return where the first batch begins that ends at or after `offset`, which is below the written end."""
        segments = self._directory.segments
        number = self._directory.floor(offset)
        position = segments[number].position_of(offset)
        while position >= segments[number].size_bytes and number + 1 < len(segments):
            number, position = number + 1, 0
        self._remember(offset, segments[number], position)
        return segments[number], position

    def _locate_within(self, segment: Segment, end_offset: int) -> int:
        place = self._places.get(end_offset)
        if place is not None and place[0] is segment:
            return place[1]
        position = segment.position_of(end_offset)
        self._remember(end_offset, segment, position)
        return position

    def _end_of_first(self, segment: Segment, start: int) -> tuple[int, int]:
        _, header = next(segment.headers(start))
        return start + header.length_bytes, header.next_offset

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`."""
        with self._reading():
            for segment in self._directory.segments[self._directory.floor(start_offset) :]:
                for _, header, batch in segment.batches(segment.position_of(start_offset)):
                    if header.last_offset >= end_offset:
                        return
                    yield batch

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        with self._reading():
            for segment in self._directory.segments[self._directory.floor(start_offset) :]:
                if segment.find_max_timestamp()[0] < timestamp:
                    continue
                first = max(segment.offset_before_timestamp(timestamp), start_offset)
                for position, header in segment.headers(segment.position_of(first)):
                    if header.max_timestamp >= timestamp:
                        return segment.slice(position, header.length_bytes, is_recent=False).read()
        return None

    def begin_time_lookup(self, timestamp: int) -> TimeLookup | None:
        """See `PartitionLog.begin_time_lookup`."""
        if self._offline is not None:
            raise StorageError(self._offline)
        segments = tuple(self._directory.segments)
        if not may_wait(segments, timestamp):
            return None
        return TimeLookup(timestamp, segments, [segment.copy() for segment in segments])

    def max_timestamp(self) -> tuple[int, int]:
        """See `PartitionLog.max_timestamp`."""
        with self._reading():
            # The first of equals, as Kafka: `max` keeps the first.
            return max((s.find_max_timestamp() for s in self._directory.segments), key=_first)

    def segments(self) -> Sequence[SegmentInfo]:
        """See `PartitionLog.segments`."""
        with self._reading():
            return [
                SegmentInfo(
                    s.base_offset,
                    s.next_offset,
                    s.size_bytes,
                    s.find_max_timestamp()[0],
                    self._files.stat(s.path).modified_ms if self._directory.is_made else s.modified_ms,
                    s is self._active,
                )
                for s in self._directory.segments
            ]

    # -- epochs --------------------------------------------------------------------------------------------------

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """See `PartitionLog.assign_epoch`."""
        if self._epochs.assign(leader_epoch, start_offset):
            # Counts with the first append: an epoch without records needs no file, and a broker that starts with
            # thousands of partitions gives each of them a new one.
            self._has_unsaved_epoch = True
            self._size_limit = CAREFUL
            self._is_open = False

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """See `PartitionLog.epoch_entries`."""
        return self._epochs.entries()

    # -- changing the past ---------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """See `PartitionLog.truncate_to`."""
        self.write_pending()
        if offset < self.log_end_offset:
            segments = self._directory.segments
            if offset < segments[0].base_offset:
                self.truncate_fully(offset)
                return
            with self._disk("truncate"):
                self._lower_checkpoints(offset)
                number = self._directory.floor(offset)
                self._directory.discard_segments(number + 1, len(segments), self._delete_delay_ms)
                segment = segments[number]
                segment.truncate(segment.position_of(offset), offset)
                self._files.fsync_directory(self.directory)
                self.log_end_offset = self._written_end = segment.find_next_offset()
                self._after_cut()
        if self._epochs.truncate_from_end(offset):
            self._save_epochs()

    def truncate_fully(self, start_offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """See `PartitionLog.truncate_fully`."""
        self.write_pending()
        with self._disk("truncate"):
            self._make()
            self._lower_checkpoints(start_offset)
            self._directory.discard_segments(0, len(self._directory.segments), self._delete_delay_ms)
            segment = self._directory.add_segment(start_offset, self.config)
            segment.sync()
            self._files.fsync_directory(self.directory)
            self.log_end_offset = self._written_end = self.log_start_offset = start_offset
            self._after_cut()
        if self._epochs.begin_anew(leader_epoch, start_offset):
            # No batch tells of it: its file alone does, which no flush writes before there is one.
            self._save_epochs(is_durable=leader_epoch != NO_EPOCH)

    def _lower_checkpoints(self, offset: int) -> None:
        """Take the checkpoints back before the log: what is written anew behind `offset` must be checked."""
        if offset < self.recovery_point or offset < self.log_start_offset:
            self.recovery_point = min(self.recovery_point, offset)
            self._owner.keep_offsets(self.partition, self.recovery_point, min(self.log_start_offset, offset))

    def _after_cut(self) -> None:
        self._cuts_count += 1
        self._directory.drop_sidecars_above(self._written_end)
        self.recovery_point = min(self.recovery_point, self._written_end)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.clean_end = min(self.clean_end, self._written_end)
        self._owner.offsets_changed(self.partition)
        self._settle()

    def advance_log_start(self, offset: int) -> None:
        """See `PartitionLog.advance_log_start`."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.log_end_offset, "the log does not start behind its end"
        self.log_start_offset = offset
        self._owner.offsets_changed(self.partition)
        if self._epochs.truncate_from_start(offset):
            self._save_epochs()

    def roll(self) -> None:
        """See `PartitionLog.roll`."""
        with self._disk("roll"):
            if self._end_position:
                if not self._is_open:
                    self._open_active()
                self._roll(self.log_end_offset)

    def delete_segments_below(self, offset: int) -> int:
        """See `PartitionLog.delete_segments_below`."""
        with self._disk("delete segments of"):
            last = 0
            segments = self._directory.segments
            while last + 1 < len(segments) and segments[last + 1].base_offset <= offset:
                last += 1
            if last:
                self.advance_log_start(segments[last].base_offset)
                self._directory.discard_segments(0, last, self._delete_delay_ms)
                self._forget_places()
        return last

    # -- rewriting -----------------------------------------------------------------------------------------------

    @property
    def rewritable_end(self) -> int:
        """See `PartitionLog.rewritable_end`: recovery must not take the gaps of compaction for holes."""
        return min(self._owner.named_recovery_point(self.partition), self.recovery_point, self._active.base_offset)

    def note_clean_end(self, offset: int) -> None:
        """See `PartitionLog.note_clean_end`."""
        self.clean_end = min(offset, self._written_end)
        self._owner.offsets_changed(self.partition)

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """See `PartitionLog.begin_rewrite`."""
        with self._reading():
            closed = [segment for segment in self._directory.segments[:-1] if segment.base_offset < end_offset]
            place = FolderPlace(self._files, self.directory, self.config)
            return SegmentRewrite(
                [source_of(self._files, segment) for segment in closed], place, isinstance(self._files, OsFiles)
            )

    def begin_replacement(self, base_offsets: Sequence[int]) -> SwapWork:
        """See `PartitionLog.begin_replacement`."""
        if self._offline is not None:
            raise StorageError(self._offline)
        first = self._directory.floor(base_offsets[0])
        segments = self._directory.segments[first : first + len(base_offsets)]
        work = SwapWork(self, self._files, self.directory, segments, self._cuts_count)
        if [segment.base_offset for segment in segments] != list(base_offsets):
            raise StorageError(
                f"{self.partition}: segments {list(base_offsets)} were deleted while they were rewritten"
            )
        return work

    def end_replacement(self, work: SwapWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        with self._disk("replace segments of"):
            first = self._directory.floor(work.base_offset)
            last = first + len(work.segments)
            is_there = self._directory.segments[first:last] == work.segments and work.cuts_count == self._cuts_count
            if error is not None or not is_there or work.segments[-1] is self._active:
                work.give_up()
                if isinstance(error, OSError):
                    raise self._read_failed(error) from error
                raise error or StorageError(f"{self.partition}: segments changed while they were rewritten")
            self._replacements_count += 1
            self._unsynced = [segment for segment in self._unsynced if segment not in work.segments]
            self._directory.swap_in(first, last, work.base_offset, self._delete_delay_ms)
            self._forget_places()

    def _forget_places(self) -> None:
        self._places.clear()
        self._closed_bytes = sum(s.size_bytes for s in self._directory.segments[:-1])

    # -- small files ---------------------------------------------------------------------------------------------

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        with self._disk("write beside"):
            self._make()
            self._directory.write_sidecar(offset, kind, data)

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.append_sidecar`."""
        with self._disk("write beside"):
            self._make()
            self._grown_sidecars.add(self._directory.append_sidecar(offset, kind, data))

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> SidecarWork:
        """See `PartitionLog.begin_sidecar`."""
        self.make()
        self._sidecars_begun += 1
        path = self._directory.sidecar_path(offset, kind)
        temporary = path.with_name(f"{path.name}.{self._sidecars_begun}.tmp")
        return SidecarWork(self, self._files, temporary, path, data, self._cuts_count)

    def end_sidecar(self, work: SidecarWork, error: Exception | None) -> None:
        """See `DiskWork.finish`. A log that is gone leaves the file where it is: its next opening removes it."""
        if isinstance(error, OSError):
            raise disk_error(error, "write", work.path) from error
        if error is not None:
            raise error
        if work.cuts_count != self._cuts_count:
            raise StorageError(f"{self.partition} was truncated: {work.path.name} is not kept")
        with self._disk("write beside"):
            self._directory.put_sidecar(work.temporary, work.path)

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`."""
        with self._reading():
            return self._directory.sidecars(kind)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        with self._reading():
            return self._directory.read_sidecar(offset, kind)

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        with self._disk("delete beside"):
            self._directory.delete_sidecar(offset, kind)

    def copy_plan(self) -> CopyPlan:
        """Return what of the log, as it is written now, may be copied on a thread while it goes on."""
        files: list[GrowingFile] = []
        for segment in self._directory.segments:
            if segment is not self._active:
                files += [GrowingFile(path.name, OFFSETS_MAX, -1) for path in segment.paths()[1:]]
            end_offset = self._written_end if segment is self._active else segment.next_offset
            files.append(GrowingFile(segment.path.name, segment.size_bytes, end_offset))
        return CopyPlan(files, (self._cuts_count, self._replacements_count))

    # -- durability and life -------------------------------------------------------------------------------------

    def begin_flush(self, *, closed_only: bool = False) -> LogFlush:
        """See `PartitionLog.begin_flush`."""
        if self._offline is not None:
            raise StorageError(self._offline)
        if not closed_only:
            self._flushed_ms = self._context.monotonic_ms()
            return self._new_flush(self._written_end, self._directory.segments)
        return self._new_flush(self._active.base_offset, self._directory.segments[:-1])

    def _new_flush(
        self, end_offset: int, segments: Sequence[Segment], *, is_closing: bool = False, syncs_parent: bool = True
    ) -> LogFlush:
        syncables: list[Syncable] = []
        directories: list[Path] = []
        epochs: tuple[Path, bytes] | None = None
        if end_offset > self.recovery_point:
            if self._is_epoch_file_behind and is_closing:
                # Nobody else writes the file any more: the thread does, one log beside the other.
                epochs = (self.directory / EPOCH_CHECKPOINT, encode_epochs(self._epochs.entries()))
                self._is_epoch_file_behind = False
                self._epochs_version += 1
            elif self._is_epoch_file_behind:
                self._save_epochs()
            first = self._directory.floor(self.recovery_point)
            syncables += [segment.syncable for segment in segments[first:]]
            if self._epochs_version != self._durable_epochs:
                directories.append(self.directory)
                if epochs is None:
                    syncables.append(self.directory / EPOCH_CHECKPOINT)
            if self._directory.entries_version != self._durable_entries:
                syncables.append(self.directory / PARTITION_METADATA)
                directories += [self.directory, self.directory.parent] if syncs_parent else [self.directory]
        # A flush that fails takes the log offline: what it was to sync need not be remembered.
        syncables += sorted(self._grown_sidecars)
        self._grown_sidecars.clear()
        for segment in self._unsynced:
            # Recovery trusts the indexes of what lies before its point; an empty one that was not trimmed it knows.
            # Where no batch has an entry there is next to nothing to look through: the last time saves nothing.
            if segment.index.entries_count:
                syncables += [segment.index.path, segment.time_index.path]
        return LogFlush(
            owner=self,
            files=self._files,
            syncables=syncables,
            epochs=epochs,
            directories=tuple(path for path in dict.fromkeys(directories) if epochs is None or path != self.directory),
            end_offset=end_offset,
            cuts_count=self._cuts_count,
            epochs_version=self._epochs_version if directories else self._durable_epochs,
            entries_version=self._directory.entries_version if directories else self._durable_entries,
            sealed=tuple(self._unsynced),
            is_closing=is_closing,
        )

    def end_flush(self, flush: LogFlush, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if self._offline is not None and not (flush.is_closing and self._offline == self._closing):
            raise StorageError(self._offline)
        if isinstance(error, OSError):
            raise self._go_offline(disk_error(error, "flush", self.directory)) from error
        if error is not None:
            raise error
        self._durable_epochs = max(self._durable_epochs, flush.epochs_version)
        self._durable_entries = max(self._durable_entries, flush.entries_version)
        self._unsynced = [segment for segment in self._unsynced if segment not in flush.sealed]
        if flush.cuts_count == self._cuts_count:
            self.recovery_point = max(self.recovery_point, flush.end_offset)
            self._owner.offsets_changed(self.partition)
        if flush.is_closing:
            self.is_closed = True
            self._offline = f"{self.partition} is closed"
            self.release()

    def flush(self) -> int:
        """See `PartitionLog.flush`."""
        do_now(self.begin_flush())
        return self.recovery_point

    def begin_close(self, *, syncs_parent: bool = True) -> LogFlush:
        """See `PartitionLog.begin_close`; the log directory need not be synced for each of many logs."""
        self.write_pending()
        with self._disk("close"):
            active = self._active
            if active.is_sealable and self._directory.is_made:
                active.close_indexes(self._index_bytes)
                active.trim()
                if active.size_bytes:
                    self._unsynced.append(active)
        flush = self._new_flush(self._written_end, self._directory.segments, is_closing=True, syncs_parent=syncs_parent)
        self._offline = self._closing
        return flush

    @property
    def _closing(self) -> str:
        return f"{self.partition} is being closed"

    def close(self) -> None:
        """See `PartitionLog.close`."""
        if self._offline is None:
            do_now(self.begin_close())
        self.release()

    def release(self) -> None:
        """Let go of all files as they are."""
        self._places.clear()
        for segment in self._directory.segments:
            segment.forget()

    def __repr__(self) -> str:
        state = f", offline: {self._offline}" if self._offline else ""
        return f"<SegmentLog {self.partition} [{self.log_start_offset}, {self.log_end_offset}){state}>"


def _first(pair: tuple[int, int]) -> int:
    return pair[0]
