"""Pure core: what compaction leaves of one batch: all of it as it is, fewer records, an empty batch, nothing.

Offsets never change: a batch keeps its base and last offset whatever goes from it, records keep theirs. Records are not
decoded into objects and encoded again; their bytes are copied, in runs, and only where the base timestamp changes (the
first time that a batch is left with tombstones, it carries their delete horizon there, KIP-534) their timestamp deltas.

| batch | stays |
| --- | --- |
| the last of a producer that is still known; the last of the whole pass | empty if need be: its sequence, or the end |
| of an aborted transaction | not |
| a marker | until its delete horizon, which is set once nothing else of its transaction is left |
| any other | with the records that stay; not when there is none |

*Source:* Kafka 4.3: Cleaner.cleanInto, MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader; KIP-534.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from ..records.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    KNOWN_ATTRIBUTES,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptRecordsError,
    TimestampType,
    encode_batch,
)
from ..records.compression import compress
from ..records.reader import read_payload
from ..records.record import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, encode_varint, long_varint
from ..types import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..types import Buffer
    from .marked_transactions import MarkedTransactions

_EMPTY_ATTRIBUTES: Final = TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
_ATTRIBUTES_BYTE: Final = b"\0"


class LastRecord(NamedTuple):
    """The last that a known producer wrote: the offset of its data, -1 when only a marker is known; its epoch."""

    offset: int
    producer_epoch: int


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


@attrs.frozen
class BatchFilter:
    """Filters the batches of one pass.

    Attributes:
        keeps: Says of a key and an offset whether the record stays, its tombstone's age apart.
        noted_end: Records from here on stay: they were not noted.
        end_offset: Where the pass ends; a batch that ends there stays, empty if need be.
        last_records: Of the producers that are known now.
        transactions: Those of the log.
        now_ms: The wall clock.
        delete_retention_ms: `delete.retention.ms`.
    """

    keeps: Callable[[bytes, int], bool]
    noted_end: int
    end_offset: int
    last_records: Mapping[int, LastRecord]
    transactions: MarkedTransactions
    now_ms: int
    delete_retention_ms: int

    def filter(self, batch: Buffer, header: BatchHeader) -> tuple[Buffer, BatchHeader] | None:
        """Return what stays of a batch, with its header: `batch` itself, a new one, or None for nothing.

        Raises:
            CorruptRecordsError: It cannot be read.
        """
        if header.is_control:
            is_idle = self.transactions.is_marker_idle(batch, header)
            horizon_ms = header.delete_horizon_ms
            goes = is_idle and horizon_ms is not None and horizon_ms <= self.now_ms
        else:
            is_idle = False
            goes = self.transactions.is_aborted(header)
        stays_empty = header.next_offset == self.end_offset or self._is_last_of_producer(header)
        if goes or not header.records_count:
            return self._empty(batch, header) if stays_empty else None
        if header.is_control:
            if not is_idle or header.delete_horizon_ms is not None:
                return batch, header
            payload = read_payload(batch, 0, header)
            return self._rewritten(
                header, payload, list(walk_records(payload, header.records_count)), needs_horizon=True
            )
        return self._filter_records(batch, header, stays_empty=stays_empty)

    def _filter_records(
        self, batch: Buffer, header: BatchHeader, *, stays_empty: bool
    ) -> tuple[Buffer, BatchHeader] | None:
        payload = read_payload(batch, 0, header)
        base_offset, noted_end, keeps = header.base_offset, self.noted_end, self.keeps
        horizon_ms = header.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self.now_ms < horizon_ms
        stay: list[RawRecord] = []
        has_tombstones = False
        for record in walk_records(payload, header.records_count):
            offset = base_offset + record.offset_delta
            if offset < noted_end and (
                record.key is None or not (record.has_value or keeps_tombstones) or not keeps(record.key, offset)
            ):
                continue
            has_tombstones |= not record.has_value
            stay.append(record)
        if not stay:
            return self._empty(batch, header) if stays_empty else None
        needs_horizon = has_tombstones and horizon_ms is None
        if len(stay) == header.records_count and not needs_horizon:
            return batch, header
        return self._rewritten(header, payload, stay, needs_horizon=needs_horizon)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.offset >= 0:
            return header.last_offset == last.offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _empty(self, batch: Buffer, header: BatchHeader) -> tuple[Buffer, BatchHeader]:
        if not header.records_count:
            return batch, header
        empty = attrs.evolve(
            header,
            attributes=header.attributes & _EMPTY_ATTRIBUTES,
            base_timestamp=NO_TIMESTAMP,
            records_count=0,
        )
        return encode_batch(empty, b""), empty

    def _rewritten(
        self, header: BatchHeader, payload: bytes, stay: list[RawRecord], *, needs_horizon: bool
    ) -> tuple[Buffer, BatchHeader]:
        fresh = attrs.evolve(header, attributes=header.attributes & KNOWN_ATTRIBUTES, records_count=len(stay))
        if header.timestamp_type is TimestampType.CREATE_TIME:
            fresh.max_timestamp = header.base_timestamp + max(record.timestamp_delta for record in stay)
        if needs_horizon:
            fresh.attributes |= DELETE_HORIZON_FLAG
            fresh.base_timestamp = self.now_ms + self.delete_retention_ms
            kept = _rebased(payload, stay, header.base_timestamp - fresh.base_timestamp)
        else:
            kept = _runs(payload, stay)
        return encode_batch(fresh, compress(header.compression_id, kept)), fresh


def _runs(payload: bytes, stay: list[RawRecord]) -> bytes:
    """Return the bytes of records, neighbours in one piece."""
    pieces: list[bytes] = []
    start, end = stay[0].start, stay[0].end
    for record in stay[1:]:
        if record.start != end:
            pieces.append(payload[start:end])
            start = record.start
        end = record.end
    pieces.append(payload[start:end])
    return b"".join(pieces)


def _rebased(payload: bytes, stay: list[RawRecord], change_ms: int) -> bytes:
    """Return the bytes of records with other timestamp deltas."""
    pieces: list[bytes] = []
    for record in stay:
        head = _ATTRIBUTES_BYTE + encode_varint(record.timestamp_delta + change_ms)
        pieces += (encode_varint(len(head) + record.end - record.tail), head, payload[record.tail : record.end])
    return b"".join(pieces)
