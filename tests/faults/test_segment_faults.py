"""Fault loops over storage in segment files: whatever fails, what was acknowledged is there and the rest is a prefix.

The gate takes every so many faults; `-m sweep` takes all.
"""

import errno
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest

from odradek.kernel.api import Files, LogConfig, PartitionLog, StorageError, do_now
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, make_context, read_bytes, rewrite
from odradek.testing.faults import FaultyFiles, PowerLoss

CONFIG = LogConfig(segment_bytes=1_000, segment_index_bytes=240, index_interval_bytes=200, file_delete_delay_ms=0)
MANY = 10_000


@attrs.define
class Ledger:
    """What the log may hold after a fault.

    Attributes:
        contents: Each legal content, of which the log holds a part.
        gone_max: Batches that may be missing in front, as retention gave them up.
        written: Batches in front that survive the process.
        flushed: Batches in front that survive a loss of power.
        start: The log's base offset.
        sidecar: Whether the small file must be there.
    """

    contents: list[list[bytes]] = attrs.field(factory=lambda: [[]])
    gone_max: int = 0
    written: int = 0
    flushed: int = 0
    sidecar: bool = False

    @property
    def batches(self) -> list[bytes]:
        return self.contents[-1]


def append(log: PartitionLog, ledger: Ledger, count: int, *, epoch: int) -> None:
    log.assign_epoch(epoch, log.log_end_offset)
    for _ in range(count):
        offset = log.log_end_offset
        batch = make_batch(offset, epoch=epoch, timestamp=1_000 + offset)
        ledger.batches.append(batch)
        log.append(batch, offset, offset, 1_000 + offset)
        if log.write_pending():
            log.flush()
            ledger.flushed = len(ledger.batches)
        ledger.written = len(ledger.batches)


def flush(log: PartitionLog, ledger: Ledger) -> None:
    log.flush()
    ledger.flushed = len(ledger.batches)


def live(engine: SegmentEngine, ledger: Ledger, config: LogConfig) -> None:
    """A log's life with everything in it."""
    engine.start()
    log = engine.open_log(PARTITION, config)
    append(log, ledger, 9, epoch=1)
    flush(log, ledger)
    append(log, ledger, 9, epoch=2)
    log.write_sidecar(18, "snapshot", b"state")
    ledger.sidecar = True
    log.roll()
    append(log, ledger, 3, epoch=2)
    ledger.flushed, ledger.written = min(ledger.flushed, 14), 14
    log.truncate_to(14)
    del ledger.batches[14:]
    append(log, ledger, 10, epoch=4)
    engine.checkpoint({PARTITION: 9})
    flush(log, ledger)
    compact(engine, log, ledger)
    append(log, ledger, 8, epoch=4)
    second = log.segments()[1].base_offset
    ledger.gone_max = sum(1 for b in ledger.batches if int.from_bytes(b[:8], "big") < second)
    log.delete_segments_below(second)
    engine.checkpoint({PARTITION: 12})
    removal = engine.begin_removal(2**62)
    assert removal is not None
    do_now(removal)
    append(log, ledger, 3, epoch=5)
    directory = Path(log.log_dir)
    engine.close({PARTITION: 20})
    if (directory / ".kafka_cleanshutdown").exists():
        ledger.flushed = len(ledger.batches)


def compact(engine: SegmentEngine, log: PartitionLog, ledger: Ledger) -> None:
    first, second, third = log.segments()[:3]
    old = ledger.batches
    inside = [b for b in old if int.from_bytes(b[:8], "big") < third.base_offset]
    kept = [*inside[1:-1:2], inside[-1]]
    new = kept + old[len(inside) :]
    ledger.contents.append(new)
    ledger.written = ledger.flushed = len(new)
    rewrite(engine, log, [first.base_offset, second.base_offset], kept)
    ledger.contents = [new]


def check(directory: Path, ledger: Ledger, kept: int, *, files: Files | None = None) -> None:
    """Open what is left, see that it is legal, and that life goes on."""
    for round_number in range(2):
        engine = SegmentEngine(make_context(directory, files=files))
        engine.start()
        log = engine.open_log(PARTITION, CONFIG)
        found = [bytes(b) for b in log.batches(log.log_start_offset)]
        if round_number == 0:
            assert is_legal(found, ledger, kept), f"{len(found)} batches of {len(ledger.batches)}, {kept} to be kept"
        assert_consistent(log, found)
        log.append(make_batch(log.log_end_offset, epoch=9), log.log_end_offset, log.log_end_offset, 5)
        log.write_pending()
        assert len(list(log.batches(log.log_start_offset))) == len(found) + 1
        if round_number:
            engine.close({})
        else:
            engine.abandon()


def is_legal(found: list[bytes], ledger: Ledger, kept: int) -> bool:
    for content in ledger.contents:
        least = min(kept, len(content)) if len(ledger.contents) > 1 else kept
        for gone in range(ledger.gone_max + 1):
            if found == content[gone : gone + len(found)] and gone + len(found) >= least:
                return True
    return not found and not kept


