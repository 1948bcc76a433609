"""`odradek.retry.order=key` with a real broker: order over failures, restarts, rebalances and transactions."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from odradek.client import Admin, Consumer, NewTopic, Producer
from odradek.client.errors import ClientUsageError
from odradek.client.fetched_records import ConsumerRecord
from odradek.kernel.retry.headers import read_failure
from odradek.testing.running_broker import running_broker
from tests.profiled import counting_calls

LEVELS = {"odradek.retry.levels": "30ms,80ms,50ms", "odradek.retry.attempts": "3"}
KEYS = 12
LARGE_BYTES = 2 << 20
WAIT_S = 120
"""Each failure has those behind it written again, so this takes long where coverage is measured."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap


async def make(bootstrap: str, topic: str, partitions: int, **more: str) -> str:
    """Make a topic, and those of what group `g` fails of it; return the retry topic."""
    retry, dead = f"{topic}.g.retry", f"{topic}.g.dlq"
    configs = {"odradek.retry.topic": topic, "odradek.retry.group": "g", "odradek.retry.order": "key", **LEVELS, **more}
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(NewTopic(topic, partitions))
        await admin.create_topic(NewTopic(dead, partitions, configs={"odradek.retry.dead.letters.of": retry}))
        await admin.create_topic(NewTopic(retry, partitions, configs=configs))
    return retry


async def fill(bootstrap: str, topic: str, count: int) -> None:
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(count):
            await producer.enqueue(topic, b"%d" % number, key=b"key %d" % (number % KEYS))
        await producer.flush()


def settings(bootstrap: str, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "partition.assignment.strategy": ["range"],
        "session.timeout.ms": 6_000,  # a member that crashed may not have said so
        "heartbeat.interval.ms": 300,
        **more,
    }


class Work:
    """What workers are to do, and did: records fail so often as chance says, and are done then."""

    def __init__(self, count: int, seed: int) -> None:
        chance = random.Random(seed)
        self.failures = {b"%d" % number: chance.choice([0, 0, 0, 1, 2]) for number in range(count)}
        self.failed: Counter[bytes] = Counter()
        self.done: list[tuple[bytes, bytes]] = []

    @property
    def is_over(self) -> bool:
        return {value for _, value in self.done} == set(self.failures)

    def fails(self, record: ConsumerRecord) -> bool:
        if self.failed[record.value] < self.failures[record.value]:
            self.failed[record.value] += 1
            return True
        self.done.append((record.key, record.value))
        return False

    def check(self, *, is_once: bool) -> None:
        if is_once:
            assert len(self.done) == len(self.failures)
        for key in {key for key, _ in self.done}:
            first = list(dict.fromkeys(value for each, value in self.done if each == key))
            assert first == sorted(first, key=int)


async def work_off(consumer: Consumer, work: Work, until_s: float = float("inf")) -> None:
    while not work.is_over and trio.current_time() < until_s:
        for record in await consumer.poll(timeout_ms=100):
            if work.fails(record):
                await consumer.retry(record, reason="why")


def test_records_of_a_key_are_worked_on_in_order_whatever_fails(bootstrap: str) -> None:
    work = Work(60, seed=1)

    async def run() -> None:
        retry = await make(bootstrap, "plain", 2)
        await fill(bootstrap, "plain", 60)
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.subscribe(["plain", retry])
                await work_off(consumer, work)

    trio.run(run)
    work.check(is_once=True)


def test_records_larger_than_a_topic_takes_uncompressed_are_failed_and_put_behind(bootstrap: str) -> None:
    """Who produced them compressed them, and had raised `max.request.size`; the consumer has no such key."""
    work = Work(3, seed=1)
    work.failures = {b"0": 2, b"1": 0, b"2": 0}

    async def run() -> None:
        retry = await make(bootstrap, "large", 1)
        async with Producer(
            {"bootstrap.servers": bootstrap, "compression.type": "zstd", "max.request.size": 1 << 23}
        ) as producer:
            for number in range(3):
                await producer.send("large", b"%d" % number + bytes(LARGE_BYTES), key=b"key")
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.subscribe(["large", retry])
                while not work.is_over:
                    for record in await consumer.poll(timeout_ms=100):
                        if work.fails(record._replace(value=record.value.rstrip(b"\0"))):
                            await consumer.retry(record)

    trio.run(run)
    work.check(is_once=True)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.sweep)])
