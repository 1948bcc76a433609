"""Pure core: small record batches for tests of what keeps them."""

from __future__ import annotations

from odradek.kernel.records.batch import BatchHeader, encode_batch

_RECORDS_TYPE_SEED = 251


def make_batch(
    base_offset: int, *, count: int = 1, timestamp: int = 1_000, epoch: int = 0, size_bytes: int = 100
) -> bytes:
    """Return a batch with a valid header and CRC around bytes that are no records.

    Args:
        base_offset: Of the first record.
        count: Records it says it has, >= 1.
        timestamp: All timestamps, milliseconds, or -1.
        epoch: The leader epoch.
        size_bytes: Of the payload, >= 0; its bytes depend on the base offset.
    """
    header = BatchHeader(base_offset, 0, epoch, 2, 0, 0, count - 1, timestamp, timestamp, -1, -1, -1, count)
    return bytes(encode_batch(header, bytes((base_offset + i) % _RECORDS_TYPE_SEED for i in range(size_bytes))))
