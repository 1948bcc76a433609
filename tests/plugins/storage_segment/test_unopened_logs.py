"""What a run that ends before its logs were opened leaves to the next one: after a crash, all is to be checked."""

from __future__ import annotations

import errno
import os
import random
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from odradek.kernel.api import LogConfig, OsFiles, PartitionLog, StorageError, TopicIdPartition, do_now
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import (
    CLEAN_SHUTDOWN,
    LOG,
    OFFSET_INDEX,
    RECOVERY_POINTS,
    decode_offsets,
    segment_file_name,
)
from odradek.testing.contracts.storage_base import PARTITION, all_bytes, fill, rewrite
from odradek.testing.faults import FaultyFiles, PowerLoss

from .test_segment_engine import started

CONFIG = LogConfig(segment_index_bytes=240, index_interval_bytes=64, file_delete_delay_ms=0)
OTHER = TopicIdPartition(PARTITION.topic_id, "orders", 4)


def compacted(engine: SegmentEngine) -> list[bytes]:
    """Make a log whose first segment was rewritten, as `ttl` does it: behind its end offsets are missing. Return it."""
    log = engine.open_log(PARTITION, CONFIG)
    batches = fill(log, 0, 4)
    log.roll()
    batches += fill(log, 4, 6)
    log.roll()
    batches += fill(log, 6, 12)
    rewrite(engine, log, [0], batches[:2])
    engine.checkpoint({PARTITION: 12})
    engine.checkpoint({PARTITION: 12})
    return [*batches[:2], *batches[4:]]


def crashed(directory: Path) -> list[bytes]:
    engine = started(directory)
    batches = compacted(engine)
    engine.abandon()
    return batches


def lose(directory: Path, loss: bytes | None) -> None:
    path = directory / "logs0" / RECOVERY_POINTS
    if loss is None:
        path.unlink()
    else:
        path.write_bytes(loss)


def is_marked(directory: Path) -> bool:
    return (directory / "logs0" / CLEAN_SHUTDOWN).exists()


def reopened(directory: Path) -> PartitionLog:
    return started(directory).open_log(PARTITION, CONFIG)


def test_a_start_that_ends_before_a_log_was_opened_leaves_what_compaction_left_of_it(tmp_path: Path) -> None:
    batches = crashed(tmp_path)
    for _ in range(2):
        started(tmp_path).close({})
        assert not is_marked(tmp_path)

    log = reopened(tmp_path)
    assert (all_bytes(log), log.was_clean) == (batches, False)


def test_a_log_that_was_not_opened_since_a_crash_keeps_its_directory_from_being_marked(tmp_path: Path) -> None:
    """Also by the starts that follow; the directory's other logs are checked with it, from where they were flushed."""
    engine = started(tmp_path)
    written = fill(engine.open_log(OTHER, CONFIG), 0, 3)
    batches = compacted(engine)
    engine.abandon()
    for _ in range(2):
        engine = started(tmp_path)
        written += fill(engine.open_log(OTHER, CONFIG), len(written), len(written) + 1)
        engine.close({})
        assert not is_marked(tmp_path)
    engine = started(tmp_path)
    logs = [engine.open_log(partition, CONFIG) for partition in (PARTITION, OTHER)]
    assert [all_bytes(log) for log in logs] == [batches, written]
    assert [log.was_clean for log in logs] == [False, False]
    engine.close({})

    assert is_marked(tmp_path)
    assert reopened(tmp_path).was_clean


def test_a_log_that_was_deleted_or_set_aside_unopened_keeps_nothing_from_being_marked(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(OTHER, CONFIG), 0, 3)
    compacted(engine)
    engine.abandon()
    engine = started(tmp_path)
    engine.delete_log(PARTITION)
    engine.set_aside(OTHER)
    engine.close({})

    assert is_marked(tmp_path)


def test_a_clean_end_stays_one_over_starts_that_open_nothing(tmp_path: Path) -> None:
    engine = started(tmp_path)
    batches = compacted(engine)
    engine.close({})
    for _ in range(2):
        started(tmp_path).close({})
        assert is_marked(tmp_path)

    log = reopened(tmp_path)
    assert (all_bytes(log), log.was_clean) == (batches, True)


