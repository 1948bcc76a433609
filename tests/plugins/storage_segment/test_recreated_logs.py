"""Topics that are deleted and created again: what checkpoints tell of the old log is not taken for the new one's."""

import random
import shutil
import uuid
from pathlib import Path

import pytest

from odradek.kernel.api import Files, OsFiles, PartitionLog, StorageError, do_now
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill
from odradek.testing.faults import FaultyFiles, PowerLoss

from .full_disk import FullDisk
from .test_segment_engine import partition, started

AGAIN = PARTITION._replace(topic_id=uuid.UUID(int=78))
STARTS = "log-start-offset-checkpoint"


def with_a_start(directory: Path, *, files: Files | None = None) -> SegmentEngine:
    """Return an engine whose checkpoints tell, durably, that the log starts at 15."""
    engine = started(directory, files=files)
    log = engine.open_log(PARTITION, SMALL)
    fill(log, 0, 20)
    log.flush()
    log.advance_log_start(15)
    for _ in range(2):
        engine.checkpoint({PARTITION: 20})
    return engine


def begun_anew(engine: SegmentEngine) -> PartitionLog:
    engine.delete_log(PARTITION)
    return engine.open_log(AGAIN, SMALL)


@pytest.mark.parametrize("count", [10, 30], ids=["fewer", "more"])
def test_a_log_that_is_begun_anew_keeps_its_records_when_the_process_dies(tmp_path: Path, count: int) -> None:
    engine = with_a_start(tmp_path)
    written = fill(begun_anew(engine), 0, count)
    engine.abandon()
    engine = started(tmp_path)
    log = engine.open_log(AGAIN, SMALL)

    assert (log.log_start_offset, log.recovery_point, all_bytes(log)) == (0, 0, written)
    assert AGAIN not in engine.high_watermarks()


def test_a_checkpoint_that_was_under_way_does_not_bring_the_deleted_log_back(tmp_path: Path) -> None:
    engine = with_a_start(tmp_path)
    work = engine.begin_checkpoint({PARTITION: 19})
    assert work is not None
    log = begun_anew(engine)
    work.run()
    written = fill(log, 0, 10)
    work.finish(None)
    engine.abandon()
    log = started(tmp_path).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


@pytest.mark.parametrize("style", PowerLoss)
@pytest.mark.parametrize("checkpoints", [0, 1])
def test_what_was_flushed_of_a_log_that_is_begun_anew_is_there_after_a_loss_of_power(
    tmp_path: Path, style: PowerLoss, checkpoints: int
) -> None:
    before, left = tmp_path / "before", tmp_path / "left"
    before.mkdir()
    left.mkdir()
    files = FaultyFiles(before)
    engine = with_a_start(before, files=files)
    engine.delete_log(PARTITION)
    for _ in range(checkpoints):  # its names last with the next one
        work = engine.begin_checkpoint({})
        assert work is not None
        do_now(work)
    log = engine.open_log(AGAIN, SMALL)
    written = fill(log, 0, 10)
    log.flush()
    files.after_power_loss(left, style, random.Random(1))
    engine.abandon()
    files.crash()
    log = started(left).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


def test_what_a_process_that_died_left_of_a_deleted_log_is_not_the_new_ones(tmp_path: Path) -> None:
    engine = with_a_start(tmp_path)
    engine.delete_log(PARTITION)
    engine.abandon()
    engine = started(tmp_path)
    written = fill(engine.open_log(AGAIN, SMALL), 0, 10)
    engine.abandon()
    log = started(tmp_path).open_log(AGAIN, SMALL)

    assert (log.log_start_offset, all_bytes(log)) == (0, written)


def test_the_lines_of_a_copy_that_is_set_aside_are_forgotten(tmp_path: Path) -> None:
    with_a_start(tmp_path).close({})
    checkpoint = (tmp_path / "logs0" / STARTS).read_text()
    other = started(tmp_path / "other")
    fill(other.open_log(PARTITION, SMALL), 0, 1)
    other.close({})
    (tmp_path / "logs1").mkdir()
    (tmp_path / "other" / "logs0" / str(PARTITION)).rename(tmp_path / "logs1" / str(PARTITION))
    (tmp_path / "logs1" / STARTS).write_text(checkpoint)
    engine = started(tmp_path, dirs=2)
    engine.close({})

    assert str(PARTITION.topic) not in (tmp_path / "logs1" / STARTS).read_text()


class CountingFiles(OsFiles):
    """The machine's files; counts the checkpoints that are written."""

    checkpoints_count = 0

    def open(self, path: Path, flags: int) -> int:
        self.checkpoints_count += path.name.startswith(STARTS)
        return super().open(path, flags)


def test_many_logs_that_are_deleted_and_begun_anew_cost_one_checkpoint(tmp_path: Path) -> None:
    files = CountingFiles()
    engine = started(tmp_path, files=files)
    for number in range(10):
        fill(engine.open_log(partition(number), SMALL), 0, 3)
    engine.checkpoint({})
    before = files.checkpoints_count
    for number in range(10):
        engine.delete_log(partition(number))
    fill(engine.open_log(partition(11), SMALL), 0, 1)
    assert files.checkpoints_count == before
    for number in range(10):
        fill(engine.open_log(AGAIN._replace(partition=number), SMALL), 0, 1)

    assert files.checkpoints_count == before + 1


def test_a_log_for_whose_checkpoints_there_is_no_room_is_offline_until_there_is(tmp_path: Path) -> None:
    files = FullDisk("*-offset-checkpoint*")
    engine = with_a_start(tmp_path, files=files)
    log = begun_anew(engine)
    files.is_full = True
    with pytest.raises(StorageError, match="the disk is full"):
        fill(log, 0, 1)
    files.is_full = False
    written = fill(engine.open_log(AGAIN, SMALL), 0, 10)
    engine.abandon()

    assert all_bytes(started(tmp_path).open_log(AGAIN, SMALL)) == written


def test_a_high_watermark_that_was_gathered_of_the_deleted_log_is_not_noted(tmp_path: Path) -> None:
    engine = with_a_start(tmp_path)
    fill(begun_anew(engine), 0, 30)
    for _ in range(2):
        engine.checkpoint({PARTITION: 20})
    engine.abandon()

    assert started(tmp_path).high_watermarks() == {}


def test_a_log_that_was_cut_to_nothing_is_clean_nowhere(tmp_path: Path) -> None:
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, SMALL)
    fill(log, 0, 20)
    log.flush()
    log.note_clean_end(10)
    engine.checkpoint({PARTITION: 20})
    log.truncate_to(0)
    written = fill(log, 0, 20)
    log.flush()
    for _ in range(2):
        engine.checkpoint({PARTITION: 20})
    engine.abandon()
    log = started(tmp_path).open_log(PARTITION, SMALL)

    assert (log.clean_end, all_bytes(log)) == (0, written)


def test_a_log_whose_directory_was_lost_begins_anew_where_it_started(tmp_path: Path) -> None:
    with_a_start(tmp_path).abandon()
    shutil.rmtree(tmp_path / "logs0" / str(PARTITION))
    for _ in range(2):  # it is not begun by the first start
        started(tmp_path).close({})
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 15, 10)
    engine.abandon()
    log = started(tmp_path).open_log(PARTITION, SMALL)

    assert (log.log_start_offset, log.recovery_point, all_bytes(log)) == (15, 15, written)
