"""A log that moves to another directory: what is copied when; the same whenever the process dies or the power goes."""

import errno
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.kernel.api import READ, OsFiles, PartitionLog, StorageError, do_now, read_header
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import LOG
from odradek.plugins.storage_segment.moving import SwapWork
from odradek.testing.contracts.storage_base import MONOTONIC_MS, PARTITION, SMALL, all_bytes, fill, rewrite
from odradek.testing.faults import FaultyFiles, PowerLoss

from .test_recreated_logs import AGAIN
from .test_segment_engine import names, started

DIRS = ["logs0", "logs1"]


class Killed(BaseException):
    """The process dies."""


class DyingFiles(OsFiles):
    """The machine's files; the process dies before, or the disk refuses, the rename to a name that ends so."""

    def __init__(self, name: str, failure: BaseException) -> None:
        super().__init__()
        self.name = name
        self.failure = failure

    def rename(self, source: Path, target: Path) -> None:
        if target.name.endswith(self.name):
            raise self.failure
        super().rename(source, target)


def compacted(engine: SegmentEngine, directory: Path, home: str) -> PartitionLog:
    """Return a log in which compaction left gaps behind which there is much, and which starts at 2."""
    log = engine.open_log(PARTITION, SMALL, log_dir=str(directory / home))
    written = fill(log, 0, 40)
    log.flush()
    engine.checkpoint({})
    first, second = log.segments()[:2]
    inside = [batch for batch in written if read_header(batch).base_offset < second.base_offset]
    rewrite(engine, log, [first.base_offset], inside[:-2])
    log.note_clean_end(second.base_offset)
    log.advance_log_start(2)
    for _ in range(2):
        engine.checkpoint({PARTITION: 40})
    return log


def begin_swap(engine: SegmentEngine, log: PartitionLog, target: Path) -> SwapWork:
    move = engine.begin_move(PARTITION, str(target))
    move.run(lambda size_bytes: None)
    log.close()
    return move.begin_swap()


def found(directory: Path) -> PartitionLog:
    return started(directory, dirs=2).open_log(PARTITION, SMALL)


@pytest.mark.parametrize(("home", "target"), [DIRS, DIRS[::-1]])
def test_a_compacted_log_keeps_its_gaps_and_its_start_when_the_process_dies_after_the_move(
    tmp_path: Path, home: str, target: str
) -> None:
    engine = started(tmp_path, dirs=2)
    log = compacted(engine, tmp_path, home)
    before = all_bytes(log)
    do_now(begin_swap(engine, log, tmp_path / target))
    engine.abandon()
    log = found(tmp_path)

    assert (Path(log.log_dir).name, log.log_start_offset, all_bytes(log)) == (target, 2, before)


@pytest.mark.parametrize("name", [str(PARTITION.topic_partition), "-delete"])
@pytest.mark.parametrize(("home", "target"), [DIRS, DIRS[::-1]])
def test_a_compacted_log_keeps_its_gaps_and_its_start_when_the_process_dies_in_the_move(
    tmp_path: Path, home: str, target: str, name: str
) -> None:
    engine = started(tmp_path, dirs=2, files=DyingFiles(name, Killed()))
    log = compacted(engine, tmp_path, home)
    before = all_bytes(log)
    with pytest.raises(Killed):
        begin_swap(engine, log, tmp_path / target).run()
    engine.abandon()
    log = found(tmp_path)

    assert (log.log_start_offset, all_bytes(log)) == (2, before)


