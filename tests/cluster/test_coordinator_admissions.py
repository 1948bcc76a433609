"""Who may write is asked of the broker that coordinates the transactional id, what gathers in one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from odradek.kernel.cluster.coordinator_admissions import PARTITIONS_MAX, ClusterTransactions
from odradek.kernel.contracts.transactions import Admission
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

from .asked_brokers import AskedBrokers, running
from .images import image

TOPIC = "__transaction_state"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Codes = Mapping[TopicPartition, ErrorCode]


class Local:
    """The coordinator of this broker, which admits everybody."""

    def __init__(self) -> None:
        self.admitted: list[str] = []

    def admit(self, admission: Admission, done: Callable[[Codes], None]) -> None:
        self.admitted.append(admission.transactional_id)
        done(dict.fromkeys(admission.partitions, ErrorCode.NONE))

    async def init_producer_id(self, request: Any, context: Any) -> Any:
        raise NotImplementedError


class Asking:
    """Broker 1 of three; what it is told stands in `told`."""

    def __init__(self, leader: int) -> None:
        self.image: MetadataImage = image({TOPIC: [leader]})
        self.local, self.brokers = Local(), AskedBrokers()
        self.told: list[Codes] = []
        self.transactions = ClusterTransactions(
            self.local,
            topic=TOPIC,
            node_id=1,
            image=lambda: self.image,
            brokers=self.brokers,
            timeout_ms=lambda: 1000,
        )

    def admit(self, name: str, *, may_add: bool = True, partitions: tuple[TopicPartition, ...] = (T0, T1)) -> None:
        self.transactions.admit(Admission(name, 7, 3, partitions, may_add), self.told.append)


def response(**codes: list[int]) -> AddPartitionsToTxnResponse:
    """Of each transactional id, the codes of partitions of `t`, from the first."""
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=name,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name="t",
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                            for index, code in enumerate(each)
                        ],
                    )
                ],
            )
            for name, each in codes.items()
        ]
    )


def test_this_broker_is_asked_by_a_plain_call() -> None:
    asking = Asking(leader=1)

    asking.admit("a")

    assert asking.local.admitted == ["a"]
    assert asking.told == [{T0: ErrorCode.NONE, T1: ErrorCode.NONE}]
    assert asking.brokers.asked == []


def test_who_has_no_coordinator_is_told_so_at_once() -> None:
    asking = Asking(leader=-1)

    asking.admit("a")

    assert asking.told == [dict.fromkeys((T0, T1), ErrorCode.COORDINATOR_NOT_AVAILABLE)]


def test_what_gathers_while_a_broker_is_asked_goes_in_one_request() -> None:
    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            asking.admit("a", may_add=False)
            first = await asking.brokers.next()
            asking.admit("b")
            asking.admit("c", partitions=(T0,))
            await first.answer(response(a=[0, ErrorCode.TRANSACTION_ABORTABLE]))
            second = await asking.brokers.next()
            await second.answer(response(b=[0, 0], c=[0]))

        assert (first.node_id, first.purpose) == (2, "transactions")
        (transaction,) = first.message.transactions
        assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("a", 7, 3)
        assert transaction.verify_only
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0, 1])]
        assert [(each.transactional_id, each.verify_only) for each in second.message.transactions] == [
            ("b", False),
            ("c", False),
        ]
        assert asking.told == [
            {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE},
            {T0: ErrorCode.NONE, T1: ErrorCode.NONE},
            {T0: ErrorCode.NONE},
        ]

    trio.run(main)


def test_a_request_asks_about_so_many_partitions_but_of_one_transaction_about_all() -> None:
    """A broker refuses a request of half a million items, and would do so again when clients have asked again."""
    counts = {"a": 2, "b": PARTITIONS_MAX - 1, "c": 1, "d": PARTITIONS_MAX + 1, "e": 1}
    asked_about: list[list[str]] = []

    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            for name, count in counts.items():
                asking.admit(name, partitions=tuple(TopicPartition("t", number) for number in range(count)))
            for _ in range(4):
                asked = await asking.brokers.next()
                names = [each.transactional_id for each in asked.message.transactions]
                asked_about.append(names)
                await asked.answer(response(**{name: [0] * counts[name] for name in names}))

        assert [len(codes) for codes in asking.told] == list(counts.values())

    trio.run(main)

    assert asked_about == [["a"], ["b", "c"], ["d"], ["e"]]


def test_a_transactional_id_stands_in_a_request_once() -> None:
    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            asking.admit("a", partitions=(T0,))
            asking.admit("a", partitions=(T1,))
            first = await asking.brokers.next()
            await first.answer(response(a=[0]))
            second = await asking.brokers.next()
            await second.answer(response(a=[0, ErrorCode.CONCURRENT_TRANSACTIONS]))

        assert [len(each.message.transactions) for each in (first, second)] == [1, 1]
        assert asking.told == [{T0: ErrorCode.NONE}, {T1: ErrorCode.CONCURRENT_TRANSACTIONS}]

    trio.run(main)


def test_what_an_answer_leaves_out_is_not_admitted() -> None:
    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            asking.admit("a")
            await (await asking.brokers.next()).answer(response(a=[0]))
            asking.admit("b")
            await (await asking.brokers.next()).answer(response(a=[0, 0]))

        assert asking.told == [
            {T0: ErrorCode.NONE, T1: ErrorCode.UNKNOWN_SERVER_ERROR},
            dict.fromkeys((T0, T1), ErrorCode.UNKNOWN_SERVER_ERROR),
        ]

    trio.run(main)


def test_a_lost_connection_and_a_refused_request_are_told_to_all() -> None:
    outcomes = {
        ErrorCode.NETWORK_EXCEPTION: ConnectionFailedError("it is gone"),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: KafkaError(ErrorCode.UNSUPPORTED_VERSION),
        ErrorCode.INVALID_TXN_STATE: AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    }

    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            for outcome in outcomes.values():
                asking.admit("a", partitions=(T0,))
                await (await asking.brokers.next()).answer(outcome)

        assert asking.told == [{T0: code} for code in outcomes]

    trio.run(main)


def test_nobody_waits_for_a_broker_that_is_fenced() -> None:
    async def main() -> None:
        asking = Asking(leader=2)
        async with running(asking.transactions.batches):
            asking.admit("a", partitions=(T0,))
            await asking.brokers.next()
            asking.transactions.batches.image_changed(image({TOPIC: [2]}, fenced=[3]))
            await wait_all_tasks_blocked()
            assert asking.told == []
            asking.image = image({TOPIC: [3]}, fenced=[2])
            asking.transactions.batches.image_changed(asking.image)
            await wait_all_tasks_blocked()
            assert asking.told == [{T0: ErrorCode.NETWORK_EXCEPTION}]
            asking.admit("a", partitions=(T0,))
            assert (await asking.brokers.next()).node_id == 3

    trio.run(main)
