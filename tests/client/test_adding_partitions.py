"""Transactions of version 1: what becomes of AddPartitionsToTxn that is late, lost or refused when the end comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import ClientTimeoutError, GroupMetadata, OffsetAndMetadata, TransactionAbortedError
from odradek.client.transactions.coordination import _worst
from odradek.client.transactions.machine import State, TransactionMachine
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition

from .scripted_brokers import ScriptedBrokers, with_brokers
from .transaction_coordinator import ADD_PARTITIONS_TO_TXN, END_TXN, Coordinator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.client import Producer

T0 = TopicPartition("t", 0)
SETTINGS: dict[str, object] = {
    "transactional_id": "biller",
    "linger_ms": 0,
    "request_timeout_ms": 2_000,
    "retry_backoff_ms": 1_000,
    "delivery_timeout_ms": 120_000,
}


def with_producer(test: Callable[[ScriptedBrokers, Coordinator, Producer], Awaitable[None]], **more: object) -> None:
    """Run a test with a producer that has committed a transaction already."""

    async def run(brokers: ScriptedBrokers) -> None:
        coordinator = Coordinator()
        brokers.answers.update(coordinator.answers)
        async with brokers.producer(**{**SETTINGS, **more}) as producer:
            await transact(producer, "first")
            await test(brokers, coordinator, producer)

    with_brokers(run)


async def transact(producer: Producer, value: str) -> None:
    async with producer.transaction():
        await producer.enqueue("t", value, partition=0)


def ends(coordinator: Coordinator) -> list[bool]:
    """Return which of the transactions since the first were committed."""
    assert all(items == {("t", 0)} for items, _ in coordinator.ended)
    assert not coordinator.open
    return [is_committed for _, is_committed in coordinator.ended][1:]


def test_what_was_added_to_a_transaction_that_has_ended_is_no_part_of_the_next() -> None:
    machine = TransactionMachine("id")
    machine.initialized(7, 0)
    machine.begin(is_v2=False)
    machine.use(T0)
    late = machine.to_add
    machine.begin_end(is_commit=False)
    machine.ended()
    machine.added(late)
    machine.begin(is_v2=False)

    assert machine.use(T0)
    assert not machine.may_send(T0)


def test_a_partition_whose_adding_was_answered_to_nobody_does_not_outlive_the_abort() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.lost = 1
        await producer.begin_transaction()
        delivery = await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(2.3)  # the answer was given up, and the pause before the next attempt has begun
        assert len(brokers.requests(ADD_PARTITIONS_TO_TXN)) == 2
        await producer.abort_transaction()
        await trio.sleep(5)
        await transact(producer, "committed")

        with pytest.raises(TransactionAbortedError):
            await delivery.wait()
        assert ends(coordinator) == [False, True]
        assert brokers.values() == [b"first", b"committed"]

    with_producer(test)


def test_an_abort_waits_for_the_answer_about_the_partitions_that_are_added() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.delay_s = 1.5
        await producer.begin_transaction()
        await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(0.5)
        await producer.abort_transaction()
        coordinator.delay_s = 0
        await transact(producer, "committed")

        assert ends(coordinator) == [False, True]
        assert brokers.values() == [b"first", b"committed"]

    with_producer(test)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
)
def test_a_transaction_that_the_coordinator_did_not_begin_is_not_ended_there(code: ErrorCode) -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.refuses = code
        await producer.begin_transaction()
        await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(3)
        before = len(brokers.requests(END_TXN))
        await producer.abort_transaction()
        assert before == len(brokers.requests(END_TXN))
        coordinator.refuses = None
        await transact(producer, "committed")

        assert ends(coordinator) == [True]
        assert brokers.values() == [b"first", b"committed"]

    with_producer(test)


@pytest.mark.parametrize("unknown", ["t", "u"])
def test_a_topic_that_the_coordinator_does_not_know_yet_costs_the_others_time_and_no_transaction(unknown: str) -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        await producer.partitions_for("u")
        coordinator.unknown_topics = {unknown}
        before = len(brokers.requests(ADD_PARTITIONS_TO_TXN))
        await producer.begin_transaction()
        producer.send_nowait("t", "here", partition=0)
        producer.send_nowait("u", "there", partition=0)
        await trio.sleep(2.5)
        assert len(brokers.requests(ADD_PARTITIONS_TO_TXN)) > before + 1
        coordinator.unknown_topics = set()
        await producer.commit_transaction()

        assert coordinator.ended[-1] == ({("t", 0), ("u", 0)}, True)
        assert brokers.values(topic="u") == [b"there"]
        assert brokers.values() == [b"first", b"here"]

    with_producer(test)


def test_what_was_not_attempted_is_told_by_the_code_of_what_it_was_not_attempted_for() -> None:
    left_out, refused, later = (
        int(code)
        for code in (
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
    )

    assert _worst([left_out, refused]) is _worst([refused, left_out]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert _worst([later, refused, left_out]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert _worst([left_out, later]) is _worst([later, 0, left_out]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _worst([left_out, 0]) is _worst([left_out]) is ErrorCode.OPERATION_NOT_ATTEMPTED  # and nobody says why
    assert _worst([0, 0]) is _worst([]) is ErrorCode.NONE


@pytest.mark.parametrize("asked_s", [0.0, 1.0])
def test_a_refusal_that_comes_when_the_transaction_is_given_up_costs_no_more_than_it(asked_s: float) -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.refuses, coordinator.delay_s = ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked_s
        await producer.begin_transaction()
        await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(0.5)
        await producer.abort_transaction()
        coordinator.refuses, coordinator.delay_s = None, 0
        await transact(producer, "committed")

        assert ends(coordinator) == [True]
        assert brokers.values() == [b"first", b"committed"]

    with_producer(test)


def test_offsets_that_the_coordinator_did_not_take_leave_nothing_to_abort() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.refuses = ErrorCode.CONCURRENT_TRANSACTIONS
        await producer.begin_transaction()
        with pytest.raises(ClientTimeoutError, match="AddOffsetsToTxn"):
            await producer.send_offsets({T0: OffsetAndMetadata(3)}, GroupMetadata("g"))
        await producer.abort_transaction()
        coordinator.refuses = None
        await transact(producer, "committed")

        assert ends(coordinator) == [True]

    with_producer(test, max_block_ms=1_000)


def test_offsets_whose_adding_was_answered_to_nobody_are_aborted() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.lost = 1
        await producer.begin_transaction()
        with pytest.raises(ClientTimeoutError, match="AddOffsetsToTxn"):
            await producer.send_offsets({T0: OffsetAndMetadata(3)}, GroupMetadata("g"))
        await producer.abort_transaction()

        assert coordinator.ended[-1] == ({"g"}, False)

    with_producer(test, max_block_ms=2_500)


def test_a_partition_that_no_record_goes_to_does_not_keep_a_commit_waiting() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        await producer.begin_transaction()
        await producer.enqueue("t", "committed", partition=0)
        await producer.flush()
        coordinator.refuses = ErrorCode.CONCURRENT_TRANSACTIONS
        assert producer._transactions is not None
        producer._transactions.use(TopicPartition("t", 1))  # as where there was no memory for its record
        await trio.sleep(0.5)
        await producer.commit_transaction()
        coordinator.refuses = None
        await transact(producer, "next")

        assert ends(coordinator) == [True, True]
        assert brokers.values() == [b"first", b"committed", b"next"]

    with_producer(test)


def test_no_partitions_are_added_for_a_producer_that_failed_for_good() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.lost = 1_000
        await producer.begin_transaction()
        await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(1)
        assert producer._machine is not None
        producer._machine.refused(ErrorCode.INVALID_TXN_STATE, "by another request")
        await trio.sleep(5)
        before = len(brokers.requests(ADD_PARTITIONS_TO_TXN))
        await trio.sleep(60)

        assert producer._machine.state is State.FATAL_ERROR
        assert before == len(brokers.requests(ADD_PARTITIONS_TO_TXN))

    with_producer(test)


def test_an_abort_that_waits_in_vain_for_the_coordinator_may_be_repeated() -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.lost = 1_000
        await producer.begin_transaction()
        await producer.enqueue("t", "aborted", partition=0)
        await trio.sleep(1)
        began_s = trio.current_time()
        with pytest.raises(ClientTimeoutError, match=r"max\.block\.ms=5000"):
            await producer.abort_transaction()
        assert began_s + 5 == pytest.approx(trio.current_time(), abs=0.1)
        coordinator.lost = 0
        await producer.abort_transaction()
        await transact(producer, "committed")

        assert ends(coordinator) == [False, True]
        assert brokers.values() == [b"first", b"committed"]

    with_producer(test, max_block_ms=5_000)


@pytest.mark.parametrize("away_s", [61, 110])
def test_records_whose_coordinator_was_away_for_longer_than_a_call_may_block_are_sent_when_it_is_back(
    away_s: float,
) -> None:
    async def test(brokers: ScriptedBrokers, coordinator: Coordinator, producer: Producer) -> None:
        coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        await producer.begin_transaction()
        delivery = await producer.enqueue("t", "late", partition=0)
        await trio.sleep(away_s)
        coordinator.refuses = None
        with trio.fail_after(2):
            await delivery.wait()
        await producer.commit_transaction()

        assert ends(coordinator) == [True]

    with_producer(test)
