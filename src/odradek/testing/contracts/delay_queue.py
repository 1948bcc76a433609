"""Shell: the contract kit of delay queues: subclass `DelayQueueContract` and give `make_factory`.

Needs pytest. Each test's name is the promise it checks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING, ClassVar

import pytest

from odradek.kernel.api import WaitingRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.contracts.delay_queue import DelayQueue, DelayQueueFactory

_HOUR_MS = 3_600_000
_YEAR_MS = 366 * 24 * _HOUR_MS
_STEPS_MAX = 100_000
_END_OF_TIME = 2**63 - 1
_MANY = 10_000
_AT_ONCE = 500


def _sample(now_ms: int, count: int = 3_000) -> list[WaitingRecord]:
    """Return records as a log has them: in the order of their offsets, due at any time, many at once, some in years."""
    drawn = random.Random(7)
    spans = (1, 50, 60_000, _YEAR_MS, 300 * _YEAR_MS)
    return [
        WaitingRecord(now_ms + drawn.randrange(drawn.choice(spans)), number, number - number % 10)
        for number in range(count)
    ]


def _filled(queue: DelayQueue, waiting: list[WaitingRecord]) -> DelayQueue:
    for each in waiting:
        queue.waits(each)
    return queue


def _due(queue: DelayQueue, now_ms: int, count_max: int = 50) -> list[WaitingRecord]:
    for _ in range(_STEPS_MAX):
        is_prepared = queue.prepare(now_ms)
        found = list(queue.due(now_ms, count_max))
        if found or is_prepared:
            return found
    raise AssertionError("`prepare` never comes to an end")


def _deliver_all(queue: DelayQueue, now_ms: int) -> list[WaitingRecord]:
    found: list[WaitingRecord] = []
    while batch := _due(queue, now_ms):
        found += batch
        queue.delivered(batch[-1].due_ms, batch[-1].origin)
    return found


class DelayQueueContract:
    """What every delay queue promises.

    Attributes:
        now_ms: A moment, in epoch milliseconds, at which the queue hands out what is due; so it does at the same time
            of the same weekday in 301 leap years. A Tuesday, ten o'clock in Greenwich, if nothing else is said.
        record_bytes_max: How much memory a waiting record may take, beyond `held_bytes_max`; None promises nothing.
        held_bytes_max: What the queue may hold besides, whatever waits: what was sorted, or read ahead.
    """

    now_ms: ClassVar[int] = 1_699_956_000_000
    record_bytes_max: ClassVar[int | None] = None
    held_bytes_max: ClassVar[int] = 1 << 20

    def make_factory(self) -> DelayQueueFactory:
        """Return the factory that the plugin offers."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, object]:
        """Return topic keys that the plugin owns, by name, with values that are valid."""
        return {}

    def _new(self) -> DelayQueue:
        return self.make_factory().new()

    def _copy(self, queue: DelayQueue) -> DelayQueue:
        return self.make_factory().restore(b"".join(queue.encode()))

    def test_all_that_waits_is_due_once_by_time_and_then_by_offset(self) -> None:
        waiting = _sample(self.now_ms)
        queue = _filled(self._new(), waiting)

        assert queue.waiting_count == len(waiting)
        assert _deliver_all(queue, self.now_ms + 301 * _YEAR_MS) == sorted(waiting)
        assert queue.waiting_count == 0

    def test_nothing_is_due_early(self) -> None:
        queue = _filled(self._new(), [WaitingRecord(self.now_ms, 1, 0), WaitingRecord(self.now_ms + 1, 2, 0)])

        assert _due(queue, self.now_ms - 1) == []
        assert _due(queue, self.now_ms) == [WaitingRecord(self.now_ms, 1, 0)]

    def test_what_is_due_waits_until_it_was_delivered(self) -> None:
        queue = _filled(self._new(), [WaitingRecord(self.now_ms, 1, 0)])

        assert _due(queue, self.now_ms) == _due(queue, self.now_ms)
        assert queue.waiting_count == 1

    def test_it_says_when_to_look_again_and_never_too_late(self) -> None:
        queue = self._new()
        assert queue.next_due_ms() is None

        _filled(queue, [WaitingRecord(self.now_ms + _YEAR_MS, 1, 0), WaitingRecord(self.now_ms + 5, 2, 0)])
        told = queue.next_due_ms()

        assert told is not None
        assert told <= self.now_ms + 5

    def test_where_nothing_is_given_out_the_next_look_is_later(self) -> None:
        queue = _filled(self._new(), [WaitingRecord(self.now_ms, 1, 0)])
        for hours in range(7 * 24):
            now_ms = self.now_ms + hours * _HOUR_MS
            if not _due(queue, now_ms):
                told = queue.next_due_ms()

                assert told is None or told > now_ms, "the broker would look again and again"

    def test_a_delivery_ends_the_wait_of_all_that_was_in_the_order_before(self) -> None:
        waiting = sorted(_sample(self.now_ms))
        queue = _filled(self._new(), sorted(waiting, key=lambda each: each.origin))
        last = waiting[len(waiting) // 2]
        queue.delivered(last.due_ms, last.origin)

        assert _deliver_all(queue, self.now_ms + 301 * _YEAR_MS) == [each for each in waiting if each > last]

    def test_what_comes_late_is_due_at_once(self) -> None:
        queue = _filled(self._new(), [WaitingRecord(self.now_ms, 1, 0)])
        queue.delivered(self.now_ms, 1)
        _filled(queue, [WaitingRecord(self.now_ms - 5, 9, 8)])

        assert _due(queue, self.now_ms) == [WaitingRecord(self.now_ms - 5, 9, 8)]

    def test_what_a_log_no_more_holds_does_not_wait(self) -> None:
        queue = _filled(self._new(), [WaitingRecord(self.now_ms, 1, 0), WaitingRecord(self.now_ms, 6, 5)])
        queue.start_advanced(5)

        assert _deliver_all(queue, self.now_ms) == [WaitingRecord(self.now_ms, 6, 5)]

    def test_what_was_kept_is_what_the_log_says(self) -> None:
        waiting = sorted(_sample(self.now_ms))
        queue = _filled(self._new(), sorted(waiting, key=lambda each: each.origin))
        queue.delivered(waiting[700].due_ms, waiting[700].origin)
        copy = self._copy(queue)

        assert copy.waiting_count == queue.waiting_count
        assert _deliver_all(copy, self.now_ms + 301 * _YEAR_MS) == waiting[701:]

    def test_what_was_kept_and_is_damaged_is_refused(self) -> None:
        data = b"".join(_filled(self._new(), _sample(self.now_ms, 20)).encode())
        for damaged in (b"", data[:-1], data[:10], bytes([data[0] ^ 1]) + data[1:]):
            with pytest.raises(ValueError):  # noqa: PT011 - which words is the queue's own business
                self.make_factory().restore(damaged)

    def test_a_due_time_is_rounded_to_no_earlier_one(self) -> None:
        rounding = self.make_factory().rounding(self.settings())
        if rounding is None:
            return
        drawn = random.Random(7)
        asked_ms = [self.now_ms + 1 + drawn.randrange(10 ** drawn.randrange(1, 14)) for _ in range(1_000)]
        for due_ms in [*asked_ms, _END_OF_TIME]:
            rounded_ms = rounding(due_ms, self.now_ms)

            assert due_ms <= rounded_ms <= _END_OF_TIME
            assert rounding(due_ms, self.now_ms) == rounded_ms, "it keeps nothing"

    def test_reading_what_waits_pauses_above_a_threshold_in_memory(self) -> None:
        if self.record_bytes_max is None:
            return
        factory = self.make_factory()
        round_up = factory.rounding(self.settings()) or (lambda due_ms, now_ms: due_ms)
        drawn = random.Random(7)
        bytes_max = self.held_bytes_max + self.record_bytes_max * _MANY
        tracemalloc.start()
        try:
            queue = factory.new()
            queue.prepare(self.now_ms)
            for number in range(_MANY):
                now_ms = self.now_ms + number // 10
                due_ms = round_up(now_ms + drawn.randrange(1, _HOUR_MS), now_ms)
                queue.waits(WaitingRecord(due_ms, number, number - number % 10))
            assert tracemalloc.get_traced_memory()[0] < bytes_max, "while all of it waits"
            left = _MANY
            while left:
                batch = _due(queue, self.now_ms + _YEAR_MS, _AT_ONCE)
                assert tracemalloc.get_traced_memory()[0] < bytes_max, "while it is read"
                queue.delivered(batch[-1].due_ms, batch[-1].origin)
                left -= len(batch)
        finally:
            tracemalloc.stop()
