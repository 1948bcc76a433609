"""A session over many partitions: what has nothing new is passed over, and nothing else is."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.dispatch import fetch_operation
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

from .house import House, batch, produce_request, values
from .memory_client import MemoryClient

COUNT = 8
BATCH_BYTES = len(batch(b"a"))


class Consumer:
    """A consumer with a session over all partitions of `t`, which has fetched once."""

    def __init__(self, house: House, version: int = 10) -> None:
        self.version = version
        self.client = MemoryClient(house.router)
        self.positions = [0] * COUNT
        self.fetched_epoch = -1
        self.epoch = 0
        first = self.client.ask(self._request(range(COUNT), 0, session_id=0), version)
        assert isinstance(first, FetchResponse)
        self.session_id = first.session_id

    def _request(self, changed: Sequence[int], max_wait_ms: int, session_id: int, min_bytes: int = 1) -> FetchRequest:
        parts = [
            FetchPartition(
                partition=number,
                fetch_offset=self.positions[number],
                last_fetched_epoch=self.fetched_epoch,
                partition_max_bytes=1 << 20,
            )
            for number in changed
        ]
        topics = [FetchTopic(topic="t", partitions=parts)] if parts else []
        request = FetchRequest(
            session_id=session_id,
            session_epoch=self.epoch,
            topics=topics,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 24,
        )
        self.epoch += 1
        return request

    def poll(self, *changed: int, max_wait_ms: int = 60_000, min_bytes: int = 1) -> None:
        self.client.send(self._request(changed, max_wait_ms, self.session_id, min_bytes), self.version)
        self.client.turn()

    def answered(self) -> list[PartitionData]:
        (answer,) = self.client.received()
        assert isinstance(answer, FetchResponse)
        return [part for topic in answer.responses for part in topic.partitions]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.hosted.open("t", COUNT)
    yield house
    house.hosted.lifecycle.close()


def produce(house: House, *partitions: int) -> None:
    house.client.ask(produce_request(*((number, batch(b"a")) for number in partitions)), 9)


def test_a_wake_up_answers_only_what_progressed(house: House) -> None:
    consumer = Consumer(house)
    consumer.poll()

    produce(house, 5)

    (part,) = consumer.answered()
    assert (part.partition_index, values(part), part.high_watermark) == (5, [b"a"], 1)


def test_min_bytes_counts_all_partitions_that_progressed_while_it_waited(house: House) -> None:
    consumer = Consumer(house)
    produce(house, 1)
    consumer.poll(min_bytes=3 * BATCH_BYTES)
    produce(house, 6)
    assert consumer.client.received() == []

    produce(house, 3)

    assert [(part.partition_index, values(part)) for part in consumer.answered()] == [
        (1, [b"a"]),
        (3, [b"a"]),
        (6, [b"a"]),
    ]


def test_a_wait_that_ends_in_time_tells_what_there_is(house: House) -> None:
    consumer = Consumer(house)
    consumer.poll(min_bytes=1 << 20, max_wait_ms=500)
    produce(house, 4)

    house.pass_time(501)

    assert [part.partition_index for part in consumer.answered()] == [4]


def test_the_error_of_one_partition_ends_the_wait(house: House) -> None:
    consumer = Consumer(house)
    consumer.poll()
    replica = house.hosted.replicas.get("t", 2)

    house.hosted.lifecycle.apply_leadership(
        replica, PartitionState(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(2,))
    )

    (part,) = consumer.answered()
    assert (part.partition_index, part.error_code) == (2, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_position_beyond_the_end_is_an_error_though_nothing_changed(house: House) -> None:
    consumer = Consumer(house)
    consumer.positions[3] = 9

    consumer.poll(3)

    (part,) = consumer.answered()
    assert (part.partition_index, part.error_code) == (3, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_a_new_log_start_is_told(house: House) -> None:
    produce(house, 0, 1)
    consumer = Consumer(house)
    consumer.positions[:2] = [1, 1]
    consumer.poll(0, 1, max_wait_ms=0)
    assert consumer.answered() == []
    house.hosted.replicas.get("t", 1).log.advance_log_start(1)

    consumer.poll(max_wait_ms=0)

    assert [(part.partition_index, part.log_start_offset) for part in consumer.answered()] == [(1, 1)]


def test_a_partition_that_gave_records_goes_behind_the_others(house: House) -> None:
    consumer = Consumer(house)
    consumer.poll()
    produce(house, 0)
    consumer.answered()
    consumer.positions[0] = 1
    produce(house, 0, 1, 7)

    consumer.poll(0)

    assert [part.partition_index for part in consumer.answered()] == [1, 7, 0]


def test_a_topic_made_anew_under_its_name_is_found_again(house: House) -> None:
    consumer = Consumer(house)
    run_at_once(house.hosted.lifecycle.delete_topic_in_steps("t", COUNT))
    house.hosted.open("t", COUNT)
    produce(house, 2)

    consumer.poll()

    assert [(part.partition_index, values(part)) for part in consumer.answered()] == [(2, [b"a"])]


def test_who_says_of_which_epoch_its_last_record_is_is_passed_over_likewise(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As followers do: of a thousand idle partitions none is read twice a second."""
    produce(house, *range(COUNT))
    consumer = Consumer(house, version=12)
    consumer.positions, consumer.fetched_epoch = [1] * COUNT, 0
    consumer.poll(*range(COUNT), max_wait_ms=0)
    assert consumer.answered() == []
    read: list[int] = []
    monkeypatch.setattr(fetch_operation, "_read_one", lambda _replicas, target, *_: read.append(target.partition))

    consumer.poll(max_wait_ms=0)

    assert (consumer.answered(), read) == ([], [])


def test_who_has_another_record_there_is_told_though_nothing_changed(house: House) -> None:
    produce(house, *range(COUNT))
    for number in range(COUNT):
        house.hosted.lifecycle.apply_leadership(
            house.hosted.replicas.get("t", number),
            PartitionState(leader=1, leader_epoch=2, partition_epoch=1, replicas=(1,), isr=(1,)),
        )
    produce(house, *range(COUNT))
    consumer = Consumer(house, version=12)
    consumer.positions, consumer.fetched_epoch = [2] * COUNT, 2
    consumer.poll(*range(COUNT), max_wait_ms=0)
    assert consumer.answered() == []
    consumer.fetched_epoch = 0

    consumer.poll(3, max_wait_ms=0)

    (part,) = consumer.answered()
    assert (part.partition_index, part.diverging_epoch) == (3, EpochEndOffset(epoch=0, end_offset=1))
