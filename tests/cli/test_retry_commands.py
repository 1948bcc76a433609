"""`odradek retry` against a broker: topics of failed records, which come back by levels and end as dead letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from odradek.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from odradek.kernel.retry.headers import (
    ATTEMPT,
    DLQ_DELIVERY_COUNT,
    DLQ_GROUP,
    DLQ_MESSAGE,
    DLQ_OFFSET,
    DLQ_PARTITION,
    DLQ_TOPIC,
    ORIGIN,
    REASON,
)
from odradek.testing.running_broker import running_broker

from .conftest import Odradek

LEVEL_MS = 50
ALL = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    async def fill(bootstrap: str) -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            await admin.create_topic(NewTopic("orders", partitions_count=2))

    with running_broker({}) as broker:
        trio.run(fill, broker.bootstrap)
        yield broker.bootstrap


@pytest.fixture
def odradek(capsys: pytest.CaptureFixture[str], bootstrap: str) -> Odradek:
    return Odradek(capsys, bootstrap)


Headers = dict[str, bytes | None]


async def fail_until_dead(bootstrap: str, retry: str, dead: str) -> tuple[list[Headers], Headers]:
    """Fail one record whenever it comes back; return the headers that it came with, and those it was dead with."""
    seen: list[Headers] = []
    asked = [(REASON, b"no such customer"), (ORIGIN, b"orders/1/7"), ("own", b"1")]
    async with (
        Producer({"bootstrap.servers": bootstrap}) as producer,
        Consumer({"bootstrap.servers": bootstrap, **ALL}) as consumer,
    ):
        consumer.assign([TopicPartition(retry, 1), TopicPartition(dead, 1)])
        await producer.send(retry, b"order 7", key=b"k", partition=1, headers=asked)
        with trio.fail_after(20):
            async for record in consumer:
                headers = dict(record.headers)
                if record.topic == dead:
                    assert (record.key, record.value) == (b"k", b"order 7")
                    return seen, headers
                seen.append(headers)
                await producer.send(retry, record.value, key=record.key, partition=1, headers=record.headers)
    raise AssertionError("the consumer ended")


def test_what_a_group_fails_comes_back_by_levels_and_is_dead_in_the_end(odradek: Odradek, bootstrap: str) -> None:
    odradek.ok("retry", "enable", "orders", "--group", "billing", "--levels", f"{LEVEL_MS}ms", "--attempts", "2")
    seen, dead = trio.run(fail_until_dead, bootstrap, "orders.billing.retry", "orders.billing.dlq")

    assert [headers[ATTEMPT] for headers in seen] == [b"1", b"2"]
    assert [headers["own"] for headers in seen] == [b"1", b"1"]
    assert {name: dead[name] for name in dead if name.startswith("__dlq")} == {
        DLQ_TOPIC: b"orders",
        DLQ_PARTITION: b"1",
        DLQ_OFFSET: b"7",
        DLQ_GROUP: b"billing",
        DLQ_DELIVERY_COUNT: b"3",
        DLQ_MESSAGE: b"no such customer",
    }
    assert (dead["own"], dead[ATTEMPT]) == (b"1", b"2")


def test_topics_of_failed_records_are_listed_and_set_anew(odradek: Odradek) -> None:
    odradek.ok("retry", "enable", "orders", "--group", "a b", "--attempts", "2")
    changes = ("--attempts", "3", "--levels", "1s,1m")
    made = odradek.ok("retry", "enable", "orders", "--group", "a b", *changes, "--json").json

    assert made["retry"].startswith("orders.a-b-")
    assert not made["created"]
    (row,) = [row for row in odradek.ok("retry", "list", "--json").json if row["group"] == "a b"]
    assert (row["topic"], row["retry"], row["dlq"]) == ("orders", made["retry"], made["dlq"])
    assert (row["levels"], row["attempts"]) == ("1s,1m", 3)
    assert made["dlq"] in odradek.ok("retry", "list").out


def test_two_groups_whose_topics_would_have_one_name_are_told_apart(odradek: Odradek) -> None:
    odradek.ok("topics", "create", "orders.eu")
    odradek.ok("retry", "enable", "orders.eu", "--group", "billing")
    refused = odradek("retry", "enable", "orders", "--group", "eu.billing")

    assert refused.status == 1
    assert "another's" in refused.err


def test_a_level_that_is_none_is_refused(odradek: Odradek) -> None:
    refused = odradek("retry", "enable", "orders", "--group", "other", "--levels", "5 minutes")

    assert refused.status == 1
    assert "no duration" in refused.err
