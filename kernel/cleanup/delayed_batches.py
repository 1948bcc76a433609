"""Pure core: which control batches of delayed records compaction keeps, and how: found before anything is rewritten.

| batch | stays |
| --- | --- |
| a companion of which something waits, or may | settled: what stood behind it is compacted as any other batch |
| one that only withdraws names | as long as a companion before it is kept that has one of them (none lies behind it) |
| one that does not count, or was aborted | not; the last batch of all as it is: nobody knows what is behind it |
| a delivery | settled, unless a later one goes as far: what it ends would else wait again for who reads the log anew |
| what a DeleteRecords left | as a delivery |
| the end of a transaction of which a companion is kept | as it is |

What waits is known in stretches of offsets (`DelayLedger.needed_stretches`); so a companion may be kept that is over.
Whoever reads what is left finds the same waiting as in what was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import define
from ..delay.companion import COMPANION_OFFSETS, CompanionReader, build_companion, read_companion
from ..delay.ledger import stretch_of
from ..records.batch import assign_offset_and_epoch, read_header
from ..records.control import EndTransactionMarker, read_control_record
from ..types import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..delay.companion import Companion, CountedCompanion
    from ..partitions.transaction_index import AbortedTransaction
    from ..records.batch import BatchHeader
    from ..types import Buffer

_BEFORE_ALL: Final = (-1, -1)


@define(eq=False)
class DelayedBatches:
    """What of a log's control batches is kept for what waits. Told of every batch, then asked.

    Attributes:
        needed: The stretches in which something waits.
        aborted: All aborted transactions.
        settled: Offsets of companions that are kept.
        ends: Offsets of ends of transactions that are kept as they are.
    """

    needed: Collection[int]
    aborted: Sequence[AbortedTransaction]
    settled: set[int] = attrs.field(factory=set, init=False)
    ends: set[int] = attrs.field(factory=set, init=False)
    _reader: CompanionReader = attrs.field(factory=CompanionReader, init=False)
    _names: set[bytes] = attrs.field(factory=set, init=False)
    _open: set[int] = attrs.field(factory=set, init=False)
    _notes: list[tuple[int, tuple[int, int]]] = attrs.field(factory=list, init=False)
    _last_offset: int = attrs.field(default=-1, init=False)
    _below: int = attrs.field(default=-1, init=False)
    _below_at: int = attrs.field(default=-1, init=False)

    def saw(self, batch: Buffer, header: BatchHeader) -> None:
        """Take a batch, of all in their order.

        Raises:
            CorruptRecordsError: It is damaged.
        """
        counted = self._reader.saw(batch, header)
        self._last_offset = header.base_offset
        if counted is not None:
            self._take(counted)
        if header.is_control and header.has_producer_id and header.producer_id in self._open and header.records_count:
            marker = read_control_record(batch, header)
            if isinstance(marker, EndTransactionMarker):
                self._open.discard(header.producer_id)
                self.ends.add(header.base_offset)

    def end(self) -> None:
        """Take note that there is no more."""
        self.settled.update(offset for offset, _ in self._notes)
        if self._below_at >= 0:
            self.settled.add(self._below_at)

    def companion_of(self, batch: Buffer, header: BatchHeader) -> Companion | None:
        """Return what a control batch says; None where it is no companion.

        Raises:
            CorruptRecordsError: It is damaged.
        """
        return read_companion(batch, header)

    def filter(self, batch: Buffer, header: BatchHeader, companion: Companion) -> tuple[Buffer, BatchHeader] | None:
        """Return what stays of a companion."""
        if header.base_offset in self.settled:
            return settled(batch, header, companion)
        is_last = self._reader.is_amidst and header.base_offset == self._last_offset
        return (batch, header) if is_last else None  # what stands behind the last was not seen, and is not rewritten

    def _take(self, counted: CountedCompanion) -> None:
        header, companion = counted
        offset = header.base_offset
        withdrawn = companion.withdrawn
        if withdrawn is not None:
            if withdrawn.below >= self._below:
                self._below, self._below_at = withdrawn.below, offset
        elif companion.is_delivery:
            through = companion.entries[0][:2]
            while self._notes and self._notes[-1][1] <= through:
                self._notes.pop()
            self._notes.append((offset, through))
        elif self._is_kept(offset, companion) and not self._is_aborted(offset, companion):
            self.settled.add(offset)
            self._names.update(entry.id_digest for entry in companion.entries if entry.id_digest is not None)
            if companion.producer_id != NO_PRODUCER_ID:
                self._open.add(companion.producer_id)

    def _is_kept(self, offset: int, companion: Companion) -> bool:
        if stretch_of(offset) in self.needed:
            return True
        return any(entry.is_canceller and entry.id_digest in self._names for entry in companion.entries)

    def _is_aborted(self, offset: int, companion: Companion) -> bool:
        origin = offset + COMPANION_OFFSETS
        return any(
            each.producer_id == companion.producer_id and each.first_offset <= origin <= each.last_offset
            for each in self.aborted
        )


def settled(batch: Buffer, header: BatchHeader, companion: Companion) -> tuple[Buffer, BatchHeader]:
    """Return a companion that counts by itself, where it stands; the same batch where it did already."""
    if companion.crc is None:
        return batch, header
    fresh = build_companion(_relative(companion, header.base_offset), timestamp=header.max_timestamp)
    fresh_header = read_header(fresh)
    assign_offset_and_epoch(fresh, fresh_header, header.base_offset, header.partition_leader_epoch)
    return fresh, fresh_header


def _relative(companion: Companion, offset: int) -> Companion:
    """Return a companion that was read as it is written: what was produced there has origins within its batch."""
    if companion.is_delivery or companion.is_carried:
        return attrs.evolve(companion, crc=None)
    first = offset + COMPANION_OFFSETS
    entries = tuple(entry._replace(origin=entry.origin - first, leader_epoch=-1) for entry in companion.entries)
    return attrs.evolve(companion, entries=entries, crc=None)
