"""A partition with transactions over real segment files, and what a read_committed consumer sees of it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from odradek.client.fetched_records import FetchedRecords
from odradek.kernel.api import Files, LogConfig
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.marker_writer import LocalMarkerWriter
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.purgatory.delayed_operation import DelayedOperation
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, read_control_record
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.types import IsolationLevel, TopicPartition
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import make_context

from .local_replicas import make_replicas

WHERE = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=77)


def fail(operation: DelayedOperation, error: Exception) -> None:
    raise AssertionError(operation) from error


@attrs.define
class Told:
    """What the marker writer told of one marker."""

    codes: Mapping[TopicPartition, ErrorCode] | None = None

    def take(self, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        assert self.codes is None, "told once"
        self.codes = codes


class Broker:
    """One start of a broker with one partition, as far as its log goes; broker 2 is a follower by hand."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        *,
        replicas: tuple[int, ...] = (1,),
        files: Files | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.engine = SegmentEngine(make_context(directory, files=files))
        self.purgatory = Purgatory("Produce", TimingWheel(now_ms=self.clock.monotonic_ms()), on_error=fail)
        self.replicas, self.lifecycle, self.writes = make_replicas(
            self.clock,
            {"segment": self.engine},
            on_progress=self._progressed,
            producer_id_expiration_ms=1 << 60,
        )
        self.writer = LocalMarkerWriter(
            replicas=self.replicas,
            writes=self.writes,
            purgatory=self.purgatory,
            clock=self.clock,
            timeout_ms=lambda: 30_000,
            owner_of=lambda topic: None,
            want_turn=lambda: None,
        )
        self.lifecycle.start()
        plan = TopicPlan(
            storage="segment",
            election="isr",
            stages=(),
            log_config=config,
            settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1),
            values={},
        )
        state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=replicas, isr=replicas)
        self.lifecycle.open_topic("t", TOPIC_ID, plan, {0: state})
        self.replica = self.replicas.get("t", 0)

    def _progressed(self, replicas: Collection[Replica]) -> None:
        self.purgatory.check(replicas)

    def turn(self) -> None:
        """End a turn: what is staged is written, and flushed where the topic asks for it."""
        self.writer.turn_ended()
        self.writes.write_staged()
        while self.writes.flush_queue:
            replica = self.writes.flush_queue.pop()
            replica.log.flush()
            self.writes.note_flushed(replica, replica.log, None)

    def produce(
        self, values: list[str], producer_id: int = -1, epoch: int = -1, sequence: int = -1, *, txn: bool = False
    ) -> int:
        """Append a batch; return its base offset."""
        builder = BatchBuilder(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=txn
        )
        for value in values:
            builder.append(None, value.encode(), timestamp=self.clock.now_ms())
        batch = builder.build()
        verified = None
        if txn:
            verified = self.replica.producers.begin_verification(
                producer_id, epoch, sequence, supports_epoch_bump=False, now_ms=0
            )
        header = read_header(batch)
        original = append_as_leader(self.replica, memoryview(batch), header, 1, verified=verified)
        self.writes.stage(self.replica)
        assert original is None
        return header.base_offset

    def end(self, producer_id: int, epoch: int, *, commit: bool, version: int = 0) -> Told:
        """Have a marker written; the turn is not ended."""
        told = Told()
        self.writer.write(TransactionMarker(producer_id, epoch, 0, version, commit, [WHERE]), told.take)
        return told

    def progress(self) -> None:
        """Wake who waits."""
        self.replicas.progressed((self.replica,))


def seen(replica: Replica, start_offset: int, max_bytes: int) -> list[tuple[int, str]]:
    """Return what a read_committed consumer gets from `start_offset` on, in as many fetches as it takes."""
    found: list[tuple[int, str]] = []
    offset = start_offset
    while True:
        read = replica.read(offset, max_bytes, IsolationLevel.READ_COMMITTED, is_follower=False, at_least_one=True)
        if not read.size_bytes:
            return found
        told = replica.producers.transactions.aborted_between(offset, read.next_offset)
        aborted = sorted((each.first_offset, each.producer_id) for each in told)
        data: Any = read.data
        content = data if isinstance(data, bytes | memoryview) else data.read()
        records = FetchedRecords(WHERE, content, offset, aborted, checks_crcs=True)
        found += [(record.offset, (record.value or b"").decode()) for record in records]
        offset = read.next_offset


@attrs.frozen
class Derived:
    """What a log says, read from its first batch to its high watermark and by nothing else.

    Attributes:
        last_stable_offset: Where the first open transaction begins.
        visible: Offset and value of what a read_committed consumer sees.
        ends: By value, whether its transaction was committed or aborted; open ones are missing.
    """

    last_stable_offset: int
    visible: list[tuple[int, str]]
    ends: dict[str, ControlRecordType]


def derived(replica: Replica) -> Derived:
    """Return what the log says."""
    log = replica.log
    is_open: dict[int, tuple[int, list[tuple[int, str]]]] = {}
    committed: list[tuple[int, str]] = []
    ends: dict[str, ControlRecordType] = {}
    for batch in log.batches(log.segments()[0].base_offset, replica.high_watermark):
        header = read_header(batch)
        if header.is_control:
            control = read_control_record(batch, header)
            assert isinstance(control, EndTransactionMarker)
            _, records = is_open.pop(header.producer_id, (0, []))
            committed += records if control.type is ControlRecordType.COMMIT else []
            ends.update((value, control.type) for _, value in records)
            continue
        records = [(record.offset, (record.value or b"").decode()) for record in read_batch(batch, 0, header)]
        if header.is_transactional:
            is_open.setdefault(header.producer_id, (header.base_offset, []))[1].extend(records)
        else:
            committed += records
    first_open = min((first for first, _ in is_open.values()), default=replica.high_watermark)
    stable = min(max(first_open, log.log_start_offset), replica.high_watermark)
    visible = sorted(each for each in committed if log.log_start_offset <= each[0] < stable)
    return Derived(stable, visible, ends)