@pytest.mark.parametrize("has_checkpoint", [True, False])
@pytest.mark.parametrize("is_opened", [False, True])
def test_wherever_a_start_after_a_crash_is_killed_as_it_ends_nothing_is_lost(
    tmp_path: Path, is_opened: bool, has_checkpoint: bool
) -> None:
    batches = crashed(tmp_path / "before")
    if not has_checkpoint:
        lose(tmp_path / "before", None)
    for number in count(1):
        directory = tmp_path / str(number)
        shutil.copytree(tmp_path / "before", directory)
        files = FaultyFiles(directory, power_lost_at=number)
        with suppress(OSError, StorageError):
            engine = started(directory, files=files)
            if is_opened:
                engine.open_log(PARTITION, CONFIG)
            engine.close({})
        files.crash()
        for style in PowerLoss:
            left = tmp_path / f"{number}-{style.value}"
            left.mkdir()
            files.after_power_loss(left, style, random.Random(number))
            assert all_bytes(reopened(left)) == batches, (number, style)
        assert all_bytes(reopened(directory)) == batches, number
        if files.operations < number:
            break


class RefusingFiles(OsFiles):
    """The machine's files; those whose names match a pattern cannot be opened while it `refuses` them."""

    def __init__(self, pattern: str, error: int) -> None:
        super().__init__()
        self.refuses = True
        self._pattern = pattern
        self._error = error

    def open(self, path: Path, flags: int) -> int:
        if self.refuses and path.match(self._pattern):
            raise OSError(self._error, os.strerror(self._error), str(path))
        return super().open(path, flags)


def test_a_log_whose_opening_failed_half_way_is_checked_the_next_time(tmp_path: Path) -> None:
    """What the opening had begun to build is there, as large as it may become, and is not what a clean end left."""
    engine = started(tmp_path)
    batches = compacted(engine)
    engine.close({})
    (tmp_path / "logs0" / "orders-3" / segment_file_name(4, OFFSET_INDEX)).unlink()
    files = RefusingFiles(segment_file_name(4, LOG), errno.EMFILE)  # its index is made by then
    engine = started(tmp_path, files=files)
    with pytest.raises(StorageError, match="Too many open files"):
        engine.open_log(PARTITION, CONFIG)
    files.refuses = False
    log = engine.open_log(PARTITION, CONFIG)
    assert (all_bytes(log), log.was_clean) == (batches, False)


# ------------------------------------------------------------------------- checkpoints that are lost, or were damaged

LOSSES = [None, b"", b"0\n1\norders 3 nonsense\n"]
"""What the checkpoint of recovery points is found to be: gone, empty, unreadable."""
TOO_LOW = b"0\n1\norders 3 2\n"


@pytest.mark.parametrize("loss", [*LOSSES, TOO_LOW])
def test_a_lost_recovery_point_costs_time_and_no_record_after_a_clean_end(tmp_path: Path, loss: bytes | None) -> None:
    engine = started(tmp_path)
    batches = compacted(engine)
    engine.close({})
    lose(tmp_path, loss)
    for _ in range(3):
        engine = started(tmp_path)
        log = engine.open_log(PARTITION, CONFIG)
        assert (all_bytes(log), log.was_clean, log.recovery_point) == (batches, False, 12)
        engine.abandon()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("checkpoints_count", [0, 1, 2])
def test_a_lost_recovery_point_costs_no_record_after_a_crash(
    tmp_path: Path, loss: bytes | None, checkpoints_count: int
) -> None:
    engine = started(tmp_path)
    written = fill(engine.open_log(OTHER, CONFIG), 0, 3)
    batches = compacted(engine)
    engine.abandon()
    lose(tmp_path, loss)
    engine = started(tmp_path)
    assert all_bytes(engine.open_log(OTHER, CONFIG)) == written
    for _ in range(checkpoints_count):  # what they would hold now tells nothing of the other log
        engine.checkpoint({})
    engine.abandon()
    engine = started(tmp_path)
    logs = [engine.open_log(partition, CONFIG) for partition in (PARTITION, OTHER)]
    assert [all_bytes(log) for log in logs] == [batches, written]
    engine.checkpoint({})
    engine.checkpoint({})
    assert logs[0].rewritable_end == 6
    engine.abandon()

    assert all_bytes(reopened(tmp_path)) == batches
    assert reopened_recovery_points(tmp_path) == {"orders-3": 12, "orders-4": 3}


@pytest.mark.parametrize("is_in_place", [True, False])
def test_a_log_of_another_broker_is_taken_over_only_with_a_recovery_point(tmp_path: Path, is_in_place: bool) -> None:
    """A start after a crash would take the gaps that compaction left in it for holes."""
    theirs = tmp_path / "theirs"
    batches = crashed(theirs)
    home = theirs if is_in_place else tmp_path / "ours"
    engine = started(home)
    engine.open_log(OTHER, CONFIG)
    engine.checkpoint({})
    engine.abandon()
    lose(home, b"0\n1\norders 4 0\n")
    files = RefusingFiles("*offset-checkpoint*.tmp", errno.ENOSPC)
    engine = started(home, files=files)
    do_now(engine.begin_adoption(PARTITION, str(theirs / "logs0")))
    for _ in range(2):
        with pytest.raises(StorageError, match="make room"):
            engine.open_log(PARTITION, CONFIG)
    files.refuses = False
    engine.close({})
    assert not is_marked(home)
    lose(home, b"0\n1\norders 4 0\n")

    engine = started(home)
    do_now(engine.begin_adoption(PARTITION, str(home / "logs0")))
    assert all_bytes(engine.open_log(PARTITION, CONFIG)) == batches
    engine.abandon()
    assert all_bytes(reopened(home)) == batches


