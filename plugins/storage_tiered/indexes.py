"""Pure core: looks up offsets and times in Kafka's sparse indexes, and makes those where a storage has none.

    .index      (offset - base offset: int32, position of a batch that ends with this offset: int32)
    .timeindex  (timestamp: int64, offset - base offset: int32)

*Source:* OffsetIndex and TimeIndex of Kafka 4.3.
"""

from __future__ import annotations

import struct
from typing import Final

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
INDEX_INTERVAL_BYTES: Final = 4096
"""How far apart entries are, as by `index.interval.bytes`' default."""


def without_padding(data: bytes, entry_size: int) -> bytes:
    """Return an index without the zeros that a file that was allocated in advance may end with."""
    used = len(data.rstrip(b"\0"))
    return data[: -(-used // entry_size) * entry_size]


def position_of(index: bytes, base_offset: int, offset: int) -> int:
    """Return where to begin to look for the batch that holds an offset: at it, or at one before it."""
    data = without_padding(index, _OFFSET_ENTRY.size)
    low, high = 0, len(data) // _OFFSET_ENTRY.size
    while low < high:
        middle = (low + high) // 2
        if base_offset + _OFFSET_ENTRY.unpack_from(data, middle * _OFFSET_ENTRY.size)[0] <= offset:
            low = middle + 1
        else:
            high = middle
    return int(_OFFSET_ENTRY.unpack_from(data, (low - 1) * _OFFSET_ENTRY.size)[1]) if low else 0


def offset_before_timestamp(index: bytes, base_offset: int, timestamp: int) -> int:
    """Return an offset at or after which the first record of at least `timestamp` lies."""
    data = without_padding(index, _TIME_ENTRY.size)
    low, high = 0, len(data) // _TIME_ENTRY.size
    while low < high:
        middle = (low + high) // 2
        if _TIME_ENTRY.unpack_from(data, middle * _TIME_ENTRY.size)[0] < timestamp:
            low = middle + 1
        else:
            high = middle
    return base_offset + int(_TIME_ENTRY.unpack_from(data, (low - 1) * _TIME_ENTRY.size)[1]) if low else base_offset


class IndexBuilder:
    """Makes both indexes of a segment from its batches."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._indexed_position = 0
        self._max_timestamp = self._indexed_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._offsets: list[bytes] = []
        self._times: list[bytes] = []

    def add(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """Take note of the next batch.

        Args:
            position: Where it begins.
            last_offset: Its last offset.
            max_timestamp: Its largest timestamp.
        """
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = max_timestamp, last_offset
        if position - self._indexed_position > INDEX_INTERVAL_BYTES:
            self._indexed_position = position
            self._offsets.append(_OFFSET_ENTRY.pack(last_offset - self._base_offset, position))
            self._add_time()

    def _add_time(self) -> None:
        if self._max_timestamp > self._indexed_timestamp:
            self._indexed_timestamp = self._max_timestamp
            self._times.append(_TIME_ENTRY.pack(self._max_timestamp, self._max_timestamp_offset - self._base_offset))

    def finish(self) -> tuple[bytes, bytes]:
        """Return the offset index and the time index."""
        self._add_time()
        return b"".join(self._offsets), b"".join(self._times)
