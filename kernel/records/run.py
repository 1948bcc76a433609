"""Pure core: the records of one batch as they stand in it: looked at, chosen from and copied, not written anew.

What stays of a batch is said by *flags*, a byte for each record: 0 goes, anything else stays.

Copying, and what `key_table.py` and `header_due.py` do with a batch, is the work of compiled functions (`_runs.c`)
where they were built, else of those written here and there. Both give the same answers; only the words of an error
differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import define
from .batch import BatchHeader, CorruptRecordsError, TimestampType
from .reader import read_payload
from .record import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, Record, decode_records, encode_varint, long_varint

if TYPE_CHECKING:
    from ..types import Buffer
    from . import _runs
else:
    try:
        from . import _runs
    except ImportError:  # there was no compiler when the package was built
        _runs = None

compiled = _runs
HAS_COMPILED_RUNS: Final = compiled is not None
GOES: Final = 0
STAYS: Final = 1
STAYS_FOR_NOW: Final = 2
"""Stays, whatever else speaks against it: others go in the same pass because of it."""


class RawRecord(NamedTuple):
    """A record inside its batch's bytes.

    `start` and `end` are its first byte (of its length) and the one after it; `tail` is the first behind its timestamp.
    """

    start: int
    end: int
    tail: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


class Kept(NamedTuple):
    """The records that stay of a batch: their bytes, and what the header wants to know of them.

    `timestamp_delta_max` is 0 when none stays.
    """

    payload: bytes
    records_count: int
    timestamp_delta_max: int
    has_tombstones: bool


@define
class RecordRun:
    """The records of one batch, decompressed.

    Attributes:
        payload: Their bytes.
        count: How many they are.
        base_offset: The batch's.
        base_timestamp: What their timestamps are relative to.
        append_time_ms: What counts instead where the topic has `LogAppendTime`; None where it has not.
    """

    payload: bytes
    count: int
    base_offset: int
    base_timestamp: int = 0
    append_time_ms: int | None = None
    _raw: list[RawRecord] | None = None

    @classmethod
    def of(cls, batch: Buffer, header: BatchHeader) -> RecordRun:
        """Take a batch's records.

        Raises:
            CorruptRecordsError: They cannot be decompressed.
        """
        by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        return cls(
            read_payload(batch, 0, header),
            header.records_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if by_broker else None,
        )

    def raw(self) -> list[RawRecord]:
        """Return all records; walked once.

        Raises:
            CorruptRecordsError: One is malformed, or they are fewer or more than `count`.
        """
        if self._raw is None:
            self._raw = list(walk_records(self.payload, self.count))
        return self._raw

    def records(self) -> Iterator[Record]:
        """Iterate over the records, decoded whole.

        Raises:
            CorruptRecordsError: As `raw`, while iterating.
        """
        return decode_records(
            self.payload,
            self.count,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            log_append_time=self.append_time_ms,
        )

    def kept(self, flags: bytes) -> Kept:
        """Return those that stay.

        Raises:
            CorruptRecordsError: As `raw`.
        """
        return self.kept_compiled(flags) if HAS_COMPILED_RUNS else self.kept_in_python(flags)

    def kept_compiled(self, flags: bytes) -> Kept:
        """Do as `kept`, by the compiled function."""
        try:
            return Kept(*compiled.copy_kept(self.payload, flags))
        except ValueError as exc:
            raise CorruptRecordsError(str(exc)) from exc

    def kept_in_python(self, flags: bytes) -> Kept:
        """Do as `kept`, in Python."""
        stay = [record for record, flag in zip(self.raw(), flags, strict=True) if flag]
        return Kept(
            _joined(self.payload, stay),
            len(stay),
            max((record.timestamp_delta for record in stay), default=0),
            not all(record.has_value for record in stay),
        )

    def rebased(self, flags: bytes, change_ms: int) -> bytes:
        """Return the bytes of those that stay, with timestamp deltas that are larger by `change_ms`."""
        pieces: list[bytes] = []
        for record, flag in zip(self.raw(), flags, strict=True):
            if flag:
                head = b"\0" + encode_varint(record.timestamp_delta + change_ms)
                pieces += (
                    encode_varint(len(head) + record.end - record.tail),
                    head,
                    self.payload[record.tail : record.end],
                )
        return b"".join(pieces)


def _joined(payload: bytes, stay: list[RawRecord]) -> bytes:
    """Return the bytes of records, neighbours copied in one piece."""
    pieces: list[bytes] = []
    start = end = 0
    for record in stay:
        if record.start != end:
            pieces.append(payload[start:end])
            start = record.start
        end = record.end
    pieces.append(payload[start:end])
    return b"".join(pieces)


def walk_records(payload: bytes, count: int) -> Iterator[RawRecord]:
    """Yield the records of a batch's decompressed payload.

    Raises:
        CorruptRecordsError: A record is malformed, or they are fewer or more than `count`.
    """
    position = 0
    try:
        for _ in range(count):
            start = position
            byte = payload[position]
            if byte < 0x80:
                end = position + 1 + ((byte >> 1) ^ -(byte & 1))
                position += 2
            else:
                length, position = _varint(payload, position)
                end = position + length
                position += 1
            byte = payload[position]
            if byte < 0x80:
                timestamp_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                timestamp_delta, position = _varint(payload, position, VARLONG_BYTES_MAX)
            tail = position
            offset_delta, position = _varint(payload, position)
            key_bytes, position = _varint(payload, position)
            key = None
            if key_bytes >= 0:
                key = payload[position : position + key_bytes]
                position += key_bytes
            has_value = not payload[position] & 1
            if not position < end <= len(payload):
                raise CorruptRecordsError("record cut off", position=start)
            yield RawRecord(start, end, tail, timestamp_delta, offset_delta, key, has_value)
            position = end
    except IndexError as exc:
        raise CorruptRecordsError("record cut off", position=position) from exc
    if position != len(payload):
        raise CorruptRecordsError(f"{len(payload) - position} bytes after {count} records", position=position)


def _varint(payload: bytes, position: int, bytes_max: int = VARINT_BYTES_MAX) -> tuple[int, int]:
    """Return the zigzag varint at `position`, and the position after it; forms of one and two bytes are most."""
    byte = payload[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = payload[position + 1]
    if second < 0x80:
        byte = byte & 0x7F | second << 7
        return (byte >> 1) ^ -(byte & 1), position + 2
    return long_varint(payload, position + 1, byte, bytes_max)
