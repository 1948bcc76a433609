"""Shell: what the storage kit's tests share: engines in a directory, small logs, batches in them."""

from __future__ import annotations

import pickle
import random
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pytest

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.storage import NO_LIMIT, LogConfig
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.records.batch import read_header
from odradek.kernel.types import TopicIdPartition

from ..batches import make_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.contracts.log_values import FoundLog
    from odradek.kernel.contracts.storage import LogRead, PartitionLog, StorageEngine
    from odradek.kernel.machine.files import Files

PARTITION = TopicIdPartition(uuid.UUID(int=77), "orders", 3)
SMALL = LogConfig(segment_bytes=1_000, segment_index_bytes=240, index_interval_bytes=200)
"""Segments of six batches of `make_batch`'s usual size."""

NOW_MS = 1_700_000_000_000
MONOTONIC_MS = 5_000_000


def make_context(
    directory: Path, *, cluster_id: str = "", node_id: int = 1, dirs: int = 1, files: Files | None = None
) -> StorageContext:
    """Return a context with `dirs` log directories below `directory`, fixed time and seeded randomness.

    Args:
        directory: A test's own.
        cluster_id: What the configuration says of the cluster.
        node_id: The broker.
        dirs: How many log directories.
        files: The file system; the system's when None.
    """
    source = random.Random(7)
    return StorageContext(
        log_dirs=[str(directory / f"logs{number}") for number in range(dirs)],
        node_id=node_id,
        cluster_id=cluster_id,
        settings={},
        now_ms=lambda: NOW_MS,
        monotonic_ms=lambda: MONOTONIC_MS,
        random=source,
        new_id=lambda: uuid.UUID(int=source.getrandbits(128)),
        files=files or OsFiles(),
        threads=SystemThreads(),
    )


def read_bytes(read: LogRead) -> bytes:
    """Return a read's bytes, wherever they are."""
    data = read.data if isinstance(read.data, bytes | memoryview) else read.data.read()
    assert len(data) == read.size_bytes, "a read has as many bytes as it says"
    return bytes(data)


def fill(log: PartitionLog, start: int, end: int, *, epoch: int = 0, timestamp: int | None = None) -> list[bytes]:
    """Append and write one batch an offset in `[start, end)`; timestamps are 1000 + offset unless given."""
    written = []
    for offset in range(start, end):
        stamp = 1_000 + offset if timestamp is None else timestamp
        written.append(make_batch(offset, epoch=epoch, timestamp=stamp))
        log.append(written[-1], offset, offset, stamp)
    log.write_pending()
    return written


def all_bytes(log: PartitionLog) -> list[bytes]:
    """Return all batches from the log start on."""
    return [bytes(batch) for batch in log.batches(log.log_start_offset)]


def write_anew(
    log: PartitionLog, base_offset: int, batches: Sequence[bytes], sidecars: Mapping[str, bytes] | None = None
) -> None:
    """Write a segment that may take the place of others, as the cleaner does: from a pickled copy, if it can be."""
    begun = log.begin_rewrite(NO_LIMIT)
    if begun.is_portable:
        begun = pickle.loads(pickle.dumps(begun))  # our own
    begun.place.clear()
    writer = begun.place.new_segment(base_offset)
    for batch in batches:
        header = read_header(batch)
        writer.append(batch, header.last_offset, header.max_timestamp)
    writer.finish(sidecars or {})


def rewrite(engine: StorageEngine, log: PartitionLog, base_offsets: Sequence[int], batches: Sequence[bytes]) -> None:
    """Put one new segment in the place of closed ones, once they are known to be durable."""
    log.flush()
    engine.checkpoint({})
    assert base_offsets[-1] < log.rewritable_end, "what is closed, flushed and checkpointed may be rewritten"
    write_anew(log, base_offsets[0], batches)
    do_now(log.begin_replacement(base_offsets))


class StorageKit:
    """How the tests come to engines and logs."""

    is_durable: ClassVar[bool] = True
    recovers: ClassVar[bool] = True
    shrinks: ClassVar[bool] = True
    """Whether the shortest calls are looked for that a log gets wrong; without it the first found are told."""

    def make_engine(self, context: StorageContext) -> StorageEngine:
        """Return a new engine, not started."""
        raise NotImplementedError

    def crash(self, engine: StorageEngine) -> None:
        """Let go of what would keep another engine from taking over, but flush nothing.

        Every engine ends so when its test ends: also one that crashed before, or was closed.
        """

    @cached_property
    def _started(self) -> list[StorageEngine]:
        return []

    @pytest.fixture(autouse=True)
    def _crash_at_last(self) -> Iterator[None]:
        yield
        for engine in self._started:
            self.crash(engine)

    def start(self, directory: Path, *, cluster_id: str = "") -> StorageEngine:
        """Return a new engine, started."""
        engine = self.make_engine(make_context(directory, cluster_id=cluster_id))
        self.started(engine)
        return engine

    def started(self, engine: StorageEngine) -> Sequence[FoundLog]:
        """Start an engine, and return the logs that it found."""
        found = engine.start()
        self._started.append(engine)
        return found

    def open(self, directory: Path, config: LogConfig = SMALL) -> PartitionLog:
        """Return `PARTITION`'s log of a new engine."""
        return self.start(directory).open_log(PARTITION, config)

    def reopen(self, engine: StorageEngine, directory: Path, *, cleanly: bool) -> PartitionLog:
        """End `engine` in one of two ways and return the log from a new one."""
        if cleanly:
            engine.close({})
        else:
            self.crash(engine)
        return self.open(directory)

    def ends(self) -> Sequence[bool]:
        """Return the ways of `reopen` that the storage's level survives; a test of nothing else is skipped for none."""
        found = self.ends_if_any()
        if not found:
            pytest.skip("asked only where is_durable or recovers is True")
        return found

    def ends_if_any(self) -> Sequence[bool]:
        """Return the same, nothing where there is none."""
        return [cleanly for cleanly, has in ((True, self.is_durable), (False, self.recovers)) if has]
