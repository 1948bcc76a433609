"""Several log directories, their locks, their failures; leftovers; moves."""

import errno
import logging
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import attrs
import pytest

from odradek.kernel.api import Files, LogConfig, OsFiles, PartitionLog, StorageError, TopicIdPartition, do_now
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import CLEAN_SHUTDOWN
from odradek.plugins.storage_segment.log import SegmentLog
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import (
    MONOTONIC_MS,
    PARTITION,
    SMALL,
    all_bytes,
    fill,
    make_context,
    write_anew,
)

from .full_disk import FullDisk

Item = TypeVar("Item")
T = TypeVar("T")


class FailingFiles(OsFiles):
    """The machine's files, of which those below a path fail once told to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.error = 0
        self.fsync = self._fsync

    def _fsync(self, fd: int, /) -> None:
        if self.error and str(self.path) in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(self.error, "broken")


def started(directory: Path, *, dirs: int = 1, files: Files | None = None) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory, dirs=dirs, files=files))
    engine.start()
    return engine


def partition(number: int) -> TopicIdPartition:
    return PARTITION._replace(partition=number)


def removed(engine: SegmentEngine, now_ms: int) -> int:
    removal = engine.begin_removal(now_ms)
    if removal is None:
        return 0
    do_now(removal)
    return len(removal.paths)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_log_goes_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=3)
    engine.open_log(partition(0), SMALL, log_dir=str(tmp_path / "logs1"))
    logs = [engine.open_log(partition(number), SMALL) for number in range(1, 6)]

    assert [Path(log.log_dir).name for log in logs] == ["logs0", "logs2", "logs0", "logs1", "logs2"]
    with pytest.raises(StorageError, match=r"no directory of log\.dirs"):
        engine.open_log(partition(9), SMALL, log_dir="elsewhere")


def test_a_reserved_directory_takes_the_log_that_asks_for_it_and_no_other(tmp_path: Path) -> None:
    context = attrs.evolve(make_context(tmp_path), reserved_dirs=[str(tmp_path / "metadata")])
    engine = SegmentEngine(context)
    engine.start()
    log = engine.open_log(partition(0), SMALL, log_dir=str(tmp_path / "metadata"))
    fill(log, 0, 1)
    others = [engine.open_log(partition(number), SMALL) for number in range(1, 4)]
    engine.close({})
    engine = SegmentEngine(context)

    assert (Path(log.log_dir).name, {Path(other.log_dir).name for other in others}) == ("metadata", {"logs0"})
    assert next(Path(found.log_dir).name for found in engine.start()) == "metadata"
    assert [Path(info.path).name for info in engine.log_dirs()] == ["logs0"]


def test_a_failing_device_takes_its_logs_offline_and_no_others(tmp_path: Path) -> None:
    files = FailingFiles(tmp_path / "logs0")
    engine = started(tmp_path, dirs=2, files=files)
    first, second, third = (engine.open_log(partition(number), SMALL) for number in range(3))
    for log in (first, second, third):
        fill(log, 0, 3)
    files.error = errno.EIO
    with pytest.raises(StorageError, match="the disk is failing"):
        first.flush()
    with pytest.raises(StorageError, match="the disk is failing"):
        third.read(0, 100)
    infos = engine.log_dirs()

    assert second.flush() == 3
    assert [bool(info.error) for info in infos] == [True, False]
    assert (infos[0].total_bytes, infos[1].total_bytes > 0) == (-1, True)
    assert Path(engine.open_log(partition(5), SMALL).log_dir).name == "logs1"
    with pytest.raises(StorageError):
        engine.open_log(partition(0), SMALL)
    engine.close({})
    assert (
        ".kafka_cleanshutdown" in names(tmp_path / "logs0"),
        ".kafka_cleanshutdown" in names(tmp_path / "logs1"),
    ) == (
        False,
        True,
    )


class FailingCalls(OsFiles):
    """The machine's files, one of whose calls fails once it is named."""

    failing = ""

    def _check(self, call: str) -> None:
        if call == self.failing:
            raise OSError(errno.EIO, "broken")

    def rename(self, source: Path, target: Path) -> None:
        self._check("rename")
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._check("unlink")
        super().unlink(path)

    def fsync_directory(self, path: Path) -> None:
        self._check("fsync_directory")
        super().fsync_directory(path)


