"""`odradek retry` against a broker: topics of failed records, which come back by levels and end as dead letters."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio

from odradek.client import Admin, BrokerError, Consumer, NewTopic, Producer, TopicPartition
from odradek.client.admin_values import CreatedTopic
from odradek.kernel.errors import ErrorCode
from odradek.kernel.retry.headers import (
    ATTEMPT,
    DEAD,
    DLQ_DELIVERY_COUNT,
    DLQ_GROUP,
    DLQ_MESSAGE,
    DLQ_OFFSET,
    DLQ_PARTITION,
    DLQ_TOPIC,
    ORIGIN,
    REASON,
    SPARED,
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

    with socket.create_server(("127.0.0.1", 0)) as free:
        pages = f"127.0.0.1:{free.getsockname()[1]}"
    with running_broker({"odradek.http.listener": pages}) as broker:
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


def test_both_topics_take_batches_as_large_as_the_topic_does(odradek: Odradek) -> None:
    which = ("wide", "--group", "g")

    def limits() -> list[str]:
        rows = [
            odradek.ok("configs", "describe", "topic", f"wide.g.{kind}", "--json").json for kind in ("retry", "dlq")
        ]
        return [row["value"] for each in rows for row in each if row["key"] == limit]

    limit = "max.message.bytes"
    odradek.ok("topics", "create", "wide", "-p", "1", "-c", f"{limit}=3000000")
    odradek.ok("retry", "enable", *which)
    assert limits() == ["3016384"] * 2
    odradek.ok("topics", "alter", "wide.g.retry", "--set", f"{limit}=9000000")
    odradek.ok("topics", "alter", "wide", "--set", f"{limit}=4000000")
    odradek.ok("retry", "enable", *which)
    assert limits() == ["9000000", "4016384"]


@pytest.mark.parametrize(("default", "expected"), [("300000", "1064972"), ("5000000", "5000000")])
def test_both_topics_take_as_much_as_the_topic_and_no_less_than_brokers_do(
    capsys: pytest.CaptureFixture[str], default: str, expected: str
) -> None:
    with running_broker({"message.max.bytes": default}) as broker:
        odradek = Odradek(capsys, broker.bootstrap)
        odradek.ok("topics", "create", "wide", "-p", "1", "-c", "max.message.bytes=1000000")
        odradek.ok("topics", "create", "plain", "-p", "1")
        limits = []
        for topic in ("wide", "plain"):
            odradek.ok("retry", "enable", topic, "--group", "g")
            for kind in ("retry", "dlq"):
                rows = odradek.ok("configs", "describe", "topic", f"{topic}.g.{kind}", "--json").json
                limits += [row["value"] for row in rows if row["key"] == "max.message.bytes"]

        assert limits == [expected, expected, default, default]


def test_the_order_of_keys_is_asked_for_and_listed(odradek: Odradek) -> None:
    which = ("orders", "--group", "sorted")

    def listed() -> tuple[str, str]:
        (row,) = [row for row in odradek.ok("retry", "list", "--json").json if row["group"] == "sorted"]
        (line,) = [line for line in odradek.ok("retry", "list").out.splitlines() if "orders.sorted.retry" in line]
        return row["order"], line

    odradek.ok("retry", "enable", *which)
    assert listed()[0] == "none"
    odradek.ok("retry", "enable", *which, "--order", "key")
    order, line = listed()

    assert order == "key"
    assert "key" in line.split()
    odradek.ok("retry", "enable", *which, "--attempts", "2")
    assert listed()[0] == "key"


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
    assert "orders.other.dlq" not in odradek.ok("topics", "list").out


def test_what_was_made_half_is_told_and_completed(
    odradek: Odradek, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic = Admin.create_topic

    async def fail_for_retry(self: Admin, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        if topic.name.endswith(".retry") and not validate_only:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, "no room")
        return await create_topic(self, topic, validate_only=validate_only)

    with monkeypatch.context() as failing:
        failing.setattr(Admin, "create_topic", fail_for_retry)
        refused = odradek("retry", "enable", "orders", "--group", "half")
    assert refused.status == 1
    assert "orders.half.dlq was made, and stays" in refused.err
    assert "no room" in refused.err

    assert odradek.ok("retry", "enable", "orders", "--group", "half", "--json").json["created"]
    assert {"orders.half.dlq", "orders.half.retry"} <= set(odradek.ok("topics", "list").out.split())


def test_both_topics_have_the_partitions_that_the_topic_has_by_now(odradek: Odradek) -> None:
    """A partition of a retry topic without one of dead letters would have its dead letters taken by nobody."""
    odradek.ok("topics", "create", "growing", "-p", "1")
    odradek.ok("retry", "enable", "growing", "--group", "g")
    odradek.ok("topics", "alter", "growing", "--partitions", "3")
    odradek.ok("retry", "enable", "growing", "--group", "g")

    for name in ("growing.g.retry", "growing.g.dlq"):
        assert len(odradek.ok("topics", "describe", name, "--json").json[0]["partitions"]) == 3


@pytest.fixture(scope="module")
def letters(bootstrap: str) -> None:
    """Have four records of a group die, in two partitions, for two reasons."""

    async def fill() -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            await admin.create_topic(NewTopic("t", partitions_count=2))
            await admin.create_topic(NewTopic("repair"))
            await admin.create_topic(
                NewTopic("t.g.dlq", partitions_count=2, configs={"odradek.retry.dead.letters.of": "t.g.retry"})
            )
            owner = {"odradek.retry.topic": "t", "odradek.retry.group": "g"}
            await admin.create_topic(NewTopic("t.g.retry", partitions_count=2, configs=owner))
        async with (
            Producer({"bootstrap.servers": bootstrap}) as producer,
            Consumer({"bootstrap.servers": bootstrap, **ALL}) as consumer,
        ):
            for number in range(4):
                reason = b"time-out" if number % 2 else b"no such customer"
                said = [(DEAD, b"1"), (REASON, reason), ("own", b"1")]
                origin = [(ORIGIN, b"t/%d/%d" % (number % 2, number))] if number else []
                await producer.send(
                    "t.g.retry", b"v%d" % number, key=b"k", partition=number % 2, headers=[*said, *origin]
                )
            consumer.assign([TopicPartition("t.g.dlq", number) for number in range(2)])
            count = 0
            with trio.fail_after(20):
                while count < 4:
                    count += len(await consumer.poll())

    trio.run(fill)


def test_where_too_much_would_die_dead_letters_are_paused_and_go_on_by_themselves(
    odradek: Odradek, bootstrap: str
) -> None:
    """A service is down: everything fails, and nothing but the first few dies. Then it is up again."""
    retry, minimum, count = "shop.g.retry", 3, 10
    odradek.ok("topics", "create", "shop", "-p", "1")
    odradek.ok("retry", "enable", "shop", "--group", "g", "--levels", "1ms", "--attempts", "1", "--breaker", "0.5")
    window = ("odradek.retry.breaker.window.ms=3000", f"odradek.retry.breaker.minimum={minimum}")
    odradek.ok("topics", "alter", retry, "--set", window[0], "--set", window[1])
    over = [(ATTEMPT, b"1")]

    async def fail_all() -> None:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            for number in range(count):
                await producer.send(retry, b"%d" % number, headers=over)

    async def succeed() -> list[tuple[bytes | None, Headers]]:
        found: list[tuple[bytes | None, Headers]] = []
        async with Consumer({"bootstrap.servers": bootstrap, **ALL}) as consumer:
            consumer.assign([TopicPartition(retry, 0)])
            with trio.fail_after(20):
                while len(found) < count - minimum + 1:
                    found += [(record.value, dict(record.headers)) for record in await consumer.poll()]
        return found

    trio.run(fail_all)
    (row,) = [row for row in odradek.ok("retry", "list", "--json").json if row["retry"] == retry]
    assert row["spared"] == count - minimum + 1
    told = odradek("cluster", "doctor", "--pause", "0", "--json").json["findings"]
    (what,) = [each["what"] for each in told if each["finding"] == "dead-letters-paused"]
    assert what == f"too much of {retry} would be dead at once, in 1 partition: it waits and is given back"
    seen = trio.run(succeed)

    assert [value for value, _ in seen] == [b"%d" % number for number in range(minimum - 1, count)]
    assert {(headers[ATTEMPT], headers[SPARED]) for _, headers in seen} == {(b"2", b"1")}
    (row,) = [row for row in odradek.ok("retry", "list", "--json").json if row["retry"] == retry]
    assert row["spared"] == 0


def test_dead_letters_stay_where_they_are_while_their_topic_takes_none(odradek: Odradek, bootstrap: str) -> None:
    odradek.ok("topics", "create", "closed", "-p", "1")
    odradek.ok("retry", "enable", "closed", "--group", "g")
    key = "errors.deadletterqueue.group.enable"
    described = odradek.ok("configs", "describe", "topic", "closed.g.dlq", "--json").json
    assert [row["value"] for row in described if row["key"] == key] == ["true"]
    odradek.ok("topics", "alter", "closed.g.dlq", "--set", f"{key}=false")

    async def fail() -> None:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await producer.send("closed.g.retry", b"dies", headers=[(DEAD, b"1")])
            await producer.send("closed.g.retry", b"dies, too", headers=[(DEAD, b"1")])

    trio.run(fail)
    which = ("closed", "--group", "g")
    assert odradek.ok("dlq", "list", *which).out == "no dead letters\n"

    odradek.ok("retry", "enable", *which)
    taken = trio.run(read_values, bootstrap, "closed.g.dlq", 2)
    assert [value for _, value, _ in taken] == [b"dies", b"dies, too"]


def test_topics_of_failed_records_are_made_when_they_are_first_asked_for(odradek: Odradek, bootstrap: str) -> None:
    odradek.ok("topics", "create", "auto", "-p", "2", "-c", "odradek.retry.auto=true")

    async def fail() -> None:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await producer.send("auto.g.retry", b"dies", partition=1, headers=[(DEAD, b"1")])

    trio.run(fail)
    (row,) = [row for row in odradek.ok("retry", "list", "--json").json if row["topic"] == "auto"]
    assert (row["group"], row["retry"], row["dlq"]) == ("g", "auto.g.retry", "auto.g.dlq")
    taken = trio.run(read_values, bootstrap, "auto.g.dlq", 1, 2)
    assert [(partition, value) for partition, value, _ in taken] == [(1, b"dies")]


@pytest.mark.usefixtures("letters")
def test_what_an_aborted_transaction_wrote_is_neither_listed_nor_replayed(odradek: Odradek, bootstrap: str) -> None:
    async def fill() -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": "by hand"}
        async with Admin({"bootstrap.servers": bootstrap}) as admin, Producer(settings) as producer:
            await admin.create_topic(NewTopic("u"))
            await admin.create_topic(NewTopic("u.g.dlq", configs={"odradek.retry.dead.letters.of": "u.g.retry"}))
            await producer.begin_transaction()
            await producer.send("u.g.dlq", b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send("u.g.dlq", b"committed")

    trio.run(fill)
    which = ("u", "--group", "g")

    assert [row["value"] for row in odradek.ok("dlq", "list", *which, "--json").json] == ["committed"]
    assert odradek("dlq", "show", *which, "0", "0").status == 1
    assert odradek.ok("dlq", "replay", *which, "--dry-run", "--json").json["replayed"] == 1


def test_the_lag_of_a_group_on_its_retry_topic_is_told_without_what_waits(odradek: Odradek, bootstrap: str) -> None:
    odradek.ok("topics", "create", "slow", "-p", "1")
    odradek.ok("retry", "enable", "slow", "--group", "g", "--levels", "1h")

    async def fill() -> None:
        settings = {"bootstrap.servers": bootstrap}
        async with Producer(settings) as producer, Consumer({**settings, "group.id": "g"}) as consumer:
            await producer.send("slow.g.retry", b"waits")
            await producer.send("slow.g.retry", b"dies", headers=[(DEAD, b"1")])
            await consumer.commit({TopicPartition("slow.g.retry", 0): 0})

    trio.run(fill)
    (described,) = odradek.ok("groups", "describe", "g", "--json").json
    (row,) = described["partitions"]

    assert row["lag"] > 0
    assert row["visible_lag"] == 0


async def read_values(
    bootstrap: str, topic: str, count: int, partitions: int = 1
) -> list[tuple[int, bytes | None, Headers]]:
    found: list[tuple[int, bytes | None, Headers]] = []
    async with Consumer({"bootstrap.servers": bootstrap, "isolation.level": "read_committed", **ALL}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        with trio.fail_after(20):
            while len(found) < count:
                found += [(each.partition, each.value, dict(each.headers)) for each in await consumer.poll()]
        found += [(each.partition, each.value, dict(each.headers)) for each in await consumer.poll(timeout_ms=200)]
    return found


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_listed_shown_replayed_once_and_purged(odradek: Odradek, bootstrap: str) -> None:
    which = ("t", "--group", "g")
    listed = odradek.ok("dlq", "list", *which, "--json").json
    unknown = {"topic": "t", "partition": None, "offset": None, "attempts": 0, "key": "k"}
    assert listed[0] == {**unknown, "reason": "no such customer", "value": "v0"}
    assert [(row["partition"], row["offset"], row["value"]) for row in listed[1:]] == [
        (0, 2, "v2"),
        (1, 1, "v1"),
        (1, 3, "v3"),
    ]
    assert len(odradek.ok("dlq", "list", *which, "--reason", "time", "--json").json) == 2
    assert odradek.ok("dlq", "list", *which, "--until", "2000-01-01", "--json").json == []
    assert "no such customer" in odradek.ok("dlq", "list", *which).out
    shown = odradek.ok("dlq", "show", *which, "0", "1", "--json").json
    assert shown["value"] == "v0"
    assert ["own", "1"] in shown["headers"]
    assert odradek("dlq", "show", *which, "0", "0").status == 1

    assert "4 dead letters would be replayed" in odradek.ok("dlq", "replay", *which, "--dry-run").out
    assert odradek.ok("dlq", "replay", *which, "--count", "1", "--json").json["replayed"] == 1
    assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 3
    assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 0
    replayed = trio.run(read_values, bootstrap, "t", 4, 2)
    assert sorted(value or b"" for _, value, _ in replayed) == [b"v0", b"v1", b"v2", b"v3"]
    assert all(partition == 1 for partition, value, _ in replayed if value in (b"v1", b"v3"))
    assert all(headers == {"own": b"1"} for _, _, headers in replayed)

    assert odradek.ok("dlq", "replay", *which, "--to", "repair", "--reason", "time-out", "--json").json["replayed"] == 2
    assert [value for _, value, _ in trio.run(read_values, bootstrap, "repair", 2)] == [b"v1", b"v3"]

    assert odradek.ok("dlq", "purge", *which, "--before", "2000-01-01", "--json").json["purged"] == 0
    assert odradek.ok("dlq", "purge", *which, "--dry-run").out == "4 dead letters would go\n"
    assert odradek.ok("dlq", "purge", *which).out == "4 dead letters deleted\n"
    assert odradek.ok("dlq", "list", *which).out == "no dead letters\n"


def test_what_was_replayed_is_not_replayed_again_however_long_ago_that_was(capsys: pytest.CaptureFixture[str]) -> None:
    """Dead letters stay for longer than committed offsets of a group without members do."""
    which = ("orders", "--group", "billing")

    async def die(bootstrap: str, value: bytes) -> None:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await producer.send("orders.billing.dlq", value)

    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker:
        odradek = Odradek(capsys, broker.bootstrap)
        odradek.ok("topics", "create", "orders", "-p", "1")
        odradek.ok("retry", "enable", *which)
        trio.run(die, broker.bootstrap, b"first")
        assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 1
        broker.advance("8d")
        trio.run(die, broker.bootstrap, b"second")
        assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 1
        broker.advance("8d")
        assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 0


def test_a_large_dead_letter_is_replayed_as_well(odradek: Odradek, bootstrap: str) -> None:
    """It was produced by who had raised `max.request.size`, and compressed, so that the topic took it."""
    which = ("bulky", "--group", "g")
    odradek.ok("topics", "create", "bulky", "-p", "1")
    odradek.ok("retry", "enable", *which)

    async def die() -> None:
        settings = {"bootstrap.servers": bootstrap, "compression.type": "gzip", "max.request.size": 1 << 23}
        async with Producer(settings) as producer:
            await producer.send("bulky.g.dlq", bytes(2 << 20))

    trio.run(die)
    assert odradek.ok("dlq", "replay", *which, "--json").json["replayed"] == 1
    assert [len(value or b"") for _, value, _ in trio.run(read_values, bootstrap, "bulky", 1)] == [2 << 20]


def test_dead_letters_of_a_group_without_any_say_how_to_begin(odradek: Odradek) -> None:
    refused = odradek("dlq", "list", "orders", "--group", "nobody")

    assert refused.status == 1
    assert "odradek retry enable" in refused.err
