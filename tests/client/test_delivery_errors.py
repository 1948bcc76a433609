"""Errors that trying again may mend, and errors that it will not: told apart for who awaits, and for callbacks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import BrokerError, ClientError, ClientTimeoutError, ClientUsageError, RecordMetadata
from odradek.client.errors import TransactionAbortableError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnResponse

from .scripted_brokers import INIT_PRODUCER_ID, PRODUCE, ScriptedBrokers, with_brokers
from .transaction_coordinator import ADD_PARTITIONS_TO_TXN, END_TXN, Coordinator

if TYPE_CHECKING:
    from odradek.client import Producer


async def _told(producer: Producer, form: str, value: str) -> ClientError | None:
    """Send a record in one of the two forms, and return the error that it meets."""
    if form == "awaiting":
        try:
            await producer.send("t", value, partition=0)
        except ClientError as raised:
            return raised
        return None
    told: list[tuple[RecordMetadata | None, ClientError | None]] = []
    await producer.enqueue("t", value, partition=0, on_delivery=lambda *what: told.append(what))
    await producer.flush()
    ((metadata, error),) = told
    assert (metadata is None) == (error is not None)
    return error


@pytest.mark.parametrize("form", ["awaiting", "callback"])
@pytest.mark.parametrize(
    ("code", "is_retriable"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.INVALID_RECORD, False),
        (ErrorCode.RECORD_LIST_TOO_LARGE, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (ErrorCode.POLICY_VIOLATION, False),
    ],
)
def test_both_forms_tell_errors_that_may_pass_from_those_that_stay(
    form: str, code: ErrorCode, is_retriable: bool
) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.extend([code] * 4)
        async with brokers.producer(retries=3, enable_idempotence=False) as producer:
            error = await _told(producer, form, "refused")
            attempts_count = len(brokers.requests(PRODUCE))
            brokers.errors.clear()

            assert isinstance(error, BrokerError)
            assert (code, is_retriable) == (error.code, error.retriable)
            assert attempts_count == (4 if is_retriable else 1)
            assert await _told(producer, form, "taken") is None

        assert brokers.values() == [b"taken"]

    with_brokers(test)


@pytest.mark.parametrize("form", ["awaiting", "callback"])
def test_both_forms_hear_nothing_of_an_error_that_passed(form: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.errors.extend([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER])
        async with brokers.producer() as producer:
            assert await _told(producer, form, "x") is None

        assert brokers.values() == [b"x"]

    with_brokers(test)


@pytest.mark.parametrize("form", ["awaiting", "callback"])
def test_both_forms_call_a_delivery_that_took_too_long_retriable(form: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.held.add(1)
        settings = {"delivery_timeout_ms": 20_000, "request_timeout_ms": 5_000}
        async with brokers.producer(**settings) as producer:
            error = await _told(producer, form, "x")
            brokers.release()

        assert isinstance(error, ClientTimeoutError)
        assert error.retriable

    with_brokers(test)


@pytest.mark.parametrize("form", ["awaiting", "callback"])
def test_both_forms_pass_a_fatal_error_to_all_that_waits_for_a_producer_id(form: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        refusal = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        brokers.refusals[INIT_PRODUCER_ID] = deque([refusal])
        async with brokers.producer() as producer:
            error = await _told(producer, form, "x")

        assert isinstance(error, BrokerError)
        assert (error.code, error.retriable) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, False)
        assert brokers.requests(PRODUCE) == []

    with_brokers(test)


def test_a_transaction_does_not_commit_without_a_record_that_expired_on_the_wire() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.held.add(1)
        added = AddPartitionsToTxnPartitionResult(partition_index=0)
        topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[added])
        brokers.refusals[ADD_PARTITIONS_TO_TXN] = deque(
            [AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])]
        )
        brokers.refusals[END_TXN] = deque([EndTxnResponse()])
        settings = {"delivery_timeout_ms": 20_000, "request_timeout_ms": 15_000, "transactional_id": "biller"}
        async with brokers.producer(**settings) as producer:
            await producer.begin_transaction()
            await producer.enqueue("t", "x", partition=0)
            with pytest.raises(TransactionAbortableError):
                await producer.commit_transaction()
            assert brokers.requests(END_TXN) == []

            # The request may still arrive: no other epoch begins before it is known to be over.
            with trio.move_on_after(1):
                await producer.abort_transaction()
            assert brokers.requests(END_TXN) == []
            brokers.release()
            await producer.abort_transaction()

        assert [each.request.committed for each in brokers.requests(END_TXN)] == [False]

    with_brokers(test)


@pytest.mark.parametrize("goes_on", ["aborts again", "begins the next"])
def test_an_epoch_that_an_abort_could_not_get_is_asked_for_again(goes_on: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        coordinator = Coordinator()
        brokers.answers.update(coordinator.answers)
        settings = {"max_block_ms": 5_000, "request_timeout_ms": 2_000, "transactional_id": "biller", "linger_ms": 0}
        async with brokers.producer(**settings) as producer:
            await producer.begin_transaction()
            brokers.errors.append(ErrorCode.INVALID_RECORD)
            with pytest.raises(BrokerError):
                await producer.send("t", "refused", partition=0)
            coordinator.knows_ids = False
            for _ in range(2):
                with pytest.raises(ClientTimeoutError, match="InitProducerId"):
                    await producer.abort_transaction()
            if goes_on == "begins the next":
                with pytest.raises(ClientTimeoutError, match="InitProducerId"):
                    await producer.begin_transaction()
            coordinator.knows_ids = True
            if goes_on == "aborts again":
                await producer.abort_transaction()
            with trio.fail_after(3):
                async with producer.transaction():
                    await producer.send("t", "taken", partition=0)

        assert coordinator.epoch == 1
        assert [is_committed for _, is_committed in coordinator.ended] == [False, True]
        assert [each.request.committed for each in brokers.requests(END_TXN)] == [False, True]
        assert brokers.values() == [b"taken"]

    with_brokers(test)


def test_an_abort_that_is_over_is_not_repeated() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.answers.update(Coordinator().answers)
        async with brokers.producer(transactional_id="biller") as producer:
            async with producer.transaction():
                await producer.send("t", "x", partition=0)
            with pytest.raises(ClientUsageError, match="ready"):
                await producer.abort_transaction()

    with_brokers(test)
