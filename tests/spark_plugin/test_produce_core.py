"""A sink's batches: their order and sequences whatever brokers answer; a model of a partition's log is the judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.cluster import LEADER_MOVED
from odradek.client.errors import BrokerError, ClientTimeoutError, ProducerFencedError, RecordTooLargeError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.peers.errors import UnsupportedVersionError as TooOldError
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.columns import BinaryColumn, Columns
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_records
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.spark_plugin.writing.produce import Batch, ProduceCore, Run
from odradek.spark_plugin.writing.write_settings import WriteSettings

HERE = TopicPartition("t", 0)
THERE = TopicPartition("t", 1)


def core_of(**changes: object) -> ProduceCore:
    settings = WriteSettings(compression=CompressionType.NONE, **changes)  # type: ignore[arg-type]  # as each test says
    core = ProduceCore(settings=settings, now_ms=lambda: 1_000)
    core.producer_id, core.producer_epoch = 7, 3
    return core


def run_of(values: Sequence[bytes], first_row: int = 0) -> Run:
    offsets = np.cumsum([0, *(len(value) for value in values)], dtype=np.int32)
    columns = Columns(len(values), None, BinaryColumn(offsets.data, b"".join(values)))
    rows = np.arange(len(values), dtype=np.int32)
    return Run(columns, rows.data, sum(map(len, values)) + 12 * len(values), first_row)


def answer_of(code: ErrorCode = ErrorCode.NONE, partition: TopicPartition = HERE) -> ProduceResponse:
    one = PartitionProduceResponse(index=partition.partition, error_code=code)
    return ProduceResponse(responses=[TopicProduceResponse(name=partition.topic, partition_responses=[one])])


def taken(core: ProduceCore, now_ms: int = 0) -> list[Batch]:
    return core.take(core.ready(now_ms), now_ms)


class Log:
    """One partition's log, with what a leader knows of the producer."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.known: tuple[int, int] | None = None
        self.refuses_bytes = 10**9

    def append(self, batch: Batch) -> ErrorCode:
        """Judge a batch as Kafka does, and append it."""
        header = read_header(batch.data)
        values = [bytes(record.value or b"") for record in read_records(batch.data)]
        if len(batch.data) > self.refuses_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE
        if self.known is not None and header.producer_epoch == self.known[0]:
            if header.base_sequence < self.known[1]:
                return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            if header.base_sequence > self.known[1]:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif header.base_sequence != 0:
            return ErrorCode.UNKNOWN_PRODUCER_ID
        self.known = (header.producer_epoch, header.base_sequence + header.records_count)
        self.values += values
        return ErrorCode.NONE


def write_all(core: ProduceCore, log: Log) -> None:
    """Send until all is acknowledged."""
    while core.has_unfinished:
        (batch,) = taken(core)
        core.answered_all([batch], answer_of(log.append(batch)), 0)


def fail_for_ever(core: ProduceCore, pauses: list[int]) -> None:
    """Send whenever it is time, and never get through."""
    now_ms = 0
    while True:
        core.failed(taken(core, now_ms)[0], ConnectionFailedError("no route"), now_ms)
        assert core.ready(now_ms) == []
        due_ms = core.next_ms()
        assert due_ms is not None
        pauses.append(due_ms - now_ms)
        now_ms = due_ms


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.binary(max_size=30), min_size=1, max_size=8), max_size=6),
    st.lists(st.sampled_from(["ok", "lost", "unsent", "moved", "shrunk"]), max_size=25),
    st.integers(80, 400),
)
def test_every_record_is_appended_once_and_in_order(
    runs: list[list[bytes]], events: list[str], batch_bytes: int
) -> None:
    core, log, now_ms = core_of(batch_bytes=batch_bytes), Log(), 0
    for number, values in enumerate(runs):
        core.add(HERE, run_of(values, number * 10))
    script = iter(events)
    while core.has_unfinished:
        now_ms = max(now_ms, core.next_ms() or 0)
        (batch,) = taken(core, now_ms)
        event = next(script, "ok")
        if event == "unsent":
            core.failed(batch, ConnectionFailedError("no connection"), now_ms)
        elif event == "moved":
            assert core.answered_all([batch], answer_of(ErrorCode.NOT_LEADER_OR_FOLLOWER), now_ms)
        else:
            log.refuses_bytes = len(batch.data) - 1 if event == "shrunk" and batch.records_count > 1 else 10**9
            code = log.append(batch)
            if event == "lost":
                core.failed(batch, ConnectionFailedError("it broke"), now_ms)
            else:
                core.answered_all([batch], answer_of(code), now_ms)

    assert log.values == [value for values in runs for value in values]
    assert core.waiting_bytes == 0
    assert core.counts.records_count == len(log.values)


