"""Shell: a log in two tiers: the log of a storage, and before it what lies only in the store.

```text
        cold: read through `ColdReads`              the wrapped log
    ┌──────────────────────────────────────┬──────────────────────────────┐
    log_start_offset            local_log_start_offset            log_end_offset
```

What is known of the cold part (`known_tier.py`) is the copy of the manifest that stands beside the local log, so
nothing here waits for the store.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from odradek.kernel.api import (
    EMPTY_READ,
    NO_EPOCH,
    NO_LIMIT,
    KafkaError,
    RecordsAreRemoteError,
    SegmentInfo,
    StorageError,
)
from odradek.storage_base import EpochCache

from .known_tier import LogWithTier
from .local_state import COLD_TRANSACTIONS_KIND, DERIVED_KINDS, TIER_KIND
from .names import TRANSACTION_INDEX
from .time_lookup import TimeLookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from odradek.kernel.api import DiskWork, EpochEnd, LogRead, PartitionLog, SegmentRewrite, TierSettings

    from .beginnings import StoreStart
    from .cold_reads import ColdReads
    from .manifest import Manifest, StoredSegment
    from .rewriting import ColdRewrites
    from .time_lookup import FoundBatches


class TieredPartitionLog(LogWithTier):
    """A log whose old part lies in the store. See `TieredLog`. Owned by the reactor's task."""

    def __init__(
        self,
        inner: PartitionLog,
        settings: TierSettings,
        *,
        is_new: bool,
        cold_reads: ColdReads,
        found_batches: FoundBatches,
        cold_rewrites: ColdRewrites,
        begin_at_store: Callable[[TieredPartitionLog, int, bool], StoreStart],
        forget: Callable[[TieredPartitionLog], None],
    ) -> None:
        """Wrap a log.

        Args:
            inner: The local log.
            settings: The topic's.
            is_new: Whether its topic begins to be tiered.
            cold_reads: Brings records near.
            found_batches: Looks up times in the store, and keeps what it found.
            cold_rewrites: Begins rewrites of cold segments.
            begin_at_store: Begins to have a follower's log go on from the store, at an offset, or behind it, too.
            forget: Called when this log is closed or unwrapped.

        Raises:
            StorageError: What is kept of the cold part is damaged, or of a later version.
        """
        super().__init__(inner, settings, is_new=is_new)
        self._cold_reads = cold_reads
        self._found_batches = found_batches
        self._cold_rewrites = cold_rewrites
        self._begin_at_store = begin_at_store
        self._forget = forget

    # -------------------------------------------------------------------------------------------------------- offsets

    @property
    def local_log_start_offset(self) -> int:
        """See `TieredLog.local_log_start_offset`."""
        return self.inner.log_start_offset

    # ----------------------------------------------------------------------------------------------------------- read

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`.

        Raises:
            RecordsAreRemoteError: They have to be brought near first.
            KafkaError: They could not be had a moment ago; the code is a retriable one.
        """
        inner = self.inner
        if offset >= inner.log_start_offset:
            return inner.read(offset, max_bytes, end_offset, at_least_one=at_least_one)
        place = self._place(offset)
        while place is not None:
            run = self._cold_reads.find(place)
            if run is None:
                raise RecordsAreRemoteError
            if run.table.holds(place.offset):
                self._read_ahead(run.table.next_offset)
                return run.read(place.offset, max_bytes, end_offset, at_least_one=at_least_one)
            place = self._place(run.table.next_offset)
        if inner.log_start_offset >= end_offset:
            return EMPTY_READ
        return inner.read(inner.log_start_offset, max_bytes, end_offset, at_least_one=at_least_one)

    def _read_ahead(self, offset: int) -> None:
        place = self._place(offset)
        if place is not None and not self._cold_reads.is_at_hand(place):
            self._cold_reads.ask(place)

    def begin_cold_read(self, offset: int, max_bytes: int, done: Callable[[], None]) -> None:
        """See `TieredLog.begin_cold_read`."""
        try:
            place = self._place(offset)
            while place is not None:
                run = self._cold_reads.find(place)
                if run is None:
                    self._cold_reads.ask(place, done)
                    return
                place = None if run.table.holds(place.offset) else self._place(run.table.next_offset)
        except KafkaError:
            pass  # a read tells it
        self._cold_reads.call_soon(done)

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`: those of the local log."""
        first = max(start_offset, self.inner.log_start_offset) if self._cold else start_offset
        return self.inner.batches(first, end_offset)

    # ---------------------------------------------------------------------------------------------------------- times

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """See `PartitionLog.begin_time_lookup`."""
        local = self.inner.begin_time_lookup(timestamp)
        found = self._find_cold(timestamp, self._log_start_offset) if timestamp != NO_LIMIT else None
        if found is None or found[1] is not None:
            return local
        return TimeLookup(self._found_batches, self.partition, found[0], timestamp, self._log_start_offset, local)

    def _find_cold(self, timestamp: int, start_offset: int) -> tuple[StoredSegment, bytes | None] | None:
        """Return the segment that has the batch, and the batch if somebody has looked; None when no cold one has it."""
        for segment in self._cold:
            if segment.max_timestamp >= timestamp and segment.next_offset > start_offset:
                batch = self._found_batches.find(segment, timestamp, start_offset)
                if batch is None or batch:
                    return segment, batch
        return None

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`.

        Raises:
            RecordsAreRemoteError: It is in the store, and no look-up has brought it.
        """
        found = self._find_cold(timestamp, start_offset)
        if found is None:
            return self.inner.batch_for_timestamp(timestamp, max(start_offset, self.inner.log_start_offset))
        if found[1] is None:
            raise RecordsAreRemoteError
        return found[1]

    # --------------------------------------------------------------------------------------------------------- epochs

    @property
    def _all_epochs(self) -> EpochCache:
        if self._epochs is None:
            cache = EpochCache(entry for segment in self._cold for entry in segment.leader_epochs)
            for epoch, start_offset in self.inner.epoch_entries():
                cache.assign(epoch, start_offset)
            cache.truncate_from_start(self._log_start_offset)
            self._epochs = cache
        return self._epochs

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """See `PartitionLog.assign_epoch`."""
        self.inner.assign_epoch(leader_epoch, start_offset)
        self._epochs = None

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """See `PartitionLog.epoch_entries`."""
        return self._all_epochs.entries() if self._cold else self.inner.epoch_entries()

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        if not self._cold:
            return self.inner.end_offset_for_epoch(leader_epoch)
        return self._all_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # ------------------------------------------------------------------------------------------------------- segments

    def segments(self) -> Sequence[SegmentInfo]:
        """See `PartitionLog.segments`: those of both tiers."""
        local = self.inner.segments()
        return [
            SegmentInfo(
                segment.base_offset,
                end,
                _size_below(segment, end),
                segment.max_timestamp,
                # Of a segment without timestamps retention asks when it was written: not later than what follows.
                local[0].modified_ms,
                is_active=False,
            )
            for segment, end in zip(self._cold, self._cold_ends, strict=True)
        ] + list(local)

    def delete_segments_below(self, offset: int) -> int:
        """See `PartitionLog.delete_segments_below`: those of both tiers; what is in the store is removed later."""
        count = bisect_right(self._cold_ends, offset)
        following = self._cold[count].base_offset if count < len(self._cold) else self.inner.log_start_offset
        if count == len(self._cold):
            local = self.inner.delete_segments_below(offset)
            following = self.inner.log_start_offset
            count += local
        if count and following > self._log_start_offset:
            self._move_start(following)
        elif count:
            self._settle()
        return count

    def truncate_to(self, offset: int) -> None:
        """See `PartitionLog.truncate_to`.

        Where that is below the local part, a leader was elected that was not in sync, and what this log has in the
        store is not the leader's: all is given up, to be had anew from where the log begins.
        """
        if self._cold and offset < self.inner.log_start_offset:
            for kind in DERIVED_KINDS:
                for at in list(self.inner.sidecars(kind)):
                    self.inner.delete_sidecar(at, kind)
            self.copies = {}
            self.truncate_fully(self._log_start_offset)
            return
        self.inner.truncate_to(offset)
        self._log_start_offset = min(self._log_start_offset, self.inner.log_start_offset)
        self._settle()

    def truncate_fully(self, start_offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """See `PartitionLog.truncate_fully`."""
        self.inner.truncate_fully(start_offset, leader_epoch)
        self._move_start(start_offset)

    def begin_at_store(self, offset: int, *, is_exact: bool) -> StoreStart:
        """See `TieredLog.begin_at_store`."""
        return self._begin_at_store(self, offset, is_exact)

    # ------------------------------------------------------------------------------------------------------ rewriting

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """See `PartitionLog.begin_rewrite`: cold segments are among them."""
        if self._cold and self._cold[-1].next_offset > self.inner.log_start_offset:
            return self.inner.begin_rewrite(self.inner.log_start_offset)  # nothing: one that is in both tiers in part
        local = self.inner.begin_rewrite(end_offset)
        cold = [segment for segment in self._cold if segment.base_offset < end_offset]
        return self._cold_rewrites.rewrite(self.partition, local, cold, self.inner.log_start_offset) if cold else local

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        """See `PartitionLog.begin_replacement`."""
        if base_offsets[0] >= self.rewritten_border:
            return self.inner.begin_replacement(base_offsets)
        # Also what DeleteRecords has taken out of the log during the pass: the manifest names it until that is over.
        named = self.manifest.segments_from(base_offsets[0]) if self.manifest is not None else ()
        old = named[: len(base_offsets)]
        if [segment.base_offset for segment in old] != list(base_offsets):
            raise StorageError(
                f"{self.partition}: segments {list(base_offsets)} were deleted while they were rewritten"
            )
        return self._cold_rewrites.replacement(self, old)

    def end_cold_replacement(
        self, newest: Manifest, old: Sequence[StoredSegment], sidecars: Mapping[str, bytes]
    ) -> None:
        """Take the manifest that names a rewritten cold segment in the place of others."""
        for segment in old:
            self.inner.delete_sidecar(segment.base_offset, COLD_TRANSACTIONS_KIND)
        if TRANSACTION_INDEX in sidecars:
            self.inner.write_sidecar(old[0].base_offset, COLD_TRANSACTIONS_KIND, sidecars[TRANSACTION_INDEX])
        self.take_manifest(newest)

    # ---------------------------------------------------------------------------------------------------- small files

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`: the transaction indexes of cold segments stay local."""
        here = self.inner.sidecars(kind)
        if kind != TRANSACTION_INDEX:
            return here
        border = self.inner.log_start_offset  # what is kept for a segment that has not left yet does not count
        return sorted({*here, *(at for at in self.inner.sidecars(COLD_TRANSACTIONS_KIND) if at < border)})

    def _kept_kind(self, offset: int, kind: str) -> str:
        is_cold = kind == TRANSACTION_INDEX and offset < self.inner.log_start_offset
        return COLD_TRANSACTIONS_KIND if is_cold and offset not in self.inner.sidecars(kind) else kind

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        return self.inner.read_sidecar(offset, self._kept_kind(offset, kind))

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        self.inner.write_sidecar(offset, self._kept_kind(offset, kind), data)

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        self.inner.delete_sidecar(offset, self._kept_kind(offset, kind))

    # ----------------------------------------------------------------------------------------------------------- life

    def unwrap(self) -> PartitionLog:
        """See `TieredLog.unwrap`."""
        self._forget(self)
        self.drop_state()
        return self.inner

    def begin_close(self) -> DiskWork:
        """See `PartitionLog.begin_close`."""
        self._leave()
        return self.inner.begin_close()

    def close(self) -> None:
        """See `PartitionLog.close`."""
        self._leave()
        self.inner.close()

    def _leave(self) -> None:
        self._forget(self)
        if not self.is_state_saved:
            self.inner.write_sidecar(0, TIER_KIND, self._encoded_state())
            self.note_saved(self.state_version)

    def __repr__(self) -> str:
        return f"<TieredPartitionLog of {len(self._cold)} cold segments before {self.inner!r}>"


def _size_below(segment: StoredSegment, end_offset: int) -> int:
    """Return how large a segment is below an offset, about: what of it is local as well counts there."""
    offsets_count = segment.next_offset - segment.base_offset
    return segment.size_bytes * (end_offset - segment.base_offset) // offsets_count
