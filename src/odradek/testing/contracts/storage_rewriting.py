"""Shell: the storage kit's tests of rewriting: what compaction does to a log, and what may come between its steps."""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.storage import NO_LIMIT
from odradek.kernel.errors import StorageError

from .storage_base import PARTITION, SMALL, StorageKit, all_bytes, fill, read_bytes, rewrite, write_anew


class StorageRewritingContract(StorageKit):
    """What every storage promises to compaction. Part of `StorageContract`."""

    def test_a_rewritten_segment_takes_the_place_of_neighbours(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        written = fill(log, 0, 20)
        bases = [s.base_offset for s in log.segments()]
        kept = [written[0], *written[bases[1] + 1 : bases[2]]]
        rewrite(engine, log, bases[:2], kept)

        assert [s.base_offset for s in log.segments()] == [bases[0], *bases[2:]]
        assert all_bytes(log) == kept + written[bases[2] :]
        assert read_bytes(log.read(2, 1, at_least_one=True)) == written[bases[1] + 1]
        assert log.size_bytes == sum(map(len, all_bytes(log)))

    def test_the_segments_to_rewrite_are_read_beside_the_log(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        log.flush()
        closed = log.segments()[:-1]
        sources = log.begin_rewrite(NO_LIMIT).sources
        found = [(source.base_offset, source.next_offset, source.size_bytes) for source in sources]

        assert found == [(s.base_offset, s.next_offset, s.size_bytes) for s in closed]
        assert [[bytes(batch) for batch in source.batches(0, 100)] for source in sources] == [
            written[s.base_offset : s.next_offset] for s in closed
        ]
        assert [bytes(batch) for batch in sources[0].batches(2, 1)] == written[2 : closed[0].next_offset]

    def test_a_rewrite_ends_where_it_is_told_to(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 20)
        bases = [s.base_offset for s in log.segments()]

        assert [source.base_offset for source in log.begin_rewrite(bases[1]).sources] == bases[:1]

    def test_who_reads_closed_segments_does_not_disturb_who_rewrites_them(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        written = fill(log, 0, 20)
        log.flush()
        engine.checkpoint({})
        bases = [s.base_offset for s in log.segments()]
        kept = [batch for offset, batch in enumerate(written[: bases[1]]) if offset % 2]
        write_anew(log, 0, kept)
        log.begin_rewrite(NO_LIMIT)
        do_now(log.begin_replacement([0]))

        assert all_bytes(log) == kept + written[bases[1] :]

    def test_only_what_is_durable_may_be_rewritten(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        fill(log, 0, 20)
        before = log.rewritable_end
        log.flush()
        engine.checkpoint({})

        assert (before, log.rewritable_end) == (0, log.active_base_offset)

    def test_the_active_segment_is_not_rewritten(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 3)
        with pytest.raises(StorageError):
            do_now(log.begin_replacement([0]))

        assert (list(log.begin_rewrite(NO_LIMIT).sources), all_bytes(log)) == ([], written)

    def test_a_rewrite_of_what_was_deleted_meanwhile_is_given_up(self, tmp_path: Path) -> None:
        for is_late in (False, True):
            log = self.open(tmp_path / str(is_late))
            written = fill(log, 0, 20)
            log.flush()
            first, second = log.segments()[:2]
            write_anew(log, first.base_offset, written[:1])
            work = log.begin_replacement([first.base_offset]) if is_late else None
            log.delete_segments_below(second.base_offset)
            with pytest.raises(StorageError):
                do_now(work or log.begin_replacement([first.base_offset]))
            assert all_bytes(log) == written[second.base_offset :]

    def test_a_rewrite_of_a_log_that_was_cut_meanwhile_is_given_up(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        log.flush()
        write_anew(log, 0, written[:1])
        work = log.begin_replacement([0])
        log.truncate_to(3)
        again = fill(log, 3, 20, timestamp=7)
        with pytest.raises(StorageError):
            do_now(work)

        assert all_bytes(log) == written[:3] + again

    def test_appends_go_on_beside_a_rewrite(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        log.flush()
        end = log.segments()[1].base_offset
        write_anew(log, 0, written[:1])
        written += fill(log, 20, 25)
        work = log.begin_replacement([0])
        written += fill(log, 25, 30)
        do_now(work)

        assert (all_bytes(log), log.log_end_offset) == (written[:1] + written[end:], 30)

    def test_a_rewrite_brings_its_small_files_and_drops_the_old_index_of_transactions(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        written = fill(log, 0, 20)
        bases = [s.base_offset for s in log.segments()]
        for base in bases:
            log.append_sidecar(base, "txnindex", b"old")
        log.flush()
        write_anew(log, 0, written[:1], {"txnindex": b"new"})
        do_now(log.begin_replacement(bases[:2]))

        assert list(log.sidecars("txnindex")) == [bases[0], *bases[2:]]
        assert (log.read_sidecar(0, "txnindex"), log.read_sidecar(bases[2], "txnindex")) == (b"new", b"old")

    def test_a_read_stays_good_when_its_segment_is_rewritten(self, tmp_path: Path) -> None:
        engine = self.start(tmp_path)
        log = engine.open_log(PARTITION, SMALL)
        written = fill(log, 0, 20)
        read = log.read(0, 300)
        rewrite(engine, log, [0], written[1:2])

        assert read_bytes(read) == written[0]

    def test_a_rewritten_log_outlives_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            written = fill(log, 0, 20)
            end = log.segments()[2].base_offset
            rewrite(engine, log, [s.base_offset for s in log.segments()[:2]], written[3:4])
            write_anew(log, end, written[end : end + 1])  # and nobody put it in place
            log = self.reopen(engine, directory, cleanly=cleanly)
            assert all_bytes(log) == written[3:4] + written[end:]
            assert log.log_start_offset == 0

    def test_the_clean_end_is_remembered_and_goes_back_with_the_log(self, tmp_path: Path) -> None:
        log = self.open(tmp_path)
        fill(log, 0, 20)
        log.note_clean_end(12)
        before = log.clean_end
        log.truncate_to(5)

        assert (before, log.clean_end) == (12, 5)

    def test_a_checkpointed_clean_end_outlives_the_engine(self, tmp_path: Path) -> None:
        for cleanly in self.ends():
            directory = tmp_path / str(cleanly)
            engine = self.start(directory)
            log = engine.open_log(PARTITION, SMALL)
            fill(log, 0, 20)
            log.note_clean_end(12)
            log.flush()
            engine.checkpoint({})
            assert self.reopen(engine, directory, cleanly=cleanly).clean_end == 12
