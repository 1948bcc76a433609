"""Random lives of a partition with transactions: what read_committed consumers see is what a naive model says."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from odradek.kernel.api import LogConfig
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.leading import note_follower
from odradek.kernel.partitions.quiet_followers import FollowerFetch
from odradek.kernel.partitions.transaction_index import TRANSACTION_INDEX_KIND, decode_transaction_index
from odradek.kernel.records.batch import read_header

from .transactional_logs import WHERE, Broker, Told, seen

CONFIG = LogConfig(segment_bytes=900, segment_index_bytes=240, index_interval_bytes=200)
PRODUCERS = st.integers(1, 4)


@attrs.define
class ModelProducer:
    """A transactional producer; with version 2 the marker raises its epoch."""

    version: int
    epoch: int = 0
    next_sequence: int = 0
    transaction: int | None = None
    """Number of the open transaction."""


@attrs.define
class ModelRecord:
    """A record, and the transaction it belongs to, if any."""

    offset: int
    value: str
    transaction: int | None


@attrs.define
class ModelTransaction:
    """What is known of a transaction in this partition."""

    first_offset: int
    marker_offset: int | None = None
    is_commit: bool = False


class TransactionalLog(RuleBasedStateMachine):
    """The partition beside a model that keeps every record and every transaction for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="transactions-"))
        self.broker: Any = None
        self.records: list[ModelRecord] = []
        self.transactions: list[ModelTransaction] = []
        self.producers = {number: ModelProducer(version=2 * (number % 2)) for number in range(1, 5)}
        self.values = 0
        self.plain_sequence = 0
        self.told: list[tuple[Told, int]] = []

    def teardown(self) -> None:
        if self.broker is not None:
            self.broker.engine.abandon()
        shutil.rmtree(self.directory)

    @initialize(has_follower=st.booleans())
    def start(self, has_follower: bool) -> None:
        self.replicas = (1, 2) if has_follower else (1,)
        self.broker = Broker(self.directory, CONFIG, replicas=self.replicas)

    def new_values(self, count: int) -> list[str]:
        self.values += count
        return [str(number) for number in range(self.values - count, self.values)]

    def note(self, base_offset: int, values: list[str], transaction: int | None) -> None:
        self.records += [ModelRecord(base_offset + n, value, transaction) for n, value in enumerate(values)]

    @rule(count=st.integers(1, 4), is_idempotent=st.booleans())
    def produce(self, count: int, is_idempotent: bool) -> None:
        values = self.new_values(count)
        if is_idempotent:
            base_offset = self.broker.produce(values, 9, 0, self.plain_sequence)
            self.plain_sequence += count
        else:
            base_offset = self.broker.produce(values)
        self.note(base_offset, values, None)

    @rule(number=PRODUCERS, count=st.integers(1, 4))
    def produce_in_transaction(self, number: int, count: int) -> None:
        producer = self.producers[number]
        values = self.new_values(count)
        base_offset = self.broker.produce(values, number, producer.epoch, producer.next_sequence, txn=True)
        producer.next_sequence += count
        if producer.transaction is None:
            producer.transaction = len(self.transactions)
            self.transactions.append(ModelTransaction(base_offset))
        self.note(base_offset, values, producer.transaction)

    @rule(number=PRODUCERS, commit=st.booleans())
    def end(self, number: int, commit: bool) -> None:
        producer = self.producers[number]
        if producer.version == 2:
            producer.epoch += 1
            producer.next_sequence = 0
        offset = self.broker.replica.log.log_end_offset
        self.told.append((self.broker.end(number, producer.epoch, commit=commit, version=producer.version), offset))
        if producer.transaction is not None:
            transaction = self.transactions[producer.transaction]
            transaction.marker_offset, transaction.is_commit = offset, commit
            producer.transaction = None

    @rule()
    def turn(self) -> None:
        self.broker.turn()

    @rule(share=st.floats(0, 1))
    def follow(self, share: float) -> None:
        """Let the follower fetch up to the end of a batch."""
        if self.replicas == (1, 2):
            self.broker.turn()
            replica = self.broker.replica
            ends = [
                replica.high_watermark,
                *(read_header(batch).next_offset for batch in replica.log.batches(replica.high_watermark)),
            ]
            self.follow_to(ends[round(share * (len(ends) - 1))])

    def follow_to(self, offset: int) -> None:
        note_follower(self.broker.replica, FollowerFetch(2, 10, offset, 0, 0))
        self.broker.progress()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        replica = self.broker.replica
        start = replica.log.log_start_offset
        offset = round(start + share * (replica.high_watermark - start))
        replica.log.advance_log_start(offset)
        replica.producers.transactions.advance_log_start(offset)

    @rule(what=st.sampled_from(("delete segments", "roll", "keep", "keep and flush")))
    def look_after(self, what: str) -> None:
        self.broker.turn()
        replica = self.broker.replica
        log = replica.log
        if what == "roll":
            log.roll()
        elif what == "delete segments":
            # What nobody knows any more after a crash, not even Kafka, is left out: a transaction that is open and of
            # which every segment with a record is gone.
            opened = [each.first_offset for each in self.transactions if each.marker_offset is None]
            log.delete_segments_below(min([log.log_start_offset, *opened]))
            self.broker.engine.checkpoint({})
        else:
            replica.keep_producers()
            if what == "keep and flush":
                log.flush()
            self.broker.engine.checkpoint({replica.partition: replica.high_watermark})

    @rule(cleanly=st.booleans())
    def restart(self, cleanly: bool) -> None:
        self.broker.turn()
        if cleanly:
            self.broker.lifecycle.close()
        else:
            self.broker.engine.abandon()
        self.told.clear()
        self.broker = Broker(self.directory, CONFIG, replicas=self.replicas)
        if self.replicas == (1, 2):
            # Which markers the follower had is forgotten, by Kafka too: a snapshot keeps open transactions only.
            self.follow_to(self.broker.replica.appended_offset)

    @precondition(lambda self: self.broker is not None)
    @invariant()
    def the_last_stable_offset_is_the_models(self) -> None:
        assert self.broker.replica.last_stable_offset == self.model_stable_offset()

    @precondition(lambda self: self.broker is not None)
    @invariant()
    def markers_are_told_once_they_are_committed(self) -> None:
        high_watermark = self.broker.replica.high_watermark
        for told, offset in self.told:
            assert told.codes == ({WHERE: ErrorCode.NONE} if offset < high_watermark else None)

    @precondition(lambda self: self.broker is not None)
    @invariant()
    def everything_committed_is_seen(self) -> None:
        self.read(0, 400)

    @rule(share=st.floats(0, 1), max_bytes=st.sampled_from((1, 150, 1 << 20)))
    def read(self, share: float, max_bytes: int) -> None:
        replica = self.broker.replica
        log_start, stable = replica.log.log_start_offset, self.model_stable_offset()
        start = round(log_start + share * (stable - log_start))
        expected = [
            (record.offset, record.value)
            for record in self.records
            if start <= record.offset < stable
            and (record.transaction is None or self.transactions[record.transaction].is_commit)
        ]

        assert seen(replica, start, max_bytes) == expected

    @precondition(lambda self: self.broker is not None)
    @invariant()
    def aborted_transactions_are_indexed(self) -> None:
        """See that each aborted transaction stands in the index of its marker's segment.

        One of which only deleted segments had records may be missing after a crash: there is nothing to hide.
        """
        log = self.broker.replica.log
        segments = log.segments()
        last_offsets: dict[int, int] = {}
        for record in self.records:
            if record.transaction is not None:
                last_offsets[record.transaction] = record.offset
        ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
        for segment, end_offset in zip(segments, ends, strict=True):
            aborted = {
                transaction.marker_offset: last_offsets[number] >= segments[0].base_offset
                for number, transaction in enumerate(self.transactions)
                if transaction.marker_offset is not None
                and segment.base_offset <= transaction.marker_offset < end_offset
                and not transaction.is_commit
            }
            found = []
            if segment.base_offset in log.sidecars(TRANSACTION_INDEX_KIND):
                data = log.read_sidecar(segment.base_offset, TRANSACTION_INDEX_KIND)
                found = [each.last_offset for each in decode_transaction_index(data)]
            assert {offset for offset, has_records in aborted.items() if has_records} <= set(found) <= aborted.keys()

    def model_stable_offset(self) -> int:
        replica = self.broker.replica
        high_watermark: int = replica.high_watermark
        unstable = [
            transaction.first_offset
            for transaction in self.transactions
            if (transaction.marker_offset is None or transaction.marker_offset >= high_watermark)
        ]
        log_start_offset: int = replica.log.log_start_offset
        return min(max(min(unstable, default=high_watermark), log_start_offset), high_watermark)


TestTransactionalLog = TransactionalLog.TestCase
TestTransactionalLog.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


@pytest.mark.sweep
def test_longer_lives() -> None:
    run_state_machine_as_test(
        TransactionalLog, settings=settings(max_examples=1_000, stateful_step_count=60, deadline=None)
    )
