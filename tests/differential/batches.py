"""Pure core: record batches for the sessions, valid or wrong in one chosen way.

Written apart from the broker's own batch code on purpose, so that one mistake is not made twice.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

import cramjam
from crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Sequence

T0: Final = 1_750_000_000_000
"""The sessions' usual timestamp, in ms: 2025-06-15. Fixed, so that CRCs are the same in every run."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40

_HEADER: Final = struct.Struct(">hiqqqhii")
_LEGACY_ENTRY: Final = struct.Struct(">qi")


def varint(value: int) -> bytes:
    """Return a zigzag varint."""
    zigzag = (value << 1) ^ (value >> 63)
    groups = bytearray()
    while zigzag > 0x7F:
        groups.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    groups.append(zigzag)
    return bytes(groups)


def _sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(
    value: bytes | None = b"value",
    key: bytes | None = None,
    *,
    headers: Sequence[tuple[bytes | None, bytes | None]] = (),
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    length_change: int = 0,
    headers_count: int | None = None,
) -> bytes:
    """Return one record; `length_change` and `headers_count` make it lie."""
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _sized(key) + _sized(value)
    body += varint(len(headers) if headers_count is None else headers_count)
    body += b"".join(_sized(name) + _sized(content) for name, content in headers)
    return varint(len(body) + length_change) + body


def records(*values: bytes | None, step_ms: int = 0) -> list[bytes]:
    """Return records without keys, their offset deltas 0, 1, 2, ..., `step_ms` ms apart."""
    return [record(value, offset_delta=i, timestamp_delta=i * step_ms) for i, value in enumerate(values)]


def compress(codec: int, payload: bytes) -> bytes:
    """Return `payload` as Kafka's codec number `codec` writes it; unknown numbers change nothing."""
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(payload))
    if codec == SNAPPY:
        raw = bytes(cramjam.snappy.compress_raw(payload))
        return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(raw)) + raw
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(block_linked=False)  # Kafka refuses linked blocks
        compressor.compress(payload)
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(payload))
    return payload


def batch(
    content: Sequence[bytes] = (record(),),
    *,
    codec: int = NONE,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    base_timestamp: int = T0,
    max_timestamp: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    count: int | None = None,
    last_offset_delta: int | None = None,
    payload: bytes | None = None,
    crc_change: int = 0,
    length_change: int = 0,
) -> bytes:
    """Return one batch.

    Args:
        content: Its records, encoded.
        codec: Compression, in the attributes too.
        attributes: Further attribute bits.
        base_offset: As the client writes it.
        leader_epoch: As the client writes it.
        magic: The format's version.
        base_timestamp: In ms.
        max_timestamp: In ms; the base timestamp when None.
        producer: Producer id, producer epoch, base sequence.
        count: The header's count; the true one when None.
        last_offset_delta: The header's; count - 1 when None.
        payload: Stands in place of the compressed records.
        crc_change: Flips bits of the CRC.
        length_change: Added to the length that is told.
    """
    if payload is None:
        payload = compress(codec, b"".join(content))
    count = len(content) if count is None else count
    covered = (
        _HEADER.pack(
            attributes | codec,
            count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            base_timestamp if max_timestamp is None else max_timestamp,
            *producer,
            count,
        )
        + payload
    )
    head = struct.pack(
        ">qiibI", base_offset, len(covered) + 9 + length_change, leader_epoch, magic, crc32c(covered) ^ crc_change
    )
    return head + covered


def legacy_message_set(magic: int, value: bytes = b"value") -> bytes:
    """Return one message in the format of magic 0 or 1, its CRC right."""
    timestamp = struct.pack(">q", T0) if magic else b""
    body = struct.pack(">bb", magic, 0) + timestamp + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return _LEGACY_ENTRY.pack(0, len(message)) + message
