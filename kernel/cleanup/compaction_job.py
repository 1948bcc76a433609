"""Shell: one pass over one log, as a worker does it: notes the dirty records, then rewrites group by group.

    compaction   1  dirty segments, from the first dirty offset on:    selection.note, until it is full
                 2  all segments before, where an old record may win:  selection.weigh
                    of topics with delayed records then all once more: what is kept for what waits
                 3  all segments below what was noted, in groups that fit into one: filter every batch, write the rest;
                    after each group: `GroupRewritten`, so that the log's owner can put it in place while the next is
                    written
    expiry       the segments that were asked for: read; where something is to go, rewritten (`GroupRewritten`),
                 otherwise left as they are (`SegmentLooked`)

It knows no log and no reactor: it reads sources and writes to a place (`contracts/rewriting.py`), in whichever process.

*Source:* Kafka 4.3: Cleaner.doClean, buildOffsetMap, groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ..classes import frozen
from ..partitions.transaction_index import TRANSACTION_INDEX_KIND, AbortedTransaction, encode_transaction_index
from ..records.batch import CorruptRecordsError, is_crc_valid, read_header
from ..records.record_view import NEVER_DUE
from ..records.run import RecordRun
from ..types import NO_OFFSET
from .batch_filter import BatchFilter, LastRecord
from .marked_transactions import MarkedTransactions, UntouchedTransactions
from .selections import due_of_runs, selection_of_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.cleanup import Compaction, RecordDue
    from ..contracts.rewriting import SegmentRewrite, SegmentSource
    from ..machine.throttle import Throttle
    from ..records.batch import BatchHeader
    from .delayed_batches import DelayedBatches
    from .selections import RunSelection

OFFSETS_MAX: Final = (1 << 31) - 1
"""A segment's index holds offsets relative to its base offset, in a signed 32-bit number."""


@frozen
class CompactionJob:
    """Everything that a worker needs.

    Attributes:
        compaction: What a policy planned; None where records only expire.
        rewrite: Segments up to `compaction.end_offset`, or those to look through, and where new ones go.
        aborted: All aborted transactions of the log.
        last_records: Of the producers that are known, by producer id.
        memory_bytes: For the selection.
        load_factor: How full its table may get.
        buffer_bytes: How much is read at a time.
        bytes_per_second: Read and written together.
        segment_bytes: How large a merged segment may get.
        segment_index_bytes: How large its indexes may get.
        delete_retention_ms: How long tombstones stay.
        now_ms: The wall clock.
        expiries: Say when records are to go.
        needed_stretches: Of offsets in which delayed records wait; None where none ever did.
    """

    compaction: Compaction | None
    rewrite: SegmentRewrite
    aborted: Sequence[AbortedTransaction]
    last_records: Mapping[int, LastRecord]
    memory_bytes: int
    load_factor: float
    buffer_bytes: int
    bytes_per_second: float
    segment_bytes: int
    segment_index_bytes: int
    delete_retention_ms: int
    now_ms: int
    expiries: Sequence[RecordDue] = ()
    needed_stretches: frozenset[int] | None = None


@frozen
class GroupRewritten:
    """A new segment is ready to take the place of others.

    Attributes:
        base_offsets: Of the segments that it replaces; it begins where the first does.
        end_offset: Where they end.
        aborted: The aborted transactions that its index holds, with their markers in it.
        bytes_read: Of these segments.
        bytes_written: Of the new one.
        due_ms: When the first of its records is to go, `NEVER_DUE` without one.
    """

    base_offsets: Sequence[int]
    end_offset: int
    aborted: Sequence[AbortedTransaction]
    bytes_read: int
    bytes_written: int
    due_ms: int = NEVER_DUE


@frozen
class SegmentLooked:
    """A segment was looked through and holds nothing that is to go now.

    Attributes:
        base_offset: Where it begins.
        end_offset: Where it ends.
        bytes_read: Its size.
        due_ms: When the first of its records is to go, `NEVER_DUE` without one.
    """

    base_offset: int
    end_offset: int
    bytes_read: int
    due_ms: int


