"""The ends of transactions go to who leads a partition, and what was not written is told so that it is sent again."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Mapping, Sequence

import trio

from odradek.kernel.cluster.marker_routes import MARKERS_MAX, ClusterMarkerWriter
from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

from .asked_brokers import AskedBrokers, running
from .images import image

T0, T1, T2, GONE = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("t", 2), ("gone", 0)))
Codes = Mapping[TopicPartition, ErrorCode]


class Local:
    """This broker's own writer: it answers this of each partition."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.written: list[TopicPartition] = []

    def write(self, marker: TransactionMarker, done: Callable[[Codes], None]) -> None:
        self.written += marker.partitions
        done(dict.fromkeys(marker.partitions, self.code))


class Writing:
    """Broker 1 of three; what it is told stands in `told`."""

    def __init__(self, leaders: Sequence[int], local: Local | None = None) -> None:
        self.image: MetadataImage = image({"t": leaders})
        self.local, self.brokers = local or Local(), AskedBrokers()
        self.told: list[Codes] = []
        self.writer = ClusterMarkerWriter(
            self.local, node_id=1, image=lambda: self.image, brokers=self.brokers, timeout_ms=lambda: 1000
        )

    def write(self, *partitions: TopicPartition, producer_id: int = 7) -> None:
        self.writer.write(TransactionMarker(producer_id, 3, 11, 2, True, partitions), self.told.append)


def response(producer_id: int, codes: Codes) -> WriteTxnMarkersResponse:
    topics = [
        WritableTxnMarkerTopicResult(
            name=partition.topic,
            partitions=[WritableTxnMarkerPartitionResult(partition_index=partition.partition, error_code=code)],
        )
        for partition, code in codes.items()
    ]
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=producer_id, topics=topics)])


def test_each_partition_is_written_by_its_leader() -> None:
    async def main() -> None:
        writing = Writing([1, 2, 3])
        async with running(writing.writer.batches):
            writing.write(T0, T1, T2)
            asked = sorted([await writing.brokers.next(), await writing.brokers.next()], key=lambda each: each.node_id)
            await asked[0].answer(response(7, {T1: ErrorCode.NONE}))
            assert writing.told == []
            await asked[1].answer(response(7, {T2: ErrorCode.NOT_LEADER_OR_FOLLOWER}))

        assert writing.local.written == [T0]
        assert [(each.node_id, each.purpose) for each in asked] == [(2, "markers"), (3, "markers")]
        (marker,) = asked[0].message.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 11)
        assert (marker.transaction_result, marker.transaction_version) == (True, 2)
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [1])]
        assert writing.told == [{T0: ErrorCode.NONE, T1: ErrorCode.NONE, T2: ErrorCode.NOT_LEADER_OR_FOLLOWER}]

    trio.run(main)


def test_a_topic_that_is_gone_is_done_with_and_one_without_a_leader_is_not() -> None:
    writing = Writing([1, -1])

    writing.write(T0, T1, T2, GONE)

    assert writing.told == [
        {
            T0: ErrorCode.NONE,
            T1: ErrorCode.LEADER_NOT_AVAILABLE,
            T2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            GONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
    ]


def test_a_leader_that_does_not_know_a_partition_that_exists_is_behind() -> None:
    async def main() -> None:
        writing = Writing([1, 2], Local(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        async with running(writing.writer.batches):
            writing.write(T0, T1)
            await (await writing.brokers.next()).answer(response(7, {T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}))
            writing.write(T1)
            asked = await writing.brokers.next()
            writing.image = image({})
            await asked.answer(response(7, {T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}))

        assert writing.told == [
            dict.fromkeys((T0, T1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
            {T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        ]

    trio.run(main)


def test_markers_of_many_producers_go_in_one_request_and_of_one_producer_after_each_other() -> None:
    async def main() -> None:
        writing = Writing([2, 2])
        async with running(writing.writer.batches):
            writing.write(T0)
            first = await writing.brokers.next()
            writing.write(T0, producer_id=8)
            writing.write(T1, producer_id=9)
            writing.write(T1, producer_id=8)
            await first.answer(response(7, {T0: ErrorCode.NONE}))
            second = await writing.brokers.next()
            await second.answer(response(9, {T1: ErrorCode.NONE}))
            third = await writing.brokers.next()
            await third.answer(ConnectionFailedError("it is gone"))

        markers = [[marker.producer_id for marker in each.message.markers] for each in (first, second, third)]
        assert markers == [[7], [8, 9], [8]]
        assert writing.told == [
            {T0: ErrorCode.NONE},
            {T0: ErrorCode.UNKNOWN_SERVER_ERROR},
            {T1: ErrorCode.NONE},
            {T1: ErrorCode.NETWORK_EXCEPTION},
        ]

    trio.run(main)


def test_a_request_brings_so_many_markers_and_of_a_long_transaction_the_others_go_behind_those_of_others() -> None:
    """A broker refuses a request of half a million items; one answer of as many would hold up everybody here."""
    long = [TopicPartition("t", number) for number in range(2 * MARKERS_MAX + 1)]
    brought: list[dict[int, int]] = []

    async def main() -> None:
        writing = Writing([2] * len(long))
        async with running(writing.writer.batches):
            writing.write(*long)
            writing.write(T0, producer_id=8)
            for _ in range(3):
                asked = await writing.brokers.next()
                codes = {
                    marker.producer_id: {
                        TopicPartition(topic.name, index): ErrorCode.NONE
                        for topic in marker.topics
                        for index in topic.partition_indexes
                    }
                    for marker in asked.message.markers
                }
                brought.append({producer_id: len(each) for producer_id, each in codes.items()})
                markers = [each for one in codes.items() for each in response(*one).markers]
                await asked.answer(WriteTxnMarkersResponse(markers=markers))

        assert writing.told == [{T0: ErrorCode.NONE}, dict.fromkeys(long, ErrorCode.NONE)]

    trio.run(main)

    assert brought == [{7: MARKERS_MAX}, {8: 1, 7: MARKERS_MAX - 1}, {7: 2}]


def test_to_find_the_leaders_of_a_long_transaction_takes_few_calls() -> None:
    """It is done in one go; what a turn writes of it then has the room that is left (`test_bounded_requests.py`)."""

    class Later(Local):
        def write(self, marker: TransactionMarker, done: Callable[[Codes], None]) -> None:
            self.written += marker.partitions

    partitions = [TopicPartition("t", number) for number in range(5_000)]
    local = Later()
    writing = Writing([1 + number % 2 for number in range(5_000)], local)
    profile = cProfile.Profile()
    profile.enable()
    writing.write(*partitions)
    profile.disable()

    assert sum(entry.callcount for entry in profile.getstats()) < 2 * len(partitions)
    assert local.written == partitions[::2]
