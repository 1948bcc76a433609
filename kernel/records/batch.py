"""Pure core: the 61-byte header of a record batch (format v2): read it, walk a run of them, patch it in place.

    0        8         12      16    17    21     23        27        35        43      51     53     57      61
    | base   | batch   | leader|magic| crc | attri| last    | base    | max     | prod. | prod.| base | records|
    | offset | length  | epoch |     |     | butes| offset  | time-   | time-   | id    | epoch| seq. | count  |
    | int64  | int32   | int32 | i8  | u32 | i16  | d. int32| stamp 64| stamp 64| int64 | int16| int32| int32  |

`batch length` counts what follows it; `length_bytes` here is the whole batch, 12 more. The CRC-32C covers everything
from the attributes on, so the base offset and the leader epoch, which the leader fills in, change without a new CRC.
Bits of the attributes: 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete
horizon.

*Source:* Kafka documentation, "Message Format"; KIP-98; KIP-534 (delete horizon).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from ..classes import define
from ..errors import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..types import Buffer

MAGIC: Final = 2
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes that `batch length` does not count: the base offset and itself."""
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
"""Where the CRC begins to cover."""

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

SEQUENCE_MAX: Final = 2**31 - 1

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_put_offset_length_epoch: Final = struct.Struct(">qii").pack_into
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35


class CorruptRecordsError(CorruptionError):
    """Bytes that should be record batches are none.

    Attributes:
        position: Byte position in the buffer where reading failed; -1 when unknown.
    """

    def __init__(self, message: str, *, position: int = -1) -> None:
        super().__init__(message if position < 0 else f"{message} (at byte {position})")
        self.position = position

    def found_in(self, where: str) -> CorruptRecordsError:
        """Return the error with the place of the buffer in front, its position as it is."""
        error = CorruptRecordsError(f"{where}: {self}")
        error.position = self.position
        return error


class TimestampType(IntEnum):
    """Who sets the records' timestamps (`message.timestamp.type`)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


def increment_sequence(sequence: int, count: int) -> int:
    """Return the producer sequence `count` records after `sequence`; after 2**31 - 1 comes 0."""
    return (sequence + count) & SEQUENCE_MAX


@define
class BatchHeader:
    """The header of one batch, as read; changing it changes no bytes.

    An attrs slots class because it is the cheapest object to fill on the produce path (a NamedTuple takes twice the
    time). Offsets are absolute, timestamps milliseconds since the Unix epoch or -1, producer fields -1 without a
    producer id, `crc` unsigned.
    """

    base_offset: int
    length_bytes: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        """Offset of the last record (compaction may have removed it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """First offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression_id(self) -> int:
        """Codec number, 0 to 7; `compression.codec_of` says which, and refuses 5 to 7."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_FLAG else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which no consumer sees."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones and markers; None if that is not decided yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 without one."""
        if self.base_sequence < 0:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header that begins at `position`, judging nothing: neither magic, nor lengths, nor CRC.

    Raises:
        CorruptRecordsError: fewer than `HEADER_SIZE` bytes are left.
    """
    try:
        (
            base_offset,
            batch_length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            records_count,
        ) = _HEADER.unpack_from(buffer, position)
    except struct.error as exc:
        raise CorruptRecordsError("no room for a batch header", position=position) from exc
    return BatchHeader(
        base_offset,
        batch_length + LOG_OVERHEAD,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )


def iterate_batches(buffer: Buffer, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """Yield `(position, header)` of each whole batch of a run; CRCs are not checked.

    A batch cut off at the end is not an error: fetches and torn segments end so. The caller sees it by comparing
    the last `position + length_bytes` with the end.

    Args:
        buffer: The run.
        position: Byte position of the first batch.
        end: Byte position where the run ends; the buffer's end when None.

    Raises:
        CorruptRecordsError: a length or the magic is impossible; its `position` is the batch's.
    """
    end = len(buffer) if end is None else end
    while position + HEADER_SIZE <= end:
        header = read_header(buffer, position)
        if header.magic != MAGIC:
            raise CorruptRecordsError(f"unsupported magic {header.magic}", position=position)
        if header.length_bytes < HEADER_SIZE:
            raise CorruptRecordsError(f"batch of {header.length_bytes} bytes", position=position)
        following = position + header.length_bytes
        if following > end:
            return
        yield position, header
        position = following


def compute_crc(buffer: Buffer, position: int, length_bytes: int) -> int:
    """Return the CRC-32C of the batch of `length_bytes` bytes at `position`."""
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : position + length_bytes])


def is_crc_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Say whether the batch at `position`, of which `header` was read, carries its own CRC."""
    covered = memoryview(buffer)[position + ATTRIBUTES_POSITION : position + header.length_bytes]
    return len(covered) == header.length_bytes - ATTRIBUTES_POSITION and crc32c(covered) == header.crc


def assign_offset_and_epoch(
    batch: bytearray | memoryview, header: BatchHeader, base_offset: int, leader_epoch: int
) -> None:
    """Write the leader's base offset and epoch into a batch and its header; the CRC stays valid. Hot.

    Args:
        batch: The whole batch, writable.
        header: As it was read from the batch.
        base_offset: The offset of its first record.
        leader_epoch: The partition's.
    """
    # Offset, length and epoch stand one behind the other: one write, the length as it is.
    _put_offset_length_epoch(batch, 0, base_offset, header.length_bytes - LOG_OVERHEAD, leader_epoch)
    header.base_offset = base_offset
    header.partition_leader_epoch = leader_epoch


def patch_max_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    timestamp_type: TimestampType,
    max_timestamp: int,
) -> None:
    """Write timestamp type and max timestamp into the batch at `position`, with a new CRC, and into `header`.

    Attribute bits that have no meaning are cleared, as Kafka clears them when it rewrites a header.
    """
    flag = TIMESTAMP_TYPE_FLAG if timestamp_type else 0
    header.attributes = header.attributes & (KNOWN_ATTRIBUTES & ~TIMESTAMP_TYPE_FLAG) | flag
    header.max_timestamp = max_timestamp
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, header.attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    header.crc = compute_crc(buffer, position, header.length_bytes)
    _CRC.pack_into(buffer, position + CRC_POSITION, header.crc)


def encode_batch(header: BatchHeader, payload: Buffer) -> bytearray:
    """Return a whole batch: `header`'s fields, then `payload` (the records, compressed or not).

    Length and CRC are computed, and `header` is changed to what was written.
    """
    batch = bytearray(HEADER_SIZE + len(payload))
    batch[HEADER_SIZE:] = payload
    put_header(batch, header)
    return batch


def put_header(batch: bytearray, header: BatchHeader) -> None:
    """Write `header`'s fields before the payload that `batch` holds from `HEADER_SIZE` on.

    Length and CRC are computed, and `header` is changed to what was written.
    """
    header.length_bytes = len(batch)
    _HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        header.length_bytes - LOG_OVERHEAD,
        header.partition_leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.records_count,
    )
    header.crc = compute_crc(batch, 0, header.length_bytes)
    _CRC.pack_into(batch, CRC_POSITION, header.crc)
