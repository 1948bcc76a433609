"""The facade without trio: groups, listeners on threads, transactions, iteration."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from odradek.client import (
    BlockingConsumer,
    BlockingProducer,
    ClientClosedError,
    OffsetAndMetadata,
    ProducerRecord,
    RebalanceListener,
    RecordTooLargeError,
    TopicPartition,
    TransactionAbortableError,
)

from .group_cluster import FAST, cluster, fill, make_topic, name


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


def topic_of(bootstrap: str, count: int, partitions_count: int = 1) -> str:
    async def make() -> str:
        topic = await make_topic(bootstrap, partitions_count)
        await fill(bootstrap, topic, count, partitions_count)
        return topic

    return trio.run(make)


def consumer_of(bootstrap: str, group: str, **more: object) -> BlockingConsumer:
    named = {key.replace("_", "."): value for key, value in more.items()}
    return BlockingConsumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST, **named})


def test_a_blocking_member_reads_commits_and_its_listener_may_use_it(bootstrap: str) -> None:
    topic, group = topic_of(bootstrap, 6), name("g")
    where = TopicPartition(topic, 0)
    heard: list[str] = []
    told: list[object] = []

    class Seeker(RebalanceListener):
        def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
            assert threading.current_thread() is not threading.main_thread()
            heard.append("assigned")
            consumer.seek(where, 2)

        def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
            heard.append("revoked")

    with consumer_of(bootstrap, group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Seeker())
        values = [int(next(consumer).value) for _ in range(2)]
        assert consumer.consumed()[where].offset == 4
        assert consumer.group_metadata.generation_id >= 1
        consumer.commit()
        consumer.commit_nowait({where: 5}, on_commit=lambda offsets, error: told.append(error))
    with consumer_of(bootstrap, group) as consumer:
        committed = consumer.committed([where])
        consumer.subscribe(pattern=topic)
        consumer.unsubscribe()

    assert values == [2, 3]
    assert committed[where].offset == 5  # type: ignore[union-attr]
    assert (heard, told) == (["assigned", "revoked"], [None])


def test_blocking_transactions_are_whole_or_not_at_all(bootstrap: str) -> None:
    topic, group = topic_of(bootstrap, 0), name("g")
    settings = {"bootstrap.servers": bootstrap, "transactional.id": name("id")}

    def fail() -> None:
        with producer.transaction():
            producer.enqueue(topic, "never")
            raise ZeroDivisionError

    with BlockingProducer(settings) as producer, consumer_of(bootstrap, group) as consumer:
        producer.init_transactions()
        with producer.transaction():
            for number in range(5):
                producer.enqueue(topic, str(number))
        with pytest.raises(ZeroDivisionError):
            fail()
        producer.begin_transaction()
        producer.enqueue(topic, "never")
        producer.abort_transaction()
        producer.begin_transaction()
        consumer.assign([(topic, 0)])
        producer.send_offsets(consumer.consumed(), consumer.group_metadata)
        producer.send(topic, "last")
        producer.commit_transaction()
    with consumer_of(bootstrap, group, isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        values = [next(consumer).value for _ in range(6)]

    assert values == [b"0", b"1", b"2", b"3", b"4", b"last"]


def test_more_records_than_may_wait_are_all_sent_and_a_closed_producer_takes_none(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 0)
    told: list[object] = []
    with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(25_000):
            producer.enqueue(topic, str(number), on_delivery=lambda _, error: told.append(error))

    assert told == [None] * 25_000
    with pytest.raises(ClientClosedError):
        producer.enqueue(topic, "late")


def test_seeking_one_partition_leaves_what_an_iteration_holds_back_of_others(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 6, 2)
    with consumer_of(bootstrap, name("g")) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        first = next(consumer)
        other = TopicPartition(topic, 1 - first.partition)
        consumer.seek(first.topic_partition, 2)
        consumed = consumer.consumed()
        assert (consumed[first.topic_partition].offset, consumed.get(other, OffsetAndMetadata(0)).offset) == (2, 0)
        values = [int(next(consumer).value) for _ in range(4)]

    assert sorted(values) == sorted([other.partition, other.partition + 2, other.partition + 4, first.partition + 4])


def test_unsubscribing_commits_what_was_handed_out_and_not_what_an_iteration_holds_back(bootstrap: str) -> None:
    topic, group = topic_of(bootstrap, 6), name("g")
    where = TopicPartition(topic, 0)
    with consumer_of(bootstrap, group) as consumer:
        consumer.subscribe([topic])
        for _ in consumer:
            break
        consumer.unsubscribe()
        committed = consumer.committed([where])[where]
        assert committed is not None
        assert committed.offset == 1
        consumer.assign([where])
        assert int(next(consumer).value) == 1


def test_what_an_iteration_holds_back_of_partitions_that_are_given_up_is_forgotten(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 12, 2)
    with consumer_of(bootstrap, name("g"), enable_auto_commit=False) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        first = next(consumer)
        other = TopicPartition(topic, 1 - first.partition)
        consumer.assign([other])
        assert first.topic_partition not in consumer.consumed()
        values = [int(next(consumer).value) for _ in range(6)]

    assert values == list(range(other.partition, 12, 2))


@pytest.mark.parametrize("hears", [False, True])
def test_a_transaction_that_lacks_a_record_is_not_committed(bootstrap: str, hears: bool) -> None:
    topic = topic_of(bootstrap, 0)
    told: list[object] = []
    on_delivery = (lambda _, error: told.append(error)) if hears else None

    def lose_one() -> None:
        with producer.transaction():
            producer.enqueue(topic, "small", partition=0)
            producer.enqueue(topic, bytes(2_000_000), partition=0, on_delivery=on_delivery)

    with BlockingProducer({"bootstrap.servers": bootstrap, "transactional.id": name("id")}) as producer:
        with pytest.raises(TransactionAbortableError, match="not taken: a record of 2000"):
            lose_one()
        with producer.transaction():
            producer.enqueue(topic, "whole", partition=0)
    with consumer_of(bootstrap, name("g"), isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        assert next(consumer).value == b"whole"

    assert [type(error) for error in told] == [RecordTooLargeError] * hears


def test_who_leaves_by_an_exception_hears_of_all_that_was_handed_over(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 0)
    told: list[object] = []

    def fail() -> None:
        with BlockingProducer({"bootstrap.servers": bootstrap, "buffer.memory": 100_000}) as producer:
            for _ in range(2_000):
                producer.enqueue(topic, bytes(10_000), on_delivery=lambda _, error: told.append(error))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert len(told) == 2_000
    assert isinstance(told[-1], ClientClosedError)


def test_interceptors_see_a_record_once_though_it_has_to_wait_for_memory(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 0)
    seen: list[str] = []

    class Watch:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            seen.append("sent")
            return record

        def on_acknowledgement(self, metadata: object, error: object) -> None:
            seen.append("acknowledged" if error is None else "failed")

    settings = {"bootstrap.servers": bootstrap, "buffer.memory": 20_000, "interceptor.classes": [Watch()]}
    with BlockingProducer(settings) as producer:
        for _ in range(40):
            producer.enqueue(topic, bytes(5_000))

    assert Counter(seen) == {"sent": 40, "acknowledged": 40}


def test_a_producer_whose_thread_has_ended_by_itself_takes_no_record_and_says_why_at_its_end(bootstrap: str) -> None:
    topic = topic_of(bootstrap, 0)

    def leave(*_: object) -> None:
        sys.exit("a callback ends its thread")

    def go_on() -> None:
        with BlockingProducer({"bootstrap.servers": bootstrap}) as producer:
            producer.enqueue(topic, bytes(2_000_000), on_delivery=leave)
            producer._is_over.wait()
            for _ in range(3):
                with pytest.raises(ClientClosedError) as refused:
                    producer.enqueue(topic, "late")
                assert isinstance(refused.value.__cause__, SystemExit)
            with pytest.raises(ClientClosedError) as refused:
                producer.flush()
            assert isinstance(refused.value.__cause__, SystemExit)

    with pytest.raises(SystemExit, match="ends its thread"):
        go_on()
