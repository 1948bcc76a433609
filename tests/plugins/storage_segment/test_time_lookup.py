"""A look-up of a time on a worker thread: what it spares the log's own task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import NO_LIMIT, OsFiles, do_now
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill, make_context

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 60
"""Batches, six a segment; their timestamps are 1000 + offset."""


class CountingFiles(OsFiles):
    """The machine's files; counts what is opened and what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.calls_count = 0
        self._real_pread = self.pread
        self.pread = self._pread

    def open(self, path: Path, flags: int) -> int:
        self.calls_count += 1
        return super().open(path, flags)

    def _pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        self.calls_count += 1
        return self._real_pread(fd, size_bytes, position)


def started(directory: Path, files: OsFiles | None = None) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory, files=files))
    engine.start()
    return engine


def test_after_a_start_the_segments_are_opened_and_read_by_the_thread(tmp_path: Path) -> None:
    engine = started(tmp_path)
    written = fill(engine.open_log(PARTITION, SMALL), 0, COUNT)
    engine.close({})
    files = CountingFiles()
    log = started(tmp_path, files).open_log(PARTITION, SMALL)
    lookup = log.begin_time_lookup(1_030)
    assert lookup is not None
    files.calls_count = 0
    do_now(lookup)
    on_the_thread, files.calls_count = files.calls_count, 0

    assert on_the_thread > 2 * len(log.segments())
    assert log.batch_for_timestamp(1_030, 0) == written[30]
    assert files.calls_count < len(log.segments())


def test_nothing_is_begun_for_what_the_active_segment_answers(tmp_path: Path) -> None:
    log = started(tmp_path).open_log(PARTITION, SMALL)
    fill(log, 0, COUNT)
    do = log.begin_time_lookup(NO_LIMIT)
    if do is not None:
        do_now(do)

    assert log.begin_time_lookup(NO_LIMIT) is None
    assert log.begin_time_lookup(1_000 + COUNT - 1) is None
    assert log.begin_time_lookup(5_000) is None
    assert log.begin_time_lookup(1_000) is not None


def test_segments_that_go_meanwhile_are_passed_over(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(PARTITION, SMALL), 0, COUNT)
    engine.close({})
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, SMALL)
    lookup = log.begin_time_lookup(1_030)
    assert lookup is not None
    log.delete_segments_below(COUNT)
    do_now(lookup)

    assert log.max_timestamp() == (1_000 + COUNT - 1, COUNT - 1)
