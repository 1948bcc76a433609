"""Shell: the storage kit's tests of work in two halves: what its owner does between the halves, and what then holds.

Each `run` is on a real thread that is waited for, so that every order is the one the test says.
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from odradek.kernel.contracts.storage import NO_LIMIT
from odradek.kernel.errors import StorageError

from .storage_base import PARTITION, SMALL, StorageKit, all_bytes, fill

if TYPE_CHECKING:
    from odradek.kernel.contracts.disk_work import DiskWork


def run_on_thread(work: DiskWork) -> Exception | None:
    """Run a work on a thread of its own; return what it raised."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            work.run()
        except Exception as exc:  # handed back
            raised.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def complete(work: DiskWork) -> None:
    """Run a work on a thread and finish it here."""
    work.finish(run_on_thread(work))


class StorageWorksContract(StorageKit):
    """What every storage promises of its works. Part of `StorageContract`."""

    def test_a_flush_counts_what_was_written_when_it_began(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        flush = log.begin_flush()
        fill(log, 3, 5)
        complete(flush)
        assert log.recovery_point == 3
        complete(log.begin_flush())

        assert log.recovery_point == 5

    def test_a_look_up_of_a_time_on_a_thread_changes_no_answer(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 30)
        for timestamp in (1_000, 1_007, 1_025, 5_000, NO_LIMIT):
            lookup = log.begin_time_lookup(timestamp)
            written += fill(log, len(written), len(written) + 2)
            if lookup is not None:
                complete(lookup)
            last = len(written) - 1
            expected = written[timestamp - 1_000] if timestamp <= 1_000 + last else None

            assert log.max_timestamp() == (1_000 + last, last)
            assert log.batch_for_timestamp(timestamp, 0) == expected

    def test_a_truncation_beside_a_flush_keeps_the_recovery_point_low(self, tmp_path: Path) -> None:
        for is_late in (False, True):
            log = self.open(tmp_path / str(is_late))
            written = fill(log, 0, 20)
            flush = log.begin_flush()
            error = run_on_thread(flush) if is_late else None
            log.truncate_to(5)
            again = fill(log, 5, 30, timestamp=9)
            flush.finish(error if is_late else run_on_thread(flush))
            assert log.recovery_point <= 5
            assert all_bytes(log) == written[:5] + again

    def test_a_flush_beside_a_deletion_makes_nothing_anew(self, tmp_path: Path) -> None:
        for cleanly in (None, *self.ends_if_any()):
            engine = self.start(tmp_path / str(cleanly))
            log = engine.open_log(PARTITION, SMALL)
            written = fill(log, 0, 20)
            flush = log.begin_flush()
            log.delete_segments_below(NO_LIMIT)
            start = log.log_start_offset
            complete(flush)
            written += fill(log, 20, 23)
            if cleanly is not None:
                log = self.reopen(engine, tmp_path / str(cleanly), cleanly=cleanly)
            assert (log.log_start_offset, log.log_end_offset, all_bytes(log)) == (start, 23, written[start:])
            assert [s.base_offset for s in log.segments()] == [start]

    def test_a_flush_of_closed_segments_leaves_the_active_one(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 20)
        complete(log.begin_flush(closed_only=True))
        found = log.recovery_point

        assert 0 < found == log.active_base_offset < log.flush()

    def test_a_flush_of_a_log_that_was_closed_or_deleted_is_refused(self, tmp_path: Path) -> None:
        for is_deleted in (False, True):
            engine = self.start(tmp_path / str(is_deleted))
            log = engine.open_log(PARTITION, SMALL)
            fill(log, 0, 9)
            flush = log.begin_flush()
            if is_deleted:
                engine.delete_log(PARTITION)
            else:
                log.close()
            error = run_on_thread(flush)
            with pytest.raises(StorageError):
                flush.finish(error)
            with pytest.raises(StorageError):
                log.begin_flush()

    def test_a_flush_that_fails_moves_nothing(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        flush = log.begin_flush()
        with pytest.raises(StorageError):
            flush.finish(OSError(errno.EIO, "broken"))

        assert log.recovery_point == 0

    def test_flushes_may_overtake_each_other(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 9)
        first = log.begin_flush(closed_only=True)
        fill(log, 9, 20)
        second = log.begin_flush()
        complete(second)
        complete(first)

        assert log.recovery_point == 20

    def test_a_log_whose_close_was_begun_serves_nothing_and_has_everything(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, attrs.evolve(SMALL, flush_messages=1))
        written = fill(log, 0, 9)
        close = log.begin_close()
        with pytest.raises(StorageError):
            log.read(0, 100)
        complete(close)
        log = engine.open_log(PARTITION, SMALL)

        assert (log.was_clean, log.recovery_point, all_bytes(log)) == (True, 9, written)

    def test_a_small_file_is_there_when_it_is_finished(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        kept, failed, late = (log.begin_sidecar(offset, "snapshot", b"state") for offset in (3, 4, 5))
        error = run_on_thread(kept)
        before = list(log.sidecars("snapshot"))
        kept.finish(error)
        run_on_thread(failed)
        with pytest.raises(StorageError):
            failed.finish(OSError(errno.ENOSPC, "full"))

        assert (before, list(log.sidecars("snapshot")), log.read_sidecar(3, "snapshot")) == ([], [3], b"state")
        assert log.flush() == 0
        engine.delete_log(PARTITION)
        error = run_on_thread(late)
        with pytest.raises(StorageError):
            late.finish(error)

    def test_a_checkpoint_holds_what_was_true_when_it_began(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        fill(log, 0, 5)
        other = PARTITION._replace(partition=4)
        marks = {PARTITION: 4}
        checkpoint = engine.begin_checkpoint(marks)
        assert checkpoint is not None
        marks[PARTITION] = 5
        engine.open_log(other, SMALL)
        log.close()
        complete(checkpoint)

        assert engine.high_watermarks() == {PARTITION: 4}