def test_order_holds_while_members_come_go_and_crash(bootstrap: str, seed: int) -> None:
    work = Work(90, seed)
    topic = f"members-{seed}"
    chance = random.Random(seed)

    async def live(retry: str) -> None:
        """Be a worker for a while: end in peace, or by a cancellation in the midst of whatever it does."""
        with trio.move_on_after(chance.uniform(0.3, 1.2)):
            async with Consumer(settings(bootstrap, **{"auto.commit.interval.ms": 50})) as consumer:
                consumer.subscribe([topic, retry])
                await work_off(consumer, work, trio.current_time() + chance.uniform(0.3, 2.0))

    async def keep_alive(retry: str) -> None:
        while not work.is_over:
            await live(retry)

    async def run() -> None:
        retry = await make(bootstrap, topic, 4)
        await fill(bootstrap, topic, 90)
        with trio.move_on_after(4):
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(keep_alive, retry)
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.subscribe([topic, retry])
                await work_off(consumer, work)

    trio.run(run)
    work.check(is_once=False)


def test_in_transactions_each_is_done_once_and_in_order(bootstrap: str) -> None:
    """Every third transaction aborts, and its worker begins anew."""
    work = Work(60, seed=3)

    async def live(retry: str, transactions: int) -> None:
        async with (
            Producer({"bootstrap.servers": bootstrap, "transactional.id": "ordered"}) as producer,
            Consumer(settings(bootstrap, **{"enable.auto.commit": False})) as consumer,
        ):
            consumer.subscribe(["bank", retry])
            while transactions and not work.is_over:
                records = await consumer.poll(timeout_ms=100)
                if not records:
                    continue
                transactions -= 1
                failed = work.failed.copy()
                count = len(work.done)
                await producer.begin_transaction()
                for record in records:
                    if work.fails(record):
                        await consumer.retry(record, producer=producer)
                await producer.send_offsets(consumer.consumed(), consumer.group_metadata)
                if transactions:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
                    work.failed = failed
                    del work.done[count:]

    async def run() -> None:
        retry = await make(bootstrap, "bank", 1)
        await fill(bootstrap, "bank", 60)
        with trio.fail_after(WAIT_S):
            while not work.is_over:
                await live(retry, 5)

    trio.run(run)
    work.check(is_once=True)


def test_what_a_worker_failed_that_died_in_a_transaction_is_waited_for_quietly_and_given_when_that_is_aborted(
    bootstrap: str,
) -> None:
    async def run() -> tuple[list[bytes], int, list[bytes]]:
        retry = await make(bootstrap, "died", 1)
        origins = [[("odradek.retry.origin", b"died/0/%d" % number)] for number in range(2)]
        async with (
            Producer({"bootstrap.servers": bootstrap, "transactional.id": "died"}) as dead,
            Producer({"bootstrap.servers": bootstrap}) as producer,
            Consumer(settings(bootstrap, **{"isolation.level": "read_uncommitted"})) as consumer,
        ):
            for number in range(2):
                await producer.send("died", b"%d" % number, key=b"k")
            await dead.begin_transaction()
            await dead.enqueue(retry, b"0", key=b"k", headers=origins[0])
            await dead.flush()
            await producer.send(retry, b"1", key=b"k", headers=[*origins[1], ("odradek.retry.behind", b"0")])
            consumer.subscribe(["died", retry])
            before: list[ConsumerRecord] = []
            with trio.move_on_after(1.5):
                while True:
                    before += await consumer.poll(timeout_ms=100)
            (end_offset,) = (await consumer.end_offsets([(retry, 0)])).values()
            await dead.abort_transaction()
            after: list[ConsumerRecord] = []
            with trio.fail_after(WAIT_S):
                while len(after) < 2:
                    after += await consumer.poll(timeout_ms=100)
        return [record.value for record in before], end_offset, [record.value for record in after]

    before, end_offset, after = trio.run(run)

    assert before == []
    assert end_offset < 40  # what is behind was put there twice at most, not as often as the broker could
    assert after == [b"0", b"1"]


def test_who_goes_on_knows_from_where_on_the_retry_topic_is_to_be_read(bootstrap: str) -> None:
    async def run() -> tuple[str, str]:
        retry = await make(bootstrap, "noted", 1, **{"odradek.retry.levels": "1h"})
        await fill(bootstrap, "noted", KEYS)
        notes: list[str] = []
        for _ in range(2):
            with trio.fail_after(WAIT_S):
                async with Consumer(settings(bootstrap, **{"enable.auto.commit": False})) as consumer:
                    consumer.subscribe(["noted", retry])
                    await consumer.retry((await consumer.poll(records_max=1))[0])
                    while (retry, 0) not in consumer.consumed() or not consumer.consumed()[(retry, 0)].metadata:  # type: ignore[index]
                        await consumer.poll(timeout_ms=50, records_max=1)
                    await consumer.commit()
                    found = await consumer.committed([(retry, 0)])
                    (committed,) = found.values()
                    assert committed is not None
                    notes.append(committed.metadata)
        return notes[0], notes[1]

    first, second = trio.run(run)

    assert first == second == "odradek.retry.order=0"


