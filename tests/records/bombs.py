"""Batches of a few kilobytes that are long work to judge: millions of identical records, packed well."""

from __future__ import annotations

from odradek.kernel.records.batch import BatchHeader, encode_batch
from odradek.kernel.records.compression import CompressionType, compress
from odradek.kernel.records.record import encode_record

NOW = 1_700_000_000_000
FUTURE = NOW + 10**10
"""Beyond the default of `message.timestamp.after.max.ms`."""
RECORD = encode_record(0, 0, None, None)
"""The smallest there is: seven bytes."""


def bomb(
    count: int, *, codec: CompressionType = CompressionType.ZSTD, timestamp: int = NOW, record: bytes = RECORD
) -> bytearray:
    """Return a batch of `count` times the same record; their offsets have gaps, which a rewrite closes."""
    return batch_around(record * count, count, codec=codec, timestamp=timestamp)


def batch_around(
    payload: bytes, count: int, *, codec: CompressionType = CompressionType.ZSTD, timestamp: int = NOW
) -> bytearray:
    """Return a batch whose header is sound, whatever its records are."""
    return packed_as(compress(codec, payload), codec, count, timestamp=timestamp)


def packed_as(packed: bytes, codec: CompressionType, count: int = 1, *, timestamp: int = NOW) -> bytearray:
    """Return the same of records that are packed already."""
    header = BatchHeader(0, 0, -1, 2, 0, int(codec), count - 1, timestamp, timestamp, -1, -1, -1, count)
    return encode_batch(header, packed)


def row_of_records(count: int) -> bytes:
    """Return records whose offsets are 0, 1, 2, ..., without keys."""
    return b"".join(encode_record(0, index, None, None) for index in range(count))
