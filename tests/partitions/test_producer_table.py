from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.partitions.append_check import NOT_NEEDED, Verification
from odradek.kernel.partitions.producer_snapshot import decode_snapshot
from odradek.kernel.partitions.producer_state import ProducedBatch
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.transaction_index import AbortedTransaction, decode_transaction_index
from odradek.kernel.records.batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    iterate_batches,
)
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, read_control_record

DAY_MS = 86_400_000
NOW_MS = 1_795_271_500_000
MONOTONIC_MS = 5_000_000
SEQUENCE_MAX = 2**31 - 1


class Log:
    """A log that is only its producers: gives out offsets, checks before it appends."""

    def __init__(self) -> None:
        self.producers = ProducerStateTable(DAY_MS)
        self.next_offset = 0

    def produce(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        count: int = 1,
        *,
        txn: bool = False,
        at_ms: int = NOW_MS,
        verified: Verification | None = NOT_NEEDED,
    ) -> str | int:
        """Return the base offset, the name of the error, or `duplicate of OFFSET`."""
        attributes = TRANSACTIONAL_FLAG if txn else 0
        header = BatchHeader(0, 100, 0, 2, 0, attributes, count - 1, at_ms, at_ms, producer_id, epoch, sequence, count)
        try:
            original = self.producers.check(header, verified)
        except KafkaError as error:
            return error.code.name
        if original is not None:
            return f"duplicate of {original.base_offset}"
        header.base_offset = self.next_offset
        self.next_offset += count
        self.producers.append(header)
        return header.base_offset

    def end(self, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 1, version: int = 0) -> str:
        flags = TRANSACTIONAL_FLAG | CONTROL_FLAG
        try:
            self.producers.check_marker(producer_id, epoch, coordinator_epoch, version)
        except KafkaError as error:
            return error.code.name
        header = BatchHeader(self.next_offset, 78, 0, 2, 0, flags, 0, NOW_MS, NOW_MS, producer_id, epoch, -1, 1)
        self.producers.append_marker(header, is_commit=commit, coordinator_epoch=coordinator_epoch)
        self.next_offset += 1
        return "done"


@pytest.fixture
def log() -> Log:
    return Log()


OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_batches_are_judged_as_apache_kafka_judged_them(log: Log) -> None:
    """The same session was held with Apache Kafka 4.3.1, 2026-11-21, and answered like this."""
    assert log.produce(1, 0, 17, 3) == 0  # an unknown producer may begin anywhere
    assert log.produce(1, 0, 20) == 3
    assert log.produce(1, 0, 20) == "duplicate of 3"
    assert log.produce(1, 0, 25) == OUT_OF_ORDER
    assert [log.produce(1, 0, sequence) for sequence in range(21, 27)] == [4, 5, 6, 7, 8, 9]
    assert log.produce(1, 0, 20) == OUT_OF_ORDER  # a duplicate, but not of the last five
    assert log.produce(1, 0, 17, 3) == OUT_OF_ORDER
    assert log.produce(1, 0, 22) == "duplicate of 5"
    assert log.produce(1, 0, 25, 3) == OUT_OF_ORDER  # overlaps
    assert log.produce(1, 0, 5) == OUT_OF_ORDER
    assert log.produce(1, 1, 27) == OUT_OF_ORDER
    assert log.produce(1, 1, 0) == 10
    assert log.produce(1, 0, 27) == "INVALID_PRODUCER_EPOCH"
    assert log.produce(1, 0, 26) == "INVALID_PRODUCER_EPOCH"
    assert log.produce(1, 1, 1) == 11
    assert log.produce(1, 1, 0) == "duplicate of 10"


def test_sequences_wrap_around_as_apache_kafka_wraps_them(log: Log) -> None:
    assert log.produce(2, 0, SEQUENCE_MAX - 2, 2) == 0
    assert log.produce(2, 0, SEQUENCE_MAX, 3) == 2
    assert log.produce(2, 0, SEQUENCE_MAX, 3) == "duplicate of 2"
    assert log.produce(2, 0, 2) == 5
    assert log.produce(3, 0, SEQUENCE_MAX) == 6
    assert log.produce(3, 0, 0) == 7


