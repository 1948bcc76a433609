"""Shell: keeps what was got from the store: runs in files of a bounded size, indexes in a bounded memory.

A run's file is removed from its folder as soon as it is open: the bytes live as long as somebody holds the run, which
is this cache or an answer that is being sent, and a crash leaves nothing behind. Where open files cannot be removed
(Windows), the folder is emptied at the next start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import CREATE, FileHandle, write_all

from .runs import Run

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.api import Buffer, Files

    from .runs import BatchTable

_SUFFIX: Final = ".run"
_RUNS_MAX: Final = 512
"""Each run is an open file."""


class RunFolder:
    """The folder in which runs are written. Used by worker threads; it has no state but a path."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path

    def clear(self) -> None:
        """Make the folder, and remove what an earlier broker left in it.

        Raises:
            OSError: The disk refuses.
        """
        with suppress(FileExistsError):
            self._files.mkdir(self._path)
        for entry in self._files.listdir(self._path):
            if entry.name.endswith((_SUFFIX, ".staged")):
                self._files.unlink(self._path / entry.name)

    def write(self, name: str, data: Buffer, table: BatchTable) -> Run:
        """Write a run's batches to a file of their own.

        Args:
            name: Nobody else's.
            data: The bytes that were got.
            table: Where the batches lie in them.

        Raises:
            OSError: The disk refuses.
        """
        path = self._path / (name + _SUFFIX)
        handle = FileHandle(self._files, self._files.open(path, CREATE))
        first = table.first_position
        try:
            write_all(self._files, handle.fd, [memoryview(data)[first : first + table.size_bytes]], 0)
        finally:
            with suppress(OSError):
                self._files.unlink(path)
        return Run(table, self._files, handle)


@attrs.define
class _SegmentRuns:
    """The runs of one cold segment, in the order of their first offsets, which all differ."""

    starts: list[int] = attrs.field(factory=list)
    runs: list[Run] = attrs.field(factory=list)

    def find(self, offset: int) -> Run | None:
        number = bisect_right(self.starts, offset) - 1
        if number < 0 or offset >= self.runs[number].table.next_offset:
            return None
        return self.runs[number]

    def put(self, run: Run) -> Run | None:
        """Take a run; return the one that began at the same offset."""
        start = run.table.start_offset
        number = bisect_right(self.starts, start) - 1
        if number >= 0 and self.starts[number] == start:
            old, self.runs[number] = self.runs[number], run
            return old
        self.starts.insert(number + 1, start)
        self.runs.insert(number + 1, run)
        return None

    def remove(self, run: Run) -> None:
        number = self.runs.index(run)
        del self.starts[number], self.runs[number]


class RunCache:
    """Runs at hand, by the uid of their segment. Owned by the reactor's task.

    What was not used for the longest time goes first, once there are more than `max_bytes`, or too many.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._segments: dict[str, _SegmentRuns] = {}
        self._by_use: OrderedDict[Run, str] = OrderedDict()
        self.size_bytes = 0

    def find(self, uid: str, offset: int) -> Run | None:
        """Return the run of a segment that stands for an offset."""
        segment = self._segments.get(uid)
        run = segment.find(offset) if segment is not None else None
        if run is not None:
            self._by_use.move_to_end(run)
        return run

    def holds(self, uid: str, offset: int) -> bool:
        """Say whether there is such a run, without counting it as used."""
        segment = self._segments.get(uid)
        return segment is not None and segment.find(offset) is not None

    def put(self, uid: str, run: Run) -> None:
        """Keep a run; the newest stays even when it alone is larger than the cache."""
        old = self._segments.setdefault(uid, _SegmentRuns()).put(run)
        if old is not None:
            self._forget(old)
        self._by_use[run] = uid
        self.size_bytes += run.table.size_bytes
        while len(self._by_use) > 1 and (self.size_bytes > self._max_bytes or len(self._by_use) > _RUNS_MAX):
            oldest, its_uid = next(iter(self._by_use.items()))
            self._segments[its_uid].remove(oldest)
            if not self._segments[its_uid].runs:
                del self._segments[its_uid]
            self._forget(oldest)

    def drop(self, uid: str) -> None:
        """Forget the runs of a segment that is gone."""
        segment = self._segments.pop(uid, None)
        for run in segment.runs if segment is not None else ():
            self._forget(run)

    def _forget(self, run: Run) -> None:
        del self._by_use[run]
        self.size_bytes -= run.table.size_bytes


class IndexCache:
    """Offset and time indexes of cold segments, as they were got, by object name. Owned by the reactor's task."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._indexes: OrderedDict[str, bytes] = OrderedDict()
        self.size_bytes = 0

    def find(self, name: str) -> bytes | None:
        """Return an index."""
        data = self._indexes.get(name)
        if data is not None:
            self._indexes.move_to_end(name)
        return data

    def put(self, name: str, data: bytes) -> None:
        """Keep an index."""
        self.size_bytes += len(data) - len(self._indexes.pop(name, b""))
        self._indexes[name] = data
        while self.size_bytes > self.max_bytes and len(self._indexes) > 1:
            _, oldest = self._indexes.popitem(last=False)
            self.size_bytes -= len(oldest)
