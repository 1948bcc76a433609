"""The facade without trio: what a signal interrupts, as Ctrl-C does, goes on no longer, and nothing is lost by it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import trio
import trio.testing

from odradek.client import (
    BlockingAdmin,
    BlockingConsumer,
    BlockingProducer,
    ClientClosedError,
    ClientError,
    ClientUsageError,
    ConsumerRecord,
    RebalanceListener,
    TopicPartition,
)
from odradek.client.blocking import Blocking, _Call

from .group_cluster import FAST, cluster, fill, make_topic, name


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


@contextmanager
def interrupted(after_s: float = 0) -> Iterator[None]:
    """Have a signal come while something is done, which it has to end; without a time what is done sends it."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def consumer_of(bootstrap: str, group: str) -> BlockingConsumer:
    return BlockingConsumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST, "enable.auto.commit": False})


def poll(consumer: BlockingConsumer) -> list[ConsumerRecord]:
    return consumer.poll(timeout_ms=30_000)


def iterate(consumer: BlockingConsumer) -> list[ConsumerRecord]:
    return [next(consumer)]


@pytest.mark.parametrize("read", [poll, iterate])
def test_what_comes_after_an_interrupted_read_is_neither_taken_nor_committed(
    bootstrap: str, read: Callable[[BlockingConsumer], list[ConsumerRecord]]
) -> None:
    topic, group = trio.run(make_topic, bootstrap, 1), name("g")
    where = TopicPartition(topic, 0)
    values: list[int] = []
    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer, consumer_of(bootstrap, group) as consumer:
        consumer.assign([where])
        assert consumer.position(where) == 0
        with interrupted(0.3):
            read(consumer)
        for number in range(3):
            producer.send(topic, str(number))
        time.sleep(0.3)  # a read that went on would have them by now
        assert consumer.position(where) == 0
        consumer.commit()
        committed = consumer.committed([where])[where]
        assert committed is None or committed.offset == 0
        while len(values) < 3:
            values += [int(record.value) for record in read(consumer)]

    assert values == [0, 1, 2]


def test_an_iteration_that_is_interrupted_again_and_again_leaves_out_no_record(bootstrap: str) -> None:
    async def make() -> str:
        topic = await make_topic(bootstrap, 1)
        await fill(bootstrap, topic, 20_000, 1)
        return topic

    topic = trio.run(make)
    offsets: list[int] = []
    interruptions = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with consumer_of(bootstrap, name("g")) as consumer:
            consumer.assign([(topic, 0)])
            while len(offsets) < 20_000:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0005)
                    for record in consumer:
                        offsets.append(record.offset)
                        if len(offsets) == 20_000:
                            break
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interruptions += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert offsets == list(range(20_000))
    assert interruptions > 3


def test_a_producer_that_was_interrupted_as_it_told_of_a_record_goes_on(bootstrap: str) -> None:
    topic = trio.run(make_topic, bootstrap, 1)

    class Interrupted:
        """A token by which nothing is told: the signal comes first."""

        def run_sync_soon(self, *_: object) -> None:
            raise KeyboardInterrupt

    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:
        token = producer._token
        producer._token = cast("trio.lowlevel.TrioToken", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            producer.enqueue(topic, "0")
        producer._token = token
        producer.flush()
        producer.enqueue(topic, "1")
    with consumer_of(bootstrap, name("g")) as consumer:
        consumer.assign([(topic, 0)])
        assert [next(consumer).value for _ in range(2)] == [b"0", b"1"]


def test_a_consumer_that_is_interrupted_while_it_leaves_has_left(bootstrap: str) -> None:
    group = name("g")

    class Slow(RebalanceListener):
        def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
            time.sleep(1)

    async def make() -> str:
        topic = await make_topic(bootstrap, 1)
        await fill(bootstrap, topic, 1, 1)
        return topic

    topic = trio.run(make)
    with interrupted(0.3), BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with consumer_of(bootstrap, group) as consumer:
            consumer.subscribe([topic], listener=Slow())
            assert poll(consumer)
            assert len(admin.describe_group(group).members) == 1
            signal.setitimer(signal.ITIMER_REAL, 0.3)
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        assert not admin.describe_group(group).members
    assert not [each.name for each in threading.enumerate() if each.name == "odradek consumer"]
    with pytest.raises(ClientClosedError):
        consumer.poll(timeout_ms=0)


def test_what_was_given_back_is_polled_next_but_nothing_of_paused_partitions(bootstrap: str) -> None:
    async def make() -> str:
        topic = await make_topic(bootstrap, 2)
        await fill(bootstrap, topic, 8, 2)
        return topic

    topic = trio.run(make)
    with consumer_of(bootstrap, name("g")) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        first = next(consumer)
        other = TopicPartition(topic, 1 - first.partition)
        consumer.pause(other)
        polled = [record for _ in range(3) for record in consumer.poll(timeout_ms=10_000, records_max=1)]
        consumer.resume(other)
        while len(polled) < 7:
            polled += poll(consumer)

    expected = [(part, offset) for part in (first.partition, other.partition) for offset in range(4)]
    assert [(record.partition, record.offset) for record in [first, *polled]] == expected


class Idle:
    """A client that does nothing."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...


def test_a_plain_function_is_not_waited_for_when_interrupted_and_runs_before_the_next() -> None:
    client: Blocking[Any] = Blocking(cast("Any", Idle()))
    caller, goes_on = threading.get_ident(), threading.Event()
    said: list[str] = []

    def slow() -> None:
        signal.pthread_kill(caller, signal.SIGALRM)
        goes_on.wait()
        said.append("slow")
        raise ClientUsageError("heard by nobody")

    with client:
        with interrupted():
            client._call_sync(slow)
        before = [*said]
        goes_on.set()
        client._call_sync(said.append, "next")

    assert (before, said) == ([], ["slow", "next"])


def test_a_call_that_returned_in_the_moment_of_its_interruption_is_undone_and_one_that_did_not_is_cancelled() -> None:
    undone: list[str] = []
    refused: list[Exception] = []

    async def quick() -> str:
        await trio.lowlevel.checkpoint()
        return "quick"

    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "stubborn"

    async def endless() -> str:
        await trio.sleep(float("inf"))
        return "endless"

    async def failing() -> str:
        await trio.lowlevel.checkpoint()
        raise ClientUsageError("wrong")

    async def run(call: _Call[str]) -> None:
        try:
            await call.run()
        except ClientError as error:
            refused.append(error)

    async def test() -> None:
        for function in (quick, stubborn, endless, failing):
            call = _Call(function, undone.append)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, call)
                await trio.testing.wait_all_tasks_blocked(0.1)
                await call.end()
            assert call.has_failed == (function is failing)
        await _Call(quick, undone.append).end()  # of one that never began

    trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0.5))

    assert undone == ["quick", "stubborn"]
    assert [type(error) for error in refused] == [ClientClosedError, ClientUsageError]
