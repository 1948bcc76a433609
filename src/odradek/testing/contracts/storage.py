"""Shell: the contract kit of storages: subclass `StorageContract` and give `make_engine`.

Needs pytest and hypothesis. Each test's name is the promise it checks. Levels that a plugin declares:

* `is_durable`: what was written is there when another engine opens the same directories after a clean `close`;
* `recovers`: and also when the first one was abandoned without one; `crash` then lets go of its locks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import uuid
from pathlib import Path

import attrs
import pytest

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.storage import EMPTY_READ, NO_LIMIT
from odradek.kernel.errors import StorageError

from ..batches import make_batch
from .levels import needs_level
from .storage_base import MONOTONIC_MS, PARTITION, SMALL, all_bytes, fill, make_context, read_bytes
from .storage_model import check_against_model
from .storage_new_logs import StorageNewLogsContract
from .storage_rewriting import StorageRewritingContract
from .storage_works import StorageWorksContract


class StorageContract(StorageWorksContract, StorageRewritingContract, StorageNewLogsContract):
    """What every storage promises."""

    # -- appending and reading -----------------------------------------------------------------------------------

    def test_a_new_log_is_empty(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        found = (log.log_start_offset, log.log_end_offset, log.recovery_point, log.size_bytes, log.latest_epoch)

        assert found == (0, 0, 0, 0, -1)
        assert log.partition == PARTITION

    def test_what_is_staged_counts_and_is_not_read_yet(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.append(make_batch(0, count=5), 0, 4, 1_000)

        assert (log.log_end_offset, log.read(0, 10_000)) == (5, EMPTY_READ)

    def test_what_was_written_is_read_byte_for_byte(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 4)
        read = log.read(0, 10_000)

        assert (read_bytes(read), read.next_offset) == (b"".join(written), 4)
        assert log.size_bytes == sum(map(len, written))

    def test_a_borrowed_buffer_may_change_after_it_was_written(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        buffer = bytearray(make_batch(0))
        log.append(memoryview(buffer), 0, 0, 1_000)
        log.write_pending()
        buffer[:] = bytes(len(buffer))

        assert read_bytes(log.read(0, 10_000)) == make_batch(0)

    def test_a_read_begins_with_the_batch_that_holds_the_offset(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for base in (0, 5, 10):
            log.append(make_batch(base, count=5), base, base + 4, 1_000)
        log.write_pending()

        assert read_bytes(log.read(7, 10_000)) == make_batch(5, count=5) + make_batch(10, count=5)

    def test_a_read_is_cut_at_the_end_of_a_batch(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 5)
        found = [log.read(0, len(written[0]) * 2 + extra) for extra in (-1, 0, 1)]

        assert [(read_bytes(r), r.next_offset) for r in found] == [
            (written[0], 1),
            (written[0] + written[1], 2),
            (written[0] + written[1], 2),
        ]

    def test_a_first_batch_that_is_too_large_is_given_only_when_asked_for(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 3)
        refused, given = log.read(1, 10), log.read(1, 10, at_least_one=True)

        assert (refused, read_bytes(given), given.next_offset) == (EMPTY_READ, written[1], 2)

    def test_a_read_holds_nothing_at_or_above_the_end_offset(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for base in (0, 3):
            log.append(make_batch(base, count=3), base, base + 2, 1_000)
        log.write_pending()
        found = [log.read(0, 10_000, end, at_least_one=True).size_bytes for end in (0, 2, 3, 5, 6)]
        size = len(make_batch(0))

        assert found == [0, 0, size, size, 2 * size]

    def test_reading_on_sees_every_batch_once_across_segments(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 40)
        for max_bytes in (1, 500, 100_000):
            offset, seen = 0, b""
            while (read := log.read(offset, max_bytes, at_least_one=True)).size_bytes:
                seen, offset = seen + read_bytes(read), read.next_offset
            assert seen == b"".join(written)
        assert log.read(40, 10_000) == EMPTY_READ

    def test_batches_of_a_run_are_found_one_by_one(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        run = [make_batch(offset, timestamp=offset) for offset in range(30)]
        log.append(b"".join(run), 0, 29, 29)
        log.write_pending()
        found = [read_bytes(log.read(offset, 1, at_least_one=True)) for offset in range(30)]

        assert found == run
        assert log.batch_for_timestamp(17, 0) == run[17]

    def test_offsets_may_have_gaps(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for base in (0, 10, 1_000):
            log.append(make_batch(base), base, base, 1_000)
        log.write_pending()

        assert [read_bytes(log.read(o, 1, at_least_one=True)) for o in (0, 5, 10, 11, 1_000)] == [
            make_batch(base) for base in (0, 10, 10, 1_000, 1_000)
        ]
        assert log.log_end_offset == 1_001

    def test_an_append_before_the_end_is_a_bug(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        with pytest.raises(AssertionError):
            log.append(make_batch(2), 2, 2, 1_000)

    def test_batches_are_iterated_from_the_one_that_holds_the_offset(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)

        assert [bytes(b) for b in log.batches(4, 17)] == written[4:17]

    # -- segments ------------------------------------------------------------------------------------------------

    def test_a_log_rolls_when_a_batch_does_not_fit_its_segment(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        size = len(fill(log, 0, 14)[0])
        per_segment = SMALL.segment_bytes // size

        assert [s.base_offset for s in log.segments()] == [0, per_segment, 2 * per_segment]
        assert log.active_base_offset == 2 * per_segment

    def test_a_roll_begins_a_segment_at_the_end(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        log.roll()
        fill(log, 3, 4)

        assert [(s.base_offset, s.next_offset, s.is_active) for s in log.segments()] == [(0, 3, False), (3, 4, True)]

    def test_an_empty_segment_is_not_rolled(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.roll()
        fill(log, 0, 3)
        log.roll()
        log.roll()

        assert [s.base_offset for s in log.segments()] == [0, 3]

    def test_segments_tell_their_size_and_largest_timestamp(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        first = fill(log, 0, 2, timestamp=50)
        log.roll()
        log.append(make_batch(2, timestamp=-1), 2, 2, -1)
        log.write_pending()

        assert [(s.size_bytes, s.max_timestamp) for s in log.segments()] == [
            (2 * len(first[0]), 50),
            (len(first[0]), -1),
        ]

    def test_segments_wholly_below_an_offset_are_given_up(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        second, third = (s.base_offset for s in log.segments()[1:3])
        found = (log.delete_segments_below(second - 1), log.delete_segments_below(third + 1))

        assert found == (0, 2)
        assert (log.log_start_offset, all_bytes(log)) == (third, written[third:])

    def test_the_active_segment_is_never_given_up(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        log.delete_segments_below(NO_LIMIT)
        active = log.active_base_offset

        assert ([s.base_offset for s in log.segments()], all_bytes(log)) == ([active], written[active:])

    def test_a_read_stays_good_when_its_segment_goes(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        read = log.read(0, 300)
        log.delete_segments_below(NO_LIMIT)

        assert read_bytes(read) == written[0]

    def test_a_segment_that_is_old_enough_is_rolled_by_the_next_append(self, tmp_path: Path) -> None:
        log = self.open(tmp_path, attrs.evolve(SMALL, segment_ms=10))
        for offset, timestamp in enumerate((1_000, 1_010, 1_011, 1_021, 1_022)):
            fill(log, offset, offset + 1, timestamp=timestamp)

        assert [s.base_offset for s in log.segments()] == [0, 2, 4]

    # -- truncating ----------------------------------------------------------------------------------------------

    def test_a_truncation_drops_every_batch_at_or_above_the_offset(self, tmp_path: Path) -> None:
        for end in range(20):
            log = self.open(tmp_path / str(end))
            written = fill(log, 0, 20)
            log.truncate_to(end)
            assert (log.log_end_offset, all_bytes(log)) == (end, written[:end])
            assert log.read(end, 10_000) == EMPTY_READ

    def test_a_batch_across_the_offset_is_dropped_whole(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for base in (0, 5):
            log.append(make_batch(base, count=5), base, base + 4, 1_000)
        log.truncate_to(7)

        assert (log.log_end_offset, all_bytes(log)) == (5, [make_batch(0, count=5)])

    def test_a_truncation_beyond_the_end_changes_nothing(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 3)
        log.truncate_to(3)
        log.truncate_to(99)

        assert (log.log_end_offset, all_bytes(log)) == (3, written)

    def test_appends_go_on_after_a_truncation(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        log.truncate_to(9)
        again = fill(log, 9, 15, timestamp=7)

        assert (all_bytes(log), log.max_timestamp()) == (written[:9] + again, (1_008, 8))
        assert read_bytes(log.read(9, 1, at_least_one=True)) == again[0]

    def test_a_read_after_a_truncation_ends_between_the_batches_that_are_there_now(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        small = len(fill(log, 0, 5)[0])
        before = log.read(0, 3 * small)
        log.truncate_to(1)
        log.append(make_batch(1, size_bytes=2 * small), 1, 1, 1_000)
        log.write_pending()

        assert before.size_bytes == 3 * small
        assert log.read(0, 3 * small).size_bytes == small

    def test_a_full_truncation_begins_anew_elsewhere(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        log.assign_epoch(1, 0)
        fill(log, 0, 20, epoch=1)
        log.truncate_fully(100)
        written = fill(log, 100, 102)

        assert (log.log_start_offset, log.log_end_offset, all_bytes(log)) == (100, 102, written)
        assert list(log.epoch_entries()) == []

    def test_the_log_start_only_moves_forward(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 9)
        log.advance_log_start(5)
        log.advance_log_start(2)

        assert log.log_start_offset == 5

    # -- time and epochs -----------------------------------------------------------------------------------------

    def test_a_timestamp_finds_the_first_batch_that_is_as_late(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        stamps = [10, 50, 20, 20, 60, 5, 70, 70, 30, 80, 15, 90]
        written = []
        for offset, stamp in enumerate(stamps):
            written += fill(log, offset, offset + 1, timestamp=stamp)
        for start in range(len(stamps)):
            for wanted in (0, 15, 50, 60, 61, 70, 80, 85, 90, 91):
                expected = next((b for b, s in zip(written[start:], stamps[start:], strict=True) if s >= wanted), None)
                assert log.batch_for_timestamp(wanted, start) == expected, (start, wanted)

    def test_the_largest_timestamp_is_that_of_the_first_batch_that_has_it(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        before = log.max_timestamp()
        for offset, stamp in enumerate([10, 90, 20, 20, 60, 5, 70, 90, 30]):
            fill(log, offset, offset + 1, timestamp=stamp)

        assert (before, log.max_timestamp()) == ((-1, -1), (90, 1))

    def test_epochs_tell_where_they_end(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        unknown = log.end_offset_for_epoch(0)
        for epoch, start in ((2, 0), (5, 4), (3, 5), (6, 9)):
            log.assign_epoch(epoch, start)
            fill(log, log.log_end_offset, start + 1, epoch=epoch)

        assert unknown == (-1, -1)
        assert (log.latest_epoch, list(log.epoch_entries())) == (6, [(2, 0), (5, 4), (6, 9)])
        assert [tuple(log.end_offset_for_epoch(e)) for e in (1, 2, 4, 5, 6, 7)] == [
            (1, 0),
            (2, 4),
            (2, 4),
            (5, 9),
            (6, 10),
            (-1, -1),
        ]

    def test_epochs_go_with_their_records(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for epoch in range(4):
            log.assign_epoch(epoch, epoch * 5)
            fill(log, epoch * 5, epoch * 5 + 5, epoch=epoch)
        log.truncate_to(15)
        log.advance_log_start(7)

        assert list(log.epoch_entries()) == [(1, 7), (2, 10)]

    # -- durability ----------------------------------------------------------------------------------------------

    def test_a_flush_moves_the_recovery_point_to_what_is_written(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        before = log.recovery_point
        log.append(make_batch(3), 3, 3, 1_000)

        assert (before, log.flush(), log.recovery_point) == (0, 3, 3)

    def test_flush_messages_asks_for_a_flush(self, tmp_path: Path) -> None:
        log = self.open(tmp_path, attrs.evolve(SMALL, flush_messages=2))
        answers = []
        for offset in range(3):
            log.append(make_batch(offset), offset, offset, 1_000)
            answers.append(log.write_pending())
        log.flush()

        assert [*answers, log.write_pending()] == [False, True, True, False]

    def test_new_settings_are_followed(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 2)
        log.reconfigure(attrs.evolve(SMALL, segment_bytes=200))
        fill(log, 2, 4)

        assert [s.base_offset for s in log.segments()] == [0, 2, 3]

    def test_small_files_are_kept_beside_the_log(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        for offset in (7, 3):
            log.write_sidecar(offset, "snapshot", bytes([offset]))
        log.write_sidecar(3, "snapshot", b"again")
        found = (log.sidecars("snapshot"), log.read_sidecar(3, "snapshot"), log.sidecars("other"))
        log.delete_sidecar(3, "snapshot")
        log.delete_sidecar(3, "snapshot")

        assert (*map(list, found[::2]), found[1]) == ([3, 7], [], b"again")
        assert list(log.sidecars("snapshot")) == [7]

    def test_small_files_grow_beside_the_log(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        for data in (b"one ", b"two "):
            log.append_sidecar(0, "txnindex", data)
        log.flush()
        log.append_sidecar(0, "txnindex", b"three")

        assert (list(log.sidecars("txnindex")), log.read_sidecar(0, "txnindex")) == ([0], b"one two three")

    def test_a_truncation_drops_the_small_files_above_it(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 20)
        for offset in (3, 9, 10, 20):
            log.write_sidecar(offset, "snapshot", b"state")
        late = log.begin_sidecar(18, "snapshot", b"state")
        log.truncate_to(9)
        fill(log, 9, 30)
        late.run()
        with pytest.raises(StorageError):
            late.finish(None)
        found = list(log.sidecars("snapshot"))
        log.truncate_fully(5)
        assert (found, list(log.sidecars("snapshot"))) == ([3, 9], [3])

    def test_a_closed_log_refuses(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 3)
        log.close()
        with pytest.raises(StorageError):
            log.read(0, 100)

    def test_a_log_closed_and_opened_again_goes_on(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        written = fill(log, 0, 9)
        log.close()
        log = engine.open_log(PARTITION, SMALL)
        written += fill(log, 9, 15)

        assert (log.was_clean, all_bytes(log)) == (True, written)

    def test_a_deleted_log_is_gone_and_its_namesake_begins_empty(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        fill(engine.open_log(PARTITION, SMALL), 0, 9)
        engine.delete_log(PARTITION)
        engine.delete_log(PARTITION)
        namesake = PARTITION._replace(topic_id=uuid.UUID(int=78))
        log = engine.open_log(namesake, SMALL)
        engine.delete_log(PARTITION)

        assert (log.log_end_offset, all_bytes(log)) == (0, [])
        removal = engine.begin_removal(MONOTONIC_MS + 1_000_000)
        if removal is not None:
            do_now(removal)
        assert len(fill(log, 0, 3)) == len(all_bytes(log))

    def test_a_log_of_another_topic_id_is_refused(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        engine.open_log(PARTITION, SMALL).close()
        with pytest.raises(StorageError):
            engine.open_log(PARTITION._replace(topic_id=uuid.UUID(int=78)), SMALL)

    def test_the_engine_knows_a_cluster_id_after_its_start(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path, cluster_id="abc")

        assert (engine.cluster_id, bool(self.start(tmp_path / "other").cluster_id)) == ("abc", True)

    def test_a_checkpoint_keeps_high_watermarks(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        fill(engine.open_log(PARTITION, SMALL), 0, 5)
        engine.checkpoint({PARTITION: 4})

        assert engine.high_watermarks() == {PARTITION: 4}

    # -- levels --------------------------------------------------------------------------------------------------

    def test_what_was_written_outlives_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            log.assign_epoch(3, 0)
            written = fill(log, 0, 20, epoch=3)
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert (log.was_clean, log.log_end_offset, all_bytes(log)) == (cleanly, 20, written)
            assert (list(log.epoch_entries()), log.max_timestamp()) == ([(3, 0)], (1_019, 19))

    def test_a_checkpointed_log_start_outlives_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            fill(log, 0, 9)
            log.advance_log_start(4)
            engine.checkpoint({PARTITION: 7})
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert log.log_start_offset == 4

    def test_the_engine_finds_its_logs_at_start(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            fill(engine.open_log(PARTITION, SMALL), 0, 1)
            engine.checkpoint({PARTITION: 0})
            if cleanly:
                engine.close({})
            else:
                self.crash(engine)
            following = self.make_engine(make_context(directory))
            found = self.started(following)
            assert [each.partition for each in found] == [PARTITION]
            assert (following.cluster_id, following.high_watermarks()) == (engine.cluster_id, {PARTITION: 0})

    def test_what_one_engine_holds_no_other_takes(self, tmp_path: Path) -> None:
        needs_level(self, "is_durable")
        engine = self.start(tmp_path)
        with pytest.raises(StorageError):
            self.make_engine(make_context(tmp_path)).start()
        engine.close({})
        self.start(tmp_path)

    def test_what_is_of_one_cluster_is_refused_to_another(self, tmp_path: Path) -> None:
        needs_level(self, "is_durable")
        self.start(tmp_path).close({})
        with pytest.raises(StorageError):
            self.make_engine(make_context(tmp_path, cluster_id="another")).start()

    def test_the_log_does_what_a_list_of_batches_would_do(self, tmp_path: Path) -> None:
        check_against_model(self, tmp_path, shrinks=self.shrinks)
