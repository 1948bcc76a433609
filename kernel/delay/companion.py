"""Pure core: the control batch that delayed records wait in, and what its record's value says.

To everybody else it is the end of a transaction that nobody began: a COMMIT marker without a producer (decision 31).
Behind what a marker's value has stands ours:

    version int16 0 | coordinator epoch int32 0       a marker's value; its readers stop here
    "odd" | version int8 0                            whose value it is
    flags uint8           1: settled, 2: has ids, 4: carried, 8: delivery; from bit 4 on the codec of the payload
    CRC uint32            of the batch behind, see below; 0 where it is settled
    producer id int64 | producer epoch int16          of the transaction whose end is waited for, else -1
    base timestamp int64 | append time int64          what the records' timestamps are relative to, or are; else -1
    carried from int64                                the companion that holds it all as well, or did; else -1
    count int32
    count x (due int64 | origin int64 | leader epoch int32)
    count x digest 16 bytes                           where it has ids; zeros for none
    payload                                           the records that wait, as Kafka encodes them, compressed

A *delivery* stands in the same way before a batch of records whose time has come: its only entry is the last of them,
and says that nothing which is in the order up to there waits any more. With no batch behind, all of it was withdrawn.

What was *carried* forward waits already, in one companion that lies before, and whose segment is about to go. It is the
same that waits, by its due time and origin, and counts in this companion as soon as the log starts behind the other.

A delivery with a due time of -3 is a *withdrawal*, which a DeleteRecords left: what was produced below its origin waits
no more, wherever it lies now. Its payload is how many records that were, 8 bytes, -1 where nobody has counted.

Of what was *produced*, `origin` is the offset within the batch behind and the leader epoch is -1: that of the companion
itself, so that both are written before offsets are assigned. Of what was carried or delivered both are the first. A
canceller has a due time of -1, and no record in the payload. A dead letter has -2: its record waits for nothing here,
and is taken to another topic (`kernel/retry`).

A companion and the batch behind it are one append, but two batches: power may be lost between the two, or a follower be
elected that has only the first. So a companion counts only with the very batch behind it that has its CRC (which covers
neither offset nor epoch); what is *settled* counts alone. Nothing has to be cut off or repaired.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import frozen
from ..records.batch import CorruptRecordsError, is_crc_valid
from ..records.builder import BatchBuilder
from ..records.compression import CompressionType, codec_of, decompress
from ..records.control import ControlRecordType
from ..records.reader import read_batch
from ..records.record import decode_records
from ..types import NO_EPOCH, NO_OFFSET, NO_PRODUCER_ID, NO_TIMESTAMP
from .headers import ID_DIGEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..records.batch import BatchHeader
    from ..records.record import Record
    from ..types import Buffer

_KEY: Final = struct.pack(">hh", 0, ControlRecordType.COMMIT)
_MARKER: Final = struct.pack(">hi", 0, 0)
_OWN: Final = _MARKER + b"odd" + b"\0"
_HEAD: Final = struct.Struct(">BIqhqqqi")
_ENTRY: Final = struct.Struct(">qqi")
_NO_DIGEST: Final = bytes(ID_DIGEST_BYTES)
_SETTLED: Final = 1
_HAS_IDS: Final = 2
_CARRIED: Final = 4
_DELIVERY: Final = 8
_CODEC_SHIFT: Final = 4
CANCELLER_DUE: Final = -1
DEAD_DUE: Final = -2
WITHDRAWN_DUE: Final = -3
UNCOUNTED: Final = -1
COMPANION_OFFSETS: Final = 1
"""A companion takes one offset: the batch behind begins at the next."""


class WaitingEntry(NamedTuple):
    """One record that waits, or the withdrawal of one.

    Attributes:
        due_ms: Epoch milliseconds; `CANCELLER_DUE` for a withdrawal by name, `DEAD_DUE` for a dead letter,
            `WITHDRAWN_DUE` for what a DeleteRecords withdraws.
        origin: The offset that the record was produced at; in a companion that is not placed yet, within its batch.
        leader_epoch: Of the leader that took it; -1 as long as that is not known.
        id_digest: Of its name, or of the name that is withdrawn; None without one.
    """

    due_ms: int
    origin: int
    leader_epoch: int = NO_EPOCH
    id_digest: bytes | None = None

    @property
    def is_canceller(self) -> bool:
        """Whether it withdraws another one."""
        return self.due_ms == CANCELLER_DUE

    @property
    def is_dead(self) -> bool:
        """Whether it is a dead letter, which is never due here."""
        return self.due_ms == DEAD_DUE


class Withdrawn(NamedTuple):
    """What a DeleteRecords withdrew: what was produced below an offset; how many records, -1 where not known."""

    below: int
    records_count: int


@frozen
class Companion:
    """What one companion says.

    Attributes:
        entries: What waits, in the order of the payload, and what is withdrawn.
        payload: The records that wait, compressed; cancellers have none.
        crc: Of the batch behind that it counts with; None where it is settled.
        codec: The payload's.
        base_timestamp: What the records' timestamps are relative to.
        append_time_ms: Every record's timestamp, where the broker's time counts; else -1.
        producer_id: Whose transaction has to be committed first; -1 for none.
        producer_epoch: That producer's epoch.
        carried_from: The offset of the companion that its records waited in before; -1 where they were produced here.
        is_delivery: It says what waits no more: all up to its only entry.
    """

    entries: tuple[WaitingEntry, ...]
    payload: bytes
    crc: int | None = None
    codec: CompressionType = CompressionType.NONE
    base_timestamp: int = 0
    append_time_ms: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    carried_from: int = NO_OFFSET
    is_delivery: bool = False

    @property
    def is_carried(self) -> bool:
        """Whether its records waited elsewhere before."""
        return self.carried_from != NO_OFFSET

    @property
    def withdrawn(self) -> Withdrawn | None:
        """What it withdraws, where a DeleteRecords left it."""
        if not self.is_delivery or self.entries[0].due_ms != WITHDRAWN_DUE:
            return None
        count = int.from_bytes(self.payload, "big", signed=True) if self.payload else UNCOUNTED
        return Withdrawn(self.entries[0].origin, count)

    def counts_with(self, header: BatchHeader, own_offset: int) -> bool:
        """Return whether it counts, its own offset and the header of the batch behind it being these."""
        if self.crc is None:
            return True
        return header.base_offset == own_offset + COMPANION_OFFSETS and header.crc == self.crc

    def records(self) -> Iterator[tuple[WaitingEntry, Record]]:
        """Iterate over the records that wait, each at the offset that it was produced at.

        Raises:
            CorruptRecordsError: At once or while iterating: they cannot be read, or are not as many as wait.
        """
        waiting = [entry for entry in self.entries if not entry.is_canceller]
        payload = decompress(self.codec, self.payload) if self.payload else b""
        records = decode_records(
            payload,
            len(waiting),
            base_timestamp=self.base_timestamp,
            log_append_time=self.append_time_ms if self.append_time_ms != NO_TIMESTAMP else None,
        )
        for entry, record in zip(waiting, records, strict=True):
            yield entry, record._replace(offset=entry.origin)


def build_withdrawal(withdrawn: Withdrawn) -> bytearray:
    """Return the batch that a DeleteRecords leaves, its offset and epoch to be assigned."""
    entry = WaitingEntry(WITHDRAWN_DUE, withdrawn.below)
    count = withdrawn.records_count.to_bytes(8, "big", signed=True)
    return build_companion(Companion((entry,), count, is_delivery=True), timestamp=0)


def build_companion(companion: Companion, *, timestamp: int) -> bytearray:
    """Return a companion's batch, its offset and epoch to be assigned.

    Args:
        companion: What it says.
        timestamp: Its record's, epoch milliseconds: that of the batch behind, so that times rise as they did.
    """
    builder = BatchBuilder(is_control=True)
    builder.append(_KEY, encode_value(companion), timestamp=timestamp)
    return builder.build()


def read_companion(batch: Buffer, header: BatchHeader, position: int = 0) -> Companion | None:
    """Return what the batch at `position`, of which `header` was read, says, placed; None where it is no companion.

    Raises:
        CorruptRecordsError: It is one, or may have been one, and is damaged.
    """
    if not header.is_control or header.has_producer_id or header.records_count != 1:
        return None
    if not is_crc_valid(batch, position, header):  # a disk may forget: what it made up instead is nobody's record
        raise CorruptRecordsError(f"the control batch at offset {header.base_offset} does not carry its own CRC")
    (record,) = read_batch(batch, position, header)
    if record.key != _KEY or record.value is None or not record.value.startswith(_OWN):
        return None
    return decode_value(record.value, header.base_offset, header.partition_leader_epoch)


class CountedCompanion(NamedTuple):
    """A companion that counts, and the header of its batch."""

    header: BatchHeader
    companion: Companion


class CompanionReader:
    """Tells which companions count, of batches in a log's order; one that is not settled when the next one comes."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        """Begin anywhere: a companion whose batch was the last before is not told."""
        self._begun: CountedCompanion | None = None

    @property
    def is_amidst(self) -> bool:
        """Whether the last batch was a companion whose batch is to come."""
        return self._begun is not None

    def saw(self, batch: Buffer, header: BatchHeader) -> CountedCompanion | None:
        """Take a batch; return the companion that turns out to count with it: itself, or the one before.

        Raises:
            CorruptRecordsError: It is a companion, or may have been one, and is damaged.
        """
        begun, self._begun = self._begun, None
        if begun is not None and begun.companion.counts_with(header, begun.header.base_offset):
            return begun
        companion = read_companion(batch, header)
        if companion is None:
            return None
        if companion.crc is None:
            return CountedCompanion(header, companion)
        self._begun = CountedCompanion(header, companion)
        return None