def test_one_batch_of_a_partition_is_on_its_way_at_a_time() -> None:
    core = core_of(batch_bytes=200)
    core.add(HERE, run_of([b"x" * 50] * 6))
    core.add(THERE, run_of([b"y"]))
    first = taken(core)

    assert [batch.partition for batch in first] == [HERE, THERE]
    assert taken(core) == []
    core.answered_all(first[:1], answer_of(), 0)
    (second,) = taken(core)
    assert (second.start, read_header(second.data).base_sequence) == (first[0].stop, first[0].stop)


def test_a_request_takes_as_many_batches_as_fit() -> None:
    core = core_of(batch_bytes=200, request_bytes=400)
    for number in range(4):
        core.add(TopicPartition("t", number), run_of([b"x" * 100]))

    assert [len(taken(core)) for _ in range(3)] == [2, 2, 0]


def test_a_broker_that_forgot_the_producer_gets_the_batch_under_the_next_epoch() -> None:
    core = core_of()
    core.add(HERE, run_of([b"1"]))
    core.answered_all(taken(core), answer_of(), 0)
    core.add(HERE, run_of([b"2", b"3"]))
    (batch,) = taken(core)
    core.answered_all([batch], answer_of(ErrorCode.UNKNOWN_PRODUCER_ID), 0)
    (again,) = taken(core)
    header = read_header(again.data)

    assert (header.producer_epoch, header.base_sequence, header.records_count) == (4, 0, 2)
    core.answered_all([again], answer_of(), 0)
    core.add(HERE, run_of([b"4"]))
    assert read_header(taken(core)[0].data).base_sequence == 2


def test_within_a_transaction_a_gap_is_an_error() -> None:
    core = core_of()
    core.transactional_id = "x"
    core.add(HERE, run_of([b"1"]))

    with pytest.raises(BrokerError, match="t-0: row 0: "):
        core.answered_all(taken(core), answer_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)


def test_a_fenced_producer_is_told_of_the_other() -> None:
    core = core_of()
    core.add(HERE, run_of([b"1"]))

    with pytest.raises(ProducerFencedError, match="Another attempt or run has taken the transaction over"):
        core.answered_all(taken(core), answer_of(ErrorCode.INVALID_PRODUCER_EPOCH), 0)


def test_a_row_that_is_too_large_alone_is_told_of() -> None:
    core = core_of()
    core.add(HERE, run_of([b"1", b"2", b"3" * 999, b"4"], first_row=100))
    log = Log()
    log.refuses_bytes = 500

    with pytest.raises(RecordTooLargeError, match="row 102 is a record"):
        write_all(core, log)
    assert log.values == [b"1", b"2"]


def test_batches_wait_longer_after_each_failure_and_not_for_ever() -> None:
    core = core_of(delivery_timeout_ms=5_000)
    core.add(HERE, run_of([b"1", b"2"]))
    pauses: list[int] = []
    told = r"2 rows from row 0 to row 1 could not be written in \d+ attempts.*no route"

    with pytest.raises(ClientTimeoutError, match=told):
        fail_for_ever(core, pauses)
    assert pauses[:5] == [100, 200, 400, 800, 1_000]


@pytest.mark.parametrize("code", sorted(LEADER_MOVED | {ErrorCode.KAFKA_STORAGE_ERROR}), ids=lambda code: code.name)
def test_a_batch_whose_partition_may_have_another_leader_asks_for_metadata_and_stays(code: ErrorCode) -> None:
    core = core_of()
    core.add(HERE, run_of([b"1"]))

    assert core.answered_all(taken(core), answer_of(code), 0), "the metadata is doubted"
    assert core.has_unfinished


def test_what_no_repetition_cures_is_raised_at_once() -> None:
    core = core_of()
    core.add(HERE, run_of([b"1"]))

    with pytest.raises(TooOldError):
        core.failed(taken(core)[0], TooOldError("no common version"), 0)


def test_an_answer_without_the_partition_is_no_answer() -> None:
    core = core_of()
    core.add(HERE, run_of([b"1"]))
    core.answered_all(taken(core), ProduceResponse(responses=[]), 0)

    assert core.next_ms() == 100


def test_without_idempotence_batches_have_no_numbers() -> None:
    core = ProduceCore(settings=WriteSettings(compression=CompressionType.LZ4, acks=1), now_ms=lambda: 5)
    core.add(HERE, run_of([b"1"]))
    header = read_header(taken(core)[0].data)

    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.max_timestamp) == (-1, -1, -1, 5)
