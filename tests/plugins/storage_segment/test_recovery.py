"""What opening a log makes of what a crash left: of a replacement, and of a deletion."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.kernel.api import Files, LogConfig, OsFiles, read_file
from odradek.kernel.testing.contracts.storage_base import PARTITION, fill, make_context, write_anew
from odradek.kernel.testing.faults import FaultyFiles
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import CLEANED, LOG, SWAP, segment_file_name
from odradek.plugins.storage_segment.recovery import KnownState, OpenedLog, open_directory
from odradek.plugins.storage_segment.rewriting import SwapWork
from odradek.plugins.storage_segment.segment import Segment

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