def encode_value(companion: Companion) -> bytes:
    """Return the value of a companion's record."""
    entries = companion.entries
    has_ids = any(entry.id_digest is not None for entry in entries)
    flags = companion.codec << _CODEC_SHIFT
    flags |= (companion.crc is None) * _SETTLED | has_ids * _HAS_IDS
    flags |= companion.is_carried * _CARRIED | companion.is_delivery * _DELIVERY
    head = _HEAD.pack(
        flags,
        companion.crc or 0,
        companion.producer_id,
        companion.producer_epoch,
        companion.base_timestamp,
        companion.append_time_ms,
        companion.carried_from,
        len(entries),
    )
    parts = [_OWN, head]
    parts += [_ENTRY.pack(*entry[:3]) for entry in entries]
    if has_ids:
        parts += [entry.id_digest or _NO_DIGEST for entry in entries]
    parts.append(companion.payload)
    return b"".join(parts)


def decode_value(value: bytes, own_offset: int, leader_epoch: int) -> Companion:
    """Return what the value of a companion's record says, with the offsets and epochs of where it stands.

    Args:
        value: The value.
        own_offset: The companion's offset.
        leader_epoch: The companion's leader epoch.

    Raises:
        CorruptRecordsError: It is damaged, or of a version that is newer than this broker.
    """
    if not value.startswith(_OWN) or len(value) < len(_OWN) + _HEAD.size:
        raise CorruptRecordsError(f"companion at offset {own_offset}: a value of {len(value)} bytes")
    flags, crc, producer_id, producer_epoch, base_timestamp, append_time_ms, carried_from, count = _HEAD.unpack_from(
        value, len(_OWN)
    )
    is_carried, is_delivery = bool(flags & _CARRIED), bool(flags & _DELIVERY)
    is_placed = is_carried or is_delivery
    entries_start = len(_OWN) + _HEAD.size
    ids_start = entries_start + count * _ENTRY.size
    payload_start = ids_start + (count * ID_DIGEST_BYTES if flags & _HAS_IDS else 0)
    is_one = count == 1 or not is_delivery
    if not NO_OFFSET <= carried_from < own_offset or is_carried != (carried_from != NO_OFFSET):
        told = f"flags {flags:#x}, carried from {carried_from}"
        raise CorruptRecordsError(f"companion at offset {own_offset}: {told}")
    if count < 0 or not is_one or payload_start > len(value):
        raise CorruptRecordsError(f"companion at offset {own_offset}: {count} entries in {len(value)} bytes")
    base_offset = 0 if is_placed else own_offset + COMPANION_OFFSETS
    digests = _digests(value, ids_start, payload_start, count)
    codec_of(flags >> _CODEC_SHIFT)  # refuses what nobody has defined
    return Companion(
        entries=tuple(
            WaitingEntry(due_ms, base_offset + origin, epoch if is_placed else leader_epoch, digest)
            for (due_ms, origin, epoch), digest in zip(
                _ENTRY.iter_unpack(value[entries_start:ids_start]), digests, strict=True
            )
        ),
        payload=value[payload_start:],
        crc=None if flags & _SETTLED else crc,
        codec=CompressionType(flags >> _CODEC_SHIFT),
        base_timestamp=base_timestamp,
        append_time_ms=append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        carried_from=carried_from,
        is_delivery=is_delivery,
    )


def _digests(value: bytes, start: int, end: int, count: int) -> list[bytes | None]:
    if start == end:
        return [None] * count
    found = (value[at : at + ID_DIGEST_BYTES] for at in range(start, end, ID_DIGEST_BYTES))
    return [None if digest == _NO_DIGEST else digest for digest in found]
