"""A delay queue of one's own, as a plugin in one file: what is due is delivered in business hours, and not at night.

A record that is due on a Saturday is seen on Monday morning: reminders for people. In `odradek.toml`:

    [plugins]
    enable = ["*", "examples.business_hours_queue"]

    [topics.reminders]
    "odradek.delay.enable" = true
    "odradek.delay.queue" = "business_hours"

It keeps what waits in one sorted list: fine for some ten thousand records a partition. `wheel` is made for millions.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from odradek.kernel.api import DelayQueueFactory, WaitingRecord, hookimpl


@dataclass(frozen=True)
class BusinessHours:
    """When records may be delivered: on these weekdays (0 is Monday), from one time of the day to another, there."""

    zone: ZoneInfo
    weekdays: frozenset[int] = frozenset(range(5))
    begin: time = time(9)
    end: time = time(17)

    def opens_at(self, ms: int) -> int:
        """Return the first moment from one on that lies in business hours; both are epoch milliseconds."""
        try:
            moment = datetime.fromtimestamp(ms / 1000, self.zone)
            if moment.weekday() in self.weekdays and self.begin <= moment.time() < self.end:
                return ms
            day = moment.date() + timedelta(days=moment.time() >= self.begin)
            while day.weekday() not in self.weekdays:
                day += timedelta(days=1)
        except (OverflowError, ValueError, OSError):  # after the year 9999 there are no more days
            return ms
        return int(datetime.combine(day, self.begin, self.zone).timestamp() * 1000)


class BusinessHoursQueue:
    """A `DelayQueue`: what waits in one partition, in the order in which it is due."""

    def __init__(self, hours: BusinessHours, waiting: Iterable[WaitingRecord] = ()) -> None:
        self._hours = hours
        self._waiting = sorted(waiting)
        self._looked_ms = 0

    @property
    def waiting_count(self) -> int:
        """How many records wait."""
        return len(self._waiting)

    def waits(self, waiting: WaitingRecord) -> None:
        """Take note of a record that waits."""
        insort(self._waiting, waiting)

    def delivered(self, due_ms: int, origin: int) -> None:
        """End the wait of a record, and of all before it."""
        del self._waiting[: bisect_right(self._waiting, (due_ms, origin), key=lambda each: each[:2])]

    def start_advanced(self, offset: int) -> None:
        """End the wait of what the log no more holds."""
        self._waiting = [each for each in self._waiting if each.companion >= offset]

    def prepare(self, now_ms: int) -> bool:
        """Have nothing to prepare."""
        return True

    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        """Return the first records that are due, if it is the time to deliver them."""
        self._looked_ms = now_ms
        if self._hours.opens_at(now_ms) != now_ms:
            return []
        first = self._waiting[:count_max]
        return first[: bisect_right(first, now_ms, key=lambda each: each.due_ms)]

    def next_due_ms(self) -> int | None:
        """Return when to look again: in the morning for what is due at night, or was not delivered by then."""
        return self._hours.opens_at(max(self._waiting[0].due_ms, self._looked_ms)) if self._waiting else None

    def encode(self) -> Iterator[bytes]:
        """Return all of it, to be kept beside the log."""
        data = json.dumps(self._waiting).encode()
        yield zlib.crc32(data).to_bytes(4, "big")
        yield data


class BusinessHoursFactory:
    """A `DelayQueueFactory`."""

    def __init__(self, hours: BusinessHours) -> None:
        self._hours = hours

    def new(self) -> BusinessHoursQueue:
        """Make a queue in which nothing waits."""
        return BusinessHoursQueue(self._hours)

    def rounding(self, settings: Mapping[str, object]) -> None:
        """Round nothing: the time that was asked for stays, and orders what waits until the morning."""

    def restore(self, data: bytes) -> BusinessHoursQueue:
        """Return the queue that was encoded; a `ValueError` has the broker read the log instead."""
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError("what was kept of the queue is damaged")
        return BusinessHoursQueue(self._hours, [WaitingRecord(*each) for each in json.loads(data[4:])])


@hookimpl
def odradek_delay_queues() -> Mapping[str, DelayQueueFactory]:
    """Offer `odradek.delay.queue=business_hours`."""
    return {"business_hours": BusinessHoursFactory(BusinessHours(ZoneInfo("Europe/Berlin")))}
