"""One consumer that several threads use: what an iteration holds back stays in order, whatever the others ask for.

The other thread comes in where Python would let it: whenever it is looked of which partition a record is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
import trio

from odradek.client import Consumer, ConsumerRecord, TopicPartition

from .group_cluster import cluster, fill, make_topic

LEFT, KEPT, PAUSED = (TopicPartition("t", number) for number in range(3))


class Watched(ConsumerRecord):
    """A record at which another thread gets its turn."""

    other_thread: Callable[[], None] = staticmethod(lambda: None)

    @property
    def topic_partition(self) -> TopicPartition:
        found = super().topic_partition
        self.other_thread()
        return found


@pytest.fixture
def consumer() -> Consumer:
    return Consumer({"bootstrap.servers": "127.0.0.1:1"})


def record(partition: TopicPartition, offset: int) -> ConsumerRecord:
    return Watched(*partition, offset, 0, None, b"", (), False, 0)


def hold_back(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    consumer.hold_back([record(partition, offset) for offset, partition in enumerate(partitions)])


@pytest.fixture
def iterated(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ConsumerRecord]]:
    """Return what the other thread's iteration gets: a record in every second of its turns."""
    taken: list[ConsumerRecord] = []
    turns = iter(range(1_000_000))

    def other_thread() -> None:
        if next(turns) % 2 and consumer.held_back:
            taken.append(consumer.held_back.pop())

    monkeypatch.setattr(Watched, "other_thread", staticmethod(other_thread))
    yield taken
    monkeypatch.undo()


def of(partition: TopicPartition, records: list[ConsumerRecord]) -> list[int]:
    return [each.offset for each in records if each[:2] == partition]


PATTERNS = [
    [KEPT, LEFT] * 20,
    [LEFT] * 20 + [KEPT] * 20,
    [KEPT] * 20 + [LEFT] * 20,
    [KEPT, KEPT, LEFT] * 15,
    [LEFT] * 9,
    [KEPT] * 9,
]


@pytest.mark.parametrize("partitions", PATTERNS)
def test_what_a_seek_of_another_thread_leaves_is_iterated_in_its_order(
    consumer: Consumer, iterated: list[ConsumerRecord], partitions: list[TopicPartition]
) -> None:
    hold_back(consumer, partitions)
    consumer._forget_held_back([LEFT])
    left = consumer.held_back[::-1]

    assert of(LEFT, left) == []
    assert of(KEPT, iterated + left) == [offset for offset, each in enumerate(partitions) if each == KEPT]
    assert iterated == sorted(iterated, key=lambda each: each.offset)


@pytest.mark.parametrize("records_max", [3, 10, 100])
def test_a_poll_beside_an_iteration_shares_the_records_and_each_has_its_own_in_order(
    consumer: Consumer, iterated: list[ConsumerRecord], records_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Consumer, "paused", frozenset((PAUSED,)))
    partitions = [PAUSED, KEPT, LEFT] * 10
    hold_back(consumer, partitions)
    polled = consumer._take_held_back(records_max)
    left = consumer.held_back[::-1]

    assert len(polled) <= records_max
    assert of(PAUSED, polled) == []
    assert sorted(each.offset for each in polled + iterated + left) == list(range(len(partitions)))
    for got in (polled, iterated + left):
        assert got == sorted(got, key=lambda each: each.offset)


def test_an_iteration_that_waited_takes_nothing_of_what_another_one_got_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[int] = []
    hold_back = Consumer.hold_back

    def noting(consumer: Consumer, records: Iterable[ConsumerRecord]) -> None:
        found = list(records)
        held.extend(each.offset for each in found)
        hold_back(consumer, found)

    monkeypatch.setattr(Consumer, "hold_back", noting)

    async def scenario(bootstrap: str) -> None:
        topic = await make_topic(bootstrap, 1)
        async with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([(topic, 0)])
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(consumer.poll_iterated)
                for _ in range(5):
                    await trio.lowlevel.checkpoint()
                await fill(bootstrap, topic, 5, 1)

            assert held == [each.offset for each in reversed(consumer.held_back)]

    with cluster() as bootstrap:
        trio.run(scenario, bootstrap)
    assert held[:1] == [0]
