"""Shell: looks up a time in a cold segment, on a worker thread, and keeps the batch that it means for who asks then."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    CorruptRecordsError,
    OdradekError,
    is_crc_valid,
    read_batch,
    read_header,
)

from .cold_batches import iterate_object
from .indexes import offset_before_timestamp, position_of
from .names import INDEX, LOG, TIME_INDEX, segment_file_name
from .small_files import get_small_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import BatchHeader, DiskWork, ObjectStore, TopicIdPartition

    from .manifest import StoredSegment

FOUND_MAX: Final = 64
"""How many answers are kept."""
NOTHING: Final = b""
"""An answer: the segment has no such batch."""
_PIECE_BYTES: Final = 1 << 20


class FoundBatches:
    """Batches that look-ups of times have found in the store. Owned by the reactor's task."""

    def __init__(self, open_store: Callable[[], ObjectStore]) -> None:
        self._open_store = open_store
        self._found: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()

    def find(self, segment: StoredSegment, timestamp: int, start_offset: int) -> bytes | None:
        """Return the first batch with a timestamp of at least this, `NOTHING` for none, None when nobody has looked."""
        return self._found.get((segment.uid, timestamp, start_offset))

    def put(self, segment: StoredSegment, timestamp: int, start_offset: int, batch: bytes) -> None:
        """Keep an answer."""
        self._found[segment.uid, timestamp, start_offset] = batch
        if len(self._found) > FOUND_MAX:
            self._found.popitem(last=False)

    def look_up(self, partition: TopicIdPartition, segment: StoredSegment, timestamp: int, start_offset: int) -> bytes:
        """Ask the store. Blocks; for worker threads.

        Raises:
            RemoteStoreError: It cannot say.
            CorruptRecordsError: What it gives is damaged.
        """
        store = self._open_store()

        times = get_small_file(store, partition, segment, TIME_INDEX)
        first = max(offset_before_timestamp(times, segment.base_offset, timestamp), start_offset)
        position = position_of(get_small_file(store, partition, segment, INDEX), segment.base_offset, first)
        name = segment_file_name(partition, segment.base_offset, segment.uid, LOG)
        for batch in iterate_object(store, name, position, segment.size_bytes, _PIECE_BYTES):
            header = read_header(batch)
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                if not is_crc_valid(batch, 0, header):
                    raise CorruptRecordsError(f"{store.url}: {name}: the batch at {header.base_offset} is damaged")
                if header.base_offset >= start_offset or _has_record(batch, header, timestamp, start_offset):
                    return bytes(batch)
        return NOTHING


def _has_record(batch: memoryview, header: BatchHeader, timestamp: int, start_offset: int) -> bool:
    """Say whether a batch that begins below an offset has a record as late at or behind it."""
    if header.timestamp_type:
        return True  # all have the batch's
    return any(
        record.timestamp >= timestamp and record.offset >= start_offset for record in read_batch(batch, 0, header)
    )


@attrs.frozen(eq=False)
class TimeLookup:
    """A look-up of a time in both tiers. See `DiskWork`; whether it ran changes no answer but "not at hand"."""

    found_batches: FoundBatches
    partition: TopicIdPartition
    segment: StoredSegment
    timestamp: int
    start_offset: int
    local: DiskWork | None
    batches: list[bytes] = attrs.field(factory=list)

    def run(self) -> None:
        """See `DiskWork.run`."""
        try:
            if self.local is not None:
                self.local.run()
        finally:
            with suppress(OdradekError):  # who asks then is told that it is not at hand
                batch = self.found_batches.look_up(self.partition, self.segment, self.timestamp, self.start_offset)
                self.batches.append(batch)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if self.local is not None:
            self.local.finish(error)
        for batch in self.batches:
            self.found_batches.put(self.segment, self.timestamp, self.start_offset, batch)
