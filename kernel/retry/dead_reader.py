"""Pure core: what dead letters a retry topic's log has, told by who fetches it; batches in, dead letters out.

They stand in companions, which count only with the batch behind them, and of a transaction only where that was not
aborted: who fetches is given what lies below the last stable offset, and which transactions of it were aborted. So a
companion without its batch is where the next fetch begins.

Where a reader stands is two numbers: the offset to fetch from, and the offset of the last dead letter that was taken,
as those of one companion may be taken in parts.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..classes import frozen
from ..delay.companion import Companion, read_companion
from ..records.batch import CorruptRecordsError, read_header
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records.batch import BatchHeader
    from ..records.record import Record
    from ..types import Buffer


class Position(NamedTuple):
    """How far a retry topic's partition was taken.

    Attributes:
        offset: Where to fetch from.
        last_origin: Dead letters up to this offset were taken.
    """

    offset: int
    last_origin: int


BEGIN = Position(0, -1)


class AbortedRange(NamedTuple):
    """A transaction that was aborted, as a Fetch tells it: whose, and its first offset."""

    producer_id: int
    first_offset: int


@frozen
class DeadGroup:
    """The dead letters of one companion, not empty.

    Attributes:
        companion_offset: Where it stands.
        next_offset: Where to fetch from once all of them were taken.
        records: As they are to stand in the dead-letter topic, at the offsets that they were failed at.
    """

    companion_offset: int
    next_offset: int
    records: tuple[Record, ...]


class DeadReader:
    """Reads the batches of one fetch, in their order; used once.

    Attributes:
        groups: What was found, and not yet taken away.
        unreadable: Where something may have been that cannot be read, and why.
        next_offset: Where to fetch from next.
    """

    def __init__(self, position: Position, aborted: Iterable[AbortedRange]) -> None:
        """Begin.

        Args:
            position: Where the reader stands.
            aborted: The transactions that reach into what was fetched, and were aborted.
        """
        self._position = position
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborting: set[int] = set()
        self._begun: tuple[int, Companion] | None = None
        self.groups: list[DeadGroup] = []
        self.unreadable: list[str] = []
        self.next_offset = position.offset

    def read(self, batch: Buffer) -> None:
        """Take the next batch; it is copied. What cannot be read of it is passed over, as its own leader does."""
        header = read_header(batch)
        while self._aborted and self._aborted[-1].first_offset < header.next_offset:
            self._aborting.add(self._aborted.pop().producer_id)
        begun, self._begun = self._begun, None
        if header.is_control and header.has_producer_id:
            self._end_transaction(batch, header)
        if header.next_offset <= self._position.offset:
            return
        try:
            if begun is not None and begun[1].counts_with(header, begun[0]):
                is_aborted = header.is_transactional and header.producer_id in self._aborting
                if not is_aborted:
                    self._take(*begun, header.next_offset)
        except CorruptRecordsError as error:
            self.unreadable.append(f"offset {header.base_offset - 1}: {error}")
        try:
            self._begun = self._begun_by(batch, header)
        except CorruptRecordsError as error:
            self.unreadable.append(f"offset {header.base_offset}: {error}")
        begun = self._begun
        self.next_offset = header.next_offset if begun is None else begun[0]

    def take_groups(self) -> list[DeadGroup]:
        """Return what was found since this was asked last."""
        found, self.groups = self.groups, []
        return found

    def _end_transaction(self, batch: Buffer, header: BatchHeader) -> None:
        """Take note that a producer's transaction is over, also where what was in it is known."""
        if header.records_count:
            marker = read_control_record(batch, header)
            if isinstance(marker, EndTransactionMarker) and marker.type is ControlRecordType.ABORT:
                self._aborting.discard(header.producer_id)

    def _begun_by(self, batch: Buffer, header: BatchHeader) -> tuple[int, Companion] | None:
        """Return the companion that a control batch is, where it counts only with the next batch."""
        if not header.is_control or not header.records_count or header.has_producer_id:
            return None
        companion = read_companion(batch, header)
        if companion is None or companion.is_delivery or not any(entry.is_dead for entry in companion.entries):
            return None
        if companion.crc is not None:
            return header.base_offset, companion
        self._take(header.base_offset, companion, header.next_offset)
        return None

    def _take(self, offset: int, companion: Companion, next_offset: int) -> None:
        records = tuple(
            record
            for entry, record in companion.records()
            if entry.is_dead and record.offset > self._position.last_origin
        )
        if records:
            self.groups.append(DeadGroup(offset, next_offset, records))
