"""Pure core: which records of one retry partition wait, or are not worked on yet: a function of its log.

    companion: k1 waits, k2 is dead          k1 is pending
    a transaction aborts                     what it failed is pending no more
    carried forward: k1                      the same is pending, in another place
    delivery: k1 at offset 40                still pending, until 40 was worked on
    processed(41)                            no more; done, until its partition was read past it, too

Where a record came before another one is a matter of their *origins*, the offsets of the topic that they were first
read at. A record whose origin is not told, as another client may have failed it, counts as before all others.
What is without a key has no order, and is not kept.

.. versionadded:: 0.1
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.delay.companion import Companion, read_companion
from odradek.kernel.delay.headers import DELAYED_FROM
from odradek.kernel.records.batch import CorruptRecordsError, iterate_batches
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, read_control_record
from odradek.kernel.records.reader import read_batch
from odradek.kernel.retry.headers import read_failure
from odradek.kernel.types import NO_PRODUCER_ID

if TYPE_CHECKING:
    from odradek.kernel.records.batch import BatchHeader
    from odradek.kernel.records.record import Headers
    from odradek.kernel.types import Buffer, TopicPartition

NO_ORIGIN: Final = -1
_NOT_DELIVERED: Final = -1
_GONE_MAX: Final = 64
"""So many places that are gone may stand in a key's heap, beyond as many as are pending."""
_FROM: Final = re.compile(rb"-?[0-9]{1,10}:([0-9]{1,19})")


@attrs.define(eq=False)
class Pending:
    """A record that waits, or is not worked on yet.

    Attributes:
        key: Its key.
        origin: The offset of the topic that it was first read at; `NO_ORIGIN` where that is not told.
        offset: Where it was produced to the retry partition.
        companion: Where the companion stands that holds it.
        delivered: At which offset it was given back; -1 while it waits.
        is_open: Whether the transaction that failed it is open: where that is aborted, it never was here.
    """

    key: bytes
    origin: int
    offset: int
    companion: int
    delivered: int = _NOT_DELIVERED
    is_open: bool = False


@attrs.define(eq=False)
class KeyState:
    """What is pending of one key, not empty.

    Attributes:
        count: How many records.
        waiting_count: How many of them were not given back yet.
        open_count: How many of them transactions have failed that are open.
        due_ms: When the last of them to be given back is due, or was.
        delivered_max: Where the last was given back.
        order: Origins and offsets as a heap, gone ones among them.
    """

    count: int = 0
    waiting_count: int = 0
    open_count: int = 0
    due_ms: int = 0
    delivered_max: int = _NOT_DELIVERED
    order: list[tuple[int, int]] = attrs.field(factory=list)


def origin_of(headers: Headers, home: TopicPartition) -> int:
    """Return the offset of a partition that a record was first read at; `NO_ORIGIN` where it does not say so."""
    origin = read_failure(headers).origin
    return NO_ORIGIN if origin is None or (origin.topic, origin.partition) != home else origin.offset


def failed_at(headers: Headers) -> int | None:
    """Return where a record that was given back was produced to its retry partition; None where it does not say so."""
    value = dict(headers).get(DELAYED_FROM)
    found = None if value is None else _FROM.fullmatch(value)
    return None if found is None else int(found[1])


