"""Shell: the storage kit's tests of logs that nothing was written to, kept or not, and of those that lost all again."""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from pathlib import Path

from .storage_base import PARTITION, SMALL, StorageKit, all_bytes, fill


class StorageNewLogsContract(StorageKit):
    """What is so between a log's begin and its first batch, and when all was deleted."""

    def test_all_that_is_asked_of_a_log_that_nothing_was_written_to_is_answered(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.assign_epoch(0, 0)
        log.truncate_to(0)
        log.advance_log_start(0)
        log.roll()

        assert (log.size_bytes, log.active_base_offset, log.recovery_point, log.flush()) == (0, 0, 0, 0)
        assert (log.max_timestamp(), log.batch_for_timestamp(0, 0), log.begin_time_lookup(0)) == ((-1, -1), None, None)
        assert [(each.base_offset, each.size_bytes, each.is_active) for each in log.segments()] == [(0, 0, True)]
        assert (log.delete_segments_below(0), list(log.sidecars("snapshot")), log.read(0, 100).size_bytes) == (0, [], 0)
        assert len(fill(log, 0, 3)) == len(all_bytes(log))

    def test_a_log_that_nothing_was_written_to_is_empty_whether_it_was_kept_or_not(self, tmp_path: Path) -> None:
        log = self.open(tmp_path / "once")
        assert all_bytes(log) == []
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            engine.open_log(PARTITION, SMALL).assign_epoch(3, 0)
            engine.checkpoint({PARTITION: 0})
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert (log.log_start_offset, log.log_end_offset, all_bytes(log)) == (0, 0, [])
            assert len(fill(log, 0, 3)) == len(all_bytes(log))

    def test_a_small_file_beside_a_log_that_nothing_was_written_to_is_kept(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.delete_sidecar(0, "snapshot")
        assert list(log.sidecars("snapshot")) == [], "and there was none"
        log.write_sidecar(0, "snapshot", b"state")
        log.append_sidecar(0, "txnindex", b"entry")

        assert (log.read_sidecar(0, "snapshot"), log.read_sidecar(0, "txnindex")) == (b"state", b"entry")

    def test_how_new_the_last_record_was_outlives_the_records_and_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            log.assign_epoch(5, 0)
            fill(log, 0, 20, epoch=5)
            log.advance_log_start(20)
            engine.checkpoint({PARTITION: 20})
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert (log.log_start_offset, log.log_end_offset) == (20, 20)
            assert (log.latest_epoch, list(log.epoch_entries())) == (5, [(5, 20)])
            log.assign_epoch(6, 20)
            assert len(fill(log, 20, 23, epoch=6)) == len(all_bytes(log))
            assert (log.latest_epoch, list(log.epoch_entries())) == (6, [(6, 20)])

    def test_a_log_begins_anew_in_an_epoch(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.assign_epoch(5, 0)
        fill(log, 0, 3, epoch=5)
        log.truncate_fully(20, 7)

        assert (log.latest_epoch, tuple(log.end_offset_for_epoch(7))) == (7, (7, 20))

    def test_the_epoch_in_which_a_log_begins_anew_outlives_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            log.assign_epoch(5, 0)
            fill(log, 0, 3, epoch=5)
            log.truncate_fully(20, 7)
            engine.checkpoint({PARTITION: 20})
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert (log.log_start_offset, log.log_end_offset) == (20, 20)
            assert (log.latest_epoch, list(log.epoch_entries())) == (7, [(7, 20)])
