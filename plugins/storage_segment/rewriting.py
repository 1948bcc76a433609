"""Shell: segments rewritten beside the reactor: read by path, written as `.cleaned`, swapped in by the log.

    X.log.cleaned          written and synced by whoever rewrites, with its indexes          (`FolderPlace`)
    X.log.swap             by a worker thread, the `.log` last, then the directory is synced (`SwapWork.run`)
    X.log, old ones gone   by the log, renames only                                          (`LogDirectory.swap_in`)

A crash at any point leaves either the old segments or, from the synced `.swap` on, the new one: see `recovery.py`.

*Source:* UnifiedLog.replaceSegments of Kafka 4.3.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from odradek.kernel.api import CREATE, HEADER_SIZE, LogConfig, frozen, write_all

from .formats import CLEANED, LOG, OFFSET_INDEX, SWAP, TIME_INDEX, TXN_INDEX, parse_segment_file, segment_file_name
from .segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.api import Buffer, Files

_WRITE_BYTES: Final = 1 << 20
SWAP_ORDER: Final = (TIME_INDEX, TXN_INDEX, OFFSET_INDEX, LOG)
"""In which a segment's files are renamed. First one that every segment has: as long as it waits, none has its name.
A `.log` comes last: once it has its name, all the others have theirs."""


@frozen
class SegmentFileSource:
    """A closed segment by its path. See `SegmentSource`."""

    files: Files
    path: Path
    base_offset: int
    next_offset: int
    size_bytes: int
    index_bytes: int

    @property
    def paths(self) -> Mapping[str, Path]:
        """See `SegmentSource.paths`."""
        kinds = (LOG, OFFSET_INDEX, TIME_INDEX)
        return {kind[1:]: self.path.with_name(segment_file_name(self.base_offset, kind)) for kind in kinds}

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        """See `SegmentSource.batches`."""
        segment = Segment(self.files, self.path.parent, self.base_offset)
        segment.size_bytes = self.size_bytes
        try:
            position = segment.position_of(start_offset) if start_offset > self.base_offset else 0
            for _, _, batch in segment.batches(position, max(buffer_bytes, HEADER_SIZE)):
                yield batch
        finally:
            segment.forget()


@frozen
class FolderPlace:
    """The directory of a log. See `RewritePlace`."""

    files: Files
    directory: Path
    config: LogConfig

    def clear(self) -> None:
        """See `RewritePlace.clear`."""
        for entry in self.files.listdir(self.directory):
            found = parse_segment_file(entry.name)
            if found is not None and found.mark == CLEANED:
                self.files.unlink(self.directory / entry.name)

    def new_segment(self, base_offset: int) -> CleanedSegment:
        """See `RewritePlace.new_segment`."""
        return CleanedSegment(self.files, self.directory, base_offset, self.config)


class CleanedSegment:
    """A segment on its way. See `SegmentWriter`; gathers batches so that a write is large."""

    def __init__(self, files: Files, directory: Path, base_offset: int, config: LogConfig) -> None:
        self._files = files
        self._config = config
        self._directory = directory
        self._segment = Segment(files, directory, base_offset, CLEANED)
        self._segment.create(config.segment_index_bytes, 0)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._indexed_position = 0

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """See `SegmentWriter.append`."""
        segment = self._segment
        position = segment.size_bytes + self._pending_bytes
        segment.note_timestamp(max_timestamp, last_offset)
        if position - self._indexed_position > self._config.index_interval_bytes:
            segment.add_index_entry(last_offset, position, self._config.segment_index_bytes)
            self._indexed_position = position
        self._pending.append(bytes(batch))
        self._pending_bytes += len(batch)
        if self._pending_bytes >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._pending:
            segment = self._segment
            write_all(self._files, segment.handle().fd, [b"".join(self._pending)], segment.size_bytes)
            segment.size_bytes += self._pending_bytes
            self._pending, self._pending_bytes = [], 0

    def finish(self, sidecars: Mapping[str, bytes]) -> None:
        """See `SegmentWriter.finish`."""
        segment = self._segment
        self._write()
        segment.close_indexes(self._config.segment_index_bytes)
        segment.sync()
        segment.index.sync()
        segment.time_index.sync()
        for kind, data in sidecars.items():
            self._write_sidecar(self._directory / segment_file_name(segment.base_offset, "." + kind, CLEANED), data)
        segment.forget()

    def _write_sidecar(self, path: Path, data: bytes) -> None:
        fd = self._files.open(path, CREATE)
        try:
            write_all(self._files, fd, [data], 0)
            self._files.fsync(fd)
        finally:
            self._files.close(fd)


class SwapOwner(Protocol):
    """The log that began a replacement."""

    def end_replacement(self, work: SwapWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


@frozen(eq=False)
class SwapWork:
    """A new segment about to take the place of `segments`, which were the log's when it began."""

    owner: SwapOwner
    files: Files
    directory: Path
    segments: Sequence[Segment]
    cuts_count: int

    @property
    def base_offset(self) -> int:
        """Where the new segment begins."""
        return self.segments[0].base_offset

    def run(self) -> None:
        """See `DiskWork.run`."""
        # The recovery point that a checkpoint has named covers these segments; from here on it lasts.
        self.files.fsync_directory(self.directory.parent)
        rename_kinds(self.files, self.directory, self.base_offset, CLEANED, SWAP)
        self.files.fsync_directory(self.directory)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.owner.end_replacement(self, error)

    def give_up(self) -> None:
        """Remove the new segment; a crash meanwhile leaves nothing that could be swapped: a `.cleaned` goes last."""
        ready, unready = (self.directory / segment_file_name(self.base_offset, LOG, mark) for mark in (SWAP, CLEANED))
        with suppress(FileNotFoundError):
            self.files.rename(ready, unready)
        for mark in (SWAP, CLEANED):
            for kind in SWAP_ORDER:
                with suppress(FileNotFoundError):
                    self.files.unlink(self.directory / segment_file_name(self.base_offset, kind, mark))


def rename_kinds(files: Files, directory: Path, base_offset: int, old: str, new: str) -> None:
    """Rename a segment's files from one mark to another, the `.log` last; not every segment has a transaction index."""
    for kind in SWAP_ORDER:
        target = directory / segment_file_name(base_offset, kind, new)
        try:
            files.rename(directory / segment_file_name(base_offset, kind, old), target)
        except FileNotFoundError:
            if kind != TXN_INDEX:
                raise


def source_of(files: Files, segment: Segment) -> SegmentFileSource:
    """Return a closed segment as others may read it."""
    index_bytes = max(files.stat(path).size_bytes for path in (segment.index.path, segment.time_index.path))
    return SegmentFileSource(
        files, segment.path, segment.base_offset, segment.next_offset, segment.size_bytes, index_bytes
    )
