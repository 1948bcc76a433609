"""Shell: one compaction of one log, as a worker does it: notes the dirty records, then rewrites group by group.

    1  dirty segments, from the first dirty offset on:    selection.note(key, offset)       until it is full
    2  all segments below what was noted, in groups that fit into one:   filter every batch, write what stays
       after each group: `GroupRewritten`, so that the log's owner can put it in place while the next is written

It knows no log and no reactor: it reads sources and writes to a place (`contracts/rewriting.py`), in whichever process.

*Source:* Kafka 4.3: Cleaner.doClean, buildOffsetMap, groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ..partitions.transaction_index import TRANSACTION_INDEX_KIND, AbortedTransaction, encode_transaction_index
from ..records.batch import CorruptRecordsError, is_crc_valid, read_header
from ..records.reader import read_payload
from .batch_filter import BatchFilter, LastRecord, walk_records
from .marked_transactions import MarkedTransactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.cleanup import Compaction, RecordSelection
    from ..contracts.rewriting import SegmentRewrite, SegmentSource
    from ..records.batch import BatchHeader
    from .throttle import Throttle

OFFSETS_MAX: Final = (1 << 31) - 1
"""A segment's index holds offsets relative to its base offset, in a signed 32-bit number."""


@attrs.frozen
class CompactionJob:
    """Everything that a worker needs.

    Attributes:
        compaction: What the policy planned.
        rewrite: Segments up to `compaction.end_offset`, and where new ones go.
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
    """

    compaction: Compaction
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


@attrs.frozen
class GroupRewritten:
    """A new segment is ready to take the place of others.

    Attributes:
        base_offsets: Of the segments that it replaces; it begins where the first does.
        end_offset: Where they end.
        aborted: The aborted transactions that its index holds, with their markers in it.
        bytes_read: Of these segments.
        bytes_written: Of the new one.
    """

    base_offsets: Sequence[int]
    end_offset: int
    aborted: Sequence[AbortedTransaction]
    bytes_read: int
    bytes_written: int


@attrs.frozen
class CompactionDone:
    """The pass is over.

    Attributes:
        clean_end: Up to where the log is clean now: the first dirty offset of the next pass.
        records_noted: How many records the selection took.
    """

    clean_end: int
    records_noted: int


def compact(job: CompactionJob, throttle: Throttle) -> Iterator[GroupRewritten | CompactionDone]:
    """Do the job, step by step; the last step is `CompactionDone`.

    Raises:
        CorruptRecordsError: A segment is damaged.
        OSError: The disk fails, or a segment is gone.
    """
    compaction = job.compaction
    job.rewrite.place.clear()
    records_max = compaction.end_offset - compaction.first_dirty_offset
    selection = compaction.new_selection(job.memory_bytes, max(records_max, 1), job.load_factor)
    noted_end, records_noted = _note(job, selection, throttle)
    batch_filter = BatchFilter(
        keeps=selection.keeps,
        noted_end=noted_end,
        end_offset=compaction.end_offset,
        last_records=job.last_records,
        transactions=MarkedTransactions(job.aborted),
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
    )
    sources = [source for source in job.rewrite.sources if source.base_offset < noted_end]
    for group in group_sources(sources, job.segment_bytes, job.segment_index_bytes):
        yield _rewrite(job, group, batch_filter, throttle)
    yield CompactionDone(noted_end, records_noted)


def _note(job: CompactionJob, selection: RecordSelection, throttle: Throttle) -> tuple[int, int]:
    """Tell the selection of the dirty records; return the offset after the last one, and how many they are."""
    start = noted_end = job.compaction.first_dirty_offset
    transactions = MarkedTransactions(job.aborted)
    count = 0
    for source in job.rewrite.sources:
        if source.next_offset <= start:
            continue
        for batch in source.batches(start, job.buffer_bytes):
            throttle.note(len(batch))
            header = _checked_header(batch, source)
            if header.is_control:
                transactions.is_marker_idle(batch, header)
            elif not transactions.is_aborted(header):
                payload = read_payload(batch, 0, header)
                for record in walk_records(payload, header.records_count):
                    offset = header.base_offset + record.offset_delta
                    if offset < start or record.key is None:
                        continue
                    if not selection.note(record.key, offset):
                        return noted_end, count
                    noted_end = offset + 1
                    count += 1
            noted_end = max(noted_end, header.next_offset)
        noted_end = source.next_offset
    return noted_end, count


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
    return GroupRewritten(bases, group[-1].next_offset, aborted, bytes_read, bytes_written)


def _checked_header(batch: memoryview, source: SegmentSource) -> BatchHeader:
    header = read_header(batch)
    if not is_crc_valid(batch, 0, header):
        raise CorruptRecordsError(
            f"segment {source.base_offset}: the batch at offset {header.base_offset} is damaged: its CRC does not match"
        )
    return header


def group_sources(
    sources: Sequence[SegmentSource], segment_bytes: int, segment_index_bytes: int
) -> list[list[SegmentSource]]:
    """Return neighbours in groups, each of which fits into one segment: by bytes, index and range of offsets."""
    groups: list[list[SegmentSource]] = []
    size_bytes = index_bytes = 0
    for source in sources:
        fits = (
            bool(groups)
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
