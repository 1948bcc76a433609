"""Transactional batches through Produce, and the markers that end them; the coordinator is a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.contracts.transactions import Admission, TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceResponse, ProduceRequest
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from .house import House, batch, fetch_part, fetch_request, produce_parts, produce_request, values

Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]
NONE = ErrorCode.NONE


class Coordinator:
    """Answers admissions with what it is told, at once or when it is asked to."""

    def __init__(self) -> None:
        self.asked: list[Admission] = []
        self.waiting: list[tuple[Admission, Done]] = []
        self.codes: list[ErrorCode] = []

    def admit(self, admission: Admission, done: Done) -> None:
        self.asked.append(admission)
        if self.codes:
            code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
            done(dict.fromkeys(admission.partitions, code))
        else:
            self.waiting.append((admission, done))

    def answer(self, code: ErrorCode = NONE) -> None:
        admission, done = self.waiting.pop(0)
        done(dict.fromkeys(admission.partitions, code))

    def init_producer_id(self, request: object, context: object) -> Any:
        raise AssertionError("nobody asks")


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def house(tmp_path: Path, coordinator: Coordinator) -> Iterator[House]:
    house = House(tmp_path, coordinator)
    house.hosted.open("t", 3)
    yield house
    house.hosted.lifecycle.close()


def transactional(sequence: int, *contents: bytes, producer_id: int = 5, epoch: int = 0) -> bytes:
    return batch(
        *contents or (b"v",),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def request_of(*parts: tuple[int, bytes], acks: int = -1, transactional_id: str | None = "x") -> ProduceRequest:
    request = produce_request(*parts, acks=acks)
    request.transactional_id = transactional_id
    return request


def ask(house: House, request: ProduceRequest, version: int = 12) -> list[PartitionProduceResponse]:
    return produce_parts(house.client.ask(request, version))


def codes(parts: list[PartitionProduceResponse]) -> list[int]:
    return [part.error_code for part in parts]


def marker_request(*indexes: int, commit: bool = True, epoch: int = 0, **more: int) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=more.pop("producer_id", 5),
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=more.pop("coordinator_epoch", 0),
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=list(indexes))],
        **more,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def end(house: House, *indexes: int, version: int = 2, **more: Any) -> dict[int, int]:
    answer = house.client.ask(marker_request(*indexes, **more), version)
    assert isinstance(answer, WriteTxnMarkersResponse)
    (result,) = answer.markers
    return {part.partition_index: part.error_code for topic in result.topics for part in topic.partitions}


def ends(house: House) -> tuple[int, int]:
    offsets = house.hosted.replicas.get("t", 0).offsets
    return offsets.high_watermark, offsets.last_stable_offset


# ---------------------------------------------------------------------------------------------------------- admission


def test_the_first_batch_waits_for_the_coordinator_and_the_next_ones_do_not(
    house: House, coordinator: Coordinator
) -> None:
    house.client.send(request_of((0, transactional(0))), 12)
    house.client.turn()
    before = house.client.received()
    coordinator.answer()
    house.client.turn()
    (first,) = house.client.received()
    second = ask(house, request_of((0, transactional(1))))

    assert before == []
    assert codes(produce_parts(first) + second) == [NONE, NONE]
    assert [part.base_offset for part in produce_parts(first) + second] == [0, 1]
    assert coordinator.asked == [Admission("x", 5, 0, [TopicPartition("t", 0)], may_add=True)]


@pytest.mark.parametrize(
    ("codes", "is_kept"),
    [([], True), ([ErrorCode.CONCURRENT_TRANSACTIONS, NONE], True), ([NONE], False)],
    ids=["later", "after a pause", "at once"],
)
def test_the_memory_of_a_request_counts_as_lent_until_the_coordinator_answered(
    house: House, coordinator: Coordinator, codes: list[ErrorCode], is_kept: bool
) -> None:
    memory, data = house.client._memory, transactional(0)
    coordinator.codes = codes
    house.client.send(request_of((0, data)), 12)
    assert memory.kept_bytes == memory.resting_bytes == is_kept * len(data)

    house.pass_time(1)
    if not codes:
        coordinator.answer()
    assert memory.kept_bytes == memory.resting_bytes == 0


def test_the_memory_of_a_client_that_left_is_let_go_with_its_question(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS]
    house.client.send(request_of((0, transactional(0))), 12)
    house.client.leave()

    assert house.client._memory.kept_bytes == house.client._memory.resting_bytes == 0


def test_the_partitions_of_a_request_are_admitted_together(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    parts = ask(house, request_of((0, transactional(0)), (2, transactional(0)), (7, transactional(0))))

    assert codes(parts) == [NONE, NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [list(each.partitions) for each in coordinator.asked] == [[TopicPartition("t", 0), TopicPartition("t", 2)]]


def test_requests_of_the_connection_wait_behind_one_that_is_being_admitted(
    house: House, coordinator: Coordinator
) -> None:
    requests = [request_of((0, transactional(sequence))) for sequence in (0, 1)]
    frames = [encode_request(request, 12, number, "test").join() for number, request in enumerate(requests)]
    house.client.send_bytes(b"".join(frames))

    assert len(coordinator.asked) == 1
    assert not house.client.connection.wants_input


@pytest.mark.parametrize(
    ("version", "code", "expected"),
    [
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (10, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (12, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (12, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (12, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (12, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_what_the_coordinator_refuses_is_told_as_the_client_understands_it(
    house: House, coordinator: Coordinator, version: int, code: ErrorCode, expected: ErrorCode
) -> None:
    coordinator.codes = [code]
    (part,) = ask(house, request_of((0, transactional(0))), version)

    assert (part.error_code, part.base_offset, part.log_start_offset) == (expected, -1, -1)
    assert house.hosted.replicas.get("t", 0).log.log_end_offset == 0


def test_a_refusal_says_why_as_kafka_does(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_COORDINATOR, ErrorCode.PRODUCER_FENCED]
    told = [ask(house, request_of((0, transactional(0))), 11)[0].error_message for _ in range(3)]

    assert told == [
        "Partition was not added to the transaction",
        "Unable to verify the partition has been added to the transaction. Underlying error: NOT_COORDINATOR",
        None,
    ]


def test_a_transaction_that_is_being_ended_is_waited_for_a_little(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, NONE]
    house.client.send(request_of((0, transactional(0))), 12)
    for pause_ms in (1, 2):
        house.pass_time(pause_ms)
    house.client.turn()
    (answer,) = house.client.received()

    assert codes(produce_parts(answer)) == [NONE]
    assert len(coordinator.asked) == 3


def test_the_pauses_grow_to_the_configured_one(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS] * 20
    house.client.send(request_of((0, transactional(0))), 12)
    asked_at: list[int] = []
    for now_ms in range(1, 95):
        before = len(coordinator.asked)
        house.pass_time(1)
        if len(coordinator.asked) > before:
            asked_at.append(now_ms)

    assert asked_at == [1, 3, 7, 15, 31, 51, 71, 91]


def test_the_client_is_told_of_a_transaction_that_is_not_ended_for_long(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS]
    house.client.send(request_of((0, transactional(0))), 12)
    for _ in range(5):
        house.pass_time(20)
    (answer,) = house.client.received()

    assert codes(produce_parts(answer)) == [ErrorCode.CONCURRENT_TRANSACTIONS]


def test_a_client_that_leaves_ends_the_wait(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS, NONE]
    house.client.send(request_of((0, transactional(0))), 12)
    house.client.leave()
    house.pass_time(20)

    assert len(coordinator.asked) == 1


def test_old_clients_have_their_partitions_verified_only_where_that_is_asked_for(
    house: House, coordinator: Coordinator
) -> None:
    coordinator.codes = [NONE]
    house.verifies = False
    old = ask(house, request_of((0, transactional(0))), 11)
    new = ask(house, request_of((1, transactional(0))), 12)

    assert codes(old + new) == [NONE, NONE]
    assert [(each.partitions[0].partition, each.may_add) for each in coordinator.asked] == [(1, True)]


def test_an_end_between_question_and_answer_refuses_the_batch(house: House, coordinator: Coordinator) -> None:
    house.client.send(request_of((0, transactional(0))), 11)
    house.markers.write(marker_of(0), lambda _codes: None)
    coordinator.answer()
    house.client.turn()
    (answer,) = house.client.received()

    assert codes(produce_parts(answer)) == [ErrorCode.INVALID_TXN_STATE]


def marker_of(index: int) -> TransactionMarker:
    return TransactionMarker(5, 0, 0, 0, False, [TopicPartition("t", index)])


def test_batches_without_a_transactional_id_are_refused_with_everything_beside_them(house: House) -> None:
    parts = ask(house, request_of((0, batch(b"plain")), (1, transactional(0)), transactional_id=None))

    assert codes(parts) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert [part.error_message for part in parts] == [None, None]


def test_two_producers_in_one_request_are_refused(house: House) -> None:
    parts = ask(house, request_of((0, transactional(0)), (1, transactional(0, producer_id=6))))

    assert codes(parts) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_plain_batch_with_a_transactional_id_asks_nobody(house: House, coordinator: Coordinator) -> None:
    assert codes(ask(house, request_of((0, batch(b"plain"))))) == [NONE]
    assert coordinator.asked == []


def test_without_a_coordinator_nothing_transactional_is_taken(house: House) -> None:
    house.transactions = None

    assert codes(ask(house, request_of((0, transactional(0))))) == [ErrorCode.INVALID_TXN_STATE]


def test_acks_0_says_nothing_and_a_refusal_closes_the_connection(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE, ErrorCode.INVALID_TXN_STATE]
    house.client.send(request_of((0, transactional(0)), acks=0), 12)
    house.client.turn()
    was_open = house.client.connection.is_closing
    house.client.send(request_of((1, transactional(0)), acks=0), 12)
    house.client.turn()

    assert (was_open, house.client.connection.is_closing) == (False, True)
    assert house.hosted.replicas.get("t", 0).log.log_end_offset == 1


def test_the_sequences_of_a_new_producer_begin_with_0_in_transaction_version_2(
    house: House, coordinator: Coordinator
) -> None:
    coordinator.codes = [NONE]
    old = ask(house, request_of((0, transactional(7))), 11)
    new = ask(house, request_of((1, transactional(7))), 12)

    assert codes(old + new) == [NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_higher_sequence_does_not_overtake_one_that_was_refused(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [ErrorCode.NOT_COORDINATOR, NONE]
    sequences = (0, 1, 0, 1)
    answers = [ask(house, request_of((0, transactional(sequence))), 11) for sequence in sequences]

    assert [codes(answer)[0] for answer in answers] == [
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        NONE,
        NONE,
    ]


def test_an_older_epoch_is_refused_without_asking(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    ask(house, request_of((0, transactional(0, epoch=3))))
    (part,) = ask(house, request_of((0, transactional(0, epoch=2))))

    assert (part.error_code, part.log_start_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert len(coordinator.asked) == 1


# ------------------------------------------------------------------------------------------------------------ markers


def test_a_commit_shows_its_records_and_an_abort_lists_its_producer(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    ask(house, request_of((0, transactional(0, b"a"))))
    hidden = ends(house)
    first = end(house, 0)
    ask(house, request_of((0, transactional(1, b"b"))))
    second = end(house, 0, commit=False)
    part = fetch_part(house.client.ask(fetch_request(isolation_level=1), 11))

    assert hidden == (1, 0)
    assert (first, second) == ({0: NONE}, {0: NONE})
    assert ends(house) == (4, 4)
    assert part.aborted_transactions is not None
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [(5, 2)]


def test_who_repeats_a_fetch_is_told_what_was_aborted_meanwhile(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    told: list[list[tuple[int, int]]] = []
    for is_over in (False, False, False, False, True, True):
        if is_over and not told[-1]:
            ask(house, request_of((0, transactional(0, b"a"))))
            end(house, 0, commit=False)
        part = fetch_part(house.client.ask(fetch_request(isolation_level=1, max_wait_ms=0), 11))
        assert part.aborted_transactions is not None
        told.append([(each.producer_id, each.first_offset) for each in part.aborted_transactions])

    assert told == [[], [], [], [], [(5, 0)], [(5, 0)]]


def test_a_marker_wakes_a_long_poll(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    ask(house, request_of((0, transactional(0, b"a"))))
    house.client.send(fetch_request(isolation_level=1), 11)
    house.client.turn()
    before = house.client.received()
    house.markers.write(marker_of(0), lambda _codes: None)
    house.hosted.writes.write_staged()
    (answer,) = house.client.received()

    assert before == []
    assert values(fetch_part(answer))[0] == b"a"


def test_a_long_poll_counts_only_what_its_reader_may_see(house: House, coordinator: Coordinator) -> None:
    coordinator.codes = [NONE]
    house.client.send(fetch_request(isolation_level=1, max_wait_ms=500), 11)
    house.client.turn()
    house.hosted.produce("t", 0, 5, txn=True)
    house.hosted.produce("t", 0, 5, producer_id=9)
    hidden = house.client.received()
    house.pass_time(500)
    (answer,) = house.client.received()

    assert hidden == []
    assert fetch_part(answer).last_stable_offset == 0


@pytest.mark.parametrize("version", [1, 2])
def test_markers_are_answered_by_partition(house: House, coordinator: Coordinator, version: int) -> None:
    coordinator.codes = [NONE]
    ask(house, request_of((0, transactional(0, epoch=1)), (1, transactional(0, epoch=1))))
    end(house, 1, epoch=1, coordinator_epoch=4)

    assert end(house, 0, 1, 9, version=version, epoch=1, coordinator_epoch=3) == {
        0: NONE,
        1: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert end(house, 0, version=version, epoch=0) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_a_marker_of_version_2_needs_a_higher_epoch_unless_it_is_sent_again(
    house: House, coordinator: Coordinator
) -> None:
    coordinator.codes = [NONE]
    ask(house, request_of((0, transactional(0))))

    assert end(house, 0, epoch=0, transaction_version=2) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert end(house, 0, epoch=1, transaction_version=2) == {0: NONE}
    assert end(house, 0, epoch=1, transaction_version=2) == {0: NONE}  # nothing is open any more
    ask(house, request_of((0, transactional(0, epoch=1))))
    assert end(house, 0, epoch=1, transaction_version=2) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_no_markers_are_answered_with_none(house: House) -> None:
    assert house.client.ask(WriteTxnMarkersRequest(), 2) == WriteTxnMarkersResponse()


def test_a_marker_of_an_offline_partition_is_worth_another_try(house: House) -> None:
    house.hosted.replicas.get("t", 0).go_offline("the disk")

    assert end(house, 0) == {0: ErrorCode.KAFKA_STORAGE_ERROR}


def test_a_marker_that_is_not_committed_in_time_may_be_sent_again(house: House) -> None:
    house.client.send(marker_request(0), 2)
    house.pass_time(30_000)
    (answer,) = house.client.received()

    assert isinstance(answer, WriteTxnMarkersResponse)
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
