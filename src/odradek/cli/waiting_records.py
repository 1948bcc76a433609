"""Pure core: which records wait in a partition, read from its log by who has no broker's ledger: `odradek delay`.

What waits is a function of the log, so whoever fetches the log knows it, from any broker and through any client.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.delay.companion import read_companion
from odradek.kernel.delay.headers import DELAY_ID
from odradek.kernel.delay.ledger import DelayLedger
from odradek.kernel.records.batch import CorruptRecordsError, iterate_batches

from .record_format import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.kernel.contracts.delay_queue import WaitingRecord
    from odradek.kernel.delay.companion import Companion, WaitingEntry, Withdrawn
    from odradek.kernel.records.batch import BatchHeader
    from odradek.kernel.records.record import Record
    from odradek.kernel.types import Buffer

    from .log_reads import LogPart


@attrs.frozen
class DelayedRecord:
    """A record that waits.

    Attributes:
        due_ms: When it is due, epoch milliseconds.
        record: As it was produced, at its own offset.
    """

    due_ms: int
    record: Record

    @property
    def name(self) -> str | None:
        """By which it can be withdrawn."""
        return shown_text(dict(self.record.headers).get(DELAY_ID))


class _PlainQueue:
    """A `DelayQueue` that keeps all in a dictionary: it is asked once."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[int, int], int] = {}
        self._order: list[tuple[int, int]] = []

    @property
    def waiting_count(self) -> int:
        return len(self.waiting)

    def waits(self, waiting: WaitingRecord) -> None:
        self.waiting[waiting[:2]] = waiting.companion
        heapq.heappush(self._order, waiting[:2])

    def delivered(self, due_ms: int, origin: int) -> None:
        while self._order and self._order[0] <= (due_ms, origin):
            self.waiting.pop(heapq.heappop(self._order), None)

    def start_advanced(self, offset: int) -> None:
        self.waiting = {key: companion for key, companion in self.waiting.items() if companion >= offset}

    def prepare(self, now_ms: int) -> bool:
        return True

    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        return ()

    def next_due_ms(self) -> int | None:
        return min((due_ms for due_ms, _ in self.waiting), default=None)

    def encode(self) -> Iterable[bytes]:
        return ()


class _Queues:
    def new(self) -> _PlainQueue:
        return _PlainQueue()

    def rounding(self, settings: Mapping[str, object]) -> None:
        """Round nothing."""

    def restore(self, data: bytes) -> _PlainQueue:
        raise ValueError("nothing was kept")


_QUEUES: Final = _Queues()


def _nothing(*_told: object) -> None:
    """Do nothing: what cannot be read its broker tells, which passes over it as this does."""


class WaitingRecords:
    """What waits in one partition, as far as its log was read.

    Attributes:
        next_offset: From where on the log is to be fetched.
        withdrawals: What the log says of what DeleteRecords has withdrawn.
    """

    def __init__(self, start_offset: int) -> None:
        """Begin where the log does."""
        self._ledger = DelayLedger(_QUEUES, on_due=_nothing, on_unreadable=_nothing)
        self._ledger.start_advanced(start_offset)
        self._held: dict[int, list[tuple[WaitingEntry, Record]]] = {}
        self.withdrawals: list[Withdrawn] = []
        self.next_offset = start_offset

    def read(self, part: LogPart) -> None:
        """See `LogReader.read`."""
        for position, header in iterate_batches(part.records):
            if header.base_offset < self.next_offset:
                continue
            batch = part.records[position : position + header.length_bytes]
            self._ledger.saw(batch, header)
            companion = _companion_of(batch, header)
            if companion is not None and companion.withdrawn is not None:
                self.withdrawals.append(companion.withdrawn)
            elif companion is not None and not companion.is_delivery:
                self._held[header.base_offset] = _held_by(companion)
            self.next_offset = header.next_offset

    @property
    def left_count(self) -> int:
        """How many records are still to be seen: those that wait, and those whose transaction is open."""
        return len(self.waiting()) + self._ledger.open_count

    @property
    def withdrawn_count(self) -> int:
        """How many records DeleteRecords has withdrawn, as far as the log has notes of it that have counted."""
        queue = self._ledger.queue
        assert isinstance(queue, _PlainQueue)
        below = max((withdrawn.below for withdrawn in self.withdrawals), default=0)
        carried_count = sum(origin < below for _, origin in queue.waiting)  # it lies behind, and is passed over
        return carried_count + sum(max(withdrawn.records_count, 0) for withdrawn in self.withdrawals)

    def waiting(self) -> list[DelayedRecord]:
        """Return what waits, in the order in which it is due, but for what was withdrawn."""
        queue = self._ledger.queue
        assert isinstance(queue, _PlainQueue)
        needed = self._ledger.needed_from(self.next_offset)
        self._held = {offset: held for offset, held in self._held.items() if needed is not None and offset >= needed}
        found = []
        for (due_ms, origin), offset in sorted(queue.waiting.items()):
            for entry, record in self._held.get(offset, ()):
                if entry.origin == origin and not self._ledger.is_withdrawn(entry):
                    found.append(DelayedRecord(due_ms, record))
        return found


def _companion_of(batch: Buffer, header: BatchHeader) -> Companion | None:
    try:
        return read_companion(batch, header)
    except CorruptRecordsError:
        return None


def _held_by(companion: Companion) -> list[tuple[WaitingEntry, Record]]:
    try:
        return list(companion.records())
    except CorruptRecordsError:
        return []