@pytest.mark.parametrize("home", DIRS)
def test_wherever_in_the_move_the_power_goes_the_log_is_the_same(tmp_path: Path, home: str) -> None:
    (target,) = {*DIRS} - {home}
    for number in range(1, 100, 3):
        before = tmp_path / str(number)
        before.mkdir()
        files = FaultyFiles(before)
        engine = started(before, dirs=2, files=files)
        log = compacted(engine, before, home)
        written = all_bytes(log)
        swap = begin_swap(engine, log, before / target)
        files._power_lost_at = files.operations + number
        with suppress(StorageError):
            do_now(swap)
        engine.abandon()
        for style in PowerLoss:
            left = before / style.value
            left.mkdir()
            files.after_power_loss(left, style, random.Random(number))
            log = found(left)
            assert (log.log_start_offset, all_bytes(log)) == (2, written), f"operation {number}, {style}"
        is_over = files.operations < files._power_lost_at
        files.crash()
        if is_over:
            return
    pytest.fail("the swap has more operations than were tried")


@pytest.mark.parametrize("name", [str(PARTITION.topic_partition), "-delete"])
def test_a_swap_that_fails_leaves_nothing_in_the_checkpoints_of_where_it_led(tmp_path: Path, name: str) -> None:
    files = DyingFiles(name, OSError(errno.EACCES, "no"))
    engine = started(tmp_path, dirs=2, files=files)
    log = compacted(engine, tmp_path, "logs0")
    with pytest.raises(StorageError, match="cannot move"):
        do_now(begin_swap(engine, log, tmp_path / "logs1"))
    files.name = "nothing"
    engine.delete_log(PARTITION)
    written = fill(engine.open_log(AGAIN, SMALL, log_dir=str(tmp_path / "logs1")), 0, 1)
    engine.abandon()
    log = started(tmp_path, dirs=2).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