def retention(engine: SegmentEngine, log: PartitionLog) -> None:
    log.delete_segments_below(log.active_base_offset)
    removed(engine, MONOTONIC_MS + 1_000_000)


def swap(engine: SegmentEngine, log: PartitionLog) -> None:
    do_now(log.begin_replacement([log.segments()[0].base_offset]))


def deletion(engine: SegmentEngine, log: PartitionLog) -> None:
    engine.delete_log(partition(0))
    removed(engine, MONOTONIC_MS + 1_000_000)


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (retention, "rename"),
        (retention, "unlink"),
        (swap, "fsync_directory"),
        (swap, "rename"),
        (deletion, "rename"),
        (deletion, "fsync_directory"),
        (deletion, "unlink"),
    ],
)
def test_a_device_that_fails_as_files_go_takes_its_logs_offline(
    tmp_path: Path, act: Callable[[SegmentEngine, PartitionLog], None], call: str
) -> None:
    files = FailingCalls()
    engine = started(tmp_path, dirs=2, files=files)
    log, elsewhere, neighbour = (engine.open_log(partition(number), SMALL) for number in range(3))
    written = fill(log, 0, 20)
    for other in (elsewhere, neighbour):
        fill(other, 0, 3)
    log.flush()
    engine.checkpoint({})
    write_anew(log, 0, written[: log.segments()[1].base_offset])
    files.failing = call
    with suppress(StorageError):
        act(engine, log)
    files.failing = ""

    assert ["the disk is failing" in info.error for info in engine.log_dirs()] == [True, False]
    with pytest.raises(StorageError, match="the disk is failing"):
        neighbour.flush()
    assert elsewhere.flush() == 3


def test_a_thread_whose_disk_fails_changes_nothing_before_its_work_is_finished(tmp_path: Path) -> None:
    files = FailingFiles(tmp_path / "logs0")
    engine = started(tmp_path, files=files)
    log, neighbour = (engine.open_log(partition(number), SMALL) for number in range(2))
    fill(log, 0, 3)
    neighbour.append(make_batch(0), 0, 0, 1_000)
    flush, checkpoint = log.begin_flush(), engine.begin_checkpoint({})
    assert checkpoint is not None
    files.error = errno.EIO
    with pytest.raises(OSError, match="broken") as caught:
        flush.run()
    checkpoint.run()
    during = (log.read(0, 100, at_least_one=True).next_offset, neighbour.log_end_offset, engine.log_dirs()[0].error)
    with pytest.raises(StorageError, match="the disk is failing"):
        flush.finish(caught.value)
    checkpoint.finish(None)

    assert during == (1, 1, "")
    assert (neighbour.log_end_offset, "the disk is failing" in engine.log_dirs()[0].error) == (0, True)


def test_a_full_disk_takes_one_log_offline_until_it_is_opened_again(tmp_path: Path) -> None:
    files = FailingFiles(tmp_path / "logs0" / str(partition(0)))
    engine = started(tmp_path, files=files)
    log, other = (engine.open_log(partition(number), SMALL) for number in range(2))
    written = fill(log, 0, 3)
    files.error = errno.ENOSPC
    with pytest.raises(StorageError, match="the disk is full"):
        log.flush()
    fill(other, 0, 1)
    files.error = 0
    log = engine.open_log(partition(0), SMALL)

    assert (all_bytes(log), log.was_clean, log.log_end_offset) == (written, False, 3)
    assert fill(log, 3, 4)


def test_checkpoints_that_a_full_disk_has_no_room_for_take_nothing_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FullDisk("*-offset-checkpoint*")
    engine = started(tmp_path, files=files)
    log = engine.open_log(partition(0), SMALL)
    written = fill(log, 0, 3)
    files.is_full = True

    engine.checkpoint({partition(0): 3})
    assert [info.error for info in engine.log_dirs()] == [""]
    assert "the disk is full" in caplog.text
    written += fill(log, 3, 6)
    assert all_bytes(log) == written
    engine.close({})

    assert ".kafka_cleanshutdown" not in names(tmp_path / "logs0")  # what it would vouch for is not written
    files.is_full = False
    again = started(tmp_path)
    assert all_bytes(again.open_log(partition(0), SMALL)) == written
    again.close({})
    assert ".kafka_cleanshutdown" in names(tmp_path / "logs0")


