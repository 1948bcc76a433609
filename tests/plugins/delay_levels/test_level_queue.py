"""The queue of levels: against a model, and its own promises: lanes, what is read, what is not in a lane yet."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.api import WaitingRecord as Waiting
from odradek.plugins.delay_levels.fifo import Fifo
from odradek.plugins.delay_levels.level_queue import FAR_MS, LANES_MAX, LevelQueue
from odradek.plugins.delay_levels.rounding import Rounding
from tests.plugins.delay_queue_model import CHUNK_ENTRIES, END_OF_TIME, PreparedQueue, QueueModel, take_all

NOW_MS = 1_700_000_000_000
READ_MAX = 3 * CHUNK_ENTRIES
LEVELS_MS = [5_000, 10_000, 30_000, 60_000]


def queue_of(waiting: Iterable[Waiting] = (), *, now_ms: int = 0, lanes_max: int = LANES_MAX) -> LevelQueue:
    queue = LevelQueue(CHUNK_ENTRIES, READ_MAX, lanes_max)
    queue.prepare(now_ms)
    for each in waiting:
        queue.waits(each)
    return queue


def copy_of(queue: LevelQueue, lanes_max: int = LANES_MAX) -> LevelQueue:
    return LevelQueue.decode(b"".join(queue.encode()), CHUNK_ENTRIES, READ_MAX, lanes_max)


class AgainstAModel(QueueModel):
    def new_queue(self) -> LevelQueue:
        return queue_of()

    def copy_of(self, queue: PreparedQueue) -> LevelQueue:
        assert isinstance(queue, LevelQueue)
        return copy_of(queue)


AgainstAModel.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestAgainstAModel = AgainstAModel.TestCase


class WithFewLanes(AgainstAModel):
    """What would be in a third lane has two become one."""

    def new_queue(self) -> LevelQueue:
        return queue_of(lanes_max=2)

    def copy_of(self, queue: PreparedQueue) -> LevelQueue:
        assert isinstance(queue, LevelQueue)
        return copy_of(queue, lanes_max=2)


WithFewLanes.TestCase.settings = AgainstAModel.TestCase.settings
TestWithFewLanes = WithFewLanes.TestCase


def as_they_come(count: int, *, seed: int = 1, span_ms: int = 60_000) -> list[Waiting]:
    """Return what a log has: a batch of ten now and then, each record's delay rounded up."""
    drawn, rounding = random.Random(seed), Rounding(LEVELS_MS)
    return [
        Waiting(rounding(now_ms + drawn.randrange(1, span_ms), now_ms), number, number - number % 10)
        for number in range(count)
        for now_ms in [NOW_MS + number // 10 * 7]
    ]


def test_there_is_a_lane_for_each_level_and_nothing_is_sorted() -> None:
    waiting = as_they_come(2_000)
    queue = queue_of(waiting, now_ms=NOW_MS)

    assert queue.lanes_count <= len(LEVELS_MS)
    assert take_all(queue) == sorted(waiting)


def test_what_comes_out_of_a_level_came_in_first() -> None:
    waiting = as_they_come(300, span_ms=5_000)
    found = take_all(queue_of(waiting, now_ms=NOW_MS))

    assert [each.origin for each in found] == list(range(300))


def test_what_is_not_rounded_is_in_its_order_all_the_same() -> None:
    drawn = random.Random(1)
    waiting = [Waiting(NOW_MS + drawn.randrange(10**6), number, number) for number in range(500)]
    queue = queue_of(waiting, now_ms=NOW_MS)

    assert len(LEVELS_MS) < queue.lanes_count < 100
    assert take_all(copy_of(queue)) == sorted(waiting)


def test_however_due_times_fall_there_are_not_many_lanes() -> None:
    """Above the longest level they are its multiples: as many as there are, where that is short."""
    count = 20_000
    waiting = [Waiting(count - number, number, number) for number in range(count)]
    queue = queue_of()
    lanes = []
    for each in waiting:
        queue.waits(each)
        lanes.append(queue.lanes_count)
    queue.start_advanced(5)

    assert max(lanes) <= LANES_MAX
    assert queue.waiting_count == count
    assert take_all(queue) == sorted(waiting[5:])


def test_reading_pauses_above_a_threshold_and_goes_on_when_that_was_delivered() -> None:
    drawn = random.Random(1)
    waiting = [Waiting(NOW_MS + drawn.randrange(10**6), number, number) for number in range(2_000)]
    queue = queue_of(waiting, now_ms=NOW_MS)
    found: list[Waiting] = []
    while len(found) < len(waiting):
        due = queue.due(END_OF_TIME, 50)

        assert due
        assert queue.read_count <= READ_MAX + CHUNK_ENTRIES
        found += due
        queue.delivered(*due[-1][:2])

    assert found == sorted(waiting)


def test_what_is_due_far_off_is_in_no_lane_and_is_looked_at_now_and_then() -> None:
    drawn = random.Random(1)
    waiting = [Waiting(NOW_MS + FAR_MS + drawn.randrange(10**9), number, number) for number in range(1, 500)]
    queue = queue_of(waiting, now_ms=NOW_MS)

    assert queue.lanes_count == 0
    assert queue.next_due_ms() == NOW_MS + FAR_MS
    assert queue.prepare(NOW_MS + FAR_MS - 1, 1)
    assert not queue.prepare(NOW_MS + FAR_MS, 1)
    while not queue.prepare(NOW_MS + FAR_MS, 1):
        pass
    assert queue.waiting_count == len(waiting)
    assert queue.next_due_ms() == min(waiting)[0]
    assert take_all(copy_of(queue)) == sorted(waiting)


def test_a_year_far_off_nothing_is_unpacked_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [Waiting(NOW_MS + 10**10 + number % 7, number, number) for number in range(10 * CHUNK_ENTRIES)]
    queue = queue_of(waiting, now_ms=NOW_MS)
    with monkeypatch.context() as patched:
        patched.setattr(Fifo, "take", None)

        assert queue.prepare(NOW_MS + FAR_MS)
    assert queue.next_due_ms() == NOW_MS + 2 * FAR_MS
    assert take_all(queue) == sorted(waiting)


def test_a_log_that_is_read_again_knows_no_clock_and_gives_out_nothing_late() -> None:
    waiting = as_they_come(500)
    queue = queue_of(waiting)
    half = sorted(waiting)[250]
    queue.delivered(*half[:2])

    assert queue.due(half.due_ms, 10) == []  # until it is prepared
    assert take_all(queue) == sorted(waiting)[251:]


def test_what_comes_late_is_due_at_once_while_what_was_delivered_before_is_not() -> None:
    queue = queue_of([Waiting(NOW_MS + 5, 1, 0), Waiting(NOW_MS + 9, 2, 0)])
    queue.delivered(NOW_MS + 9, 2)
    queue.waits(Waiting(NOW_MS + 5, 30, 29))

    assert take_all(queue) == [Waiting(NOW_MS + 5, 30, 29)]
    assert queue.waiting_count == 0


def test_deleting_records_withdraws_what_they_held_in_slices() -> None:
    waiting = as_they_come(500)
    queue = queue_of(waiting, now_ms=NOW_MS)
    queue.start_advanced(205)
    slices_count = 1
    while not queue.prepare(NOW_MS, 1):
        slices_count += 1

    assert slices_count > 3
    assert queue.waiting_count == 290
    assert take_all(queue) == [each for each in sorted(waiting) if each.companion >= 205]


def test_of_a_log_that_starts_later_nothing_is_due_that_it_no_more_holds() -> None:
    queue = queue_of([Waiting(NOW_MS + 1, 1, 0), Waiting(NOW_MS + 2, 30, 29)], now_ms=NOW_MS)
    queue.start_advanced(10)

    assert queue.due(NOW_MS + 2, 1) == []  # until it is prepared
    assert take_all(queue) == [Waiting(NOW_MS + 2, 30, 29)]


def test_what_was_carried_forward_waits_anew_in_its_place() -> None:
    """The same by due time and offset, held by another companion, when the one before is gone."""
    waiting = as_they_come(100)
    queue = queue_of(waiting, now_ms=NOW_MS)
    carried = [each._replace(companion=500 + each.companion) for each in waiting if each.companion < 40]
    queue.start_advanced(40)
    for each in carried:
        queue.waits(each)

    expected = sorted([*carried, *(each for each in waiting if each.companion >= 40)])
    assert take_all(queue, at_once=1) == expected


def test_a_level_takes_a_few_bytes_a_record() -> None:
    rounding = Rounding([3_600_000])
    queue = LevelQueue()
    queue.prepare(NOW_MS)
    for number in range(20_480):
        now_ms = NOW_MS + number // 100 * 20
        queue.waits(Waiting(rounding(now_ms + 2_000_000, now_ms), number, number - number % 100))

    assert len(b"".join(queue.encode())) < 2 * 20_480


@given(
    columns=st.lists(
        st.tuples(st.integers(0, END_OF_TIME), st.integers(0, END_OF_TIME), st.integers(0, END_OF_TIME)), min_size=1
    ),
    cut=st.integers(0, 50),
)
def test_what_is_packed_comes_back(columns: list[tuple[int, int, int]], cut: int) -> None:
    waiting = [Waiting(*each) for each in columns]
    fifo = Fifo(4)
    for each in waiting[:cut]:
        fifo.append(each)
    again, _ = Fifo.decode(b"".join(fifo.encode()), 0, 4)
    for each in waiting[cut:]:
        again.append(each)
    found: list[Waiting] = []
    while again.count:
        found += again.take()

    assert found == waiting