@frozen
class CompactionDone:
    """The pass is over.

    Attributes:
        clean_end: Up to where the log is clean now: the first dirty offset of the next pass; None where records only
            expired.
    """

    clean_end: int | None


Step: TypeAlias = "GroupRewritten | SegmentLooked | CompactionDone"


def compact(job: CompactionJob, throttle: Throttle) -> Iterator[Step]:
    """Do the job, step by step; the last step is `CompactionDone`.

    Raises:
        CorruptRecordsError: A segment is damaged.
        OSError: The disk fails, or a segment is gone.
    """
    job.rewrite.place.clear()
    if job.compaction is None:
        return _expire(job, throttle)
    return _compact(job, job.compaction, throttle)


def _compact(job: CompactionJob, compaction: Compaction, throttle: Throttle) -> Iterator[Step]:
    records_max = compaction.end_offset - compaction.first_dirty_offset
    made = compaction.new_selection(job.memory_bytes, max(records_max, 1), job.load_factor)
    selection = selection_of_runs(made)
    noted_end = _note(job, compaction, selection, throttle)
    if selection.weighs:
        _weigh(job, compaction, selection, throttle)
    batch_filter = _filter_of(job, selection, noted_end, compaction.end_offset, MarkedTransactions(job.aborted))
    if job.needed_stretches is not None:
        batch_filter.delays = _find_delayed(job, job.needed_stretches, throttle)
    sources = [source for source in job.rewrite.sources if source.base_offset < noted_end]
    for group in group_sources(sources, job.segment_bytes, job.segment_index_bytes, job.rewrite.border_offset):
        yield _rewrite(job, group, batch_filter, throttle)
    yield CompactionDone(noted_end)


def _filter_of(
    job: CompactionJob,
    selection: RunSelection | None,
    noted_end: int,
    end_offset: int,
    transactions: MarkedTransactions | UntouchedTransactions,
) -> BatchFilter:
    return BatchFilter(
        selection=selection,
        expiries=[due_of_runs(due_of) for due_of in job.expiries],
        noted_end=noted_end,
        end_offset=end_offset,
        last_records=job.last_records,
        transactions=transactions,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
    )


def _note(job: CompactionJob, compaction: Compaction, selection: RunSelection, throttle: Throttle) -> int:
    """Tell the selection of the dirty records; return the offset of the first that was not noted."""
    start = noted_end = compaction.first_dirty_offset
    transactions = MarkedTransactions(job.aborted)
    for source in job.rewrite.sources:
        if source.next_offset <= start:
            continue
        for run, _ in _live_runs(job, source, start, transactions, throttle):
            full_at = selection.note_run(run, start)
            if full_at is not None:
                return full_at
        noted_end = source.next_offset
    return noted_end


def _weigh(job: CompactionJob, compaction: Compaction, selection: RunSelection, throttle: Throttle) -> None:
    """Tell the selection of the records that earlier passes left."""
    end = compaction.first_dirty_offset
    transactions = MarkedTransactions(job.aborted)
    for source in job.rewrite.sources:
        if source.base_offset >= end:
            return
        for run, header in _live_runs(job, source, source.base_offset, transactions, throttle):
            if header.base_offset < end:
                selection.weigh_run(run, end)


def _find_delayed(job: CompactionJob, needed: frozenset[int], throttle: Throttle) -> DelayedBatches:
    """Return what is to be kept for what waits: known only when all was read."""
    from .delayed_batches import DelayedBatches  # few compacted topics have delayed records

    delays = DelayedBatches(needed, job.aborted)
    for source in job.rewrite.sources:
        for batch in source.batches(source.base_offset, job.buffer_bytes):
            throttle.note(len(batch))
            delays.saw(batch, _checked_header(batch, source))
    delays.end()
    return delays


def _live_runs(
    job: CompactionJob, source: SegmentSource, start: int, transactions: MarkedTransactions, throttle: Throttle
) -> Iterator[tuple[RecordRun, BatchHeader]]:
    """Iterate over the data batches of a segment whose transactions were not aborted."""
    for batch in source.batches(start, job.buffer_bytes):
        throttle.note(len(batch))
        header = _checked_header(batch, source)
        if header.is_control:
            transactions.is_marker_idle(batch, header)
        elif not transactions.is_aborted(header):
            yield RecordRun.of(batch, header), header


