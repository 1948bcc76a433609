"""Pure core: a hierarchical timing wheel: timers that cost the same whether there are ten or a million of them.

A heap of timers pays O(log n) for each one, and most timers of a broker are cancelled before they are due (a fetch
that waits 500 ms is answered by the next append). A wheel pays O(1) to add and to cancel::

    wheel 0   a slot is 1 tick        [ 100 | 101 | 102 | 103 ]      slots 4, now = tick 100
    wheel 1   a slot is 4 ticks       [ 100 | 104 | 108 | 112 ]      overflow of wheel 0
    wheel 2   a slot is 16 ticks      [  96 | 112 | 128 | 144 ]      overflow of wheel 1

Worked example, tick 1 ms, 4 slots, now 100 ms:

* a timer for 102 lies within the 4 slots of wheel 0 and goes into slot 102;
* a timer for 109 lies beyond wheel 0; wheel 1 holds it in the slot 108 (108 to 111);
* a timer for 130 goes to wheel 2, slot 128 (128 to 143).

At 102 the first is due. At 108 the slot 108 of wheel 1 is emptied: its timers are added anew, the one for 109 now fits
wheel 0 (108 to 111). At 128 the third comes down to wheel 0, and is due at 130. A timer comes down at most once a
wheel, and with the default of 512 slots three wheels span 37 hours at 1 ms.

Which slot is next is known by a heap of the slots in use (Kafka's DelayQueue of buckets): a slot enters it when its
first timer comes, so time may jump over any number of empty slots at no cost.

A deadline is rounded up to a tick: a timer is never early and at most one tick late.

*Source:* Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987); Kafka's TimingWheel and SystemTimer, which
round down.
"""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, Final

import attrs

from ..classes import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_TICK_MS: Final = 1
DEFAULT_WHEEL_SIZE: Final = 512
NO_LIMIT: Final = 1 << 62


class _Slot(dict["TimerEntry", None]):
    """The timers of one slot in the order they came, and whether the heap knows the slot."""

    __slots__ = ("is_queued",)

    def __init__(self) -> None:
        super().__init__()
        self.is_queued = False


@define(eq=False)
class TimerEntry:
    """One timer. Subclasses say in `expire` what is done when it is due. In at most one wheel at a time.

    Attributes:
        deadline_ms: When it is due, on the clock that the wheel is advanced by.
        slot: The wheel's own: where the entry lies, None when it is in no wheel.
    """

    deadline_ms: int
    slot: _Slot | None = attrs.field(default=None, init=False, repr=False)

    def expire(self) -> None:
        """Do what is due; called by whoever advances the wheel. The entry has left the wheel and may be added again."""

    def cancel_timer(self) -> bool:
        """Take the timer out of its wheel; return whether it was in one. O(1)."""
        slot = self.slot
        if slot is None:
            return False
        del slot[self]
        self.slot = None
        return True


@define(eq=False)
class CallTimer(TimerEntry):
    """A timer that calls a function.

    Attributes:
        due: The function.
    """

    due: Callable[[], object]

    def expire(self) -> None:
        """Call it."""
        self.due()


@frozen
class WheelStatistics:
    """A picture of a wheel: timers waiting, slots in use, wheels made."""

    timers_count: int
    queued_slots_count: int
    wheels_count: int


