"""Logs that are not on the disk yet: staging does not make them, the write does, whatever was staged before it."""

import errno
from pathlib import Path

import pytest

from odradek.kernel.api import Files, LogConfig, OsFiles, StorageError, read_header
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.log import SegmentLog
from odradek.plugins.storage_segment.writer import UNMADE_BYTES_MAX
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, make_context

CONFIG = LogConfig(index_interval_bytes=200)


class FullFiles(OsFiles):
    """Files of a disk on which no directory can be made, once told to."""

    is_full = False

    def mkdir(self, path: Path) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "full")
        super().mkdir(path)


def engine_of(directory: Path, files: Files | None = None) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory, files=files))
    engine.start()
    return engine


def opened(engine: SegmentEngine) -> SegmentLog:
    log = engine.open_log(PARTITION, CONFIG)
    assert isinstance(log, SegmentLog)
    return log


def stage(log: SegmentLog, count: int, size_bytes: int = 100) -> None:
    for _ in range(count):
        offset = log.log_end_offset
        log.append(make_batch(offset, size_bytes=size_bytes), offset, offset, 1_000 + offset)


def test_staging_makes_no_log_and_the_write_does(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    log = opened(engine)
    stage(log, 50)
    assert not log.directory.exists()
    assert engine.unmade_logs_count == 1
    log.write_pending()
    stage(log, 50)
    log.write_pending()

    assert engine.unmade_logs_count == 0
    assert [read_header(batch).base_offset for batch in log.batches(0)] == [*range(100)]
    assert log.read(70, 200).next_offset == 71
    engine.close({})
    assert opened(engine_of(tmp_path)).log_end_offset == 100


def test_a_log_of_which_much_is_staged_is_made_for_its_index(tmp_path: Path) -> None:
    log = opened(engine_of(tmp_path))
    stage(log, 2, UNMADE_BYTES_MAX // 4)
    assert not log.directory.exists()
    stage(log, 4, UNMADE_BYTES_MAX // 4)

    assert log.directory.exists()
    log.write_pending()
    assert log.read(5, UNMADE_BYTES_MAX).next_offset == 6


def test_a_log_that_cannot_be_made_is_offline_and_nothing_of_it_counts(tmp_path: Path) -> None:
    files = FullFiles()
    engine = engine_of(tmp_path, files)
    log = opened(engine)
    stage(log, 3)
    files.is_full = True
    with pytest.raises(StorageError, match="full"):
        log.write_pending()

    assert (log.is_offline, log.log_end_offset) == (True, 0)
    files.is_full = False
    again = opened(engine)
    stage(again, 2)
    again.write_pending()
    assert again.log_end_offset == 2


@pytest.mark.parametrize("act", ["roll", "flush", "close", "truncate", "read", "max_timestamp", "segments"])
def test_whatever_is_asked_of_a_log_with_staged_batches_sees_it_as_ever(tmp_path: Path, act: str) -> None:
    log = opened(engine_of(tmp_path))
    stage(log, 5)
    if act == "truncate":
        log.truncate_to(2)
    elif act == "read":
        assert log.read(0, 1000).size_bytes == 0
    else:
        getattr(log, act)()
    if act == "close":
        return
    log.write_pending()

    expected = 2 if act == "truncate" else 5
    assert [read_header(batch).base_offset for batch in log.batches(0)] == [*range(expected)]
