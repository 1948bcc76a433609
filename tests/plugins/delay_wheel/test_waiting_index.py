"""The waiting index: against a model, and its own promises: order, time, checkpoints."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import settings

from odradek.kernel.api import WaitingRecord as Waiting
from odradek.plugins.delay_wheel.waiting_index import WaitingIndex
from tests.plugins.delay_queue_model import CHUNK_ENTRIES, END_OF_TIME, PreparedQueue, QueueModel, take_all


def index_of(waiting: Iterable[Waiting]) -> WaitingIndex:
    index = WaitingIndex(CHUNK_ENTRIES)
    for each in waiting:
        index.waits(each)
    return index


def copy_of(index: WaitingIndex) -> WaitingIndex:
    return WaitingIndex.decode(b"".join(index.encode()), CHUNK_ENTRIES)


class AgainstAModel(QueueModel):
    def new_queue(self) -> WaitingIndex:
        return WaitingIndex(CHUNK_ENTRIES)

    def copy_of(self, queue: PreparedQueue) -> WaitingIndex:
        assert isinstance(queue, WaitingIndex)
        return copy_of(queue)


AgainstAModel.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestAgainstAModel = AgainstAModel.TestCase


def test_records_are_due_by_time_then_by_offset() -> None:
    index = index_of([Waiting(20, 5, 4), Waiting(10, 7, 6), Waiting(20, 3, 2), Waiting(10, 8, 6)])

    assert [waiting.origin for waiting in take_all(index)] == [7, 8, 3, 5]


def test_nothing_is_due_before_its_millisecond() -> None:
    index = index_of([Waiting(1_000, 1, 0)])

    assert take_all(index, 999) == []
    assert take_all(index, 1_000) == [Waiting(1_000, 1, 0)]


def test_what_is_due_waits_until_it_was_delivered() -> None:
    index = index_of([Waiting(10, 1, 0), Waiting(10, 2, 0)])
    index.prepare(10)

    assert index.due(10, 1) == index.due(10, 1) == [Waiting(10, 1, 0)]
    assert index.waiting_count == 2


def test_who_comes_late_and_is_due_earlier_goes_first() -> None:
    index = index_of(Waiting(1_000 + number, number, 0) for number in range(10))
    index.prepare(2_000)
    index.delivered(1_004, 4)

    index.waits(Waiting(7, 50, 49))

    assert [waiting.origin for waiting in take_all(index)] == [50, 5, 6, 7, 8, 9]


def test_a_delivery_says_that_nothing_before_it_waits() -> None:
    index = index_of(Waiting(number // 3, number, 0) for number in range(9))

    index.delivered(1, 4)

    assert [waiting.origin for waiting in take_all(index)] == [5, 6, 7, 8]


@pytest.mark.parametrize("span_ms", [1, 10**9])
def test_what_is_delivered_elsewhere_is_taken_out_in_slices(span_ms: int) -> None:
    drawn = random.Random(1)
    crowd = [Waiting(10**12 + drawn.randrange(span_ms), number, number // 10) for number in range(1_000)]
    index = index_of(crowd)
    in_order = sorted(crowd)

    index.delivered(*in_order[500][:2])
    late = Waiting(7, 5_000, 4_999)
    index.waits(late)
    index.delivered(*in_order[600][:2])
    index.waits(late._replace(origin=5_001))
    assert index.due(10**13, 10) == []
    assert index.next_due_ms() == 7
    slices_count = 1
    while not index.prepare(0, 1):
        slices_count += 1

    assert slices_count > 3
    assert index.waiting_count == 400
    assert take_all(index) == [late._replace(origin=5_001), *in_order[601:]]


@pytest.mark.parametrize("span_ms", [1, 1_000, 10**6, 10**9])
def test_a_crowd_is_sorted_in_slices(span_ms: int) -> None:
    drawn = random.Random(1)
    crowd = [Waiting(10**12 + drawn.randrange(span_ms), number, number // 10) for number in range(300)]
    index = index_of(crowd)

    slices_count = 1
    while not index.prepare(10**13, 1):
        slices_count += 1

    assert slices_count > 3
    assert take_all(index, at_once=30) == sorted(crowd)


def test_slots_that_begin_later_are_left_alone() -> None:
    index = index_of(Waiting(10**12 + number, number, 0) for number in range(300))

    assert index.prepare(10**6, 1)
    assert index.next_due_ms() == 10**12 >> 32 << 32  # nobody has looked more closely


def test_the_end_of_time_is_not_too_far() -> None:
    far = [Waiting(END_OF_TIME, END_OF_TIME, END_OF_TIME), Waiting(END_OF_TIME, 1, 0), Waiting(0, 2, 0)]

    assert take_all(copy_of(index_of(far))) == sorted(far)


def test_it_takes_less_than_24_bytes_a_record() -> None:
    count = 20_000
    drawn = random.Random(1)
    index = WaitingIndex()
    for number in range(count):
        index.waits(Waiting(10**12 + drawn.randrange(10**8), number, number // 10))

    assert len(b"".join(index.encode())) < 24 * count
    chunks = [chunk for slot in index._slots.all_slots() for chunk in slot.all_chunks()]
    assert sum(map(len, chunks)) == 20 * count


def test_deleting_records_withdraws_what_they_held() -> None:
    index = index_of([Waiting(10, 1, 0), Waiting(20, 2, 0), Waiting(30, 60, 59)])
    index.start_advanced(40)
    while not index.prepare(0, 1):
        pass

    assert index.waiting_count == 1
    assert take_all(index) == [Waiting(30, 60, 59)]


def test_what_is_sorted_and_told_of_a_companion_that_is_gone_is_not_due() -> None:
    index = index_of([Waiting(10, 1, 0), Waiting(10, 2, 50)])
    index.prepare(10)
    index.start_advanced(40)
    index.waits(Waiting(9, 60, 3))
    index.waits(Waiting(10, 1, 7))

    assert index.due(10, 1) == [Waiting(10, 2, 50)]
    assert take_all(index, at_once=1) == [Waiting(10, 2, 50)]


def test_a_checkpoint_is_the_index() -> None:
    drawn = random.Random(1)
    index = index_of(Waiting(drawn.randrange(10**9), number, number) for number in range(500))
    index.prepare(10**8, 100)

    again = copy_of(index)

    assert again.waiting_count == index.waiting_count
    assert take_all(again) == take_all(index)


@pytest.mark.parametrize("position", [0, 5, 30, 60, -1])
def test_a_damaged_checkpoint_is_refused(position: int) -> None:
    data = bytearray(b"".join(index_of([Waiting(10, 1, 0)]).encode()))
    data[position] ^= 1

    with pytest.raises(ValueError, match="does not carry its own CRC"):
        WaitingIndex.decode(bytes(data))


def test_a_checkpoint_of_another_version_is_refused() -> None:
    """One of version 1 had withdrawals, too."""
    data = bytearray(b"".join(index_of([Waiting(10, 1, 0)]).encode()))
    data[4] = 1
    data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "big")

    with pytest.raises(ValueError, match="has version 1, 2 is known"):
        WaitingIndex.decode(bytes(data))


def test_an_empty_checkpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="CRC"):
        WaitingIndex.decode(b"")
