"""Fetch of records that lie in a remote store: who waits, for how long, and what is answered meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.testing.far_tier import FarLog, FarTier

from .house import House, batch, fetch_part, fetch_request, produce_request, values
from .memory_client import MemoryClient

TIERED = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())
COLD_WAIT_MS = 500
"""As `House` gives it to the handler."""


@pytest.fixture
def tier() -> FarTier:
    return FarTier()


@pytest.fixture
def house(tmp_path: Path, tier: FarTier) -> Iterator[House]:
    house = House(tmp_path, tier=tier)
    house.hosted.open("t", 3, tier=TIERED)
    yield house
    house.hosted.lifecycle.close()


def filled(house: House, tier: FarTier, partition: int = 0) -> FarLog:
    """Fill a partition with a, b, c, each a segment of its own; a and b are far."""
    replica = house.hosted.replicas.get("t", partition)
    for value in (b"a", b"b", b"c"):
        replica.log.roll()
        produce(house, partition, value)
    tier.logs[replica.partition].send(2)
    return tier.logs[replica.partition]


def request(*offsets: tuple[int, int], max_wait_ms: int = 60_000, min_bytes: int = 1, **more: Any) -> FetchRequest:
    parts = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20) for number, offset in offsets
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[FetchTopic(topic="t", partitions=parts)], **more
    )


class Reader:
    """A consumer with a connection of its own."""

    def __init__(self, house: House) -> None:
        self.client = MemoryClient(house.router)

    def send(self, wanted: FetchRequest, version: int = 11) -> None:
        self.client.send(wanted, version)
        self.client.turn()

    def parts(self) -> list[PartitionData]:
        answers = self.client.received()
        return [
            part
            for answer in answers
            if isinstance(answer, FetchResponse)
            for topic in answer.responses
            for part in topic.partitions
        ]

    def answered(self) -> list[tuple[int, list[bytes]]]:
        return [(part.partition_index, values(part)) for part in self.parts()]


@pytest.fixture
def reader(house: House) -> Reader:
    return Reader(house)


def produce(house: House, partition: int, *items: bytes, **options: int) -> None:
    house.client.ask(produce_request((partition, batch(*items, **options))), 9)


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(60_000, 1), (0, 1), (60_000, 0), (0, 0), (60_000, 1 << 20)])
def test_a_cold_fetch_is_answered_when_its_records_came(
    house: House, reader: Reader, tier: FarTier, max_wait_ms: int, min_bytes: int
) -> None:
    filled(house, tier)
    reader.send(request((0, 0), max_wait_ms=max_wait_ms, min_bytes=min_bytes))
    assert reader.parts() == []

    tier.arrive()

    assert reader.answered() == [(0, [b"a"])]


def test_what_is_local_is_answered_without_asking_the_store(house: House, reader: Reader, tier: FarTier) -> None:
    log = filled(house, tier)

    reader.send(request((0, 2)))

    assert (reader.answered(), log.asked) == ([(0, [b"c"])], [])


def test_a_store_that_does_not_answer_is_waited_for_as_long_as_the_broker_says(
    house: House, reader: Reader, tier: FarTier
) -> None:
    filled(house, tier)
    reader.send(request((0, 0)))
    house.pass_time(COLD_WAIT_MS - 1)
    assert reader.parts() == []

    house.pass_time(1)

    (part,) = reader.parts()
    assert (part.error_code, part.records, part.high_watermark, part.log_start_offset) == (0, b"", 3, 0)
    tier.arrive()  # too late for that one, and in time for the next
    assert values(fetch_part(reader.client.ask(fetch_request(0), 11))) == [b"a"]


def test_hot_partitions_are_answered_at_once_and_the_cold_ones_come_near_meanwhile(
    house: House, reader: Reader, tier: FarTier
) -> None:
    log = filled(house, tier)
    produce(house, 1, b"hot")

    reader.send(request((0, 0), (1, 0)))

    assert reader.answered() == [(0, []), (1, [b"hot"])]
    assert [(offset, max_bytes) for offset, max_bytes, _done in log.asked] == [(0, 1 << 20)]
    tier.arrive()
    reader.send(request((0, 0), (1, 1)))
    assert reader.answered() == [(0, [b"a"]), (1, [])]


def test_many_cold_partitions_are_asked_for_together_and_the_first_that_came_is_answered(
    house: House, reader: Reader, tier: FarTier
) -> None:
    logs = [filled(house, tier, number) for number in range(3)]
    reader.send(request((0, 0), (1, 1), (2, 0)))
    assert [len(log.asked) for log in logs] == [1, 1, 1]

    ((offset, _max_bytes, done),) = logs[1].asked
    logs[1].near.add(offset)
    done()

    assert reader.answered() == [(0, []), (1, [b"b"]), (2, [])]


def test_progress_of_others_asks_the_store_only_once(house: House, reader: Reader, tier: FarTier) -> None:
    log = filled(house, tier)
    reader.send(request((0, 0), (1, 0), min_bytes=1 << 20))

    for _ in range(3):
        produce(house, 0, b"d")
        produce(house, 1, b"e")

    assert len(log.asked) == 1


def test_an_append_completes_a_fetch_that_waits_for_a_store(house: House, reader: Reader, tier: FarTier) -> None:
    filled(house, tier)
    reader.send(request((0, 0), (1, 0)))

    produce(house, 1, b"hot")

    assert reader.answered() == [(0, []), (1, [b"hot"])]


def test_a_read_that_failed_is_a_retriable_error_of_its_partition_alone(
    house: House, reader: Reader, tier: FarTier
) -> None:
    log = filled(house, tier)
    log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the store is away")
    reader.send(request((0, 0), (1, 0)))

    tier.arrive()

    failed, other = reader.parts()
    assert (failed.error_code, other.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE)
    assert ErrorCode.KAFKA_STORAGE_ERROR.retriable
    assert house.hosted.replicas.get("t", 0).offline_reason is None
    reader.send(request((0, 2)))
    assert reader.answered() == [(0, [b"c"])]


def test_records_that_are_gone_when_they_are_read_are_not_asked_for_again_by_the_same_fetch(
    house: House, reader: Reader, tier: FarTier
) -> None:
    log = filled(house, tier)
    reader.send(request((0, 0)))
    ((_offset, _max_bytes, done),) = log.asked

    done()  # and the cache has dropped them already

    assert len(log.asked) == 1
    house.pass_time(COLD_WAIT_MS)
    assert reader.answered() == [(0, [])]


def test_a_tier_that_fails_costs_its_partition_and_no_other(
    house: House, reader: Reader, tier: FarTier, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(offset: int, max_bytes: int, done: object) -> None:
        raise RuntimeError("a bug of the tier's author")

    filled(house, tier).begin_cold_read = fail  # type: ignore[method-assign] # the bug
    produce(house, 1, b"hot")

    reader.send(request((0, 0), (1, 0)))
    assert reader.answered() == [(0, []), (1, [b"hot"])]

    reader.send(request((0, 0)))
    house.pass_time(COLD_WAIT_MS)
    assert reader.answered() == [(0, [])]
    assert "cannot be read from the remote store" in caplog.text


def test_nobody_is_answered_whose_connection_has_ended(house: House, reader: Reader, tier: FarTier) -> None:
    filled(house, tier)
    reader.send(request((0, 0)))

    reader.client.leave()
    tier.arrive()

    assert house.fetches.delayed_count == 0


def test_a_session_tells_of_cold_records_once_they_came(house: House, reader: Reader, tier: FarTier) -> None:
    filled(house, tier)
    first = reader.client.ask(request((0, 3), (1, 0), max_wait_ms=0, session_epoch=0), 11)
    assert isinstance(first, FetchResponse)
    reader.send(request((0, 0), session_id=first.session_id, session_epoch=1))
    assert reader.parts() == []

    tier.arrive()

    assert reader.answered() == [(0, [b"a"])]


def test_a_follower_is_sent_to_the_store(house: House, reader: Reader, tier: FarTier) -> None:
    log = filled(house, tier)
    replica = house.hosted.replicas.get("t", 0)
    assert replica.state is not None
    house.hosted.lifecycle.apply_leadership(replica, attrs.evolve(replica.state, replicas=(1, 2), isr=(1, 2)))

    log.near.add(0)  # a consumer has just read it
    reader.send(request((0, 0), replica_id=2))

    (part,) = reader.parts()
    assert (part.error_code, log.asked) == (ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, [])
    assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (replica.high_watermark, -1, 0)


def test_read_committed_sees_no_aborted_records_on_either_side_of_the_border(
    house: House, reader: Reader, tier: FarTier
) -> None:
    replica = house.hosted.replicas.get("t", 0)
    house.hosted.produce("t", 0, 2, producer_id=7, txn=True)
    replica.log.roll()
    house.hosted.produce("t", 2, 1, producer_id=7, txn=True)
    aborts = WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
    )
    house.client.ask(WriteTxnMarkersRequest(markers=[aborts]), 1)
    produce(house, 0, b"kept")
    tier.logs[replica.partition].send(2)
    reader.send(request((0, 0), isolation_level=1))

    tier.arrive()

    (cold,) = reader.parts()
    reader.send(request((0, 2), isolation_level=1))
    (hot,) = reader.parts()
    aborted = [(7, 0)]
    for part in (cold, hot):
        assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions or ()] == aborted
