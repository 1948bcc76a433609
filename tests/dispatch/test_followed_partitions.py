"""What clients are told by a leader that has followers: what is committed, what all have deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.wire.messages import api_02_list_offsets as listing
from odradek.kernel.wire.messages import api_21_delete_records as deleting

from .deleting import deleting_handler
from .house import House, batch, follower_request, produce_parts, produce_request
from .memory_client import MemoryClient

EARLIEST, LATEST = -2, -1


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.router.add(
        deleting_handler(house.hosted.replicas, lambda _topic: True, purgatory=house.produces, clock=house.clock)
    )
    house.router.add(
        ListOffsetsHandler(replicas=house.hosted.replicas, cold_timeout_ms=lambda: 500, threads=SystemThreads())
    )
    house.hosted.open("t")
    yield house
    house.hosted.lifecycle.close()


def led(house: House, *, epoch: int = 1, isr: tuple[int, ...] = (1, 2)) -> Replica:
    """Lead the partition in this epoch, with broker 2 as a follower."""
    replica = house.hosted.replicas.get("t", 0)
    state = PartitionState(leader=1, leader_epoch=epoch, partition_epoch=epoch, replicas=(1, 2), isr=isr)
    house.hosted.lifecycle.apply_leadership(replica, state)
    return replica


def fetch(house: House, offset: int, *, log_start_offset: int = 0) -> None:
    request = follower_request(house.hosted.replicas.topics["t"].topic_id, offset)
    request.topics[0].partitions[0].log_start_offset = log_start_offset
    MemoryClient(house.router).ask(request, 15)


def listed(house: House, timestamp: int, version: int = 5, *, replica_id: int = -1) -> tuple[int, int]:
    part = listing.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = listing.ListOffsetsRequest(
        replica_id=replica_id, topics=[listing.ListOffsetsTopic(name="t", partitions=[part])]
    )
    answer: Any = MemoryClient(house.router).ask(request, version)
    (told,) = answer.topics[0].partitions
    return told.error_code, told.offset


def test_a_new_leader_tells_no_end_until_it_knows_what_is_committed(house: House) -> None:
    led(house)
    house.client.ask(produce_request((0, batch(b"a")), acks=1), 9)
    led(house, epoch=2)
    unknown = [listed(house, LATEST), listed(house, LATEST, 4), listed(house, 1 << 50)]
    known = [listed(house, EARLIEST), listed(house, LATEST, replica_id=2)]
    fetch(house, 1)

    assert unknown == [
        (ErrorCode.OFFSET_NOT_AVAILABLE, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
        (ErrorCode.OFFSET_NOT_AVAILABLE, -1),
    ]
    assert known == [(0, 0), (0, 1)]
    assert listed(house, LATEST) == (0, 1)


def delete_to(offset: int, timeout_ms: int = 1000) -> deleting.DeleteRecordsRequest:
    part = deleting.DeleteRecordsPartition(partition_index=0, offset=offset)
    return deleting.DeleteRecordsRequest(
        topics=[deleting.DeleteRecordsTopic(name="t", partitions=[part])], timeout_ms=timeout_ms
    )


def deleted(answer: Any) -> tuple[int, int]:
    (told,) = answer.topics[0].partitions
    return told.error_code, told.low_watermark


def test_records_are_deleted_when_no_live_replica_has_them(house: House) -> None:
    led(house)
    house.client.ask(produce_request((0, batch(b"a", b"b")), acks=1), 9)
    fetch(house, 2)
    house.client.send(delete_to(2), 2)
    house.client.turn()
    before = house.client.received()
    fetch(house, 2, log_start_offset=1)
    meanwhile = house.client.received()
    fetch(house, 2, log_start_offset=2)
    (answer,) = house.client.received()

    assert (before, meanwhile, deleted(answer)) == ([], [], (0, 2))


def test_a_deletion_that_a_follower_does_not_learn_of_times_out(house: House) -> None:
    led(house)
    house.client.ask(produce_request((0, batch(b"a")), acks=1), 9)
    fetch(house, 1)
    house.client.send(delete_to(1, timeout_ms=100), 2)
    house.client.turn()
    house.pass_time(101)
    (answer,) = house.client.received()

    assert deleted(answer) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_who_is_refused_as_too_few_are_in_sync_is_told_where_the_log_begins(house: House) -> None:
    replica = led(house)
    replica.settings = TopicSettings(rules=ValidationRules(), min_insync_replicas=2)
    led(house, epoch=2, isr=(1,))
    house.client.send(produce_request((0, batch(b"a"))), 9)
    house.client.turn()
    (answer,) = house.client.received()

    told = [(part.error_code, part.base_offset, part.log_start_offset) for part in produce_parts(answer)]
    assert told == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1, 0)]


def test_what_is_committed_while_too_few_are_in_sync_is_told_so(house: House) -> None:
    replica = led(house)
    replica.settings = TopicSettings(rules=ValidationRules(), min_insync_replicas=2)
    led(house, epoch=2)
    house.client.send(produce_request((0, batch(b"a"))), 9)
    house.client.turn()
    replica.high_watermark = 1  # committed, and at the same moment the set shrinks
    led(house, epoch=3, isr=(1,))
    (answer,) = house.client.received()

    assert [part.error_code for part in produce_parts(answer)] == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