def _rewrite(
    job: CompactionJob, group: Sequence[SegmentSource], batch_filter: BatchFilter, throttle: Throttle
) -> GroupRewritten:
    writer = job.rewrite.place.new_segment(group[0].base_offset)
    bytes_read = bytes_written = 0
    for source in group:
        for batch in source.batches(source.base_offset, job.buffer_bytes):
            stays = batch_filter.filter(batch, _checked_header(batch, source))
            bytes_read += len(batch)
            throttle.note(len(batch))
            if stays is not None:
                kept, header = stays
                writer.append(kept, header.last_offset, header.max_timestamp)
                bytes_written += len(kept)
                throttle.note(len(kept))
    aborted = batch_filter.transactions.take_kept()
    writer.finish({TRANSACTION_INDEX_KIND: encode_transaction_index(aborted)} if aborted else {})
    bases = [source.base_offset for source in group]
    return GroupRewritten(bases, group[-1].next_offset, aborted, bytes_read, bytes_written, batch_filter.take_due())


def _expire(job: CompactionJob, throttle: Throttle) -> Iterator[Step]:
    """Look through segments, and rewrite those of which something is to go."""
    stale: list[SegmentSource] = []
    for source in job.rewrite.sources:
        due_ms = _look(job, source, throttle)
        if due_ms is None:
            stale.append(source)
        else:
            yield SegmentLooked(source.base_offset, source.next_offset, source.size_bytes, due_ms)
    for group in group_sources(stale, job.segment_bytes, job.segment_index_bytes, job.rewrite.border_offset):
        yield _rewrite(job, group, _expiring_filter(job, group[-1]), throttle)
    yield CompactionDone(None)


def _expiring_filter(job: CompactionJob, last: SegmentSource) -> BatchFilter:
    # No batch stays for its offset's sake: the active segment, which is never looked through, tells where the log ends.
    return _filter_of(job, None, last.next_offset, NO_OFFSET, UntouchedTransactions(job.aborted))


def _look(job: CompactionJob, source: SegmentSource, throttle: Throttle) -> int | None:
    """Return when the first record of a segment is to go; None when something is to go now."""
    batch_filter = _expiring_filter(job, source)
    for batch in source.batches(source.base_offset, job.buffer_bytes):
        throttle.note(len(batch))
        stays = batch_filter.filter(batch, _checked_header(batch, source))
        if stays is None or stays[0] is not batch:
            return None
    return batch_filter.take_due()


def _checked_header(batch: memoryview, source: SegmentSource) -> BatchHeader:
    header = read_header(batch)
    if not is_crc_valid(batch, 0, header):
        raise CorruptRecordsError(
            f"segment {source.base_offset}: the batch at offset {header.base_offset} is damaged: its CRC does not match"
        )
    return header


def group_sources(
    sources: Sequence[SegmentSource], segment_bytes: int, segment_index_bytes: int, border_offset: int = 0
) -> list[list[SegmentSource]]:
    """Return neighbours in groups, each of which fits into one segment: by bytes, index and range of offsets.

    A group begins at the border between two tiers, if there is one.
    """
    groups: list[list[SegmentSource]] = []
    size_bytes = index_bytes = 0
    for source in sources:
        fits = (
            bool(groups)
            and groups[-1][-1].next_offset == source.base_offset != border_offset
            and size_bytes + source.size_bytes <= segment_bytes
            and index_bytes + source.index_bytes <= segment_index_bytes
            and (not source.size_bytes or source.next_offset - 1 - groups[-1][0].base_offset <= OFFSETS_MAX)
        )
        if fits:
            groups[-1].append(source)
            size_bytes += source.size_bytes
            index_bytes += source.index_bytes
        else:
            groups.append([source])
            size_bytes, index_bytes = source.size_bytes, source.index_bytes
    return groups
