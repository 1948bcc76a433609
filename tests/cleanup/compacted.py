"""A compacted topic over real segment files, with what tests need to fill, compact and read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import trio

from odradek.kernel.cleanup.compaction_job import CompactionJob
from odradek.kernel.cleanup.compactor import Compactor, CompactorSettings
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.cleanup.retention import Retention, RetentionSettings
from odradek.kernel.cleanup.workers import ThreadWorker, Worker, start_worker
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.machine.files import Files
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.leading import AppendOrigin, append_as_leader
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.records.batch import is_crc_valid, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_control_batch,
    read_control_record,
)
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.record import Headers
from odradek.plugins.cleanup import odradek_cleanup_policies
from tests.partitions.hosted import Hosted

TOPIC = "t"
MEMORY = 1 << 20
SETTINGS = CompactorSettings(True, 1, MEMORY, 0.9, 100, 1e300, 15_000)


class Seen(NamedTuple):
    """A record as a reader sees it."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    headers: Headers = ()


class Wanted(NamedTuple):
    """A record to write; its timestamp is the time that it is without one of its own."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Headers = ()


async def no_retention(_replica: Replica, _settings: CleanupSettings) -> None:
    """Delete nothing after a pass."""


def on_thread(job: CompactionJob) -> Worker:
    """Begin a worker as the machine's threads have it."""
    return ThreadWorker(job, real_machine())


def in_process(job: CompactionJob) -> Worker:
    """Begin a worker as brokers do."""
    return start_worker(job, machine=real_machine())


def compactor_on(
    hosted: Hosted,
    start: Callable[[CompactionJob], Worker] = on_thread,
    *,
    policies: Policies | None = None,
    settings: Callable[[], CompactorSettings] = lambda: SETTINGS,
    after_pass: Callable[[Replica, CleanupSettings], Awaitable[None]] = no_retention,
) -> Compactor:
    """Make the compactor of hosted replicas; with our policies, unless it is told of others."""
    return Compactor(
        replicas=hosted.replicas,
        policies=policies or Policies(odradek_cleanup_policies()),
        clock=hosted.clock,
        threads=SystemThreads(),
        settings=settings,
        start_worker=start,
        after_pass=after_pass,
    )


def retention_on(
    hosted: Hosted,
    policies: Policies | None = None,
    carry: Callable[[Replica, int], None] = lambda _replica, _below: None,
) -> Retention:
    """Make the retention of hosted replicas; with our policies, unless it is told of others."""
    return Retention(
        replicas=hosted.replicas,
        full_disks=hosted.lifecycle.full_disks,
        policies=policies or Policies(odradek_cleanup_policies()),
        clock=hosted.clock,
        threads=SystemThreads(),
        settings=lambda: RetentionSettings(300_000),
        carry=carry,
    )


