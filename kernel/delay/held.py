"""Pure core: the records that one companion holds, found by where they were produced, each decoded when it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..records.batch import CorruptRecordsError
from ..records.compression import decompress
from ..records.record import decode_records, decode_varint
from ..types import NO_TIMESTAMP

if TYPE_CHECKING:
    from ..records.record import Record
    from .companion import Companion, WaitingEntry

ENTRY_BYTES: Final = 300
"""About what an entry takes in memory, with its place."""


class HeldRecords:
    """What a companion holds, decompressed.

    Attributes:
        codec: What it was compressed with.
        size_bytes: About what it takes in memory.
    """

    __slots__ = ("_companion", "_payload", "_places", "codec", "size_bytes")

    def __init__(self, companion: Companion) -> None:
        """Find out where each record is.

        Raises:
            CorruptRecordsError: They cannot be decompressed, or are not as many as wait.
        """
        self._companion = companion
        self.codec = companion.codec
        self._payload = payload = decompress(companion.codec, companion.payload) if companion.payload else b""
        self._places: dict[int, tuple[WaitingEntry, int, int]] = {}
        start = 0
        for entry in companion.entries:
            if entry.is_canceller:
                continue
            end = _end_of(payload, start)
            self._places[entry.origin] = entry, start, end
            start = end
        if start != len(payload):
            raise CorruptRecordsError(f"{len(payload) - start} bytes behind {len(self._places)} records that wait")
        self.size_bytes = len(payload) + ENTRY_BYTES * len(companion.entries)

    def encoded(self, origin: int) -> bytes:
        """Return a record as it stands here.

        Raises:
            CorruptRecordsError: It is not there.
        """
        _, start, end = self._place(origin)
        return bytes(self._payload[start:end])

    def _place(self, origin: int) -> tuple[WaitingEntry, int, int]:
        place = self._places.get(origin)
        if place is None:
            raise CorruptRecordsError(f"no record waits here that was produced at offset {origin}")
        return place

    def find(self, origin: int) -> tuple[WaitingEntry, Record]:
        """Return a record, at the offset that it was produced at, and how it waits.

        Raises:
            CorruptRecordsError: It is not there, or cannot be read.
        """
        entry, start, end = self._place(origin)
        companion = self._companion
        (record,) = decode_records(
            self._payload[start:end],
            1,
            base_timestamp=companion.base_timestamp,
            log_append_time=None if companion.append_time_ms == NO_TIMESTAMP else companion.append_time_ms,
        )
        return entry, record._replace(offset=origin)


def _end_of(payload: bytes, start: int) -> int:
    """Return where the record that begins at `start` ends.

    Raises:
        CorruptRecordsError: It goes on behind all that there is.
    """
    try:
        length, position = decode_varint(payload, start)
    except IndexError as error:
        raise CorruptRecordsError("records that wait are cut off", position=start) from error
    end = position + length
    if not position < end <= len(payload):
        raise CorruptRecordsError(f"a record that waits has {length} bytes", position=start)
    return end
