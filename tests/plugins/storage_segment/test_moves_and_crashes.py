"""A log that moves to another directory is the same there whenever the process dies, or the power goes."""

import errno
import random
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.kernel.api import OsFiles, PartitionLog, StorageError, do_now, read_header
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.moving import SwapWork
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill, rewrite
from odradek.testing.faults import FaultyFiles, PowerLoss

from .test_recreated_logs import AGAIN
from .test_segment_engine import started

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
