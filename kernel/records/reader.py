"""Pure core: records out of whole batches: CRC, decompression and decoding joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .batch import HEADER_SIZE, BatchHeader, CorruptRecordsError, TimestampType, is_crc_valid, iterate_batches
from .compression import DECOMPRESSED_BYTES_MAX, CompressionType, decompress
from .record import Record, decode_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..types import Buffer


def read_payload(
    buffer: Buffer, position: int, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the records' bytes of the batch at `position`, decompressed.

    Raises:
        CorruptRecordsError: unknown codec, undecodable, or more than `decompressed_bytes_max` bytes.
    """
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.length_bytes]
    if header.compression_id == CompressionType.NONE or not payload:
        return bytes(payload)
    return decompress(header.compression_id, payload, decompressed_bytes_max)


def read_batch(
    buffer: Buffer, position: int, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """Return the records of the batch at `position`, of which `header` was read, as they are iterated.

    Raises:
        CorruptRecordsError: at once: the payload cannot be decompressed; while iterating: a record is malformed.
    """
    payload = read_payload(buffer, position, header, decompressed_bytes_max=decompressed_bytes_max)
    by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return decode_records(
        payload,
        header.records_count,
        base_offset=header.base_offset,
        base_timestamp=header.base_timestamp,
        log_append_time=header.max_timestamp if by_broker else None,
    )


def read_records(
    buffer: Buffer,
    *,
    check_crc: bool = True,
    with_control: bool = False,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """Yield the records of a run of batches, such as a fetched one; a batch cut off at the end is left out.

    Args:
        buffer: The run.
        check_crc: Whether to check every batch's CRC first.
        with_control: Whether control records are wanted too.
        decompressed_bytes_max: Bound of each batch's decompressed size.

    Raises:
        CorruptRecordsError: while iterating: a batch or record is malformed.
    """
    for position, header in iterate_batches(buffer):
        if check_crc and not is_crc_valid(buffer, position, header):
            raise CorruptRecordsError("CRC does not match", position=position)
        if with_control or not header.is_control:
            yield from read_batch(buffer, position, header, decompressed_bytes_max=decompressed_bytes_max)