def test_a_log_that_is_refused_for_want_of_room_is_open_as_soon_as_there_is_some(tmp_path: Path) -> None:
    batches = crashed(tmp_path)
    lose(tmp_path, b"0\n1\norders 4 0\n")
    files = RefusingFiles("*offset-checkpoint*.tmp", errno.ENOSPC)
    engine = started(tmp_path, files=files)
    do_now(engine.begin_adoption(PARTITION, str(tmp_path / "logs0")))
    with pytest.raises(StorageError, match="make room"):
        engine.open_log(PARTITION, CONFIG)
    files.refuses = False
    log = engine.open_log(PARTITION, CONFIG)
    assert (all_bytes(log), log.recovery_point) == (batches, 12)
    engine.abandon()

    assert all_bytes(reopened(tmp_path)) == batches


def test_a_log_of_a_clean_end_is_served_without_room_for_its_better_recovery_point(tmp_path: Path) -> None:
    engine = started(tmp_path)
    batches = compacted(engine)
    engine.close({})
    lose(tmp_path, TOO_LOW)
    files = RefusingFiles("*offset-checkpoint*.tmp", errno.ENOSPC)
    engine = started(tmp_path, files=files)
    assert all_bytes(engine.open_log(PARTITION, CONFIG)) == batches
    files.refuses = False
    engine.checkpoint({})
    engine.abandon()

    assert all_bytes(reopened(tmp_path)) == batches


def reopened_recovery_points(directory: Path) -> dict[str, int]:
    data = (directory / "logs0" / RECOVERY_POINTS).read_bytes()
    return {str(key): offset for key, offset in decode_offsets(data).items()}


def test_a_hole_in_a_log_that_is_too_young_for_a_checkpoint_is_found_all_the_same(tmp_path: Path) -> None:
    """Compaction leaves such a log alone, so that it has no gaps of its making."""
    engine = started(tmp_path)
    compacted(engine)
    log = engine.open_log(OTHER, CONFIG)
    batches = fill(log, 0, 4)
    log.roll()
    fill(log, 4, 6)
    engine.abandon()
    with (tmp_path / "logs0" / "orders-4" / segment_file_name(0, LOG)).open("r+b") as file:
        file.truncate(2 * len(batches[0]))

    assert all_bytes(started(tmp_path).open_log(OTHER, CONFIG)) == batches[:2]


def test_nothing_is_compacted_in_a_directory_as_long_as_a_log_of_it_may_lack_its_recovery_point(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(OTHER, CONFIG), 0, 3)
    compacted(engine)
    engine.close({})
    lose(tmp_path, None)
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, CONFIG)
    engine.checkpoint({})
    assert log.rewritable_end == 0
    engine.delete_log(OTHER)
    engine.checkpoint({})

    assert log.rewritable_end == 6


def with_clean_end(directory: Path) -> tuple[SegmentEngine, PartitionLog]:
    """Return an engine, and another log in it of which all is compacted, and its checkpoints say so."""
    engine = started(directory)
    compacted(engine)
    log = engine.open_log(OTHER, CONFIG)
    fill(log, 0, 12)
    log.roll()
    log.flush()
    engine.checkpoint({})
    log.note_clean_end(12)
    engine.checkpoint({})
    return engine, log


@pytest.mark.parametrize("is_killed_before", [False, True])
def test_what_is_written_anew_after_a_truncation_is_not_taken_for_compacted_after_a_crash(
    tmp_path: Path, is_killed_before: bool
) -> None:
    """Nor is a hole in it taken for a gap."""
    engine, log = with_clean_end(tmp_path)
    if is_killed_before:
        engine.keep_offsets(OTHER, 3, 0)
    else:
        log.truncate_to(3)
        fill(log, 3, 20)
    engine.abandon()
    log = started(tmp_path).open_log(OTHER, CONFIG)

    assert (log.log_end_offset, log.clean_end) == (12 if is_killed_before else 20, 3)


def test_a_log_that_is_truncated_to_its_beginning_has_nothing_compacted(tmp_path: Path) -> None:
    engine, log = with_clean_end(tmp_path)
    log.truncate_fully(0)
    fill(log, 0, 20)
    engine.abandon()

    assert started(tmp_path).open_log(OTHER, CONFIG).clean_end == 0