def test_an_open_transaction_takes_transactional_batches_only(log: Log) -> None:
    assert log.produce(4, 0, 5, txn=True) == 0
    assert log.produce(4, 0, 6, txn=True) == 1
    assert log.produce(4, 0, 7) == "INVALID_TXN_STATE"
    assert log.produce(4, 0, 9) == OUT_OF_ORDER
    assert log.produce(4, 0, 6) == "duplicate of 1"
    assert log.produce(4, 1, 0, txn=True) == 2


def test_epoch_minus_one_takes_any_sequence(log: Log) -> None:
    assert log.produce(5, -1, 0) == 0
    assert log.produce(5, -1, 9) == 1
    assert log.produce(5, 0, 9) == 2


def test_markers_are_judged_as_apache_kafka_judged_them(log: Log) -> None:
    log.produce(10, 0, 0, 2, txn=True)

    assert log.end(10, 0, commit=False, coordinator_epoch=4) == "done"
    assert log.end(10, 0, commit=True, coordinator_epoch=3) == "TRANSACTION_COORDINATOR_FENCED"
    log.produce(12, 3, 100, 2)
    assert log.end(12, 2, commit=True) == "INVALID_PRODUCER_EPOCH"
    assert log.end(13, 5, commit=False) == "done"  # of a producer that is not known
    assert log.produce(13, 5, 4) == OUT_OF_ORDER  # it is known now, by its marker
    assert log.produce(13, 5, 0) == 6
    assert log.end(10, 1, commit=False, coordinator_epoch=4) == "done"
    assert log.produce(10, 1, 2) == OUT_OF_ORDER
    assert log.produce(10, 1, 0, txn=True) == 8
    assert log.end(10, 1, commit=True, coordinator_epoch=4, version=2) == "INVALID_PRODUCER_EPOCH"
    assert log.end(10, 2, commit=True, coordinator_epoch=4, version=2) == "done"


def test_a_transaction_is_unstable_until_its_marker_is_below_the_high_watermark(log: Log) -> None:
    log.produce(1, 0, 0, 10)
    log.produce(2, 0, 0, txn=True)
    log.produce(3, 0, 0, txn=True)
    log.produce(2, 0, 1, txn=True)
    log.end(2, 0, commit=False)
    producers = log.producers

    assert producers.transactions.last_stable_offset(5) == 5
    assert producers.transactions.last_stable_offset(13) == 10
    assert producers.transactions.last_stable_offset(14) == 11
    log.end(3, 0, commit=True)
    assert producers.transactions.last_stable_offset(14) == 11
    assert producers.transactions.last_stable_offset(15) == 15
    assert producers.transactions.aborted_between(0, 100) == [AbortedTransaction(2, 10, 13, 11)]


def test_deleted_records_of_an_open_transaction_do_not_hold_the_stable_offset_below_the_log_start(log: Log) -> None:
    log.produce(2, 0, 0, 10, txn=True)
    log.producers.transactions.advance_log_start(7)

    assert log.producers.transactions.last_stable_offset(10) == 7


def test_aborted_transactions_are_found_by_range_and_forgotten_below_the_log_start(log: Log) -> None:
    expected = []
    for number in range(5):
        log.produce(number, 0, 0, 3, txn=True)
        log.end(number, 0, commit=False)
        expected.append(AbortedTransaction(number, 4 * number, 4 * number + 3, 4 * number + 4))
    producers = log.producers

    assert list(producers.transactions.aborted()) == expected
    assert producers.transactions.aborted_between(0, 1) == expected[:1]
    assert producers.transactions.aborted_between(3, 9) == expected[:3]
    assert producers.transactions.aborted_between(4, 8) == expected[1:2]
    assert producers.transactions.aborted_between(19, 100) == expected[4:]
    assert producers.transactions.aborted_between(20, 100) == []
    producers.transactions.advance_log_start(8)
    assert list(producers.transactions.aborted()) == expected[2:]


