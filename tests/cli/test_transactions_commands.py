"""`odradek transactions` against a broker: what is open, what hangs, and how it is ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from odradek.cli.hanging import OpenTransaction, hanging, open_transactions
from odradek.client import Admin, NewTopic, TopicPartition
from odradek.client.admin_calls import check_item
from odradek.client.admin_transactions import TransactionDescription
from odradek.client.admin_values import ActiveProducer
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.testing.running_broker import running_broker

from .conftest import Odradek

ORDERS = [TopicPartition("orders", number) for number in range(3)]
T0 = 1_700_000_000_000


async def write(admin: Admin, partition: TopicPartition, producer_id: int, transactional_id: str) -> None:
    """Write a batch of a transaction as clients before KIP-890 do."""
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(None, b"value", timestamp=T0)
    data = PartitionProduceData(index=partition.partition, records=builder.build())
    topic = TopicProduceData(name=partition.topic, partition_data=[data])
    await admin.know((partition,))

    def check(answer: Any) -> None:
        check_item(answer.responses[0].partition_responses[0].error_code, str(partition))

    await admin.call(
        ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=5_000, topic_data=[topic]),
        check,
        node_of=admin.leader(partition),
        version_max=11,
    )


async def begin(admin: Admin, transactional_id: str, *partitions: TopicPartition) -> int:
    """Begin a transaction, and return its producer id."""
    coordinator = admin._coordinator_of(transactional_id)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    answer = await admin.call(request, lambda found: check_item(found.error_code, ""), coordinator=coordinator)
    for partition in partitions:
        adding = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=answer.producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])],
        )
        await admin.call(adding, lambda _: None, coordinator=coordinator, version_max=3)
        await write(admin, partition, answer.producer_id, transactional_id)
    producer_id: int = answer.producer_id
    return producer_id


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """Give each test a broker of its own: what one begins or leaves hanging is no other's to find."""

    async def fill(address: str) -> None:
        async with Admin({"bootstrap.servers": address}) as admin:
            await admin.create_topic(NewTopic("orders", 3))
            await begin(admin, "idle")

    # Without verification a client may write what no coordinator knows of: so transactions hang.
    with running_broker({"transaction.partition.verification.enable": False}) as broker:
        trio.run(fill, broker.bootstrap)
        yield broker.bootstrap


@pytest.fixture
def transactions(capsys: pytest.CaptureFixture[str], bootstrap: str) -> Odradek:
    return Odradek(capsys, bootstrap)


def run(bootstrap: str, work: Any, *arguments: Any) -> Any:
    async def main() -> Any:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            return await work(admin, *arguments)

    return trio.run(main)


def test_transactions_are_listed_described_and_terminated(transactions: Odradek, bootstrap: str) -> None:
    producer_id = run(bootstrap, begin, "open", ORDERS[0], ORDERS[1])
    listed = transactions.ok("transactions", "list", "--json").json

    assert [(row["transactional_id"], row["state"]) for row in listed] == [("idle", "Empty"), ("open", "Ongoing")]
    table = transactions.ok("transactions", "list", "--state", "Ongoing", "--pattern", "o.*", "--longer-than", "0s")

    assert [line.split()[:2] for line in table.out.splitlines()] == [["transactional", "id"], ["open", "Ongoing"]]
    assert transactions.ok("transactions", "list", "--producer-id", "77", "--json").json == []
    (described,) = transactions.ok("transactions", "describe", "open", "--json").json

    assert described["partitions"] == [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]
    assert ("Ongoing", producer_id, 0, 60_000) == (
        described["state"],
        described["producer_id"],
        described["producer_epoch"],
        described["timeout_ms"],
    )
    assert 0 <= described["duration_ms"] < 60_000
    told = transactions.ok("transactions", "describe", "open", "idle").out

    assert f"open  Ongoing  producer {producer_id}, epoch 0, coordinator " in told
    assert "aborted after 60 s\n\ntopic   partition\norders          0\norders          1\n" in told
    assert "no transaction is open; one is aborted after 60 s" in told
    ended = transactions.ok("transactions", "terminate", "open").out

    assert ended == "took over open: its open transaction is aborted, its producer is fenced\n"
    assert transactions.ok("transactions", "terminate", "open", "--json").json == {
        "transactional_id": "open",
        "state": "Empty",
    }
    (described,) = transactions.ok("transactions", "describe", "open", "--json").json

    assert (described["partitions"], described["start_timestamp"], described["duration_ms"]) == ([], None, None)