def test_a_log_that_moved_away_leaves_nothing_to_one_that_is_begun_anew_where_it_was(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = compacted(engine, tmp_path, "logs0")
    do_now(begin_swap(engine, log, tmp_path / "logs1"))
    engine.delete_log(PARTITION)
    written = fill(engine.open_log(AGAIN, SMALL, log_dir=str(tmp_path / "logs0")), 0, 1)
    engine.abandon()
    log = started(tmp_path, dirs=2).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


# ------------------------------------------------------------------------------------------ topics that are begun anew


class WatchedFiles(OsFiles):
    """The machine's files; something is done before the rename of a name that ends so, once."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self.ending = ending
        self.act: Callable[[], None] | None = None

    def rename(self, source: Path, target: Path) -> None:
        if self.act is not None and (source.name.endswith(self.ending) or target.name.endswith(self.ending)):
            act, self.act = self.act, None
            act()
        super().rename(source, target)


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "not opened since the start"])
@pytest.mark.parametrize("ending", ["-future", "-delete"])
@pytest.mark.parametrize("home", DIRS)
def test_a_topic_that_is_begun_anew_while_its_log_is_swapped_keeps_its_directory(
    tmp_path: Path, home: str, ending: str, is_open: bool
) -> None:
    files = WatchedFiles(ending)
    engine = started(tmp_path, dirs=2, files=files)
    log: PartitionLog | None = compacted(engine, tmp_path, "logs0")
    if not is_open:
        engine.close({})
        engine, log = started(tmp_path, dirs=2, files=files), None
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    if log is not None:
        log.close()
    swap = move.begin_swap()

    tried = []

    def begin_anew() -> None:
        tried.append(ending)
        engine.delete_log(PARTITION)
        with pytest.raises(StorageError, match="free soon"):
            fill(engine.open_log(AGAIN, SMALL, log_dir=str(tmp_path / home)), 0, 20)

    files.act = begin_anew
    with pytest.raises(StorageError):
        do_now(swap)
    assert tried
    log = engine.open_log(AGAIN, SMALL, log_dir=str(tmp_path / home))
    written = fill(log, 0, 20)
    removal = engine.begin_removal(MONOTONIC_MS + 1_000_000)
    assert removal is not None
    do_now(removal)
    engine.abandon()
    assert [name for each in DIRS for name in names(tmp_path / each) if name.startswith("orders")] == [
        str(PARTITION.topic_partition)
    ]
    log = started(tmp_path, dirs=2).open_log(AGAIN, SMALL)

    assert (Path(log.log_dir).name, log.log_start_offset, all_bytes(log)) == (home, 0, written)


def test_a_log_that_was_deleted_before_its_copy_was_to_take_its_place_is_not_swapped(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = compacted(engine, tmp_path, "logs0")
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    log.close()
    engine.delete_log(PARTITION)
    written = fill(engine.open_log(AGAIN, SMALL, log_dir=str(tmp_path / "logs0")), 0, 1)
    with pytest.raises(StorageError, match="deleted or opened"):
        move.begin_swap()
    move.give_up()
    engine.abandon()
    log = started(tmp_path, dirs=2).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


# ------------------------------------------------------------------------------------------- what is copied, and when


class CopiedFiles(OsFiles):
    """The machine's files; counts the bytes of batches that are read to be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.copied_bytes = 0
        self._logs: set[int] = set()
        self._read = self.pread
        self.pread = self._pread

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        self._logs.discard(fd)
        if path.suffix == LOG and flags == READ:
            self._logs.add(fd)
        return fd

    def _pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        data = self._read(fd, size_bytes, position)
        if fd in self._logs:
            self.copied_bytes += len(data)
        return data


def test_a_move_copies_what_came_since_it_was_asked_for_and_nothing_twice(tmp_path: Path) -> None:
    files = CopiedFiles()
    engine = started(tmp_path, dirs=2, files=files)
    log = engine.open_log(PARTITION, SMALL, log_dir=str(tmp_path / "logs0"))
    written = fill(log, 0, 20)
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    sizes = [log.size_bytes]
    for end in (33, 34, 60):
        written += fill(log, len(written), end)
        missing = move.begin_copy()
        move.run(lambda size_bytes: None)
        assert (missing, move.copied_offset) == (log.size_bytes - sum(sizes[1:]), end)
        assert (move.copied_bytes, move.begin_copy()) == (log.size_bytes, 0)
        sizes.append(missing)
    files.copied_bytes = 0
    written += fill(log, 60, 61)
    size = log.size_bytes - move.copied_bytes
    log.close()
    do_now(move.begin_swap())

    assert files.copied_bytes == size
    assert all_bytes(engine.open_log(PARTITION, SMALL)) == written


@pytest.mark.parametrize("change", ["truncated", "compacted"])
def test_a_log_whose_segments_are_others_is_copied_once_more_while_it_serves(tmp_path: Path, change: str) -> None:
    files = CopiedFiles()
    engine = started(tmp_path, dirs=2, files=files)
    log = engine.open_log(PARTITION, SMALL, log_dir=str(tmp_path / "logs0"))
    batches = fill(log, 0, 40)
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    if change == "truncated":
        log.truncate_to(9)
    else:
        first, second = log.segments()[:2]
        rewrite(engine, log, [first.base_offset], batches[: second.base_offset - 1])
    written = all_bytes(log)
    assert move.begin_copy() == log.size_bytes
    move.run(lambda size_bytes: None)
    assert (move.copied_offset, move.copied_bytes) == (log.log_end_offset, log.size_bytes)
    log.close()
    files.copied_bytes = 0
    do_now(move.begin_swap())

    assert files.copied_bytes == 0
    assert all_bytes(engine.open_log(PARTITION, SMALL)) == written


def test_a_log_whose_segments_are_others_when_it_is_closed_is_copied_once_more(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = engine.open_log(PARTITION, SMALL, log_dir=str(tmp_path / "logs0"))
    fill(log, 0, 40)
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    log.truncate_to(9)
    move.begin_copy()  # and is not run: what is there is of the log as it was
    written = [*all_bytes(log), *fill(log, 9, 12, epoch=3)]
    log.close()
    do_now(move.begin_swap())

    assert all_bytes(engine.open_log(PARTITION, SMALL)) == written