def test_a_silent_producer_expires_unless_its_transaction_is_open(log: Log) -> None:
    log.produce(1, 0, 0)
    log.produce(2, 0, 0, txn=True)
    log.produce(3, 0, 0, at_ms=NOW_MS + 1)
    before = sum(log.producers.remove_expired_in_steps(NOW_MS + DAY_MS - 1))
    after = sum(log.producers.remove_expired_in_steps(NOW_MS + DAY_MS))

    assert (before, after) == (0, 1)
    assert [state.producer_id for state in log.producers.states()] == [2, 3]
    assert log.produce(1, 0, 77) == 3


def test_a_table_says_what_it_holds_and_forgets_it_when_cleared(log: Log) -> None:
    log.produce(1, 0, 0, txn=True)
    told = repr(log.producers)
    log.producers.clear()

    assert told == "<ProducerStateTable: 1 producers, 1 unstable transactions>"
    assert len(log.producers) == 0
    assert log.producers.transactions.last_stable_offset(9) == 9


def test_a_transaction_is_late_when_its_coordinator_could_not_have_left_it_open(log: Log) -> None:
    late_ms = NOW_MS + 900_000 + 300_000 + 1
    log.produce(1, 0, 0, txn=True)
    log.produce(2, 0, 0, txn=True, at_ms=NOW_MS + 5)
    producers = log.producers
    told = [producers.has_late_transaction(now_ms, 900_000) for now_ms in (late_ms - 1, late_ms)]
    log.end(1, 0, commit=False)
    then = [producers.has_late_transaction(now_ms, 900_000) for now_ms in (late_ms + 4, late_ms + 5)]
    log.end(2, 0, commit=False)

    assert (told, then) == ([False, True], [False, True])
    assert not producers.has_late_transaction(late_ms * 2, 900_000)


# ----------------------------------------------------------------------------------------------- verified transactions


def verification(log: Log, epoch: int, sequence: int, *, bump: bool = False, producer_id: int = 1) -> Verification:
    found = log.producers.begin_verification(
        producer_id, epoch, sequence, supports_epoch_bump=bump, now_ms=MONOTONIC_MS
    )
    assert found is not None
    return found


def test_a_transaction_begins_with_a_verified_batch(log: Log) -> None:
    assert log.produce(1, 0, 0, txn=True, verified=None) == "INVALID_TXN_STATE"
    verified = verification(log, 0, 0)
    assert log.produce(1, 0, 0, txn=True, verified=verified) == 0
    assert log.produce(1, 0, 1, txn=True, verified=None) == 1  # it is open now
    assert log.producers.begin_verification(1, 0, 2, supports_epoch_bump=False, now_ms=MONOTONIC_MS) is None


def test_an_end_forgets_what_was_verified(log: Log) -> None:
    stale = verification(log, 0, 0)
    log.end(1, 0, commit=False)
    fresh = verification(log, 0, 0)

    assert log.produce(1, 0, 0, txn=True, verified=stale) == "INVALID_TXN_STATE"
    assert log.produce(1, 0, 0, txn=True, verified=fresh) == 1


def test_the_marker_that_opens_the_next_epoch_leaves_what_that_epoch_verified(log: Log) -> None:
    log.produce(1, 0, 0, txn=True)
    early = verification(log, 1, 0, bump=True)
    log.end(1, 1, commit=True, version=2)

    assert log.produce(1, 1, 0, txn=True, verified=early) == 2


def test_an_older_epoch_is_not_verified(log: Log) -> None:
    log.produce(1, 3, 0)

    with pytest.raises(KafkaError) as caught:
        verification(log, 2, 0)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_no_sequence_overtakes_a_lower_one_that_asked_before(log: Log) -> None:
    log.produce(1, 0, 0, 5)
    verified, *_ = [verification(log, 0, sequence) for sequence in (7, 5, 6)]

    assert log.produce(1, 0, 6, txn=True, verified=verified) == OUT_OF_ORDER
    assert log.produce(1, 0, 5, txn=True, verified=verified) == 5
    again = verification(log, 1, 0)
    assert again is not verified


