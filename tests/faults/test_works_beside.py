"""A worker thread held before each of its file operations while the log's owner changes the log; then the power goes.

The gate takes every change at some operations of each work; `-m sweep` all of them.
"""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from odradek.kernel.api import DiskWork, LogConfig, PartitionLog, StorageError
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, all_bytes, fill, make_context
from odradek.testing.faults import FaultyFiles, PowerLoss

CONFIG = LogConfig(segment_bytes=1_000, segment_index_bytes=240, index_interval_bytes=200)
OPERATIONS_MAX = 60


class Held:
    """Runs a work on a thread and stops it before its n-th file operation until `let_go`."""

    def __init__(self, files: FaultyFiles, work: DiskWork, number: int) -> None:
        self.is_there = threading.Event()
        self.may_go_on = threading.Event()
        self.count = 0
        self.number = number
        self.error: Exception | None = None
        self.work = work
        self.thread = threading.Thread(target=self.run)
        self.files = files
        files.before_each = self.before
        self.thread.start()
        self.is_there.wait()

    def run(self) -> None:
        try:
            self.work.run()
        except Exception as exc:
            self.error = exc
        self.is_there.set()

    def before(self) -> None:
        if threading.current_thread() is self.thread:
            self.count += 1
            if self.count == self.number:
                self.is_there.set()
                self.may_go_on.wait()

    def let_go(self) -> None:
        self.may_go_on.set()
        self.thread.join()
        self.files.before_each = lambda: None
        with suppress(StorageError):
            self.work.finish(self.error)


@attrs.define
class Case:
    """A log of 20 batches, 8 of them flushed, and what must be there at the end."""

    engine: SegmentEngine
    log: PartitionLog
    contents: list[bytes]


def delete_some(case: Case) -> None:
    case.log.delete_segments_below(13)


def delete_all(case: Case) -> None:
    case.log.delete_segments_below(1 << 62)


def truncate(case: Case) -> None:
    case.log.truncate_to(10)
    case.contents[10:] = fill(case.log, 10, 24, epoch=2, timestamp=7)


def truncate_deeper(case: Case) -> None:
    case.log.truncate_to(3)
    case.contents[3:] = fill(case.log, 3, 9, epoch=2, timestamp=7)


def begin_anew(case: Case) -> None:
    case.log.truncate_fully(20)
    case.contents += fill(case.log, 20, 24)


def append_and_flush(case: Case) -> None:
    case.log.assign_epoch(2, 20)
    case.contents += fill(case.log, 20, 33, epoch=2)
    case.log.flush()


def close(case: Case) -> None:
    case.log.close()


def close_and_open(case: Case) -> None:
    case.log.close()
    case.log = case.engine.open_log(PARTITION, CONFIG)
    case.contents += fill(case.log, 20, 22)


def checkpoint_of(case: Case) -> DiskWork:
    work = case.engine.begin_checkpoint({PARTITION: 8})
    assert work is not None, "something changed"
    return work


CHANGES = [delete_some, delete_all, truncate, truncate_deeper, begin_anew, append_and_flush, close, close_and_open]
WORKS: list[Callable[[Case], DiskWork]] = [
    lambda case: case.log.begin_flush(),
    lambda case: case.log.begin_flush(closed_only=True),
    lambda case: case.log.begin_sidecar(20, "snapshot", b"state"),
    lambda case: checkpoint_of(case),
]
NAMES = ["flush", "closed", "sidecar", "checkpoint"]


def beside(directory: Path, begin: Callable[[Case], DiskWork], change: Callable[[Case], None], number: int) -> bool:
    """Hold a work before one operation while a change happens; return whether it had that many."""
    before = directory / "before"
    before.mkdir(parents=True)
    files = FaultyFiles(before)
    engine = SegmentEngine(make_context(before, files=files))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    log.assign_epoch(1, 0)
    case = Case(engine, log, fill(log, 0, 8, epoch=1))
    log.flush()
    engine.checkpoint({})
    case.contents += fill(log, 8, 20, epoch=1)
    held = Held(files, begin(case), number)
    change(case)
    held.let_go()
    engine.checkpoint({})
    log, found = case.log, []
    if log.is_offline:  # type: ignore[attr-defined] # of this storage
        log = engine.open_log(PARTITION, CONFIG)
    found = all_bytes(log)
    assert found == case.contents[-len(found) :], "what the owner did is what is there"
    point, end, start = log.recovery_point, log.log_end_offset, log.log_start_offset
    assert point <= end
    for style in PowerLoss:
        left = directory / style.value
        left.mkdir()
        files.after_power_loss(left, style, random.Random(number))
        check(left, found, start, point)
    engine.abandon()
    files.crash()
    return held.count >= number


def check(directory: Path, found: list[bytes], start: int, point: int) -> None:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    kept = all_bytes(log)
    wanted = [batch for batch in found if start <= int.from_bytes(batch[:8], "big") < point]
    offsets = [int.from_bytes(batch[:8], "big") for batch in kept]
    assert [batch for batch in kept if batch in wanted] == wanted, "what was flushed is there"
    assert offsets == list(range(log.log_start_offset, log.log_end_offset)), "without a hole"
    engine.abandon()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("begin", WORKS, ids=NAMES)
def test_a_work_and_a_change_of_its_log_do_not_harm_each_other(
    tmp_path: Path, begin: Callable[[Case], DiskWork], change: Callable[[Case], None]
) -> None:
    for number in (1, 2, 4, 7):
        if not beside(tmp_path / str(number), begin, change, number):
            return


@pytest.mark.sweep
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("begin", WORKS, ids=NAMES)
def test_nowhere_do_a_work_and_a_change_of_its_log_harm_each_other(
    tmp_path: Path, begin: Callable[[Case], DiskWork], change: Callable[[Case], None]
) -> None:
    for number in range(1, OPERATIONS_MAX):
        if not beside(tmp_path / str(number), begin, change, number):
            return
    pytest.fail("the work has more operations than were tried")
