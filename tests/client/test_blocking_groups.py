"""The facade without trio: groups, listeners on threads, transactions, iteration."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import trio

from odradek.client import BlockingConsumer, BlockingProducer, ClientClosedError, RebalanceListener, TopicPartition

from .group_cluster import FAST, cluster, fill, make_topic, name


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


def topic_of(bootstrap: str, count: int) -> str:
    async def make() -> str:
        topic = await make_topic(bootstrap, 1)
        await fill(bootstrap, topic, count, 1)
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