@pytest.mark.parametrize("stands_there", [False, True], ids=["nothing", "a file"])
def test_a_directory_that_is_gone_is_offline_from_its_next_checkpoint_on_as_with_kafka(
    tmp_path: Path, stands_there: bool
) -> None:
    engine = started(tmp_path, dirs=2)
    first, second = (engine.open_log(partition(number), SMALL) for number in range(2))
    for log in (first, second):
        fill(log, 0, 3)
    (tmp_path / "logs0").rename(tmp_path / "away")
    if stands_there:
        (tmp_path / "logs0").write_text("a file")
    checkpoint = engine.begin_checkpoint({partition(0): 3, partition(1): 3})
    assert checkpoint is not None
    do_now(checkpoint)

    assert [bool(info.error) for info in engine.log_dirs()] == [True, False]
    with pytest.raises(StorageError, match="cannot write the checkpoints of"):
        fill(first, 3, 4)
    assert fill(second, 3, 4)


def test_a_directory_that_cannot_be_used_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "logs0").write_text("a file")
    engine = started(tmp_path, dirs=2)

    assert [bool(info.error) for info in engine.log_dirs()] == [True, False]
    with pytest.raises(StorageError, match="cannot use"):
        started(tmp_path)


def test_no_directory_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="names no directory"):
        SegmentEngine(attrs.evolve(make_context(tmp_path), log_dirs=[])).start()


def test_a_directory_in_use_is_refused_to_this_process_and_others(tmp_path: Path) -> None:
    engine = started(tmp_path)
    with pytest.raises(StorageError, match="in use by another broker"):
        started(tmp_path)
    code = (
        "import sys\nfrom pathlib import Path\nfrom odradek.kernel.machine.files import OsFiles\n"
        "try:\n    OsFiles().lock(Path(sys.argv[1]))\nexcept BlockingIOError:\n    sys.exit(7)\n"
    )
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path / "logs0" / ".lock")], check=False)
    engine.close({})

    assert found.returncode == 7
    started(tmp_path).close({})


def test_copied_directories_and_foreign_ones_are_refused(tmp_path: Path) -> None:
    started(tmp_path, dirs=2).close({})
    meta = (tmp_path / "logs0" / "meta.properties").read_bytes()
    (tmp_path / "logs1" / "meta.properties").write_bytes(meta)
    with pytest.raises(StorageError, match="one is a copy"):
        started(tmp_path, dirs=2)
    (tmp_path / "logs1" / "meta.properties").write_bytes(meta.replace(b"version=1", b"version=9"))
    with pytest.raises(StorageError, match="version '9' is not known"):
        started(tmp_path, dirs=2)


def test_a_deleted_log_is_renamed_and_removed_when_its_delay_is_over(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(PARTITION, SMALL), 0, 20)
    engine.delete_log(PARTITION)
    marked = [name for name in names(tmp_path / "logs0") if name.startswith("orders")]

    assert [(name[:9], len(name), name[-7:]) for name in marked] == [("orders-3.", 48, "-delete")]
    assert (removed(engine, MONOTONIC_MS + 59_999), removed(engine, MONOTONIC_MS + 60_000)) == (0, 1)
    assert not [name for name in names(tmp_path / "logs0") if name.startswith("orders")]


def test_a_deletion_waits_for_no_disk(tmp_path: Path) -> None:
    synced: list[Path] = []

    class CountingFiles(OsFiles):
        def fsync_directory(self, path: Path) -> None:
            synced.append(path)
            super().fsync_directory(path)

    engine = SegmentEngine(make_context(tmp_path, files=CountingFiles()))
    engine.start()
    for number in range(3):
        fill(engine.open_log(partition(number), SMALL), 0, 1)
    synced.clear()
    for number in range(3):
        engine.delete_log(partition(number))

    assert synced == []
    assert removed(engine, MONOTONIC_MS) == 0
    assert synced == [tmp_path / "logs0"]
    assert engine.begin_removal(MONOTONIC_MS) is None


def test_what_a_crash_left_of_deletions_and_moves_is_removed_after_the_next_start(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(PARTITION, SMALL), 0, 1)
    engine.delete_log(PARTITION)
    future = tmp_path / "logs0" / f"orders-4.{uuid.UUID(int=4).hex}-future"
    future.mkdir()
    engine.abandon()
    engine = started(tmp_path)

    assert removed(engine, MONOTONIC_MS) == 1
    assert (future.exists(), removed(engine, MONOTONIC_MS + 60_000)) == (False, 1)


