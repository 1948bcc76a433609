"""Our consumer fails records: they come back on the retry topic, counted, and end as dead letters with an origin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from odradek.client import Admin, BlockingConsumer, Consumer, NewTopic, Producer
from odradek.client.errors import ClientUsageError
from odradek.client.failed_records import failed_headers, retry_topic_of
from odradek.client.fetched_records import ConsumerRecord
from odradek.kernel.retry.headers import ATTEMPT, DEAD, DEAD_TIMESTAMP, DLQ_TOPIC, ORIGIN, REASON
from odradek.kernel.retry.names import retry_topics
from odradek.testing.running_broker import running_broker

RETRY, LETTERS = "t.g.retry", "t.g.dlq"
OWNER = {"odradek.retry.topic": "t", "odradek.retry.group": "g"}
QUICK = {"odradek.retry.levels": "20ms", "odradek.retry.attempts": "2"}


def polled(*headers: tuple[str, bytes | None], topic: str = "t") -> ConsumerRecord:
    return ConsumerRecord(topic, 3, 17, 0, b"k", b"v", headers, is_log_append_time=False, leader_epoch=0)


def test_a_record_that_fails_first_says_where_it_was_read() -> None:
    record = polled(("own", b"1"))

    assert retry_topic_of(record, "g") == RETRY
    assert failed_headers(record, "g", "why", is_dead=False) == [("own", b"1"), (ORIGIN, b"t/3/17"), (REASON, b"why")]


def test_a_record_that_came_back_goes_where_it_came_from_and_keeps_its_origin() -> None:
    record = polled((ATTEMPT, b"1"), (ORIGIN, b"t/3/2"), (REASON, b"once"), topic=RETRY)

    assert retry_topic_of(record, "g") == RETRY
    assert failed_headers(record, "g", "", is_dead=True) == [(ATTEMPT, b"1"), (ORIGIN, b"t/3/2"), (DEAD, b"1")]


def test_a_record_that_was_copied_with_its_headers_goes_to_the_retry_topic_of_where_it_is_read() -> None:
    record = polled((ATTEMPT, b"1"), (ORIGIN, b"t/3/2"), topic="copies")

    assert retry_topic_of(record, "g") == "copies.g.retry"
    assert failed_headers(record, "g", "", is_dead=False) == [(ORIGIN, b"copies/3/17")]


def test_a_dead_letter_that_was_copied_back_with_its_headers_begins_anew() -> None:
    """It has an attempt, and no origin: failed to the topic itself it would be read at once, without end."""
    letter = [(ATTEMPT, b"5"), (DLQ_TOPIC, b"t"), (DEAD_TIMESTAMP, b"1"), ("own", b"1")]
    record = polled(*letter, topic="t")

    assert retry_topic_of(record, "g") == RETRY
    assert failed_headers(record, "g", "why", is_dead=False) == [
        ("own", b"1"),
        (ORIGIN, b"t/3/17"),
        (REASON, b"why"),
    ]


@pytest.mark.parametrize("group", ["g", "a.b", "a b", "x" * 300])
def test_what_another_client_failed_without_an_origin_goes_where_it_came_back_on(group: str) -> None:
    retry = retry_topics("t.u", group).retry
    record = polled((ATTEMPT, b"1"), topic=retry)

    assert retry_topic_of(record, group) == retry
    assert failed_headers(record, group, "", is_dead=False) == [(ATTEMPT, b"1")]
    for other in ("t", "other.retry", "t.dlq", retry_topics("t", "another").retry):
        assert retry_topic_of(polled((ATTEMPT, b"1"), topic=other), group) == retry_topics(other, group).retry


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    async def make(bootstrap: str) -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            await admin.create_topic(NewTopic("t"))
            await admin.create_topic(NewTopic(LETTERS, configs={"odradek.retry.dead.letters.of": RETRY}))
            await admin.create_topic(NewTopic(RETRY, configs={**OWNER, **QUICK}))

    with running_broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        trio.run(make, broker.bootstrap)
        yield broker.bootstrap


def settings(bootstrap: str, group: str = "g") -> dict[str, object]:
    return {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}


async def read_letters(bootstrap: str, *values: bytes) -> list[ConsumerRecord]:
    """Read dead letters from the first one on until these are there, whatever others there are."""
    found: list[ConsumerRecord] = []
    async with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([(LETTERS, 0)])
        with trio.fail_after(20):
            while not {*values} <= {record.value for record in found}:
                found += await consumer.poll()
    return found


async def fail_all(bootstrap: str) -> list[tuple[bytes, str]]:
    """Fail one record until it is dead, and give another up at once; return what was seen, and where."""
    seen: list[tuple[bytes, str]] = []
    async with Producer({"bootstrap.servers": bootstrap}) as producer, Consumer(settings(bootstrap)) as consumer:
        consumer.subscribe(["t", RETRY])
        await producer.send("t", b"stubborn")
        await producer.send("t", b"hopeless")
        with trio.fail_after(20):
            while len(seen) < 4:
                for record in await consumer.poll():
                    seen.append((record.value, record.topic))
                    if record.value == b"hopeless":
                        await consumer.dead(record, reason="no such customer")
                    else:
                        await consumer.retry(record, reason="time-out")
    return seen


def test_what_a_consumer_fails_comes_back_and_is_a_dead_letter_in_the_end(bootstrap: str) -> None:
    seen = trio.run(fail_all, bootstrap)
    letters = {
        record.value: dict(record.headers) for record in trio.run(read_letters, bootstrap, b"stubborn", b"hopeless")
    }

    assert sorted(seen) == [(b"hopeless", "t"), (b"stubborn", "t"), (b"stubborn", RETRY), (b"stubborn", RETRY)]
    stubborn, hopeless = letters[b"stubborn"], letters[b"hopeless"]
    assert (stubborn[ATTEMPT], stubborn["__dlq.errors.message"], stubborn["__dlq.errors.offset"]) == (
        b"2",
        b"time-out",
        b"0",
    )
    assert (hopeless[ATTEMPT], hopeless["__dlq.errors.message"], hopeless["__dlq.errors.offset"]) == (
        b"0",
        b"no such customer",
        b"1",
    )


def test_failing_in_a_transaction_that_is_aborted_fails_nothing(bootstrap: str) -> None:
    async def fail() -> int:
        name = {"bootstrap.servers": bootstrap, "transactional.id": "failing"}
        async with Consumer(settings(bootstrap)) as consumer, Producer(name) as producer:
            record = ConsumerRecord("t", 0, 0, 0, None, b"aborted", (), is_log_append_time=False, leader_epoch=0)
            await producer.begin_transaction()
            await consumer.dead(record, producer=producer)
            await producer.abort_transaction()
            await consumer.dead(record._replace(value=b"after"))
        return len([each for each in await read_letters(bootstrap, b"after") if each.value == b"aborted"])

    assert trio.run(fail) == 0


def test_what_a_deserializer_made_needs_a_producer_that_undoes_it(bootstrap: str) -> None:
    async def fail() -> None:
        async with Consumer(settings(bootstrap)) as consumer:
            await consumer.retry(polled()._replace(value="text"))

    with pytest.raises(ClientUsageError, match="deserializer"):
        trio.run(fail)


def test_a_consumer_without_a_group_fails_nothing(bootstrap: str) -> None:
    async def fail() -> None:
        async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
            await consumer.retry(polled())

    with pytest.raises(ClientUsageError, match=r"group\.id"):
        trio.run(fail)


def test_programs_without_trio_fail_records_too(bootstrap: str) -> None:
    with BlockingConsumer(settings(bootstrap)) as consumer:
        record = ConsumerRecord("t", 0, 0, 0, None, b"blocking", (), is_log_append_time=False, leader_epoch=0)
        consumer.dead(record, reason="why")

    assert b"blocking" in {record.value for record in trio.run(read_letters, bootstrap, b"blocking")}
