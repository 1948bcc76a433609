"""The storage keeps Odradek's contract: also after a crash, and while compaction writes beside it."""

import sqlite3
from pathlib import Path

import pytest
from odradek_template.sqlite_storage import SqliteEngine

from odradek.kernel.api import StorageContext, StorageEngine, StorageError, do_now
from odradek.testing.contracts.storage import StorageContract
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill, make_context, rewrite


class TestSqliteStorage(StorageContract):
    def make_engine(self, context: StorageContext) -> StorageEngine:
        return SqliteEngine(context)

    def crash(self, engine: StorageEngine) -> None:
        assert isinstance(engine, SqliteEngine)
        engine.let_go()


@pytest.fixture
def engine(tmp_path: Path) -> SqliteEngine:
    engine = SqliteEngine(make_context(tmp_path))
    engine.start()
    return engine


def rows_count(engine: SqliteEngine, table: str) -> int:
    return int(engine.database.sql(f"SELECT count(*) FROM {table}")[0][0])


def test_the_batches_of_a_deleted_log_are_removed_beside_the_others(engine: SqliteEngine) -> None:
    fill(engine.open_log(PARTITION, SMALL), 0, 200)
    fill(engine.open_log(PARTITION._replace(topic="other"), SMALL), 0, 5)
    engine.delete_log(PARTITION)
    removal = engine.begin_removal(0)
    assert removal is not None
    do_now(removal)

    assert (rows_count(engine, "batches"), rows_count(engine, "segments")) == (5, 1)
    assert engine.begin_removal(0) is None
    engine.close({})


def test_what_was_rewritten_is_removed(engine: SqliteEngine) -> None:
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 0, 20)
    before = log.active_base_offset
    rewrite(engine, log, [s.base_offset for s in log.segments()[:-1]], written[:1])
    removal = engine.begin_removal(0)
    assert removal is not None
    do_now(removal)

    assert rows_count(engine, "batches") == 1 + 20 - before
    engine.close({})


def test_a_log_that_nobody_knows_is_set_aside(engine: SqliteEngine) -> None:
    fill(engine.open_log(PARTITION, SMALL), 0, 5)
    engine.set_aside(PARTITION)
    log = engine.open_log(PARTITION, SMALL)

    assert log.log_end_offset == 0
    assert rows_count(engine, "batches") == 5
    engine.close({})


def test_an_error_of_sqlite_takes_one_log_offline_and_says_where(engine: SqliteEngine) -> None:
    log = engine.open_log(PARTITION, SMALL)
    fill(log, 0, 3)
    engine.database.execute("ALTER TABLE batches RENAME TO elsewhere")
    with pytest.raises(StorageError, match=r"odradek.sqlite: no such table: batches"):
        fill(log, 3, 4)
    with pytest.raises(StorageError, match="offline"):
        log.read(0, 100)

    assert (log.log_end_offset, issubclass(StorageError, sqlite3.Error)) == (3, False)
    engine.let_go()