def test_deserializers_are_given_what_may_be_given(bootstrap: str) -> None:
    seen: list[str] = []

    async def run() -> None:
        retry = await make(bootstrap, "texts", 1)
        await fill(bootstrap, "texts", 2 * KEYS)
        with trio.fail_after(WAIT_S):
            async with (
                Producer({"bootstrap.servers": bootstrap, "value.serializer": str.encode}) as producer,
                Consumer(settings(bootstrap, **{"value.deserializer": bytes.decode})) as consumer,
            ):
                consumer.subscribe(["texts", retry])
                while len(seen) < 2 * KEYS:
                    for record in await consumer.poll(timeout_ms=100):
                        if record.value == "0" and read_failure(record.headers).attempts == 0:
                            await consumer.retry(record, producer=producer)
                        else:
                            seen.append(record.value)

    trio.run(run)

    assert sorted(seen, key=int) == [str(number) for number in range(2 * KEYS)]
    assert seen.index("0") < seen.index(str(KEYS))


def test_a_partition_whose_retry_partition_is_read_elsewhere_is_not_read_and_that_is_told(bootstrap: str) -> None:
    async def run() -> None:
        retry = await make(bootstrap, "apart", 2)
        await fill(bootstrap, "apart", 2)
        wanted = settings(bootstrap, **{"default.api.timeout.ms": 500, "request.timeout.ms": 400})
        async with Consumer(wanted) as consumer:
            consumer.assign([("apart", 0), ("apart", 1), (retry, 1)])
            with trio.fail_after(WAIT_S):
                while True:
                    assert all(record.partition == 1 for record in await consumer.poll(timeout_ms=100))

    with pytest.raises(ClientUsageError, match=r"apart-0.*range"):
        trio.run(run)


def test_a_record_of_a_partition_that_was_taken_away_is_not_failed(bootstrap: str) -> None:
    async def run() -> None:
        retry = await make(bootstrap, "gone", 1)
        await fill(bootstrap, "gone", 1)
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.assign([("gone", 0), (retry, 0)])
                (record,) = await consumer.poll()
                consumer.assign([(retry, 0)])
                await consumer.retry(record)

    with pytest.raises(ClientUsageError, match="taken away"):
        trio.run(run)


def test_what_is_read_no_more_has_no_order_to_be_kept(bootstrap: str) -> None:
    """Else the retry topic's log would be read on by a consumer that reads nothing."""

    async def run() -> tuple[bool, bool]:
        retry = await make(bootstrap, "left", 1)
        await fill(bootstrap, "left", 1)
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.assign([("left", 0), (retry, 0)])
                await consumer.poll()
                assert consumer._order is not None
                order = consumer._order.order
                before = order.is_idle
                await consumer.unsubscribe()
                return before, order.is_idle

    assert trio.run(run) == (False, True)


@pytest.mark.parametrize("has_retry_topic", [False, True])
def test_where_no_order_is_asked_for_a_poll_asks_of_it_once_and_no_record_is_looked_at(
    bootstrap: str, has_retry_topic: bool
) -> None:
    topic, called = f"free-{has_retry_topic}", Counter[str]()

    async def run() -> tuple[bool, int]:
        retry = await make(bootstrap, topic, 1, **{"odradek.retry.order": "none"})
        await fill(bootstrap, topic, 20)
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.subscribe([topic, retry] if has_retry_topic else [topic])
                await consumer.poll(records_max=1)
                assert consumer._fetcher is not None
                with counting_calls() as calls:
                    records = [record for _ in range(10) for record in await consumer.poll(records_max=1)]
                for code, count in calls.items():
                    if "/client/ordered/" in code.co_filename:
                        called[code.co_name] += count
                return consumer._fetcher.sieve is None, len(records)

    assert trio.run(run) == (True, 10)
    assert called == {"polled": 10}


def test_while_as_many_wait_as_the_topic_allows_it_is_read_no_further_and_that_is_logged(
    bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[bytes] = []

    async def run() -> None:
        retry = await make(bootstrap, "full", 1, **{"odradek.retry.order.waiting.max": "3"})
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            for number in range(20):
                await producer.send("full", b"%d" % number, key=b"one")
        with trio.fail_after(WAIT_S):
            async with Consumer(settings(bootstrap)) as consumer:
                consumer.subscribe(["full", retry])
                while len(done) < 20:
                    for record in await consumer.poll(timeout_ms=100):
                        if read_failure(record.headers).attempts < 2 and record.value == b"0":
                            await consumer.retry(record)
                        else:
                            done.append(record.value)

    trio.run(run)

    assert done == [b"%d" % number for number in range(20)]
    assert re.search(r"full-0 is read no further while [34] records wait in full\.g\.retry-0", caplog.text)
