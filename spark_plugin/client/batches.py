"""Pure core: walks the headers of fetched record batches: where whole batches end, and which offset comes after them.

The next Fetch can be sent as soon as its offset is known, before any record is decoded; and the headers tell it. A
batch's header costs about half a microsecond here, whatever it holds.

    offset 0   base_offset int64 | length int32 | leader_epoch int32 | magic int8 | crc int32 | attributes int16
    offset 23  last_offset_delta int32 | ...

Batches of magic 0 and 1 have their (last) offset in front, and nothing after `magic` that is of use here.

*Source:* `DefaultRecordBatch`, `LegacyRecord` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.records.batch import CorruptRecordsError

if TYPE_CHECKING:
    from odradek.kernel.types import Buffer

_HEADER: Final = struct.Struct(">qi4xb6xi")
_PREFIX_BYTES: Final = 12
"""Base offset and length: what stands before the bytes that the length counts."""
_OLD_LENGTH_MIN: Final = 14
_LENGTH_MIN: Final = 49


class Walk(NamedTuple):
    """What whole batches were found.

    Attributes:
        stop: Where the last batch that is wanted ends: bytes.
        next_offset: The offset after it; the position where there was none.
        is_past_end: Whether a batch begins at or after the end of what is wanted.
        has_partial: Whether the data breaks off within a batch.
    """

    stop: int
    next_offset: int
    is_past_end: bool
    has_partial: bool


def walk_batches(data: Buffer, position: int, end: int) -> Walk:
    """Find the whole batches that may hold offsets of `[position, end)`.

    Args:
        data: Batches, the last one maybe cut off.
        position: The next offset that is missing; batches that lie below move nothing.
        end: Batches from here on are left out.

    Raises:
        CorruptRecordsError: A batch's length or offsets make no sense; `position` of the error is its place.
    """
    place = 0
    size = len(data)
    next_offset = position
    unpack = _HEADER.unpack_from
    while size - place >= _HEADER.size:
        base_offset, length, magic, last_offset_delta = unpack(data, place)
        if base_offset >= end:
            return Walk(place, next_offset, is_past_end=True, has_partial=False)
        if magic < 2:
            last_offset_delta = 0
        if length < (_LENGTH_MIN if magic >= 2 else _OLD_LENGTH_MIN) or last_offset_delta < 0 or base_offset < 0:
            raise CorruptRecordsError(
                f"the header of the batch at offset {base_offset} says {length} bytes, magic {magic}, last offset "
                f"delta {last_offset_delta}",
                position=place,
            )
        after = place + _PREFIX_BYTES + length
        if after > size:
            break
        place = after
        next_offset = max(next_offset, base_offset + last_offset_delta + 1)
    return Walk(place, next_offset, is_past_end=False, has_partial=place < size)