def test_of_a_producer_that_nobody_knows_the_lowest_sequence_that_asked_is_taken_first(log: Log) -> None:
    """Any sequence would do for the first: only who asked meanwhile tells that a lower one is under way."""
    verified, _ = [verification(log, 0, sequence) for sequence in (7, 5)]

    assert log.produce(1, 0, 7, txn=True, verified=verified) == OUT_OF_ORDER
    assert log.produce(1, 0, 5, 2, txn=True, verified=verified) == 0
    assert log.produce(1, 0, 7, txn=True, verified=None) == 2


def test_a_new_epoch_begins_its_sequences_anew(log: Log) -> None:
    verification(log, 0, 3)
    verified = verification(log, 1, 0)

    assert log.produce(1, 1, 0, txn=True, verified=verified) == 0


@pytest.mark.parametrize(("bump", "expected"), [(False, 0), (True, OUT_OF_ORDER)])
def test_an_unknown_producer_begins_with_0_where_epochs_are_raised(log: Log, bump: bool, expected: int | str) -> None:
    verified = verification(log, 0, 4, bump=bump)

    assert log.produce(1, 0, 4, txn=True, verified=verified) == expected


def test_verifications_that_nobody_used_are_forgotten_in_time(log: Log) -> None:
    verified = verification(log, 0, 0)
    log.producers.give_up_verifications(MONOTONIC_MS + DAY_MS - 1)
    assert log.producers.begin_verification(1, 0, 0, supports_epoch_bump=False, now_ms=0) is verified
    log.producers.give_up_verifications(MONOTONIC_MS + DAY_MS)

    assert log.produce(1, 0, 0, txn=True, verified=verified) == "INVALID_TXN_STATE"


def test_a_coordinators_batches_have_no_sequence_and_leave_none(log: Log) -> None:
    header = BatchHeader(0, 100, 0, 2, 0, TRANSACTIONAL_FLAG, 2, NOW_MS, NOW_MS, 7, 1, -1, 3)
    log.producers.append(header)
    (state,) = log.producers.states()
    (entry,) = log.producers.snapshot()
    log.producers.check_coordinators(header, None)

    assert (state.last_sequence, state.next_sequence, entry.last_sequence) == (-1, 0, -1)
    with pytest.raises(KafkaError):
        log.producers.check_coordinators(attrs.evolve(header, producer_epoch=0), None)


# ---------------------------------------------------------------------------------------------------- what Kafka wrote


def replayed(data: bytes, table: ProducerStateTable, from_offset: int = 0) -> ProducerStateTable:
    for position, header in iterate_batches(data):
        if header.base_offset < from_offset:
            continue
        if not header.is_control:
            table.append(header)
            continue
        marker = read_control_record(data, header, position)
        assert isinstance(marker, EndTransactionMarker)
        is_commit = marker.type is ControlRecordType.COMMIT
        table.append_marker(header, is_commit=is_commit, coordinator_epoch=marker.coordinator_epoch)
    return table


def test_replaying_kafkas_log_gives_kafkas_snapshot_and_transaction_index(golden_bytes: Callable[[str], bytes]) -> None:
    table = replayed(golden_bytes("transactions.log"), ProducerStateTable(DAY_MS))

    assert table.snapshot() == decode_snapshot(golden_bytes("transactions.snapshot"))
    assert list(table.transactions.aborted()) == decode_transaction_index(golden_bytes("transactions.txnindex"))
    assert table.transactions.last_stable_offset(18) == 13


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, [(10, 0), (11, 11), (14, 16)]), (5, [(10, 0), (11, 11), (14, 16)]), (6, [(11, 11), (14, 16)])],
)
def test_a_fetch_of_kafkas_log_gets_the_aborted_transactions_that_kafka_gave(
    golden_bytes: Callable[[str], bytes], offset: int, expected: list[tuple[int, int]]
) -> None:
    table = replayed(golden_bytes("transactions.log"), ProducerStateTable(DAY_MS))

    assert [found[:2] for found in table.transactions.aborted_between(offset, 18)] == expected


