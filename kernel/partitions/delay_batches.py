"""Shell: makes the batches in which delayed records are delivered, from the companions that hold them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from ..delay.companion import Companion, WaitingEntry, build_companion, read_companion
from ..delay.headers import delivered_headers
from ..delay.held import HeldRecords
from ..records.batch import CorruptRecordsError, read_header
from ..records.builder import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.delay_queue import WaitingRecord
    from ..delay.ledger import DelayLedger
    from ..records.record import Record
    from ..types import TopicIdPartition
    from .replica import Replica

BATCH_BYTES_MAX: Final = 1 << 20
COMPANIONS_CACHED_BYTES: Final = 16 << 20
UNREADABLE_BYTES: Final = 1 << 10
"""What it counts for to know of a companion that it cannot be read."""


class Delivery(NamedTuple):
    """What is appended: the note, and the records unless none is left of what was due; how many."""

    note: bytearray
    records: bytearray | None
    delivered_count: int
    withdrawn_count: int


class CompanionCache:
    """The companions that were read last, by where they stand, and in which epoch: a log is cut only between two."""

    def __init__(
        self,
        on_unreadable: Callable[[TopicIdPartition, int, Exception], None],
        bytes_max: int = COMPANIONS_CACHED_BYTES,
    ) -> None:
        """Begin with none.

        Args:
            on_unreadable: Called with the offset of a companion that cannot be read, or not all of it, and why.
            bytes_max: What they may take, about, beside the one that was read last.
        """
        self._on_unreadable = on_unreadable
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: OrderedDict[tuple[Replica, int, int], HeldRecords | None] = OrderedDict()

    def find(self, replica: Replica, waiting: WaitingRecord) -> tuple[WaitingEntry, Record, HeldRecords] | None:
        """Return a record that waits, how it does, and with which others; None where it cannot be read: that was told.

        Raises:
            StorageError: The disk fails.
        """
        key = (replica, replica.leader_epoch, waiting.companion)
        try:
            held = self._held(key)
            return None if held is None else (*held.find(waiting.origin), held)
        except CorruptRecordsError as error:
            self._on_unreadable(replica.partition, waiting.companion, error)
            self._put(key, None)
            return None

    def _held(self, key: tuple[Replica, int, int]) -> HeldRecords | None:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        replica, _, offset = key
        held = _read(replica, offset)
        self._put(key, held)
        return held

    def _put(self, key: tuple[Replica, int, int], held: HeldRecords | None) -> None:
        if key in self._known:
            self._bytes -= _size_of(self._known.pop(key))
        self._known[key] = held
        self._bytes += _size_of(held)
        while self._bytes > self._bytes_max and len(self._known) > 1:
            self._bytes -= _size_of(self._known.popitem(last=False)[1])


def _size_of(held: HeldRecords | None) -> int:
    return UNREADABLE_BYTES if held is None else held.size_bytes


def _read(replica: Replica, offset: int) -> HeldRecords:
    """Read what a companion holds.

    Raises:
        CorruptRecordsError: There is none, or it cannot be read.
    """
    for batch in replica.log.batches(offset):
        header = read_header(batch)
        companion = read_companion(batch, header) if header.base_offset == offset else None
        if companion is None:
            break
        return HeldRecords(companion)
    raise CorruptRecordsError(f"no delayed records at offset {offset}, where some wait")


class DeliveryMaker:
    """Makes deliveries; what it keeps is a cache of companions."""

    def __init__(self, on_unreadable: Callable[[TopicIdPartition, int, Exception], None]) -> None:
        """Begin; see `CompanionCache`."""
        self._cache = CompanionCache(on_unreadable)

    def make(self, replica: Replica, ledger: DelayLedger, due: Sequence[WaitingRecord]) -> Delivery:
        """Make the delivery of as much of what is due as one batch takes and the log has.

        What cannot be read is passed over: others wait behind it, and nobody will ever read it here.

        Args:
            replica: Where it waits, and is delivered.
            ledger: Of what waits there.
            due: In its order, at least one; what holds the first is in the log.

        Raises:
            StorageError: The disk fails.
        """
        bytes_max = min(BATCH_BYTES_MAX, replica.settings.rules.max_message_bytes)
        builder: BatchBuilder | None = None
        withdrawn_count = 0
        last = due[0]
        for waiting in due:
            is_full = builder is not None and builder.size_bytes >= bytes_max
            if is_full or waiting.companion >= replica.appended_offset:
                break
            found = self._cache.find(replica, waiting)
            last = waiting
            if found is None:
                continue
            entry, record, held = found
            if ledger.is_withdrawn(entry):
                withdrawn_count += 1
                continue
            if builder is None:
                codec = replica.settings.rules.compression
                builder = BatchBuilder(compression=held.codec if codec is None else codec)
            headers = delivered_headers(record, entry.leader_epoch)
            builder.append(record.key, record.value, timestamp=waiting.due_ms, headers=headers)
        records = None if builder is None else builder.build()
        crc = None if records is None else read_header(records).crc
        through = WaitingEntry(last.due_ms, last.origin, replica.leader_epoch)
        note = build_companion(Companion((through,), b"", crc, is_delivery=True), timestamp=last.due_ms)
        return Delivery(note, records, 0 if builder is None else builder.records_count, withdrawn_count)
