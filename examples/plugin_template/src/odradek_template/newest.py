"""A cleanup policy: of each key the newest N records stay (`cleanup.policy=newest`)."""

from __future__ import annotations

from functools import partial
from heapq import heappush, heappushpop

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupPlan, CleanupPolicy, Compaction, LogState, RecordView

NEWEST_RECORDS = "odradek.newest.records"
KEY_BYTES = 250
OFFSET_BYTES = 40
"""About what Python takes for a key of a dictionary and its list, and for each number in it."""


class NewestSelection:
    """Knows the newest offsets of each key. One pass of the cleaner owns it, in a process of its own."""

    def __init__(self, memory_bytes: int, records_max: int, load_factor: float, *, newest: int) -> None:
        self.newest = newest
        self.room_bytes = memory_bytes
        self.offsets: dict[bytes, list[int]] = {}

    def note(self, key: bytes, record: RecordView) -> bool:
        """Take note of a new record, while there is room; there is always room for one key."""
        if key not in self.offsets:
            self.room_bytes -= KEY_BYTES + len(key) + OFFSET_BYTES * self.newest
            if self.offsets and self.room_bytes < 0:
                return False
        self.add(self.offsets.setdefault(key, []), record.offset)
        return True

    def weigh(self, key: bytes, record: RecordView) -> None:
        """Take note of a record that an earlier pass left; of a key without new ones, all of them stay."""
        if key in self.offsets:
            self.add(self.offsets[key], record.offset)

    def keeps(self, key: bytes, record: RecordView) -> bool:
        """Say whether a record is among the newest of its key."""
        return key not in self.offsets or record.offset >= self.offsets[key][0]

    def add(self, offsets: list[int], offset: int) -> None:
        """Keep the newest in a heap, whose first is the smallest."""
        if len(offsets) < self.newest:
            heappush(offsets, offset)
        else:
            heappushpop(offsets, offset)


class NewestPolicy(CleanupPolicy):
    """Plans compactions, as eagerly as `min.cleanable.dirty.ratio` says."""

    compacts = True
    requires_keys = True

    def plan(self, log: LogState) -> CleanupPlan:
        """Have all segments cleaned that are closed, decided and durable, once enough of them is new."""
        end_offset = min(log.last_stable_offset, log.rewritable_end)
        closed = [each for each in log.segments if not each.is_active and each.next_offset <= end_offset]
        total = sum(each.size_bytes for each in closed)
        dirty = sum(each.size_bytes for each in closed if each.next_offset > log.first_dirty_offset)
        ratio = dirty / total if total else 0.0
        if not total or (ratio <= log.settings.min_cleanable_dirty_ratio and not log.has_expired_records):
            return NOTHING_TO_CLEAN
        selection = partial(NewestSelection, newest=max(log.settings.number(NEWEST_RECORDS), 1))
        end_offset = closed[-1].next_offset
        return CleanupPlan(compaction=Compaction(min(log.first_dirty_offset, end_offset), end_offset, ratio, selection))
