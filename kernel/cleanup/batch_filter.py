"""Pure core: what cleanup leaves of one batch: all of it as it is, fewer records, an empty batch, nothing.

Offsets never change: a batch keeps its base and last offset whatever goes from it, records keep theirs. Records are not
decoded into objects and encoded again; their bytes are copied, in runs, and only where the base timestamp changes (the
first time that a batch is left with tombstones, it carries their delete horizon there, KIP-534) their timestamp deltas.

| batch | stays |
| --- | --- |
| the last of a producer that is still known; the last of the whole pass | empty if need be: its sequence, or the end |
| of an aborted transaction | not |
| a marker | until its delete horizon, which is set once nothing else of its transaction is left |
| of delayed records | as `delayed_batches` says |
| any other | with the records that stay; not when there is none |

Where a policy only expires records, markers and aborted transactions are left as they are: what is looked through is
not the log from its beginning, so nobody knows what is left of them.

*Source:* Kafka 4.3: Cleaner.cleanInto, MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader; KIP-534.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import define
from ..records.batch import DELETE_HORIZON_FLAG, BatchHeader, encode_batch
from ..records.compression import compress
from ..records.record_view import NEVER_DUE
from ..records.run import GOES, STAYS, STAYS_FOR_NOW, Kept, RecordRun
from ..records.thinned import emptied, thinned, thinned_header

if TYPE_CHECKING:
    from ..delay.companion import Companion
    from ..types import Buffer
    from .delayed_batches import DelayedBatches
    from .marked_transactions import MarkedTransactions, UntouchedTransactions
    from .selections import RunDue, RunSelection

_ONE_RECORD: Final = bytes([STAYS])


class LastRecord(NamedTuple):
    """The last that a known producer wrote: the offset of its data, -1 when only a marker is known; its epoch."""

    offset: int
    producer_epoch: int


@define
class BatchFilter:
    """Filters the batches of one pass, in the order of their offsets.

    Attributes:
        selection: Says which records of a key stay; None where they only expire.
        expiries: Say when records are to go.
        noted_end: Records from here on stay: they were not noted.
        end_offset: Where the pass ends; a batch that ends there stays, empty if need be.
        last_records: Of the producers that are known now.
        transactions: Those of the log.
        now_ms: The wall clock.
        delete_retention_ms: `delete.retention.ms`.
        delays: What is kept for what waits; None where nothing ever did.
        due_ms: When the first of the records that stayed since `take_due` is to go, `NEVER_DUE` without one.
    """

    selection: RunSelection | None
    expiries: Sequence[RunDue]
    noted_end: int
    end_offset: int
    last_records: Mapping[int, LastRecord]
    transactions: MarkedTransactions | UntouchedTransactions
    now_ms: int
    delete_retention_ms: int
    delays: DelayedBatches | None = None
    due_ms: int = NEVER_DUE

    def take_due(self) -> int:
        """Return when the first of the records that stayed is to go, and begin anew with those that follow."""
        due_ms, self.due_ms = self.due_ms, NEVER_DUE
        return due_ms

    def filter(self, batch: Buffer, header: BatchHeader) -> tuple[Buffer, BatchHeader] | None:
        """Return what stays of a batch, with its header: `batch` itself, a new one, or None for nothing.

        Raises:
            CorruptRecordsError: It cannot be read.
        """
        if header.is_control:
            is_idle = self.transactions.is_marker_idle(batch, header)
            horizon_ms = header.delete_horizon_ms
            goes = is_idle and horizon_ms is not None and horizon_ms <= self.now_ms
            if self.delays is not None:
                if header.base_offset in self.delays.ends:
                    return batch, header
                companion = self.delays.companion_of(batch, header)
                if companion is not None:
                    return self._filter_companion(self.delays, batch, header, companion)
        else:
            is_idle = False
            goes = self.transactions.is_aborted(header)
        stays_empty = header.next_offset == self.end_offset or self._is_last_of_producer(header)
        if goes or not header.records_count:
            return self._empty(batch, header) if stays_empty else None
        if header.is_control:
            if not is_idle or header.delete_horizon_ms is not None:
                return batch, header
            run = RecordRun.of(batch, header)
            flags = _ONE_RECORD * run.count
            return self._rewritten(header, run, flags, run.kept(flags), needs_horizon=True)
        return self._filter_records(batch, header, stays_empty=stays_empty)

    def _filter_companion(
        self, delays: DelayedBatches, batch: Buffer, header: BatchHeader, companion: Companion
    ) -> tuple[Buffer, BatchHeader] | None:
        stays = delays.filter(batch, header, companion)
        if stays is None and header.next_offset == self.end_offset:
            return self._empty(batch, header)
        return stays

    def _filter_records(
        self, batch: Buffer, header: BatchHeader, *, stays_empty: bool
    ) -> tuple[Buffer, BatchHeader] | None:
        run = RecordRun.of(batch, header)
        flags = self._flags(run, header)
        gone_count = flags.count(GOES)
        if gone_count == len(flags):
            return self._empty(batch, header) if stays_empty else None
        has_gone = gone_count > 0
        if not has_gone and (self.selection is None or header.delete_horizon_ms is not None):
            return batch, header
        kept = run.kept(flags)
        needs_horizon = self.selection is not None and kept.has_tombstones and header.delete_horizon_ms is None
        if not has_gone and not needs_horizon:
            return batch, header
        return self._rewritten(header, run, flags, kept, needs_horizon=needs_horizon)

    def _flags(self, run: RecordRun, header: BatchHeader) -> bytes:
        if self.selection is None:
            flags = _ONE_RECORD * run.count
        else:
            horizon_ms = header.delete_horizon_ms
            keeps_tombstones = horizon_ms is None or self.now_ms < horizon_ms
            flags = self.selection.keep_run(run, self.noted_end, keeps_tombstones=keeps_tombstones)
        for due_of in self.expiries:
            flags = self._expire(flags, due_of.of_run(run), may_go=header.next_offset <= self.noted_end)
        return flags

    def _expire(self, flags: bytes, times: Sequence[int], *, may_go: bool) -> bytes:
        """Return the flags without the records whose time has come. What was not noted must not go.

        An expired record beats older ones of its key: gone before it was noted, it would let one of them live on.
        """
        now_ms = self.now_ms
        if min(times, default=NEVER_DUE) > now_ms:
            self.due_ms = min(self.due_ms, *(time for time, flag in zip(times, flags, strict=True) if flag), NEVER_DUE)
            return flags
        left = bytearray(flags)
        for index, time in enumerate(times):
            if time <= now_ms and may_go and left[index] != STAYS_FOR_NOW:
                left[index] = GOES
            if left[index] and time < self.due_ms:
                self.due_ms = time
        return bytes(left)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.offset >= 0:
            return header.last_offset == last.offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _empty(self, batch: Buffer, header: BatchHeader) -> tuple[Buffer, BatchHeader]:
        if not header.records_count:
            return batch, header
        return emptied(header)

    def _rewritten(
        self, header: BatchHeader, run: RecordRun, flags: bytes, kept: Kept, *, needs_horizon: bool
    ) -> tuple[Buffer, BatchHeader]:
        if not needs_horizon:
            return thinned(header, kept)
        fresh = thinned_header(header, kept)
        fresh.attributes |= DELETE_HORIZON_FLAG
        fresh.base_timestamp = self.now_ms + self.delete_retention_ms
        payload = run.rebased(flags, header.base_timestamp - fresh.base_timestamp)
        return encode_batch(fresh, compress(header.compression_id, payload)), fresh