def test_a_transaction_that_hangs_is_found_and_aborted(transactions: Odradek, bootstrap: str) -> None:
    run(bootstrap, begin, "known", ORDERS[1])
    run(bootstrap, write, ORDERS[2], 5_000, "nobody")
    (found,) = transactions.ok("transactions", "find-hanging", "--json").json

    assert {name: found[name] for name in ("topic", "partition", "producer_id", "transactional_id")} == {
        "topic": "orders",
        "partition": 2,
        "producer_id": 5_000,
        "transactional_id": None,
    }
    assert found["transaction_start_offset"] == 0
    assert "5000" in transactions.ok("transactions", "find-hanging", "-t", "orders:2", "--max-timeout", "1m").out
    producers = transactions.ok("transactions", "producers", "orders:2", "--json").json

    assert [(row["producer_id"], row["transaction_start_offset"], row["last_timestamp"]) for row in producers] == [
        (5_000, 0, T0)
    ]
    wrong = transactions("transactions", "abort", "orders:2", "--start-offset", "9")

    assert (wrong.status, wrong.err.strip()[-18:]) == (1, "begins at offset 9")
    aborted = transactions.ok("transactions", "abort", "orders:2", "--start-offset", "0").out

    assert aborted == "aborted the transaction of producer 5000 in orders-2\n"
    assert transactions.ok("transactions", "find-hanging", "--json").json == []
    assert transactions.ok("transactions", "find-hanging", "-t", "orders").out == (
        "no transaction hangs in 3 partitions\n"
    )
    (after,) = transactions.ok("transactions", "producers", "orders:2", "--json").json

    assert after["transaction_start_offset"] is None


def test_a_transaction_is_aborted_by_its_producer_too(transactions: Odradek, bootstrap: str) -> None:
    run(bootstrap, write, ORDERS[0], 6_000, "nobody")
    named = ("--producer-id", "6000", "--producer-epoch", "0", "--coordinator-epoch", "0")
    done = transactions.ok("transactions", "abort", "orders:0", *named, "--json").json

    assert done == {"topic": "orders", "partition": 0, "producer_id": 6_000}
    assert transactions.ok("transactions", "find-hanging", "--json").json == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("abort", "orders", "--start-offset", "1"),
        ("abort", "orders:0"),
        ("abort", "orders:0", "--producer-id", "1"),
        ("abort", "orders:0", "--start-offset", "1", "--producer-id", "1"),
        ("list", "--longer-than", "soon"),
        ("find-hanging", "--max-timeout", "soon"),
    ],
)
def test_what_makes_no_sense_is_told_as_wrong_usage(transactions: Odradek, arguments: tuple[str, ...]) -> None:
    assert transactions("transactions", *arguments).status == 2


@pytest.mark.parametrize(
    "arguments", [("describe", "nobody"), ("terminate", "nobody"), ("producers", "nothing"), ("list", "--pattern", "(")]
)
def test_what_is_not_there_is_told(transactions: Odradek, arguments: tuple[str, ...]) -> None:
    done = transactions("transactions", *arguments)

    assert (done.status, done.out) == (1, "")
    assert done.err


# ----------------------------------------------------------------------------------------------------------- what hangs

PRODUCER = ActiveProducer(5, 0, 3, T0, 1, 42)
KNOWN = TransactionDescription("a", 5, 0, "Ongoing", 60_000, T0, (ORDERS[0],), 1)


def test_only_old_and_open_transactions_may_hang() -> None:
    ended = ActiveProducer(6, 0, 3, T0, 1, -1)
    young = ActiveProducer(7, 0, 3, T0 + 1, 1, 42)
    found = open_transactions({ORDERS[1]: [PRODUCER, ended, young], ORDERS[0]: [PRODUCER]}, T0 + 101, 100)

    assert [OpenTransaction(ORDERS[0], PRODUCER), OpenTransaction(ORDERS[1], PRODUCER)] == found
    assert found[0].duration_ms(T0 + 101) == 101


def test_what_a_coordinator_will_end_does_not_hang() -> None:
    candidates = [OpenTransaction(partition, PRODUCER) for partition in ORDERS[:2]]

    assert hanging(candidates, {}, {}) == candidates
    assert hanging(candidates, {5: "a"}, {"a": KNOWN}) == [OpenTransaction(ORDERS[1], PRODUCER, "a")]
