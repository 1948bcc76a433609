"""What opening a log makes of what a crash left, and of checkpoints that say something else than the log."""

from __future__ import annotations

import errno
import mmap
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.kernel.api import CorruptionError, Files, LogConfig, OsFiles, PartitionLog, read_file
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import (
    CLEAN_ENDS,
    CLEANED,
    DELETED,
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    LOG,
    LOG_START_OFFSETS,
    OFFSET_INDEX,
    RECOVERY_POINTS,
    SWAP,
    segment_file_name,
)
from odradek.plugins.storage_segment.recovery import KnownState, OpenedLog, open_directory
from odradek.plugins.storage_segment.rewriting import SwapWork
from odradek.plugins.storage_segment.segment import Segment
from odradek.testing.contracts.storage_base import PARTITION, all_bytes, fill, make_context, rewrite, write_anew
from odradek.testing.faults import FaultyFiles

CONFIG = LogConfig(segment_index_bytes=240, index_interval_bytes=64, file_delete_delay_ms=0)
TXN = "txnindex"
NEW_INDEXES = pytest.mark.parametrize("sidecars", [{}, {TXN: b"new"}], ids=["without-index", "with-index"])
OPERATIONS_MAX = 100


class Merging(NamedTuple):
    """The directory of a log with segments at 0, 4 and 8; the one that is to replace the first two is written."""

    path: Path
    batches: list[bytes]
    merged: list[bytes]

    def work(self, path: Path, files: Files) -> SwapWork:
        segments = [Segment(files, path, base_offset) for base_offset in (0, 4)]
        return SwapWork(None, files, path, segments, 0)  # type: ignore[arg-type] # nobody finishes it

    @property
    def after(self) -> list[bytes]:
        return self.merged + self.batches[8:]


def merging(directory: Path, sidecars: dict[str, bytes]) -> Merging:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    batches = []
    for base_offset in (0, 4, 8):
        log.roll()
        batches += fill(log, base_offset, base_offset + 4)
    for base_offset in (0, 4):
        log.write_sidecar(base_offset, TXN, b"old")
    log.flush()
    merged = [batches[1], batches[2], batches[5]]
    write_anew(log, 0, merged, sidecars)
    engine.abandon()
    return Merging(Path(log.log_dir) / "orders-3", batches, merged)


def recover(path: Path, files: Files | None = None) -> OpenedLog:
    known = KnownState(is_clean=False, recovery_point=12, log_start_offset=0)
    return open_directory(files or OsFiles(), path, CONFIG, lambda path, delay_ms: None, known)


def found(path: Path) -> tuple[list[bytes], dict[int, bytes]]:
    """Return what a start finds: the batches, and the transaction indexes."""
    directory = recover(path).directory
    batches = [bytes(batch) for segment in directory.segments for _, _, batch in segment.batches(0)]
    for segment in directory.segments:
        segment.forget()
    return batches, {at: read_file(OsFiles(), directory.sidecar_path(at, TXN)) for at in directory.sidecars(TXN)}


def killed_everywhere(before: Path, act: Callable[[Path, FaultyFiles], object]) -> Iterator[Path]:
    """Do something in copies of a directory, killed before each operation on files; iterate over what is left."""
    for number in range(1, OPERATIONS_MAX):
        path = before.with_name(f"{before.name}.{number}")
        shutil.copytree(before, path)
        files = FaultyFiles(path.parent, power_lost_at=number)
        with suppress(OSError):
            act(path, files)
        files.crash()
        yield path
        if files.operations < number:
            return
    pytest.fail("it has more operations than were tried")


@NEW_INDEXES
def test_a_replacement_that_is_ready_takes_the_place_of_logs_and_of_all_their_indexes(
    tmp_path: Path, sidecars: dict[str, bytes]
) -> None:
    log = merging(tmp_path, sidecars)
    log.work(log.path, OsFiles()).run()

    assert found(log.path) == (log.after, {0: b"new"} if sidecars else {})
    names = {path.name for path in log.path.iterdir()}
    assert not [name for name in names if name.startswith(f"{4:020d}") or name.endswith(SWAP)]


@NEW_INDEXES
def test_a_start_that_is_killed_while_it_finishes_a_replacement_is_followed_by_one_that_finishes_it(
    tmp_path: Path, sidecars: dict[str, bytes]
) -> None:
    log = merging(tmp_path, sidecars)
    log.work(log.path, OsFiles()).run()
    for path in killed_everywhere(log.path, recover):
        assert found(path) == (log.after, {0: b"new"} if sidecars else {})


def test_a_replacement_that_is_killed_is_there_or_not(tmp_path: Path) -> None:
    log = merging(tmp_path, {TXN: b"new"})
    outcomes = [found(path) for path in killed_everywhere(log.path, lambda path, files: log.work(path, files).run())]

    old, new = (log.batches, {0: b"old", 4: b"old"}), (log.after, {0: b"new"})
    assert [outcome for outcome in outcomes if outcome not in (old, new)] == []
    assert (outcomes[0], outcomes[-1]) == (old, new)