def test_a_snapshot_and_the_rest_of_the_log_give_the_whole_table(golden_bytes: Callable[[str], bytes]) -> None:
    data = golden_bytes("transactions.log")
    whole = replayed(data, ProducerStateTable(DAY_MS))
    positions = [(position, header.base_offset) for position, header in iterate_batches(data)]
    for position, offset in positions:
        part = replayed(data[:position], ProducerStateTable(DAY_MS))
        table = ProducerStateTable(DAY_MS)
        table.load(part.snapshot(), part.transactions.aborted(), NOW_MS)
        replayed(data, table, offset)

        assert table.snapshot() == whole.snapshot()
        assert table.transactions.aborted() == whole.transactions.aborted()
        assert table.transactions.last_stable_offset(18) == 13


def test_only_the_last_batch_survives_a_snapshot(log: Log) -> None:
    log.produce(1, 0, 0, 2)
    log.produce(1, 0, 2, 3)
    log.producers.load(log.producers.snapshot(), (), NOW_MS)
    (state,) = log.producers.states()

    assert state.batches == [ProducedBatch(2, 4, 2, 4, NOW_MS)]
    assert state.last_sequence == 4
    assert log.produce(1, 0, 2, 3) == "duplicate of 2"
    assert log.produce(1, 0, 0, 2) == OUT_OF_ORDER
    assert log.produce(1, 0, 5) == 5


def test_a_resend_of_sequence_0_is_known_after_a_snapshot_was_loaded(log: Log) -> None:
    """A batch of one record, a producer's first: what it would have had without a sequence is just one less."""
    log.produce(1, 0, 0)
    log.producers.load(log.producers.snapshot(), (), NOW_MS)

    assert log.produce(1, 0, 0) == "duplicate of 0"
    assert log.produce(1, 0, 1) == 1


def test_an_expired_producer_is_not_loaded(log: Log) -> None:
    log.produce(1, 0, 0)
    log.producers.load(log.producers.snapshot(), (), NOW_MS + DAY_MS)

    assert len(log.producers) == 0


# ------------------------------------------------------------------------------------------------------------- property


@given(st.data())
def test_a_client_that_resends_what_it_has_in_flight_never_doubles_or_loses_a_record(data: st.DataObject) -> None:
    """Up to five batches are in flight; answers get lost; the client sends again in order, as KIP-98 has it."""
    log = Log()
    sequence = data.draw(st.sampled_from([0, SEQUENCE_MAX - 7, SEQUENCE_MAX]))
    offsets: dict[int, int] = {}
    in_flight: list[tuple[int, int, int]] = []
    for number in range(data.draw(st.integers(1, 12))):
        count = data.draw(st.integers(1, 4))
        in_flight = [*in_flight, (number, sequence, count)][-5:]
        sequence = (sequence + count) & SEQUENCE_MAX
        for sent_number, sent_sequence, sent_count in in_flight[data.draw(st.integers(0, len(in_flight) - 1)) :]:
            answer = log.produce(1, 0, sent_sequence, sent_count)
            if sent_number in offsets:
                assert answer == f"duplicate of {offsets[sent_number]}"
            else:
                assert isinstance(answer, int)
                offsets[sent_number] = answer

    assert sorted(offsets.values()) == list(offsets.values())


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_refused_batch_leaves_the_table_as_it_was(log: Log, code: ErrorCode) -> None:
    log.produce(1, 4, 0)
    before = log.producers.snapshot()
    answer = log.produce(1, 4, 7) if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER else log.produce(1, 3, 1)

    assert answer == code.name
    assert log.producers.snapshot() == before