class CompactedTopic:
    """One partition of a topic that is compacted."""

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = 1 << 20,
        segment_index_bytes: int = 10 << 20,
        files: Files | None = None,
        beside: CompactedTopic | None = None,
        name: str = TOPIC,
    ) -> None:
        self.hosted: Hosted = beside.hosted if beside is not None else Hosted(directory, files=files)
        self.name = name
        self.log_config = LogConfig(
            segment_bytes=segment_bytes,
            segment_index_bytes=segment_index_bytes,
            index_interval_bytes=64,
            file_delete_delay_ms=0,
        )
        self.hosted.open(name, log_config=self.log_config)
        self.configure()
        self.sequences: dict[int, int] = {}
        self.compactor = self.make_compactor()

    def configure(self, **settings: Any) -> None:
        topic = self.hosted.replicas.topics[self.name]
        cleanup = attrs.evolve(CleanupSettings(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0), **settings)
        topic.plan = attrs.evolve(topic.plan, cleanup=cleanup)

    def make_compactor(self, memory_bytes: int = MEMORY) -> Compactor:
        return compactor_on(self.hosted, settings=lambda: attrs.evolve(SETTINGS, dedupe_buffer_size=memory_bytes))

    def let_segments_grow_to(self, segment_bytes: int) -> None:
        """Alter the topic's segment.bytes; compaction makes no larger ones of several."""
        topic = self.hosted.replicas.topics[self.name]
        log_config = attrs.evolve(self.log_config, segment_bytes=segment_bytes)
        topic.plan = attrs.evolve(topic.plan, log_config=log_config)

    @property
    def replica(self) -> Replica:
        return self.hosted.replicas.get(self.name, 0)

    def put(
        self,
        records: Iterable[tuple[bytes, bytes | None]],
        *,
        producer_id: int = -1,
        is_transactional: bool = False,
        compression: CompressionType = CompressionType.NONE,
    ) -> None:
        """Append one batch; times go on by a millisecond a record."""
        self.write(
            [Wanted(key, value) for key, value in records],
            producer_id=producer_id,
            is_transactional=is_transactional,
            compression=compression,
        )

    def write(
        self,
        records: Sequence[Wanted],
        *,
        producer_id: int = -1,
        is_transactional: bool = False,
        compression: CompressionType = CompressionType.NONE,
    ) -> None:
        """Append one batch of records with times and headers of their own."""
        builder = BatchBuilder(
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=self.sequences.get(producer_id, 0) if producer_id >= 0 else -1,
            is_transactional=is_transactional,
            compression=compression,
        )
        count = 0
        for each in records:
            now_ms = self.hosted.clock.now_ms()
            timestamp = now_ms if each.timestamp is None else each.timestamp
            builder.append(each.key, each.value, timestamp=timestamp, headers=each.headers)
            self.hosted.clock.advance(1)
            count += 1
        self.sequences[producer_id] = self.sequences.get(producer_id, 0) + count
        batch = builder.build()
        append_as_leader(self.replica, memoryview(batch), read_header(batch), 1, verified=NOT_NEEDED)
        self._write()

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Append the marker that ends a producer's transaction."""
        kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
        batch = build_control_batch(
            [EndTransactionMarker(kind, 0)],
            timestamp=self.hosted.clock.now_ms(),
            producer_id=producer_id,
            producer_epoch=0,
        )
        origin = AppendOrigin.COORDINATOR
        append_as_leader(self.replica, memoryview(batch), read_header(batch), 1, origin=origin)
        self._write()

    def _write(self) -> None:
        self.hosted.writes.stage(self.replica)
        self.hosted.writes.write_staged()

    def roll(self) -> None:
        self.replica.log.roll()

    def compact(self, compactor: Compactor | None = None, clock: trio.abc.Clock | None = None) -> bool:
        """Make closed segments durable and compact them; return whether there was anything to do."""
        self.flush()
        return trio.run((compactor or self.compactor).round, clock=clock)

    def flush(self) -> None:
        """Make closed segments durable, and known to be: only those are compacted."""
        self.replica.log.flush()
        self.hosted.replicas.engines["segment"].checkpoint({})

    def compact_again(self) -> None:
        """Compact all closed segments once more, as if nothing were clean."""
        self.replica.log.note_clean_end(0)
        assert self.compact()

    def batches(self) -> list[bytes]:
        return [bytes(batch) for batch in self.replica.log.batches(0)]

    def uncommitted(self) -> list[Seen]:
        """Return what a read_uncommitted consumer sees."""
        return list(self._read(None))

    def committed(self) -> list[Seen]:
        """Return what a read_committed consumer sees, told of aborted transactions as by a Fetch."""
        end = self.replica.last_stable_offset
        aborted = self.replica.producers.transactions.aborted_between(0, end)
        firsts = sorted((each.first_offset, each.producer_id) for each in aborted)
        return [seen for seen in self._read(firsts) if seen.offset < end]

    def _read(self, aborted: list[tuple[int, int]] | None) -> Iterable[Seen]:
        hidden: set[int] = set()
        expected = 0
        for batch in self.batches():
            header = read_header(batch)
            assert is_crc_valid(batch, 0, header)
            assert expected <= header.base_offset <= header.last_offset
            expected = header.next_offset
            while aborted and aborted[0][0] <= header.last_offset:
                hidden.add(aborted.pop(0)[1])
            if header.is_control:
                if header.records_count:
                    marker = read_control_record(batch, header)
                    if isinstance(marker, EndTransactionMarker) and marker.type is ControlRecordType.ABORT:
                        hidden.discard(header.producer_id)
                continue
            if header.is_transactional and header.producer_id in hidden and aborted is not None:
                continue
            for record in read_batch(batch, 0, header):
                assert header.base_offset <= record.offset <= header.last_offset
                yield Seen(record.offset, record.timestamp, record.key or b"", record.value, record.headers)

    def restart(self, directory: Path, *, is_clean: bool = True, files: Files | None = None) -> CompactedTopic:
        if is_clean:
            self.hosted.lifecycle.close()
        again = CompactedTopic(directory, segment_bytes=self.log_config.segment_bytes, files=files)
        again.hosted.clock.advance(self.hosted.clock.now_ms() - again.hosted.clock.now_ms())
        return again


def latest(records: Sequence[Seen]) -> dict[bytes, bytes]:
    """Return the table that records stand for."""
    table: dict[bytes, bytes] = {}
    for record in records:
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table