class TimingWheel:
    """The wheels of one clock. Owned by one task; the clock is whatever the caller advances it by."""

    def __init__(self, *, now_ms: int, tick_ms: int = DEFAULT_TICK_MS, wheel_size: int = DEFAULT_WHEEL_SIZE) -> None:
        """Make an empty wheel.

        Args:
            now_ms: The clock now.
            tick_ms: The resolution, at least 1.
            wheel_size: Slots of each wheel, at least 2.
        """
        assert tick_ms >= 1
        assert wheel_size >= 2
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._current_tick = now_ms // tick_ms
        self._wheels: list[list[_Slot]] = [[_Slot() for _ in range(wheel_size)]]
        # (first tick, -level, slot): of slots that begin together the coarsest comes first, so that its timers have
        # come down before the finest is emptied. No two queued slots share tick and level, so slots are not compared.
        self._queue: list[tuple[int, int, _Slot]] = []
        self._alarm_tick = -1
        self._alarm: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<TimingWheel at {self._current_tick * self._tick_ms} ms, {len(self)} timers>"

    def __len__(self) -> int:
        return sum(len(slot) for _, _, slot in self._queue)

    def add(self, entry: TimerEntry) -> None:
        """Start a timer. One that is due already is given out by the next `advance`. O(1)."""
        assert entry.slot is None, "a timer is in one wheel at a time"
        due_tick = -(-entry.deadline_ms // self._tick_ms)
        current_tick = self._current_tick
        if due_tick < current_tick:
            due_tick = current_tick
        size = self._wheel_size
        if due_tick - current_tick < size:
            slot = self._wheels[0][due_tick % size]
            if not slot.is_queued:
                self._enqueue(slot, due_tick, 0)
        else:
            slot = self._overflow_slot(due_tick)
        slot[entry] = None
        entry.slot = slot

    def _overflow_slot(self, due_tick: int) -> _Slot:
        """Return the slot of the first overflow wheel that reaches `due_tick`, making the wheel if need be."""
        size, level, slot_ticks = self._wheel_size, 1, self._wheel_size
        while due_tick // slot_ticks - self._current_tick // slot_ticks >= size:
            level += 1
            slot_ticks *= size
        while len(self._wheels) <= level:
            self._wheels.append([_Slot() for _ in range(size)])
        number = due_tick // slot_ticks
        slot = self._wheels[level][number % size]
        if not slot.is_queued:
            self._enqueue(slot, number * slot_ticks, level)
        return slot

    def _enqueue(self, slot: _Slot, first_tick: int, level: int) -> None:
        slot.is_queued = True
        heapq.heappush(self._queue, (first_tick, -level, slot))
        if first_tick < self._alarm_tick and self._alarm is not None:
            alarm, self._alarm, self._alarm_tick = self._alarm, None, -1
            alarm()

    def advance(self, now_ms: int, limit: int = NO_LIMIT) -> list[TimerEntry]:
        """Let time pass and return the entries that are due, which leave the wheel; the caller expires them.

        Args:
            now_ms: The clock; a time before the last one changes nothing.
            limit: Return at most so many: a crowd of timers must not hold up the caller's turn. As long as the answer
                has `limit` entries there may be more; `next_expiry_ms` then lies in the past.

        Returns:
            The entries in the order of their ticks; within one tick in the order of their deadlines.
        """
        now_tick = now_ms // self._tick_ms
        queue = self._queue
        expired: list[TimerEntry] = []
        while queue and queue[0][0] <= now_tick and len(expired) < limit:
            first_tick, negative_level, slot = queue[0]
            if first_tick > self._current_tick:
                self._current_tick = first_tick
            if negative_level == 0:
                self._take(slot, expired, limit)
                if slot:
                    return expired
                # Nothing can have been queued before it meanwhile: it is still the first.
                heapq.heappop(queue)
                slot.is_queued = False
            else:
                heapq.heappop(queue)
                slot.is_queued = False
                self._come_down(slot)
        if now_tick > self._current_tick and len(expired) < limit:
            self._current_tick = now_tick
        return expired

    def _take(self, slot: _Slot, expired: list[TimerEntry], limit: int) -> None:
        """Move entries of a due slot of the finest wheel to `expired`, which may grow to `limit`."""
        entries = list(slot)
        if self._tick_ms > 1:
            entries.sort(key=_deadline_ms)
        for entry in islice(entries, limit - len(expired)):
            del slot[entry]
            entry.slot = None
            expired.append(entry)

    def _come_down(self, slot: _Slot) -> None:
        """Add the entries of an overflow slot anew, now that the time of the slot has come."""
        entries = list(slot)
        slot.clear()
        for entry in entries:
            entry.slot = None
            self.add(entry)

    def next_expiry_ms(self) -> int | None:
        """Return when to call `advance` next: not after the first timer is due; None when there is no timer.

        It may be earlier than the first deadline, when timers of an overflow wheel have to come down before.
        """
        queue = self._queue
        while queue:
            first_tick, _, slot = queue[0]
            if slot:
                return first_tick * self._tick_ms
            heapq.heappop(queue)
            slot.is_queued = False
        return None

    def set_alarm(self, before_ms: int | None, alarm: Callable[[], None]) -> None:
        """Have `alarm` called, once, when a timer comes that asks for an `advance` before `before_ms`.

        Args:
            before_ms: What `next_expiry_ms` gave; None for any time.
            alarm: Must neither raise nor touch the wheel. It takes the place of an earlier one.
        """
        self._alarm = alarm
        self._alarm_tick = NO_LIMIT if before_ms is None else before_ms // self._tick_ms

    def statistics(self) -> WheelStatistics:
        """Return a picture of the wheel."""
        return WheelStatistics(len(self), len(self._queue), len(self._wheels))


def until_beat_ms(now_ms: int, period_ms: int) -> int:
    """Return how long it is until the next multiple of a period: at most one period.

    That a process wakes up costs more than most of what a quiet broker does now and then. So what may be done a little
    earlier has one beat with all of its period, here and in the other brokers of the machine: followers' fetches that
    found nothing are answered together, and meet the calm elections' ticks and the work of every second.
    """
    return period_ms - now_ms % period_ms


def _deadline_ms(entry: TimerEntry) -> int:
    return entry.deadline_ms
