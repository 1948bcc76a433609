"""Shell: makes the batches in which delayed records are delivered, from the companions that hold them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from ..delay.companion import Companion, WaitingEntry, build_companion, read_companion
from ..delay.headers import delivered_headers
from ..errors import CorruptionError
from ..records.batch import read_header
from ..records.builder import BatchBuilder
from ..records.compression import CompressionType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contracts.delay_queue import WaitingRecord
    from ..delay.ledger import DelayLedger
    from ..records.record import Record
    from .replica import Replica

BATCH_BYTES_MAX: Final = 1 << 20
COMPANIONS_CACHED_BYTES: Final = 16 << 20
INFLATION: Final = 8
"""How many times larger a companion's records may be taken to be in memory where they are compressed."""


class Delivery(NamedTuple):
    """What is appended: the note, and the records unless all that was due was withdrawn; how many."""

    note: bytearray
    records: bytearray | None
    delivered_count: int
    withdrawn_count: int


class _Held(NamedTuple):
    records: dict[int, tuple[WaitingEntry, Record]]
    codec: CompressionType
    size_bytes: int


class CompanionCache:
    """The companions that were read last, by where they stand, and in which epoch: a log is cut only between two."""

    def __init__(self, bytes_max: int = COMPANIONS_CACHED_BYTES) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: OrderedDict[tuple[Replica, int, int], _Held] = OrderedDict()

    def find(self, replica: Replica, offset: int) -> _Held:
        """Return what a companion holds.

        Raises:
            CorruptionError: There is none, or it cannot be read.
        """
        key = (replica, replica.leader_epoch, offset)
        held = self._known.get(key)
        if held is not None:
            self._known.move_to_end(key)
            return held
        held = self._known[key] = _read(replica, offset)
        self._bytes += held.size_bytes
        while self._bytes > self._bytes_max and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            self._bytes -= gone.size_bytes
        return held


def _read(replica: Replica, offset: int) -> _Held:
    for batch in replica.log.batches(offset):
        header = read_header(batch)
        companion = read_companion(batch, header) if header.base_offset == offset else None
        if companion is None:
            break
        records = {entry.origin: (entry, record) for entry, record in companion.records()}
        return _Held(
            records, companion.codec, len(batch) * (1 if companion.codec is CompressionType.NONE else INFLATION)
        )
    raise CorruptionError(f"{replica.partition}: no delayed records at offset {offset}, where some wait")


class DeliveryMaker:
    """Makes deliveries; what it keeps is a cache of companions."""

    def __init__(self) -> None:
        self._cache = CompanionCache()

    def make(self, replica: Replica, ledger: DelayLedger, due: Sequence[WaitingRecord]) -> Delivery:
        """Make the delivery of as much of what is due as one batch takes and the log has.

        Args:
            replica: Where it waits, and is delivered.
            ledger: Of what waits there.
            due: In its order, at least one; what holds the first is in the log.

        Raises:
            CorruptionError: It is not where it waits, or cannot be read.
        """
        bytes_max = min(BATCH_BYTES_MAX, replica.settings.rules.max_message_bytes)
        builder: BatchBuilder | None = None
        withdrawn_count = 0
        last = due[0]
        for waiting in due:
            is_full = builder is not None and builder.size_bytes >= bytes_max
            if is_full or waiting.companion >= replica.appended_offset:
                break
            held = self._cache.find(replica, waiting.companion)
            found = held.records.get(waiting.origin)
            if found is None:
                raise CorruptionError(f"{replica.partition}: {waiting} is not where it waits")
            entry, record = found
            last = waiting
            if ledger.queue.is_withdrawn(entry.id_digest, waiting.origin):
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