class WaitingKeys:
    """What is pending in one retry partition, as far as its log was read.

    Attributes:
        next_offset: From where on the log is to be fetched.
    """

    def __init__(self, home: TopicPartition, start_offset: int, home_position: int | None = None) -> None:
        """Begin to read.

        Args:
            home: The partition that the group reads.
            start_offset: Nothing is pending whose companion stands before.
            home_position: See `home_passed`; None where the group has read nothing of it, or it was made anew since:
                then what was worked on before says nothing of its records.
        """
        self.next_offset = start_offset
        self._home = home
        self._begun: tuple[int, Companion] | None = None
        self._pending: dict[int, Pending] = {}  # by offset; in the order of their companions
        self._keys: dict[bytes, KeyState] = {}
        self._copies: dict[int, list[Pending]] = {}  # by origin, the newest last
        self._order: list[tuple[int, int]] = []
        self._open: dict[int, list[tuple[int, Pending]]] = {}
        self._delivered: deque[Pending] = deque()
        self._done: dict[int, Pending] = {}  # by origin
        self._is_home_known = home_position is not None
        self._home_position = home_position or 0
        self._processed = 0
        self._start = 0

    # What is asked.

    def __len__(self) -> int:
        """How many records are pending."""
        return len(self._pending)

    @property
    def needed_from(self) -> int:
        """Up to where the log is not needed again by who begins anew where this stands."""
        if self._pending:
            needed = next(iter(self._pending.values())).companion
        else:
            needed = self.next_offset if self._begun is None else self._begun[0]
        return min(needed, min((done.companion for done in self._done.values()), default=needed))

    def key_state(self, key: bytes) -> KeyState | None:
        """Return what is pending of a key; None for nothing."""
        return self._keys.get(key)

    def newest_copy(self, origin: int) -> Pending | None:
        """Return the newest pending copy of the record of an origin; None where there is none."""
        copies = self._copies.get(origin)
        return None if copies is None else copies[-1]

    def is_done(self, origin: int, key: bytes) -> bool:
        """Return whether a copy of a record was worked on that its partition was not read past yet."""
        done = self._done.get(origin)
        return done is not None and done.key == key  # of another key, the topic was made anew

    def has_before(self, key: bytes, origin: int, offset: int | None = None) -> bool:
        """Return whether a pending record of a key came before another one.

        Args:
            key: The key.
            origin: The other record's.
            offset: Where it was produced to the retry partition, if it was: it is not before itself.
        """
        state = self._keys.get(key)
        if state is None:
            return False
        order = state.order
        while not self._is_pending(order[0]):
            heapq.heappop(order)
        if origin == NO_ORIGIN:
            return offset is not None and order[0] < (NO_ORIGIN, offset)
        return order[0][0] < origin

    def _is_pending(self, place: tuple[int, int]) -> bool:
        found = self._pending.get(place[1])
        return found is not None and found.origin == place[0]

    # What is told.

    def read(self, records: Buffer) -> None:
        """Take what a fetch from `next_offset` on has brought; a batch that is cut off is to be fetched again."""
        view = memoryview(records)
        for position, header in iterate_batches(view):
            if header.next_offset > self.next_offset:
                with suppress(CorruptRecordsError):  # its broker tells of it, and passes it over, too
                    self._saw(view[position : position + header.length_bytes], header)
                self.next_offset = header.next_offset

    def processed(self, offset: int) -> None:
        """Take note that the group has worked on what was given back below an offset."""
        self._processed = offset
        while self._delivered and self._delivered[0].delivered < offset:
            self._finish(self._delivered.popleft())

    def home_passed(self, offset: int) -> None:
        """Take note that the group has read its partition up to there: what is done below is not met there again.

        Where it goes back it wants all again.
        """
        if self._done:
            is_back = offset < self._home_position
            self._done = {} if is_back else {each: done for each, done in self._done.items() if each >= offset}
        self._home_position = offset

    def start_advanced(self, offset: int) -> None:
        """Take note that the log begins at an offset now: what stood below will never be given back, nor read."""
        if offset <= self._start:
            return
        self._start = offset
        for pending in list(self._pending.values()):
            place = pending.companion if pending.delivered == _NOT_DELIVERED else pending.delivered
            if place < offset:
                self._remove(pending)

    def _saw(self, batch: memoryview, header: BatchHeader) -> None:
        begun, self._begun = self._begun, None
        if not header.is_control:
            if begun is not None and begun[1].counts_with(header, begun[0]):
                self._counts(*begun, batch, header)
            return
        if header.has_producer_id:
            self._end_transaction(batch, header)
            return
        companion = read_companion(batch, header)
        if companion is None:
            return
        if companion.crc is None:
            self._counts(header.base_offset, companion, None, header)
        else:
            self._begun = (header.base_offset, companion)

    def _counts(self, offset: int, companion: Companion, batch: memoryview | None, header: BatchHeader) -> None:
        if companion.withdrawn is not None:
            self._withdraw(companion.withdrawn.below)
            return
        if companion.is_delivery:
            entry = companion.entries[0]
            self._deliver((entry.due_ms, entry.origin), {} if batch is None else _delivered_by(batch, header))
            return
        for entry, record in companion.records():
            if entry.is_dead or record.key is None:
                continue
            if companion.is_carried and self._carry(record.offset, offset):
                continue
            pending = Pending(record.key, origin_of(record.headers, self._home), record.offset, offset)
            self._add(pending, entry.due_ms)
            if companion.producer_id == NO_PRODUCER_ID:
                heapq.heappush(self._order, (entry.due_ms, record.offset))
            else:
                pending.is_open = True
                self._keys[pending.key].open_count += 1
                self._open.setdefault(companion.producer_id, []).append((entry.due_ms, pending))

    def _carry(self, offset: int, companion: int) -> bool:
        """Take note that a record waits in another companion, behind; return whether it is known that it waits."""
        pending = self._pending.pop(offset, None)
        if pending is None:
            return False
        pending.companion = companion
        self._pending[offset] = pending
        return True

    def _withdraw(self, below: int) -> None:
        """Take note that what was produced below an offset waits no more, wherever it lies."""
        for pending in list(self._pending.values()):
            if pending.offset < below and pending.delivered == _NOT_DELIVERED:
                self._remove(pending)

    def _end_transaction(self, batch: memoryview, header: BatchHeader) -> None:
        failed = self._open.pop(header.producer_id, ())
        if not failed:
            return
        marker = read_control_record(batch, header)
        is_committed = isinstance(marker, EndTransactionMarker) and marker.type is ControlRecordType.COMMIT
        for due_ms, pending in failed:
            self._close(pending)
            if is_committed:
                heapq.heappush(self._order, (due_ms, pending.offset))
            else:
                self._remove(pending)

    def _close(self, pending: Pending) -> None:
        if self._pending.get(pending.offset) is pending:
            self._keys[pending.key].open_count -= pending.is_open
        pending.is_open = False

    def _deliver(self, up_to: tuple[int, int], delivered: dict[int, int]) -> None:
        """Take note that what is in the order up to there waits no more; what is not among the delivered is gone."""
        while self._order and self._order[0] <= up_to:
            _, offset = heapq.heappop(self._order)
            pending = self._pending.get(offset)
            if pending is None:
                continue
            place = delivered.get(offset)
            if place is None or (place < self._processed and not self._is_home_known):
                self._remove(pending)
                continue
            if place < self._processed:
                self._finish(pending)
                continue
            pending.delivered = place
            self._delivered.append(pending)
            state = self._keys[pending.key]
            state.waiting_count -= 1
            state.delivered_max = max(state.delivered_max, place)

    def _add(self, pending: Pending, due_ms: int) -> None:
        self._pending[pending.offset] = pending
        state = self._keys.setdefault(pending.key, KeyState())
        state.count += 1
        state.waiting_count += 1
        state.due_ms = max(state.due_ms, due_ms)
        if len(state.order) > 2 * state.count + _GONE_MAX:
            state.order = [place for place in state.order if self._is_pending(place)]
            heapq.heapify(state.order)
        heapq.heappush(state.order, (pending.origin, pending.offset))
        if pending.origin != NO_ORIGIN:
            self._copies.setdefault(pending.origin, []).append(pending)

    def _finish(self, pending: Pending) -> None:
        """Take note that a record was worked on, or passed over for a newer copy of it."""
        if pending.origin >= self._home_position and self._pending.get(pending.offset) is pending:
            self._done[pending.origin] = pending
        self._remove(pending)

    def _remove(self, pending: Pending) -> None:
        if self._pending.get(pending.offset) is not pending:
            return
        del self._pending[pending.offset]
        state = self._keys[pending.key]
        state.count -= 1
        state.waiting_count -= pending.delivered == _NOT_DELIVERED
        state.open_count -= pending.is_open
        if not state.count:
            del self._keys[pending.key]
        if pending.origin != NO_ORIGIN:
            copies = self._copies[pending.origin]
            copies.remove(pending)
            if not copies:
                del self._copies[pending.origin]


def _delivered_by(batch: memoryview, header: BatchHeader) -> dict[int, int]:
    """Return where the records of a delivery stand, by where they were produced to."""
    found = ((failed_at(record.headers), record.offset) for record in read_batch(batch, 0, header))
    return {offset: place for offset, place in found if offset is not None}