def test_a_start_that_is_killed_while_it_removes_an_unready_replacement_leaves_the_old_segments(tmp_path: Path) -> None:
    log = merging(tmp_path, {TXN: b"new"})
    log.work(log.path, OsFiles()).run()
    ready = log.path / segment_file_name(0, LOG, SWAP)
    ready.rename(log.path / segment_file_name(0, LOG, CLEANED))  # as if the first kill had come before this
    for path in killed_everywhere(log.path, recover):
        assert found(path) == (log.batches, {0: b"old", 4: b"old"})


def test_a_replacement_that_is_given_up_leaves_the_old_segments_wherever_it_is_killed(tmp_path: Path) -> None:
    log = merging(tmp_path, {TXN: b"new"})
    log.work(log.path, OsFiles()).run()
    outcomes = [
        found(path) for path in killed_everywhere(log.path, lambda path, files: log.work(path, files).give_up())
    ]

    old, new = (log.batches, {0: b"old", 4: b"old"}), (log.after, {0: b"new"})
    assert outcomes == [new] + [old] * (len(outcomes) - 1)


def test_indexes_without_a_log_go(tmp_path: Path) -> None:
    log = merging(tmp_path, {})
    (log.path / segment_file_name(0, LOG)).unlink()  # a deletion that came no further

    assert found(log.path) == (log.batches[4:], {4: b"old"})
    assert not [path for path in log.path.iterdir() if path.name.startswith(f"{0:020d}")]


# -- checkpoints that say something else than the log --------------------------------------------------------------


def stopped(directory: Path) -> list[bytes]:
    """Leave a log of two segments after a clean stop; it ends at 5."""
    engine = SegmentEngine(make_context(directory))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    batches = fill(log, 0, 3)
    log.roll()
    batches += fill(log, 3, 5)
    engine.close({PARTITION: 5})
    return batches


def reopened(directory: Path) -> PartitionLog:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    return engine.open_log(PARTITION, CONFIG)


@pytest.mark.parametrize("said", [99_999, 4, 3, 0])
@pytest.mark.parametrize(
    "checkpoint", [RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEAN_ENDS], ids=lambda name: name.split("-")[0]
)
def test_a_logs_end_is_the_logs_whatever_a_checkpoint_says_after_a_clean_stop(
    tmp_path: Path, checkpoint: str, said: int
) -> None:
    batches = stopped(tmp_path)
    (tmp_path / "logs0" / checkpoint).write_text(f"0\n1\norders 3 {said}\n")
    log = reopened(tmp_path)
    start = said if checkpoint == LOG_START_OFFSETS and said <= 5 else 0

    assert (log.log_start_offset, log.log_end_offset) == (start, 5)
    assert [bytes(batch) for batch in log.batches(start)] == batches[start:]
    assert log.recovery_point <= 5
    assert log.clean_end == (said if checkpoint == CLEAN_ENDS and said <= 5 else 0)
    batches += fill(log, 5, 7)
    assert [bytes(batch) for batch in log.batches(start)] == batches[start:]


def test_a_damaged_end_after_a_clean_stop_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    batches = stopped(tmp_path)
    with (tmp_path / "logs0" / "orders-3" / segment_file_name(3, LOG)).open("ab") as file:
        file.write(bytes(100))
    log = reopened(tmp_path)

    assert (log.log_end_offset, all_bytes(log)) == (5, batches)
    assert "it is checked" in caplog.text


def test_a_log_that_was_cut_after_a_clean_stop_was_not_clean(tmp_path: Path) -> None:
    """So its producers are read from what is left: their snapshots were of its old end."""
    batches = stopped(tmp_path)
    folder = tmp_path / "logs0" / "orders-3"
    (folder / segment_file_name(0, OFFSET_INDEX)).unlink()
    data = bytearray((folder / segment_file_name(0, LOG)).read_bytes())
    data[-1] ^= 1
    (folder / segment_file_name(0, LOG)).write_bytes(data)
    log = reopened(tmp_path)

    assert (log.log_end_offset, all_bytes(log)) == (2, batches[:2])
    assert (log.was_clean, log.recovery_point) == (False, 2)


def test_epochs_that_cannot_be_read_after_a_clean_stop_are_found_in_the_log(tmp_path: Path) -> None:
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    log.assign_epoch(1, 0)
    fill(log, 0, 3, epoch=1)
    log.assign_epoch(4, 3)
    fill(log, 3, 5, epoch=4)
    engine.close({PARTITION: 5})
    (tmp_path / "logs0" / "orders-3" / EPOCH_CHECKPOINT).write_text("0\n2\nnonsense\n")
    log = reopened(tmp_path)

    assert list(log.epoch_entries()) == [(1, 0), (4, 3)]
    assert not log.was_clean


