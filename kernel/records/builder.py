"""Pure core: builds record batches, for the client's producer, the internal logs, compaction and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..classes import define
from ..types import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from .batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    MAGIC,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    TimestampType,
    encode_batch,
)
from .compression import CompressionType, compress
from .record import Record, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..types import Buffer


@define(kw_only=True)
class BatchBuilder:
    """Collects records and makes one batch of them; one owner, used once.

    Attributes:
        compression: The codec.
        compression_level: Its level; None is the codec's default.
        base_offset: Offset of the first record; 0 where the leader will assign it.
        partition_leader_epoch: -1 where the leader will assign it.
        producer_id: -1 without an idempotent producer, and so the next two.
        producer_epoch: The producer's epoch.
        base_sequence: Sequence of the first record.
        is_transactional: Whether the batch belongs to a transaction.
        is_control: Whether the records are control records.
        timestamp_type: With LogAppendTime all records carry the greatest timestamp appended.
        delete_horizon_ms: When compaction may drop the batch's tombstones; None leaves that open.
    """

    compression: CompressionType = CompressionType.NONE
    compression_level: int | None = None
    base_offset: int = 0
    partition_leader_epoch: int = NO_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    delete_horizon_ms: int | None = None

    _parts: list[bytes] = attrs.field(factory=list, init=False)
    _records_bytes: int = attrs.field(default=0, init=False)
    _last_offset_delta: int = attrs.field(default=-1, init=False)
    _base_timestamp: int | None = attrs.field(default=None, init=False)
    _max_timestamp: int = attrs.field(default=NO_TIMESTAMP, init=False)

    @classmethod
    def like(cls, header: BatchHeader) -> BatchBuilder:
        """Make a builder of a batch in the place of another: its producer and sequence, codec, offsets, transaction.

        What changes records appends as many as there were (`extend` keeps their offsets): a producer counts them.

        .. versionadded:: 0.1
        """
        return cls(
            compression=CompressionType(header.compression_id),
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            timestamp_type=header.timestamp_type,
            delete_horizon_ms=header.delete_horizon_ms,
        )

    @property
    def records_count(self) -> int:
        """How many records were appended."""
        return len(self._parts)

    @property
    def size_bytes(self) -> int:
        """Size of the batch so far, before compression."""
        return HEADER_SIZE + self._records_bytes

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
        offset: int | None = None,
    ) -> int:
        """Add a record and return its offset.

        Args:
            key: The key, or None.
            value: The value, or None.
            timestamp: Milliseconds since the Unix epoch, or -1.
            headers: Names and values, in order.
            offset: Its absolute offset where offsets have gaps (compaction); the one after the last when None.
        """
        delta = self._last_offset_delta + 1 if offset is None else offset - self.base_offset
        assert delta > self._last_offset_delta, "offsets rise"
        if self._base_timestamp is None:
            self._base_timestamp = timestamp if self.delete_horizon_ms is None else self.delete_horizon_ms
        encoded = encode_record(timestamp - self._base_timestamp, delta, key, value, headers)
        self._parts.append(encoded)
        self._records_bytes += len(encoded)
        self._last_offset_delta = delta
        self._max_timestamp = max(self._max_timestamp, timestamp)
        return self.base_offset + delta

    def extend(self, records: Iterable[Record]) -> None:
        """Add records with the offsets and timestamps that they carry."""
        for record in records:
            self.append(
                record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=record.offset
            )

    def build(self, *, last_offset: int | None = None) -> bytearray:
        """Return the batch, its length and CRC set.

        Args:
            last_offset: Last offset that the batch stands for, where records after the last one were compacted away;
                the last record's when None. A batch without records needs it.
        """
        if last_offset is not None:
            assert last_offset - self.base_offset >= self._last_offset_delta, "the last offset covers every record"
            self._last_offset_delta = last_offset - self.base_offset
        assert self._last_offset_delta >= 0, "an empty batch needs its last offset"
        payload = b"".join(self._parts)
        if self.compression is not CompressionType.NONE and payload:
            payload = compress(self.compression, payload, self.compression_level)
        header = BatchHeader(
            self.base_offset,
            0,
            self.partition_leader_epoch,
            MAGIC,
            0,
            self._attributes(),
            self._last_offset_delta,
            self._base_timestamp if self._base_timestamp is not None else NO_TIMESTAMP,
            self._max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self._parts),
        )
        return encode_batch(header, payload)

    def _attributes(self) -> int:
        """Return the attributes of the batch."""
        attributes = int(self.compression)
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            attributes |= TIMESTAMP_TYPE_FLAG
        if self.is_transactional:
            attributes |= TRANSACTIONAL_FLAG
        if self.is_control:
            attributes |= CONTROL_FLAG
        if self.delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_FLAG
        return attributes
