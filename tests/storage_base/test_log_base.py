"""The bases of storages: when what is below them fails, lacks something, or works in another process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from odradek_template.sqlite_storage import SqliteEngine

from odradek.kernel.api import (
    DiskWork,
    LogConfig,
    StorageContext,
    StorageEngine,
    StorageError,
    TopicIdPartition,
    do_now,
)
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_memory.log import MemoryLog
from odradek.plugins.storage_memory.rewriting import MemorySegment
from odradek.storage_base import EngineBase, LogBase, LogBounds, LogSegment, StoredBatch, Work
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill, make_context, rewrite
from odradek.testing.contracts.storage_rewriting import StorageRewritingContract


class TestRewritingInAnotherProcess(StorageRewritingContract):
    """Memory rewrites in this one; SQLite's sources, places and writers are pickled."""

    def make_engine(self, context: StorageContext) -> StorageEngine:
        return SqliteEngine(context)

    def crash(self, engine: StorageEngine) -> None:
        assert isinstance(engine, SqliteEngine)
        engine.let_go()


class FullLog(MemoryLog):
    """Has no room any more once it is told so."""

    is_full = False

    def write_batches(self, batches: Sequence[tuple[MemorySegment, StoredBatch]]) -> None:
        if self.is_full:
            raise StorageError("no room")
        super().write_batches(batches)

    def sync(self) -> None:
        if self.is_full:
            raise OSError(28, "no room")


def full_log() -> FullLog:
    return FullLog(PARTITION, SMALL, lambda: 0)


def test_what_could_not_be_written_does_not_count_and_the_log_is_offline() -> None:
    log = full_log()
    fill(log, 0, 3)
    log.is_full = True
    log.append(make_batch(3), 3, 3, 1_000)
    with pytest.raises(StorageError, match="no room"):
        log.write_pending()

    assert log.log_end_offset == 3
    with pytest.raises(StorageError, match="is offline: no room"):
        log.read(0, 100)
    log.close()


def test_a_flush_that_fails_takes_the_log_offline() -> None:
    log = full_log()
    fill(log, 0, 3)
    log.is_full = True
    with pytest.raises(StorageError, match="no room"):
        log.flush()

    assert (log.recovery_point, log.is_closed) == (0, True)


def test_a_work_that_fails_is_told_and_not_applied() -> None:
    done: list[str] = []
    work = Work(lambda: done.append("applied"), on_error=lambda error: done.append(str(error)))
    with pytest.raises(StorageError, match="broken"):
        work.finish(OSError("broken"))
    work.finish(None)

    assert done == ["broken", "applied"]


def test_bounds_are_what_was_encoded_and_a_new_log_has_them_all() -> None:
    bounds = LogBounds(3, 7, 5, [(1, 3), (4, 6)], is_closed=False)

    assert LogBounds.decode("{}") == LogBounds()
    assert attrs.astuple(LogBounds.decode(bounds.encode())) == (3, 7, 5, [[1, 3], [4, 6]], False)


def test_new_settings_roll_by_the_time_of_the_first_batch() -> None:
    log = full_log()
    fill(log, 0, 2, timestamp=1_000)
    log.reconfigure(attrs.evolve(SMALL, segment_ms=10))
    fill(log, 2, 3, timestamp=1_011)

    assert [segment.base_offset for segment in log.segments()] == [0, 2]


def test_an_old_log_goes_on_where_it_was_rewritten(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 0, 20)
    rewrite(engine, log, [s.base_offset for s in log.segments()[:-1]], written[:1])
    log.close()
    log = engine.open_log(PARTITION, SMALL)

    assert all_bytes(log)[:1] == written[:1]
    assert fill(log, 20, 22) == all_bytes(log)[-2:]


def test_a_large_segment_is_written_in_pieces(tmp_path: Path) -> None:
    engine = SqliteEngine(make_context(tmp_path))
    engine.start()
    log = engine.open_log(PARTITION, LogConfig())
    batches = [make_batch(offset, size_bytes=100_000) for offset in range(6)]
    for offset, batch in enumerate(batches):
        log.append(batch, offset, offset, 1_000)
    log.write_pending()
    log.roll()
    rewrite(engine, log, [0], batches[1:])

    assert all_bytes(log) == batches[1:]
    engine.close({})


def test_what_is_missing_is_told_by_name() -> None:
    class Half(LogBase[LogSegment]):
        """Keeps nothing."""

    class HalfEngine(EngineBase[Half]):
        """Opens nothing."""

        def open(self, partition: TopicIdPartition, config: LogConfig) -> Half:
            return Half(partition, config, now_ms=lambda: 0)  # type: ignore[abstract] # wrong on purpose

        def forget(self, partition: TopicIdPartition) -> None:
            return

        def begin_checkpoint(self, high_watermarks: object) -> DiskWork:
            return Work()

        def high_watermarks(self) -> dict[TopicIdPartition, int]:
            return {}

    engine = HalfEngine(make_context(Path("nowhere")))
    with pytest.raises(TypeError, match=r"abstract.* Half .*cut_segment'?, '?drop_segments"):
        engine.open_log(PARTITION, SMALL)
    engine.set_aside(PARTITION)

    assert engine.begin_removal(0) is None
    do_now(engine.begin_checkpoint({}))


def test_one_lock_one_engine(tmp_path: Path) -> None:
    first, second = (MemoryEngine(make_context(tmp_path)) for _ in range(2))
    first.take_lock(tmp_path / "lock")
    with pytest.raises(StorageError, match="is held by another broker"):
        second.take_lock(tmp_path / "lock")
    first.let_go()
    second.take_lock(tmp_path / "lock")
    second.close({})
    with pytest.raises(StorageError, match="belongs to cluster a, the configuration wants b"):
        MemoryEngine(make_context(tmp_path, cluster_id="b")).join_cluster("a")