@pytest.mark.parametrize("known_end", [None, 0])
def test_a_log_of_which_a_clean_stop_wrote_nothing_down_is_checked(tmp_path: Path, known_end: int | None) -> None:
    stopped(tmp_path)
    known = KnownState(is_clean=True, recovery_point=None, log_start_offset=0, known_end=known_end)
    path = tmp_path / "logs0" / "orders-3"
    opened = open_directory(OsFiles(), path, CONFIG, lambda path, delay_ms: None, known)
    for segment in opened.directory.segments:
        segment.forget()

    assert (opened.was_clean, opened.recovery_point) == (False, 0)


def test_what_compaction_left_of_a_log_stays_when_the_recovery_point_is_lost(tmp_path: Path) -> None:
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    batches = fill(log, 0, 4)
    log.roll()
    batches += fill(log, 4, 6)
    rewrite(engine, log, [0], batches[:2])  # compaction: the segment ends before the next one begins
    log.note_clean_end(4)
    engine.checkpoint({})
    engine.abandon()
    (tmp_path / "logs0" / RECOVERY_POINTS).unlink()
    log = reopened(tmp_path)

    assert all_bytes(log) == [*batches[:2], *batches[4:]]


def test_a_log_that_lost_its_end_in_a_crash_and_starts_behind_what_is_left_is_begun_anew(tmp_path: Path) -> None:
    stopped(tmp_path)
    discarded: dict[str, int] = {}

    def discard(path: Path, delay_ms: int) -> None:
        discarded[path.name] = delay_ms

    known = KnownState(is_clean=False, recovery_point=None, log_start_offset=7)
    opened = open_directory(OsFiles(), tmp_path / "logs0" / "orders-3", CONFIG, discard, known)
    for segment in opened.directory.segments:
        segment.forget()

    assert [segment.base_offset for segment in opened.directory.segments] == [7]
    assert {segment_file_name(base_offset, LOG) + DELETED for base_offset in (0, 3)} <= discarded.keys()
    assert set(discarded.values()) == {0}


@pytest.mark.parametrize(("recovery_point", "log_start_offset"), [(None, 6), (6, 0), (2, 6)])
def test_a_log_that_must_not_lose_a_record_is_refused_when_it_ends_before_a_checkpoint(
    tmp_path: Path, recovery_point: int | None, log_start_offset: int
) -> None:
    """Whatever the owner knows: a log starts, and was flushed, no further than where it once ended."""
    stopped(tmp_path)
    path = tmp_path / "logs0" / "orders-3"
    known = KnownState(is_clean=False, recovery_point=recovery_point, log_start_offset=log_start_offset, known_end=0)

    with pytest.raises(CorruptionError, match="up to offset 6"):
        open_directory(OsFiles(), path, CONFIG, lambda path, delay_ms: None, known)


@pytest.mark.parametrize(("flushed_to", "started_at"), [(8, 0), (0, 6), (8, 6)])
@pytest.mark.parametrize("is_whole", [False, True])
def test_what_is_written_anew_after_a_truncation_is_there_after_a_crash(
    tmp_path: Path, flushed_to: int, started_at: int, is_whole: bool
) -> None:
    """Neither checkpoint says of the new records what it said of the old ones."""
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    fill(log, 0, flushed_to)
    log.flush()
    fill(log, flushed_to, 10)
    log.advance_log_start(started_at)
    engine.checkpoint({})
    if is_whole:
        log.truncate_fully(3)
    else:
        log.truncate_to(3)
    written = fill(log, 3, 9)
    engine.abandon()
    log = reopened(tmp_path)

    assert log.log_start_offset == (3 if is_whole or started_at else 0)
    assert [bytes(batch) for batch in log.batches(3)] == written
    assert log.recovery_point <= 3


class MappedFiles(OsFiles):
    """The machine's files, which remembers mappings and may have no room for the next cut of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.mapped: list[mmap.mmap] = []
        self.truncate = self._truncate

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        self.mapped.append(super().mmap(fd, size_bytes, is_writable=is_writable))
        return self.mapped[-1]

    def _truncate(self, fd: int, size_bytes: int, /) -> None:
        if self.mapped:
            raise OSError(errno.ENOSPC, "no room")
        OsFiles().truncate(fd, size_bytes)


def test_a_log_that_cannot_be_opened_lets_its_files_go(tmp_path: Path) -> None:
    files = MappedFiles()
    path = merging(tmp_path, {}).path

    with pytest.raises(OSError, match="no room"):
        open_directory(files, path, CONFIG, lambda path, delay_ms: None, KnownState(False, None, 0))
    assert [mapped.closed for mapped in files.mapped] == [True]
