"""A storage that keeps its logs in one SQLite database: look at them with `sqlite3 odradek.sqlite`.

Batches are rows that belong to segments, segments belong to logs; what belongs to no log is garbage, removed a few rows
at a time, because SQLite admits one writer at once and nobody shall wait long for it.

What is promised: a commit outlives the process at once, and a loss of power once SQLite's log of writes was synced.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from odradek import storage_base as base
from odradek.kernel import api

SCHEMA = """
    CREATE TABLE IF NOT EXISTS cluster (id TEXT);
    CREATE TABLE IF NOT EXISTS logs (id INTEGER PRIMARY KEY AUTOINCREMENT, topic_id TEXT, topic TEXT, partition INTEGER,
        bounds TEXT DEFAULT '{}', high_watermark INTEGER, UNIQUE (topic, partition));
    CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, log INTEGER, base_offset INTEGER,
        modified_ms INTEGER, is_new INTEGER, sidecars TEXT);
    CREATE INDEX IF NOT EXISTS segments_of_logs ON segments (log);
    CREATE TABLE IF NOT EXISTS batches (segment INTEGER, data BLOB, last_offset INTEGER, max_timestamp INTEGER,
        PRIMARY KEY (segment, last_offset));
    CREATE TABLE IF NOT EXISTS sidecars (log INTEGER, kind TEXT, offset INTEGER, data BLOB,
        PRIMARY KEY (log, kind, offset));
