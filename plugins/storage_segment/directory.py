"""Shell: a log's directory: which segments it has, how they come, go, and take each other's place.

Files that go are renamed first and removed later, so that nobody has to wait for a large unlink, and who still reads
keeps reading::

    delete      X.log -> X.log.deleted             removed after file.delete.delay.ms, or when the log is next opened
    replace     new:  X.log.cleaned -> X.log.swap -> X.log
                old:  X.log -> X.log.deleted       between the last two

*Source:* UnifiedLog.replaceSegments, LogLoader.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol

from odradek.kernel.api import CREATE, read_file, replace_file, write_all

from .formats import (
    DELETED,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    parse_segment_file,
    segment_file_name,
)
from .rewriting import rename_kinds
from .segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from odradek.kernel.api import Files, LogConfig

    from .formats import SegmentFile

_SEGMENT_KINDS = (LOG, OFFSET_INDEX, TIME_INDEX)
_KINDS = (*_SEGMENT_KINDS, TXN_INDEX)


class Discard(Protocol):
    """Takes a path that is to be removed later."""

    def __call__(self, path: Path, delay_ms: int) -> None:
        """Remember to remove `path` when `delay_ms` is over."""
        ...


class LogDirectory:
    """The segments of one log, oldest first, and the files around them. Owned by the log.

    `entries_version` counts the changes of its entries that only a sync of the directory makes durable. `is_made` says
    whether it is on the disk: a log that nothing was written to is only here.
    """

    __slots__ = ("_discard", "_files", "_sidecars", "entries_version", "is_made", "path", "segments")

    def __init__(self, files: Files, path: Path, discard: Discard) -> None:
        self._files = files
        self._discard = discard
        self.path = path
        self.segments: list[Segment] = []
        self._sidecars: list[SegmentFile] | None = None
        self.entries_version = 0
        self.is_made = True

    @property
    def files(self) -> Files:
        """Where the directory is."""
        return self._files

    def begin(self, base_offset: int, now_ms: int) -> None:
        """Begin with one empty segment, and nothing on the disk until `make`."""
        segment = Segment(self._files, self.path, base_offset)
        segment.begin(now_ms)
        self.segments.append(segment)
        self._sidecars = []
        self.is_made = False

    def make(self, config: LogConfig) -> None:
        """Make the segment's files, in a directory that is there by now.

        Indexes stay empty files until they have an entry: many logs never get one, and to Kafka's tools, should this
        process be killed, room without entries looks like an entry.
        """
        self._create(self.segments[0], config, has_room_for_entries=False)
        self.is_made = True

    def add_segment(self, base_offset: int, config: LogConfig) -> Segment:
        """Make an empty segment and put it last."""
        segment = Segment(self._files, self.path, base_offset)
        self._create(segment, config)
        self.segments.append(segment)
        return segment

    def _create(self, segment: Segment, config: LogConfig, *, has_room_for_entries: bool = True) -> None:
        segment.create(
            config.segment_index_bytes,
            config.segment_bytes if config.preallocate else 0,
            has_room_for_entries=has_room_for_entries,
        )
        self.entries_version += 1

    def floor(self, offset: int) -> int:
        """Return the number of the segment in which `offset` would lie; 0 when it is before all."""
        return max(bisect_right(self.segments, offset, key=_base_offset) - 1, 0)

    def discard_segments(self, first: int, last: int, delay_ms: int) -> int:
        """Give up `segments[first:last]`, oldest first; their files are removed after `delay_ms`."""
        gone = self.segments[first:last]
        del self.segments[first:last]
        for segment in gone:
            segment.forget()
            self._mark_deleted(segment.base_offset, delay_ms)
        self.entries_version += bool(gone)
        return len(gone)

    def _mark_deleted(self, base_offset: int, delay_ms: int) -> None:
        self._sidecars = None
        for kind in _KINDS:
            path = self.path / segment_file_name(base_offset, kind)
            target = path.with_name(path.name + DELETED)
            try:
                self._files.rename(path, target)
            except FileNotFoundError:
                continue
            self._discard(target, delay_ms)

    def swap_in(self, first: int, last: int, base_offset: int, delay_ms: int) -> None:
        """Put the segment that is ready under `.swap` in the place of `segments[first:last]`, none of them the last."""
        following = self.segments[last].base_offset
        self.discard_segments(first, last, delay_ms)
        rename_kinds(self._files, self.path, base_offset, SWAP, "")
        fresh = self._load(base_offset)
        fresh.next_offset = following
        self.segments.insert(first, fresh)
        self._sidecars = None
        self.entries_version += 1

    def _load(self, base_offset: int) -> Segment:
        segment = Segment(self._files, self.path, base_offset)
        found = self._files.stat(segment.path)
        segment.size_bytes, segment.modified_ms = found.size_bytes, found.modified_ms
        return segment

    # -- small files beside the log ------------------------------------------------------------------------------

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        self._sidecars = None
        replace_file(self._files, self.sidecar_path(offset, kind), data, is_durable=True)

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> Path:
        """See `PartitionLog.append_sidecar`; return the file, to be synced with the next flush."""
        path = self.sidecar_path(offset, kind)
        fd = self._files.open(path, CREATE)
        try:
            size_bytes = self._files.size(fd)
            write_all(self._files, fd, [data], size_bytes)
        finally:
            self._files.close(fd)
        if not size_bytes:
            self._sidecars = None
            self.entries_version += 1
        return path

    def put_sidecar(self, temporary: Path, path: Path) -> None:
        """Give a small file its name; that lasts from the next sync of the directory on."""
        self._sidecars = None
        self._files.rename(temporary, path)
        self.entries_version += 1

    def sidecars(self, kind: str) -> list[int]:
        """See `PartitionLog.sidecars`."""
        if self._sidecars is None:
            self.note_sidecars(entry.name for entry in self._files.listdir(self.path))
        assert self._sidecars is not None
        return sorted(name.base_offset for name in self._sidecars if name.kind == "." + kind)

    def note_sidecars(self, names: Iterable[str]) -> None:
        """Take note of the small files among all names that the directory has now."""
        files = map(parse_segment_file, names)
        self._sidecars = [file for file in files if file and not file.mark and file.kind not in _SEGMENT_KINDS]

    def drop_sidecars_above(self, offset: int) -> None:
        """Remove the small files of all kinds that stand above `offset`; a segment's own files are none."""
        self._sidecars = None
        for entry in self._files.listdir(self.path):
            found = parse_segment_file(entry.name)
            if found and not found.mark and found.kind not in _KINDS and found.base_offset > offset:
                self._files.unlink(self.path / entry.name)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        return read_file(self._files, self.sidecar_path(offset, kind))

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        if not self.is_made:
            return  # it has none, and there is nothing to be listed
        self._sidecars = None
        try:
            self._files.unlink(self.sidecar_path(offset, kind))
        except FileNotFoundError:
            return

    def sidecar_path(self, offset: int, kind: str) -> Path:
        """Return where a small file is, or would be."""
        return self.path / segment_file_name(offset, "." + kind)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
