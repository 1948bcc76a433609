"""A clean stop: what it syncs of a log, and what it leaves to be found again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import LogConfig, OsFiles
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import TIME_INDEX, segment_file_name
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill, make_context

if TYPE_CHECKING:
    from pathlib import Path

TIME_INDEX_FILE = segment_file_name(0, TIME_INDEX)


class CountingFiles(OsFiles):
    """The machine's files; counts the calls that a clean stop of many logs is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._real_fsync = self.fsync
        self.fsync = self._fsync

    def _fsync(self, fd: int, /) -> None:
        self.counts["sync"] += 1
        self._real_fsync(fd)

    def fsync_directory(self, path: Path) -> None:
        self.counts["sync"] += 1
        super().fsync_directory(path)

    def open(self, path: Path, flags: int) -> int:
        self.counts["open"] += 1
        return super().open(path, flags)


def started(directory: Path, files: OsFiles | None = None) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory, files=files))
    engine.start()
    return engine


def closed(directory: Path, config: LogConfig, *, batches_count: int) -> Counter[str]:
    """Return the calls of closing an engine with one log, to which so many batches are written first."""
    files = CountingFiles()
    engine = started(directory, files)
    log = engine.open_log(PARTITION, config)
    if batches_count:
        log.assign_epoch(0, 0)
    for offset in range(batches_count):
        fill(log, offset, offset + 1)
    files.counts.clear()
    engine.close({})
    return files.counts


@pytest.mark.parametrize(
    ("batches_count", "syncs", "opens"),
    [
        (0, 0, 0),
        (1, 4, 3),  # the log, its epochs, its metadata, its directory; opened: the two small files and the time index
        (5, 6, 6),  # both indexes, too, for a batch has an entry: opened to be trimmed, and to be synced
    ],
)
def test_a_log_is_closed_with_no_more_syncs_than_a_start_relies_on(
    tmp_path: Path, batches_count: int, syncs: int, opens: int
) -> None:
    without = closed(tmp_path / "empty", SMALL, batches_count=0)
    with_log = closed(tmp_path / "with", SMALL, batches_count=batches_count)

    assert (with_log["sync"] - without["sync"], with_log["open"] - without["open"]) == (syncs, opens)


def test_a_log_that_nothing_was_written_to_since_it_was_closed_is_not_synced(tmp_path: Path) -> None:
    empty = closed(tmp_path / "empty", SMALL, batches_count=0)
    closed(tmp_path / "log", SMALL, batches_count=5)

    assert closed(tmp_path / "log", SMALL, batches_count=0)["sync"] <= empty["sync"]


@pytest.mark.parametrize("content", [b"", bytes(12), bytes(5), bytes(240)], ids=["empty", "zeros", "torn", "untrimmed"])
def test_a_small_log_whose_time_index_was_lost_with_the_power_tells_the_same_times(
    tmp_path: Path, content: bytes
) -> None:
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, LogConfig())
    written = fill(log, 0, 5)
    assert log.directory is not None
    time_index = log.directory / TIME_INDEX_FILE
    engine.close({})
    assert time_index.stat().st_size == 12
    time_index.write_bytes(content)
    log = started(tmp_path).open_log(PARTITION, LogConfig())

    assert log.max_timestamp() == (1_004, 4)
    assert [log.batch_for_timestamp(stamp, 0) for stamp in (0, 1_002, 1_005)] == [written[0], written[2], None]
    fill(log, 5, 6)
    assert log.max_timestamp() == (1_005, 5)