def assert_consistent(log: PartitionLog, found: list[bytes]) -> None:
    epochs: dict[int, int] = {}
    for batch in found:
        offset, epoch = int.from_bytes(batch[:8], "big"), int.from_bytes(batch[12:16], "big")
        epochs.setdefault(epoch, offset)
        assert read_bytes(log.read(offset, 1, at_least_one=True)) == batch
        assert log.batch_for_timestamp(1_000 + offset, offset) == batch or epoch == 9
    known = dict(log.epoch_entries())
    assert {e: s for e, s in known.items() if e in epochs}.keys() == epochs.keys()
    assert all(known[e] <= start for e, start in epochs.items())
    if found:
        assert log.log_end_offset == int.from_bytes(found[-1][:8], "big") + 1


def loop(numbers: Iterable[int], run: Callable[[Path, int], int]) -> None:
    """Call `run` with each number in a directory of its own, until it says that fewer operations were asked for."""
    for number in numbers:
        with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # fast
            if run(Path(name), number) < number:
                return
    pytest.fail("the loop ended before the scenario did")


def live_through(files: FaultyFiles, directory: Path, ledger: Ledger, config: LogConfig) -> None:
    engine = SegmentEngine(make_context(directory, files=files))
    try:
        live(engine, ledger, config)
    except (StorageError, OSError):
        pass  # an OSError as it comes: a cleaner writes its segments by itself, in a process that has no engine
    finally:
        engine.abandon()
        files.crash()


def fail_once(directory: Path, number: int, *, error: int = errno.EIO, is_full_after: bool = False) -> int:
    ledger = Ledger()
    files = FaultyFiles(directory, fail_at=number, error=error, is_full_after=is_full_after)
    live_through(files, directory, ledger, CONFIG)
    check(directory, ledger, ledger.written)
    return files.operations


def lose_power(directory: Path, number: int, *, styles: Iterable[PowerLoss], config: LogConfig) -> int:
    ledger = Ledger()
    (directory / "before").mkdir()
    files = FaultyFiles(directory / "before", power_lost_at=number)
    live_through(files, directory / "before", ledger, config)
    for style in styles:
        left = directory / style.value
        left.mkdir()
        files.after_power_loss(left, style, random.Random(number))
        check(left, ledger, ledger.written if config.flush_messages == 1 else ledger.flushed)
    return files.operations


FLUSH_ALWAYS = attrs.evolve(CONFIG, flush_messages=1)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_failing_operation_loses_nothing_that_was_written(error: int) -> None:
    loop([*range(5, 800, 41), MANY], lambda d, n: fail_once(d, n, error=error, is_full_after=error == errno.ENOSPC))


@pytest.mark.parametrize("config", [CONFIG, FLUSH_ALWAYS], ids=["flush-by-hand", "flush-always"])
def test_a_loss_of_power_leaves_a_prefix_with_all_that_was_flushed(config: LogConfig) -> None:
    loop([*range(7, 800, 43), MANY], lambda d, n: lose_power(d, n, styles=PowerLoss, config=config))


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_log_that_an_earlier_process_made_is_there_after_a_loss_of_power_once_flushed(
    tmp_path: Path, is_killed: bool
) -> None:
    """Nothing was flushed in that process, the name of the log's directory neither."""
    before, left = tmp_path / "before", tmp_path / "left"
    before.mkdir()
    left.mkdir()
    files, ledger = FaultyFiles(before), Ledger()
    engine = SegmentEngine(make_context(before, files=files))
    engine.start()
    engine.open_log(PARTITION, CONFIG)
    engine.abandon() if is_killed else engine.close({})
    engine = SegmentEngine(make_context(before, files=files))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    append(log, ledger, 3, epoch=1)
    flush(log, ledger)
    engine.abandon()
    files.crash()
    files.after_power_loss(left, PowerLoss.LOST, random.Random(1))

    check(left, ledger, ledger.flushed)


@pytest.mark.parametrize("number", range(1, 26))
def test_log_directories_that_a_killed_process_made_are_there_after_a_loss_of_power(
    tmp_path: Path, number: int
) -> None:
    """It had made some of them, and had not synced all of their names."""
    before, left = tmp_path / "before", tmp_path / "left"
    before.mkdir()
    left.mkdir()
    files, ledger = FaultyFiles(before, fail_at=number), Ledger()
    killed = SegmentEngine(make_context(before / "deep", files=files))
    with suppress(StorageError):
        killed.start()
    killed.abandon()
    engine = SegmentEngine(make_context(before / "deep", files=files))
    engine.start()
    log = engine.open_log(PARTITION, CONFIG)
    append(log, ledger, 3, epoch=1)
    flush(log, ledger)
    engine.abandon()
    files.crash()
    files.after_power_loss(left, PowerLoss.LOST, random.Random(1))

    check(left / "deep", ledger, ledger.flushed)


@pytest.mark.sweep
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES])
def test_no_failing_operation_loses_anything_that_was_written(error: int) -> None:
    loop(range(1, MANY), lambda d, n: fail_once(d, n, error=error, is_full_after=error == errno.ENOSPC))


@pytest.mark.sweep
@pytest.mark.parametrize("config", [CONFIG, FLUSH_ALWAYS], ids=["flush-by-hand", "flush-always"])
def test_no_loss_of_power_breaks_the_prefix(config: LogConfig) -> None:
    loop(range(1, MANY), lambda d, n: lose_power(d, n, styles=PowerLoss, config=config))
