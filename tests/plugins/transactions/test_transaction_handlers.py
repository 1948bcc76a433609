"""Requests about transactions: what is refused at the door, codes as each version knows them, markers on their way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from odradek.kernel.api import AS_TASK, Admission, CoordinatorResult, ErrorCode, KafkaError, TopicPartition
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest
from odradek.kernel.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
from odradek.kernel.wire.messages.api_66_list_transactions import ListTransactionsRequest
from odradek.plugins.transactions.metadata import TransactionMetadata, TransactionRecord
from odradek.plugins.transactions.producer_ids import RESERVE_SIZE, ProducerIdReserve
from odradek.plugins.transactions.states import TransactionState

from .handled import Context, HandledTransactions

if TYPE_CHECKING:
    from odradek.kernel.api import AsyncApiHandler, RequestContext

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
WAITING = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
INIT = InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000)


def begun() -> HandledTransactions:
    """Return a coordinator with one producer: id `a`, producer 0, epoch 0."""
    handled = HandledTransactions()
    trio.run(handled.init, INIT)
    return handled


def adding(*partitions: int, topic: str = "t", epoch: int = 0, name: str = "a") -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=0,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )


def by_broker(*asked: tuple[str, bool, list[int]]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=0,
                producer_epoch=0,
                verify_only=verify_only,
                topics=[AddPartitionsToTxnTopic(name="t", partitions=partitions)],
            )
            for name, verify_only, partitions in asked
        ]
    )


def codes_of(topics: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, result.partition_index): result.partition_error_code
        for topic in topics
        for result in topic.results_by_partition
    }


def ending(*, committed: bool = True, epoch: int = 0, name: str = "a") -> EndTxnRequest:
    return EndTxnRequest(transactional_id=name, producer_id=0, producer_epoch=epoch, committed=committed)


def admitted(handled: HandledTransactions, *, may_add: bool, name: str = "a", epoch: int = 0) -> Mapping[Any, Any]:
    told: list[Mapping[Any, Any]] = []
    handled.face.admit(Admission(name, 0, epoch, [T0, T1], may_add), told.append)
    (only,) = told
    return only


# ------------------------------------------------------------------------------------------------------- InitProducerId


def test_a_producer_gets_an_id_and_the_next_one_its_epoch() -> None:
    handled = HandledTransactions()
    answers = [trio.run(handled.init, INIT) for _ in range(2)]

    assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [
        (0, 0, 0),
        (0, 0, 1),
    ]


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
def test_a_fenced_producer_is_told_so_in_a_code_that_it_knows(version: int, code: ErrorCode) -> None:
    handled = begun()
    resuming = InitProducerIdRequest(
        transactional_id="a", transaction_timeout_ms=60_000, producer_id=0, producer_epoch=9
    )
    answer = trio.run(handled.init, resuming, version)

    assert (code, -1, -1) == (answer.error_code, answer.producer_id, answer.producer_epoch)


def test_a_producer_waits_while_the_transaction_before_is_aborted() -> None:
    handled = begun()
    handled.ask(adding(0), 3)

    assert trio.run(handled.init, INIT).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    marker = handled.broker.marker_writer.answer()
    assert (
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_version,
        marker.is_commit,
    ) == (0, 1, 7, 2, False)

    assert trio.run(handled.init, INIT).producer_epoch == 2


def test_without_a_controller_only_those_who_need_an_id_are_refused() -> None:
    handled = begun()
    handled.broker.id_error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    async def take_all() -> list[int]:
        codes = []
        for name in "bcdef":
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1)
            codes.append((await handled.init(request)).error_code)
        codes.append((await handled.init(INIT)).error_code)
        return codes

    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    assert [0, 0, 0, loading, loading, 0] == trio.run(take_all)


def test_a_failure_of_the_controller_is_not_hidden() -> None:
    handled = HandledTransactions()
    handled.broker.id_error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    with pytest.raises(KafkaError):
        trio.run(handled.init, INIT)


def test_errors_of_the_runtime_reach_a_producer() -> None:
    handled = HandledTransactions()
    handled.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)

    assert trio.run(handled.init, INIT).error_code == ErrorCode.NOT_COORDINATOR
    assert handled.ask(ending(), 5).error_code == ErrorCode.NOT_COORDINATOR
    assert codes_of(handled.ask(adding(0), 3).results_by_topic_v3_and_below) == {T0: ErrorCode.NOT_COORDINATOR}


# --------------------------------------------------------------------------------------------------- AddPartitionsToTxn


def test_partitions_are_added_all_or_none() -> None:
    handled = begun()

    assert codes_of(handled.ask(adding(0, 1), 3).results_by_topic_v3_and_below) == {T0: 0, T1: 0}
    refused = codes_of(handled.ask(adding(0, 7, -1), 3).results_by_topic_v3_and_below)
    unknown, untouched = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED

    assert {T0: untouched, T0._replace(partition=7): unknown, T0._replace(partition=-1): unknown} == refused
    assert {TopicPartition("u", 0): unknown} == codes_of(
        handled.ask(adding(0, topic="u"), 3).results_by_topic_v3_and_below
    )


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_versions_have_their_own_words_for_fenced(version: int, code: ErrorCode) -> None:
    handled = begun()
    offsets = AddOffsetsToTxnRequest(transactional_id="a", producer_id=0, producer_epoch=9, group_id="g")

    assert {T0: code} == codes_of(handled.ask(adding(0, epoch=9), version).results_by_topic_v3_and_below)
    assert handled.ask(offsets, version).error_code == code
    assert handled.ask(ending(epoch=9), version).error_code == code


def test_a_broker_asks_for_several_transactions_at_once() -> None:
    handled = begun()
    answer = handled.ask(by_broker(("a", False, [0]), ("b", False, [0]), ("", True, [1])), 5)
    found = {each.transactional_id: codes_of(each.topic_results) for each in answer.results_by_transaction}

    assert found == {
        "a": {T0: ErrorCode.NONE},
        "b": {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING},
        "": {T1: ErrorCode.INVALID_REQUEST},
    }
    verified = handled.ask(by_broker(("a", True, [0, 1])), 4).results_by_transaction[0]

    assert codes_of(verified.topic_results) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert handled.ask(AddPartitionsToTxnRequest(), 5).results_by_transaction == []


# ----------------------------------------------------------------------------------------- AddOffsetsToTxn and EndTxn


def test_the_offsets_of_a_group_become_part_of_a_transaction() -> None:
    handled = begun()
    offsets = AddOffsetsToTxnRequest(transactional_id="a", producer_id=0, producer_epoch=0, group_id="g")

    assert handled.ask(offsets, 4).error_code == ErrorCode.NONE
    handled.broker.topics["__consumer_offsets"] = 2
    offsets.group_id = "h"
    handled.ask(offsets, 4)
    described = handled.ask(DescribeTransactionsRequest(transactional_ids=["a"]), 0).transaction_states[0]

    # 103 mod 50 partitions that the topic would have, 104 mod 2 that it has.
    assert [(each.topic, each.partitions) for each in described.topics] == [("__consumer_offsets", [0, 3])]


def test_an_end_tells_the_raised_epoch_from_version_5_on() -> None:
    handled = begun()
    handled.ask(adding(0), 3)
    answer = handled.ask(ending(), 5)

    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 1)
    assert handled.metric("odradek_transaction_markers_missing") == {(): 1}
    handled.broker.marker_writer.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert handled.metric(
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
    ) == {(): 1}
    handled.harness.advance(50)
    handled.broker.marker_writer.answer()

    assert handled.harness.shard.ids["a"].state is TransactionState.COMPLETE_COMMIT
    assert handled.metric("odradek_transaction_ends_total")[("commit",)] == 1
    assert handled.metric("odradek_transaction_marker_resends_total") == {(): 1}
    assert handled.metric("odradek_transactional_ids")[("CompleteCommit",)] == 1
    assert handled.metric("odradek_transactional_ids_expired_total") == {(): 0}


def test_every_way_in_which_a_transaction_ends_is_counted_and_every_metric_documented() -> None:
    handled = begun()
    writer = handled.broker.marker_writer
    handled.ask(adding(0), 3)
    handled.ask(ending(committed=False), 4)
    writer.answer()
    handled.ask(adding(0), 3)
    trio.run(handled.init, INIT)
    writer.answer()
    producer = trio.run(handled.init, INIT)
    handled.ask(adding(0, epoch=producer.producer_epoch), 3)
    handled.harness.advance(80_000)
    writer.answer()

    assert handled.metric("odradek_transaction_ends_total") == {
        ("commit",): 0,
        ("abort",): 1,
        ("timeout",): 1,
        ("fenced",): 1,
    }
    assert handled.metric("odradek_transactional_ids")[("CompleteAbort",)] == 1

    handled.harness.advance(604_800_000 + 3_600_000)

    assert handled.metric("odradek_transactional_ids_expired_total") == {(): 1}
    assert sum(handled.metric("odradek_transactional_ids").values()) == 0
    page = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text()
    assert [name for name in handled.metrics if f"`{name}`" not in page] == []


def test_no_marker_leaves_when_the_end_was_refused_and_the_end_can_be_asked_again() -> None:
    handled = begun()
    handled.ask(adding(0), 3)
    handled.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert handled.ask(ending(), 5).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    handled.harness.refusal = None
    handled.harness.advance(60_000 - 1)

    assert handled.broker.marker_writer.markers == []
    assert handled.ask(ending(), 5).error_code == ErrorCode.NONE
    handled.broker.marker_writer.answer()

    assert handled.harness.shard.ids["a"].state is TransactionState.COMPLETE_COMMIT


def test_a_coordinator_that_lost_its_partition_writes_no_marker() -> None:
    handled = begun()
    handled.ask(adding(0), 3)
    handled.runtime.epoch = -1
    handled.ask(ending(), 5)

    assert handled.broker.marker_writer.markers == []


def test_answers_to_markers_of_a_shard_that_is_gone_are_dropped() -> None:
    handled = begun()
    handled.ask(adding(0), 3)
    handled.ask(ending(), 5)
    handled.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)
    handled.broker.marker_writer.answer()
    handled.runtime.error = None
    handled.harness.reload()
    handled.harness.advance(0)
    handled.broker.marker_writer.answer()

    assert handled.harness.shard.ids["a"].state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("name", ["AddOffsetsToTxn", "EndTxn"])
def test_an_empty_transactional_id_is_refused(name: str) -> None:
    request = {"AddOffsetsToTxn": AddOffsetsToTxnRequest(), "EndTxn": EndTxnRequest()}[name]

    assert HandledTransactions().ask(request, 3).error_code == ErrorCode.INVALID_REQUEST


# ------------------------------------------------------------------------------------------------------ asked by people


def test_transactions_are_listed_and_described() -> None:
    handled = begun()
    trio.run(handled.init, InitProducerIdRequest(transactional_id="b", transaction_timeout_ms=1_000))
    handled.ask(adding(1, 0), 3)

    def names(**filters: Any) -> list[str]:
        answer = handled.ask(ListTransactionsRequest(**filters), 2)
        assert not answer.error_code
        return [each.transactional_id for each in answer.transaction_states]

    assert names() == ["a", "b"]
    assert names(state_filters=["Ongoing", "nonsense"]) == ["a"]
    assert names(state_filters=["nonsense"]) == []
    assert names(producer_id_filters=[1, 9]) == ["b"]
    assert names(transactional_id_pattern="[^a]") == ["b"]
    assert names(duration_filter=0) == ["b"]
    handled.harness.advance(5)

    assert names(duration_filter=4) == ["a", "b"]
    unknown = handled.ask(ListTransactionsRequest(state_filters=["Ongoing", "x"]), 0)

    assert unknown.unknown_state_filters == ["x"]
    asked = ["a", "nobody", "", "a"]
    described = handled.ask(DescribeTransactionsRequest(transactional_ids=asked), 0).transaction_states

    assert [each.error_code for each in described] == [
        0,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
        0,
    ]
    assert asked == [each.transactional_id for each in described]
    assert (
        described[0].transaction_state,
        described[0].transaction_timeout_ms,
        [(each.topic, each.partitions) for each in described[0].topics],
    ) == ("Ongoing", 60_000, [("t", [0, 1])])
    assert handled.ask(DescribeTransactionsRequest(), 0).transaction_states == []


def test_a_list_is_refused_for_a_wrong_pattern_and_while_a_shard_loads() -> None:
    handled = begun()
    wrong = handled.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)

    assert wrong.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    handled.runtime.error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert handled.ask(ListTransactionsRequest(), 2).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    handled.runtime.loading = True

    assert handled.ask(ListTransactionsRequest(), 2).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_many_transactions_are_listed_by_a_task() -> None:
    handled = begun()
    names = [f"n{number}" for number in range(600)]
    made = [TransactionMetadata(name, number, 0, timeout_ms=1) for number, name in enumerate(names, start=100)]
    handled.harness.run(
        lambda _, now_ms: CoordinatorResult([TransactionRecord(each.transactional_id, each) for each in made], None)
    )
    handled.ask(adding(1, 0), 3)

    def listed(**filters: Any) -> list[str]:
        answer = handled.ask(ListTransactionsRequest(**filters), 2)
        assert not answer.error_code
        return [each.transactional_id for each in answer.transaction_states]

    assert handled.handlers[66].handle(ListTransactionsRequest(), cast("RequestContext", None)) is AS_TASK
    assert listed() == ["a", *names]
    assert listed(state_filters=["Ongoing"]) == ["a"]
    assert listed(producer_id_filters=[100, 0], transactional_id_pattern="n.*") == ["n0"]


def test_no_pattern_holds_the_broker_up() -> None:
    handled = HandledTransactions()
    names = ["a" * 5_000, "a" * 5_000 + "b", "aa\u00e9b", "a\nb", "aab"]
    for name in names:
        trio.run(handled.init, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000))

    def listed(pattern: str) -> set[str]:
        answer = handled.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        return {each.transactional_id for each in answer.transaction_states}

    assert listed("(a+)+b") == {names[1], "aab"}
    assert listed(r"(?s)a+[^a]b|a\x0ab") == {"aa\u00e9b", "a\nb"}
    assert listed(r"\p{L}+") == set(names) - {"a\nb"}


def test_others_are_served_while_a_costly_pattern_is_matched() -> None:
    handled = HandledTransactions()
    for number in range(40):
        name = f"{number:08b}".replace("0", "b").replace("1", "a") * 50
        trio.run(handled.init, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000))
    request = ListTransactionsRequest(transactional_id_pattern="(.|.)*a(.|.){300}")
    listing = cast("AsyncApiHandler", handled.handlers[66])
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await listing.handle_async(request, cast("RequestContext", Context(2))))

    async def serve_meanwhile() -> int:
        turns_count = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            while len(answers) < 2:
                await trio.lowlevel.checkpoint()
                turns_count += 1
        return turns_count

    assert trio.run(serve_meanwhile) > 20
    assert answers[0] == answers[1]
    assert answers[0].transaction_states


def test_every_handler_can_refuse() -> None:
    handled, code = HandledTransactions(), ErrorCode.UNKNOWN_SERVER_ERROR
    many = handled.refused(by_broker(("a", False, [0])), 5, code)

    assert (code, {T0: code}) == (many.error_code, codes_of(many.results_by_transaction[0].topic_results))
    assert {T0: code} == codes_of(handled.refused(adding(0), 3, code).results_by_topic_v3_and_below)
    assert handled.refused(AddOffsetsToTxnRequest(), 4, code).error_code == code
    assert handled.refused(ending(), 5, code).error_code == code
    assert handled.refused(ListTransactionsRequest(), 2, code).error_code == code
    described = handled.refused(DescribeTransactionsRequest(transactional_ids=["a"]), 0, code)

    assert [("a", code)] == [(each.transactional_id, each.error_code) for each in described.transaction_states]


# ------------------------------------------------------------------------------------------------------------ admission


def test_a_producer_of_version_2_is_admitted_by_being_added() -> None:
    handled = begun()

    assert admitted(handled, may_add=True) == {T0: 0, T1: 0}
    assert handled.harness.shard.ids["a"].partitions == {T0, T1}
    assert handled.harness.shard.ids["a"].client_version == 2


def test_a_producer_of_version_1_is_admitted_where_it_was_added() -> None:
    handled = begun()
    handled.ask(adding(0), 3)

    assert admitted(handled, may_add=False) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


@pytest.mark.parametrize("may_add", [True, False])
def test_who_is_not_admitted_is_told_why_for_every_partition(may_add: bool) -> None:
    handled = begun()

    assert set(admitted(handled, may_add=may_add, epoch=3).values()) == {ErrorCode.PRODUCER_FENCED}
    assert set(admitted(handled, may_add=may_add, name="b").values()) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert set(admitted(handled, may_add=may_add, name="").values()) == {ErrorCode.INVALID_REQUEST}
    handled.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)

    assert set(admitted(handled, may_add=may_add).values()) == {ErrorCode.NOT_COORDINATOR}
    del handled.broker.topics["__transaction_state"]

    assert set(admitted(handled, may_add=may_add).values()) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


# --------------------------------------------------------------------------------------------------------- producer ids


def test_the_reserve_is_filled_again_when_an_id_is_taken(autojump_clock: trio.testing.MockClock) -> None:
    fetched: list[int] = []
    failing = [KafkaError(ErrorCode.REQUEST_TIMED_OUT)]

    async def new_producer_id() -> int:
        await trio.lowlevel.checkpoint()
        if failing:
            raise failing.pop()
        fetched.append(len(fetched))
        return fetched[-1]

    async def main() -> None:
        reserve = ProducerIdReserve(new_producer_id)
        async with trio.open_nursery() as nursery:
            await nursery.start(reserve.run)
            await trio.sleep(1)
            assert fetched == [], "nobody has needed one yet"
            with pytest.raises(KafkaError) as caught:
                reserve.take()
            assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await trio.sleep(1)
            assert len(fetched) == RESERVE_SIZE
            assert [reserve.take(), reserve.take()] == [0, 1]
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=autojump_clock)

    assert len(fetched) == RESERVE_SIZE + 2


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)