"""
SEGMENTS = """
    SELECT base_offset, modified_ms, coalesce(sum(length(data)), 0), coalesce(max(max_timestamp), -1), id, sidecars,
        max(base_offset, coalesce(max(last_offset) + 1, 0))
    FROM segments LEFT JOIN batches ON segment = id WHERE log = ? AND is_new = ? GROUP BY id ORDER BY base_offset"""
NEW_SEGMENT = "INSERT INTO segments (log, base_offset, modified_ms, is_new) VALUES (?, ?, ?, ?) RETURNING id"
BATCHES = (
    "SELECT data, last_offset, max_timestamp FROM batches WHERE segment = ? AND last_offset >= ? ORDER BY last_offset"
)
WHICH = "topic_id = ? AND topic = ? AND partition = ?"
GARBAGE = "SELECT id FROM segments WHERE log NOT IN (SELECT id FROM logs)"
REMOVE_BATCHES = f"""
    DELETE FROM batches WHERE rowid IN (SELECT rowid FROM batches WHERE segment IN ({GARBAGE}) LIMIT 64) RETURNING 1"""


class Database(sqlite3.Connection):
    """A connection that tells SQLite's errors as Odradek's: what met a `StorageError` goes offline alone."""

    def __init__(self, path: str) -> None:
        super().__init__(path, timeout=30, isolation_level=None)
        self.path = path
        for setting in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 0"):
            self.sql(f"PRAGMA {setting}")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Tell what goes wrong inside."""
        try:
            yield
        except sqlite3.Error as error:
            raise api.StorageError(f"{self.path}: {error}") from error

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Execute a statement and return its rows."""
        with self.errors():
            return self.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make one change of all that is done inside, or none."""
        self.sql("BEGIN IMMEDIATE")
        try:
            yield
            self.sql("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def stored(self, segment: int, offset: int) -> Iterator[base.StoredBatch]:
        """Iterate over a segment's batches."""
        with self.errors():
            yield from map(base.StoredBatch._make, self.execute(BATCHES, (segment, offset)))

    def write(self, batches: Iterable[tuple[int, base.StoredBatch]]) -> None:
        """Write batches, each with its segment."""
        with self.errors():
            self.executemany("INSERT INTO batches VALUES (?, ?, ?, ?)", ((key, *batch) for key, batch in batches))


def place_of(partition: api.TopicIdPartition) -> tuple[str, str, int]:
    """Return what `WHICH` asks for."""
    return api.id_text(partition.topic_id), partition.topic, partition.partition


def sync(path: str) -> None:
    """Make all commits durable: they are in the log of writes, or in the database, which SQLite itself has synced."""
    with suppress(FileNotFoundError), Path(f"{path}-wal").open("rb") as log_of_writes:  # it comes with the first write
        os.fsync(log_of_writes)


class SqliteLog(base.LogBase[base.LogSegment]):
    """A log: `LogBase` decides what is to be done, and this says it to SQLite."""

    def __init__(
        self, database: Database, partition: api.TopicIdPartition, config: api.LogConfig, now_ms: Callable[[], int]
    ) -> None:
        self.database = database
        kept = database.sql(f"SELECT id, bounds FROM logs WHERE {WHICH}", *place_of(partition))
        if not kept:
            raise api.StorageError(f"{partition} is there with another topic id: delete it first")
        ((self.key, text),) = kept
        found, bounds = database.sql(SEGMENTS, self.key, False), base.LogBounds.decode(text)
        end, segments = max((row[6] for row in found), default=0), [base.LogSegment(*row[:5]) for row in found]
        super().__init__(partition, config, now_ms=now_ms, segments=segments, log_end_offset=end, bounds=bounds)
        self.log_dir = str(Path(database.path).parent)
        self.keep_bounds()  # which say that it is open

    def atomically(self) -> AbstractContextManager[None]:
        """See `LogStore.atomically`."""
        return self.database.transaction()

    def sync(self) -> None:
        """See `LogStore.sync`."""
        sync(self.database.path)

    def keep_bounds(self) -> None:
        """See `LogStore.keep_bounds`."""
        self.database.sql("UPDATE logs SET bounds = ? WHERE id = ?", self.bounds.encode(), self.key)

    def new_segment(self, base_offset: int) -> base.LogSegment:
        """See `LogStore.new_segment`."""
        now_ms = self.now_ms()
        ((key,),) = self.database.sql(NEW_SEGMENT, self.key, base_offset, now_ms, False)
        return base.LogSegment(base_offset, now_ms, key=key)

    def write_batches(self, batches: Sequence[tuple[base.LogSegment, base.StoredBatch]]) -> None:
        """See `LogStore.write_batches`."""
        self.database.write((segment.key, batch) for segment, batch in batches)

    def stored(self, segment: base.LogSegment, offset: int) -> Iterator[base.StoredBatch]:
        """See `LogStore.stored`."""
        return self.database.stored(segment.key, offset)

    def cut_segment(self, segment: base.LogSegment, offset: int) -> None:
        """See `LogStore.cut_segment`."""
        self.database.sql("DELETE FROM batches WHERE segment = ? AND last_offset >= ?", segment.key, offset)

    def drop_segments(self, segments: Sequence[base.LogSegment]) -> None:
        """See `LogStore.drop_segments`."""
        for segment in segments:
            self.database.sql("UPDATE segments SET log = 0 WHERE id = ?", segment.key)

    def sidecar_places(self) -> list[tuple[str, int]]:
        """See `LogStore.sidecar_places`."""
        return self.database.sql("SELECT kind, offset FROM sidecars WHERE log = ?", self.key)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `LogStore.read_sidecar`."""
        which = "log = ? AND kind = ? AND offset = ?"
        found = self.database.sql(f"SELECT data FROM sidecars WHERE {which}", self.key, kind, offset)
        if not found:
            raise api.StorageError(f"{self.partition} has no {kind} at {offset}")
        return bytes(found[0][0])

    def put_sidecar(self, offset: int, kind: str, data: bytes | None) -> None:
        """See `LogStore.put_sidecar`."""
        place = (self.key, kind, offset)
        if data is None:
            self.database.sql("DELETE FROM sidecars WHERE log = ? AND kind = ? AND offset = ?", *place)
        else:
            self.database.sql("INSERT OR REPLACE INTO sidecars VALUES (?, ?, ?, ?)", *place, data)

    def rewrite_of(self, segments: Sequence[tuple[base.LogSegment, int]]) -> api.SegmentRewrite:
        """See `LogStore.rewrite_of`."""
        path = self.database.path
        sources = [base.StoredSource(s.base_offset, e, s.size_bytes, partial(read, path, s.key)) for s, e in segments]
        place = base.StoredPlace(partial(clear_rewrites, path, self.key), partial(SqliteWriter, path, self.key))
        return api.SegmentRewrite(sources, place, is_portable=True)

    def take_rewritten(self, base_offset: int) -> tuple[base.LogSegment, Mapping[str, bytes]]:
        """See `LogStore.take_rewritten`."""
        found = {row[0]: row for row in self.database.sql(SEGMENTS, self.key, True)}[base_offset]
        segment = base.LogSegment(*found[:5])
        self.database.sql("UPDATE segments SET is_new = FALSE WHERE id = ?", segment.key)
        return segment, {kind: bytes.fromhex(data) for kind, data in json.loads(found[5]).items()}


def read(path: str, segment: int, offset: int) -> Iterator[base.StoredBatch]:
    """Read batches in compaction's process; one statement sees one moment of the database."""
    with closing(Database(path)) as database:
        yield from database.stored(segment, offset)


def clear_rewrites(path: str, log: int) -> None:
    """Make garbage of what an earlier compaction left."""
    with closing(Database(path)) as database:
        database.sql("UPDATE segments SET log = 0 WHERE log = ? AND is_new", log)


class SqliteWriter(base.PieceWriter):
    """A segment that compaction writes in its process; the log knows nothing of it until it takes it over."""

    def __init__(self, path: str, log: int, base_offset: int) -> None:
        super().__init__()
        self.database = Database(path)
        ((self.key,),) = self.database.sql(NEW_SEGMENT, log, base_offset, 0, True)

    def write(self, batches: Sequence[base.StoredBatch]) -> None:
        """See `PieceWriter.write`."""
        with self.database.transaction():
            self.database.write((self.key, batch) for batch in batches)

    def keep(self, sidecars: Mapping[str, bytes]) -> None:
        """See `PieceWriter.keep`."""
        kept = json.dumps({kind: data.hex() for kind, data in sidecars.items()})
        self.database.sql("UPDATE segments SET sidecars = ? WHERE id = ?", kept, self.key)
        sync(self.database.path)
        self.database.close()


class SqliteEngine(base.EngineBase[SqliteLog]):
    """All logs of a broker in one database, in the first of its log directories."""

    def __init__(self, context: api.StorageContext) -> None:
        super().__init__(context)
        self.path = str(Path(context.log_dirs[0]) / "odradek.sqlite")

    def start(self) -> Sequence[api.FoundLog]:
        """See `EngineBase.start`."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        self.take_lock(Path(f"{self.path}.lock"))
        self.database = Database(self.path)
        with self.database.errors():
            self.database.executescript(SCHEMA)
        for (cluster_id,) in self.database.sql("SELECT id FROM cluster"):
            self.join_cluster(cluster_id)
        super().start()
        self.database.sql("INSERT INTO cluster SELECT ? WHERE NOT EXISTS (SELECT * FROM cluster)", self.cluster_id)
        return [api.FoundLog(partition, "") for partition in self.marks()]

    def marks(self) -> dict[api.TopicIdPartition, int | None]:
        """Return the logs in the database, each with the high watermark that was kept last."""
        rows = self.database.sql("SELECT topic_id, topic, partition, high_watermark FROM logs WHERE partition >= 0")
        return {api.TopicIdPartition(api.parse_id(row[0]), *row[1:3]): row[3] for row in rows}

    def open(self, partition: api.TopicIdPartition, config: api.LogConfig) -> SqliteLog:
        """See `EngineBase.open`."""
        place = place_of(partition)
        self.database.sql("INSERT OR IGNORE INTO logs (topic_id, topic, partition) VALUES (?, ?, ?)", *place)
        return SqliteLog(self.database, partition, config, self.context.now_ms)

    def forget(self, partition: api.TopicIdPartition) -> None:
        """See `EngineBase.forget`."""
        self.database.sql(f"DELETE FROM logs WHERE {WHICH}", *place_of(partition))

    def set_aside(self, partition: api.TopicIdPartition) -> None:
        """Keep a log of a topic that nobody knows, under a number that no partition has."""
        stray = "topic = topic || '-' || partition || '-stray', partition = -id"
        self.database.sql(f"UPDATE logs SET {stray} WHERE {WHICH}", *place_of(partition))

    def begin_checkpoint(self, high_watermarks: Mapping[api.TopicIdPartition, int]) -> api.DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        with self.database.transaction():
            for partition, offset in high_watermarks.items():
                self.database.sql(f"UPDATE logs SET high_watermark = ? WHERE {WHICH}", offset, *place_of(partition))
            for log in self.logs.values():
                if not log.is_closed:
                    log.keep_bounds()
        return base.Work(on_thread=partial(bring_home, self.path))

    def high_watermarks(self) -> Mapping[api.TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return {partition: offset for partition, offset in self.marks().items() if offset is not None}

    def begin_removal(self, now_ms: int) -> api.DiskWork | None:
        """See `StorageEngine.begin_removal`."""
        has_garbage = self.database.sql(f"{GARBAGE} LIMIT 1")
        return base.Work(on_thread=partial(remove_garbage, self.path)) if has_garbage else None

    def let_go(self) -> None:
        """See `EngineBase.let_go`."""
        self.database.close()
        super().let_go()


def bring_home(path: str) -> None:
    """Sync, and move what is in the log of writes to its place in the database; for a worker thread."""
    sync(path)
    with closing(Database(path)) as database:
        database.sql("PRAGMA wal_checkpoint(PASSIVE)")


def remove_garbage(path: str) -> None:
    """Remove what belongs to no log, a few rows at a time; for a worker thread."""
    with closing(Database(path)) as database:
        while database.sql(REMOVE_BATCHES):
            pass
        database.sql(f"DELETE FROM segments WHERE id IN ({GARBAGE}) AND id NOT IN (SELECT segment FROM batches)")
        database.sql("DELETE FROM sidecars WHERE log NOT IN (SELECT id FROM logs)")