def test_a_moved_log_is_the_same_elsewhere(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 0, 20)
    log.write_sidecar(20, "snapshot", b"state")
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    assert (move.copied_offset, move.copied_bytes) == (20, log.size_bytes)
    written += fill(log, 20, 33)
    log.delete_segments_below(9)
    log.close()
    do_now(move.begin_swap())
    move.give_up()
    written = written[log.log_start_offset :]
    with pytest.raises(StorageError, match="already"):
        engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    log = engine.open_log(PARTITION, SMALL)

    assert (all_bytes(log), Path(log.log_dir).name, log.was_clean) == (written, "logs1", True)
    assert log.read_sidecar(20, "snapshot") == b"state"
    engine.close({PARTITION: 3})
    engine = SegmentEngine(make_context(tmp_path, dirs=2))
    assert [Path(found.log_dir).name for found in engine.start()] == ["logs1"]


def test_a_move_that_was_cut_off_is_told_by_the_next_start_and_one_that_was_given_up_is_not(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    for number in range(4):
        fill(engine.open_log(partition(number), SMALL), 0, 20)
    homes = [engine._homes[partition(number).topic_partition].name for number in range(4)]
    others = [str(tmp_path / ("logs1" if home.endswith("0") else "logs0")) for home in homes]
    moves = [engine.begin_move(partition(number), others[number]) for number in range(3)]
    moves[0].run(lambda size_bytes: None)
    moves[2].run(lambda size_bytes: None)
    moves[2].give_up()
    engine.abandon()
    engine = SegmentEngine(make_context(tmp_path, dirs=2))
    found = {log.partition: log.moves_to for log in engine.start()}

    assert [found[partition(number)] for number in range(4)] == [others[0], others[1], "", ""]
    engine.open_log(partition(0), SMALL)
    engine.begin_move(partition(0), others[0]).give_up()
    engine.delete_log(partition(1))
    engine.close({})
    engine = SegmentEngine(make_context(tmp_path, dirs=2))
    assert [log.moves_to for log in engine.start()] == ["", "", ""]


def test_a_copy_that_can_be_nobodys_is_removed(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = engine.open_log(PARTITION, SMALL)
    fill(log, 0, 1)
    home = Path(log.log_dir)
    other = tmp_path / ("logs1" if home.name == "logs0" else "logs0")
    left = [
        home / f"{PARTITION.topic_partition}.{uuid.UUID(int=1).hex}-future",  # where the log is
        other / f"gone-0.{uuid.UUID(int=2).hex}-future",
        other / f"{'x' * 213}-0.{uuid.UUID(int=3).hex}-future",  # of a longer name perhaps
    ]
    for path in left:
        path.mkdir()
    engine.abandon()
    engine = SegmentEngine(make_context(tmp_path, dirs=2))

    assert [log.moves_to for log in engine.start()] == [""]
    removed(engine, MONOTONIC_MS)
    assert [path.exists() for path in left] == [False] * 3


def test_the_second_copy_of_a_log_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = started(tmp_path, dirs=2)
    fill(engine.open_log(PARTITION, SMALL), 0, 1)
    engine.close({})
    (tmp_path / "logs1" / str(PARTITION)).mkdir()
    (tmp_path / "logs1" / str(PARTITION) / "00000000000000000000.log").touch()
    with caplog.at_level(logging.WARNING):
        found = SegmentEngine(make_context(tmp_path, dirs=2)).start()

    assert (len(found), "set aside" in caplog.text) == (1, True)
    assert [name[-6:] for name in names(tmp_path / "logs1") if name.startswith("orders")] == ["-stray"]


def test_a_long_topic_name_can_be_deleted(tmp_path: Path) -> None:
    engine = started(tmp_path)
    long = PARTITION._replace(topic="t" * 249)
    fill(engine.open_log(long, SMALL), 0, 1)
    engine.delete_log(long)

    assert max(map(len, names(tmp_path / "logs0"))) == 255


def roll_times(log: PartitionLog, stamps: list[int]) -> list[int]:
    for stamp in stamps:
        offset = log.log_end_offset
        log.append(make_batch(offset, timestamp=stamp), offset, offset, stamp)
    log.write_pending()
    return [segment.base_offset for segment in log.segments()]


def test_a_log_rolls_by_the_first_timestamp_of_its_segment(tmp_path: Path) -> None:
    log = started(tmp_path).open_log(PARTITION, LogConfig(segment_ms=100))

    assert roll_times(log, [1_000, 1_100, 900, 1_101, 1_200, 1_202]) == [0, 3, 5]


def test_jitter_makes_segments_shorter(tmp_path: Path) -> None:
    log = started(tmp_path).open_log(PARTITION, LogConfig(segment_ms=1_000, segment_jitter_ms=900))

    assert roll_times(log, [1_000, 2_000, 3_000]) == [0, 1, 2]


def test_a_log_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = started(tmp_path).open_log(PARTITION, LogConfig(segment_index_bytes=36, index_interval_bytes=200))
    roll_times(log, [999])

    assert len(roll_times(log, list(range(1_000, 1_020)))) > 3


def test_a_log_rolls_before_an_offset_that_its_indexes_cannot_hold(tmp_path: Path) -> None:
    log = started(tmp_path).open_log(PARTITION, SMALL)
    for offset in (2**31 - 1, 2**31, 2**33):
        log.append(make_batch(offset), offset, offset, 1_000)
    log.write_pending()

    assert [s.base_offset for s in log.segments()] == [0, 2**31, 2**33]
    assert len(all_bytes(log)) == 3


# ---------------------------------------------------------------------------------------- logs that are not made yet


def test_a_new_log_is_on_the_disk_with_its_first_batch_and_not_before(tmp_path: Path) -> None:
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, SMALL)
    log.assign_epoch(0, 0)
    engine.checkpoint({PARTITION: 0})
    before = [name for name in names(tmp_path / "logs0") if name.startswith("orders")]
    fill(log, 0, 1)

    assert before == []
    assert names(tmp_path / "logs0" / str(PARTITION)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]


def test_room_for_entries_of_an_index_comes_with_its_first_entry(tmp_path: Path) -> None:
    """To Kafka's tools room without entries looks like an entry, where the process was killed."""
    log = started(tmp_path).open_log(PARTITION, SMALL)
    fill(log, 0, 1)

    assert [path.stat().st_size for path in sorted((tmp_path / "logs0" / str(PARTITION)).glob("*index"))] == [0, 0]


def test_a_log_that_nothing_was_written_to_leaves_nothing(tmp_path: Path) -> None:
    engine = started(tmp_path)
    engine.open_log(PARTITION, SMALL)
    other = engine.open_log(partition(7), SMALL)
    fill(other, 0, 1)
    engine.close({PARTITION: 0, partition(7): 1})
    checkpoints = "".join(path.read_text() for path in (tmp_path / "logs0").glob("*-checkpoint"))
    found = SegmentEngine(make_context(tmp_path)).start()

    assert [log.partition.partition for log in found] == [7]
    assert (f"orders {PARTITION.partition}" in checkpoints, "orders 7" in checkpoints) == (False, True)


def test_a_log_that_nothing_was_written_to_is_deleted_without_the_disk(tmp_path: Path) -> None:
    engine = started(tmp_path)
    engine.open_log(PARTITION, SMALL)
    engine.delete_log(PARTITION)

    assert engine.begin_removal(MONOTONIC_MS + 100_000) is None
    log = engine.open_log(PARTITION._replace(topic_id=uuid.UUID(int=78)), SMALL)
    assert len(fill(log, 0, 3)) == len(all_bytes(log))


def test_a_log_that_nothing_was_written_to_counts_where_the_next_one_goes(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    logs = [engine.open_log(partition(number), SMALL) for number in range(4)]

    assert [Path(log.log_dir).name for log in logs] == ["logs0", "logs1"] * 2


def test_a_log_that_nothing_was_written_to_can_move(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    log = engine.open_log(PARTITION, SMALL)
    move = engine.begin_move(PARTITION, str(tmp_path / "logs1"))
    move.run(lambda size_bytes: None)
    log.close()
    do_now(move.begin_swap())
    moved = engine.open_log(PARTITION, SMALL)

    assert (Path(moved.log_dir).name, moved.log_end_offset) == ("logs1", 0)
    assert len(fill(moved, 0, 3)) == len(all_bytes(moved))


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_a_first_batch_for_which_there_is_no_room_takes_its_log_offline_until_there_is(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    files = OsFiles()
    engine = started(tmp_path, files=files)
    log = engine.open_log(PARTITION, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(files, call, refuse, raising=False)
        with pytest.raises(StorageError, match="free space"):
            fill(log, 0, 1)
        with pytest.raises(StorageError, match="free space"):
            log.read(0, 100)
    log = engine.open_log(PARTITION, SMALL)

    assert len(fill(log, 0, 3)) == len(all_bytes(log))
    engine.close({})
    (found,) = SegmentEngine(make_context(tmp_path)).start()
    assert found.partition == PARTITION


def written(engine: SegmentEngine, high_watermarks: dict[TopicIdPartition, int]) -> list[str]:
    """Run a checkpoint; return the names of the directories that it wrote."""
    work = engine.begin_checkpoint(high_watermarks)
    if work is None:
        return []
    do_now(work)
    return [log_dir.path.name for log_dir, _ in work.copies]


def test_a_checkpoint_writes_where_something_changed_and_once_more_so_that_its_names_last(tmp_path: Path) -> None:
    engine = started(tmp_path, dirs=2)
    first, second = (engine.open_log(partition(number), SMALL) for number in range(2))
    for log in (first, second):
        fill(log, 0, 3)
    marks = {partition(0): 3, partition(1): 3}
    both = ["logs0", "logs1"]
    assert [written(engine, marks) for _ in range(4)] == [both, both, [], []]
    first.flush()
    assert [written(engine, {}) for _ in range(3)] == [["logs0"], ["logs0"], []]
    second.advance_log_start(2)
    assert [written(engine, marks) for _ in range(3)] == [["logs1"], ["logs1"], []]
    assert [written(engine, {partition(1): 2}) for _ in range(3)] == [["logs1"], ["logs1"], []]

    assert engine.high_watermarks() == {partition(0): 3, partition(1): 2}
    engine.close({})
    texts = [(tmp_path / name / "log-start-offset-checkpoint").read_text() for name in both]
    assert texts == ["0\n0\n", "0\n1\norders 1 2\n"]  # a start that is the first offset is none to write down


MANY = 100
"""Logs: more than are closed one after the other."""


class InstantThreads(SystemThreads):
    """Threads that are none: what they are given is done as it is taken."""

    def map(self, function: Callable[[Item], T], items: Iterable[Item], *, count: int) -> list[T]:
        """See `Threads.map`."""
        return [function(item) for item in items]


def test_many_logs_are_synced_while_others_are_yet_to_be_closed(tmp_path: Path) -> None:
    open_counts = []

    class WatchedFiles(OsFiles):
        def __init__(self) -> None:
            super().__init__()
            sync = self.fsync

            def fsync(fd: int, /) -> None:
                open_counts.append(sum(not log.is_offline for log in logs))
                sync(fd)

            self.fsync = fsync

    logs: list[SegmentLog] = []
    context = make_context(tmp_path, files=WatchedFiles())
    engine = SegmentEngine(attrs.evolve(context, threads=InstantThreads()))
    engine.start()
    for number in range(MANY):
        log = engine.open_log(partition(number), SMALL)
        assert isinstance(log, SegmentLog)
        fill(log, 0, 1)
        logs.append(log)
    open_counts.clear()
    engine.close({})
    again = started(tmp_path)

    assert open_counts == sorted(open_counts, reverse=True)
    assert open_counts[0] > 0 == open_counts[-1]
    assert [again.open_log(partition(number), SMALL).recovery_point for number in range(MANY)] == [1] * MANY


def test_one_of_many_logs_that_cannot_be_closed_costs_its_directory_the_mark_of_a_clean_end(tmp_path: Path) -> None:
    files = FailingFiles(tmp_path / "logs0" / str(partition(70).topic_partition))
    engine = started(tmp_path, dirs=2, files=files)
    for number in range(MANY):
        fill(engine.open_log(partition(number), SMALL, log_dir=str(tmp_path / f"logs{number % 2}")), 0, 1)
    files.error = errno.EDQUOT
    engine.close({})

    assert CLEAN_SHUTDOWN not in names(tmp_path / "logs0")
    assert CLEAN_SHUTDOWN in names(tmp_path / "logs1")
