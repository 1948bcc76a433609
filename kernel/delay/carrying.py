"""Pure core: what is appended of a companion whose segment is about to go: all of it that waits, as it was held.

The records are not decoded: they are cut out as they stand, relative to the same timestamp, with the same codec.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..records.compression import compress
from ..types import NO_EPOCH, NO_PRODUCER_ID
from .companion import build_companion
from .held import HeldRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .companion import Companion, WaitingEntry

CARRIED_RECORDS_MAX: Final = 1 << 12
CARRIED_BYTES_MAX: Final = 1 << 20
"""With so much a batch is full, decompressed."""


def carry(offset: int, companion: Companion, waiting: Iterable[WaitingEntry], now_ms: int) -> Iterator[bytearray]:
    """Iterate over the batches that carry forward what waits in a companion, their offset and epoch to be assigned.

    Args:
        offset: The companion's.
        companion: What it says.
        waiting: The entries of it that are carried, in its order. Of those of a batch the first is asked for only when
            the batch is: what was given out before may be appended by then.
        now_ms: The wall clock: how old they are for retention.

    Raises:
        CorruptRecordsError: Its records cannot be read; nothing was given out.
    """
    held = HeldRecords(companion)
    entries: list[WaitingEntry] = []
    records: list[bytes] = []
    size_bytes = 0
    for entry in waiting:
        record = held.encoded(entry.origin)
        entries.append(entry)
        records.append(record)
        size_bytes += len(record)
        if len(entries) >= CARRIED_RECORDS_MAX or size_bytes >= CARRIED_BYTES_MAX:
            yield _batch(offset, companion, entries, records, now_ms)
            entries, records, size_bytes = [], [], 0
    if entries:
        yield _batch(offset, companion, entries, records, now_ms)


def _batch(
    offset: int, companion: Companion, entries: list[WaitingEntry], records: list[bytes], now_ms: int
) -> bytearray:
    carried = attrs.evolve(
        companion,
        entries=tuple(entries),
        payload=compress(companion.codec, b"".join(records)),
        crc=None,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
        carried_from=offset,
    )
    return build_companion(carried, timestamp=now_ms)
