"""Shell: brings a partition's producer state back from its log: the newest snapshot, then the batches after it.

Also keeps it: snapshots are sidecars of the log (`snapshot`, Kafka's format), aborted transactions stand in the
sidecars of its segments (`txnindex`), each in that of the segment with its marker.

An entry of an index is written when its marker is staged, so before the marker itself, and both are synced by the same
flush. So below the recovery point no entry is missing; beyond it there may be one too many, which goes here.

*Source:* Kafka's UnifiedLog.rebuildProducerState and ProducerStateManager.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..errors import CorruptionError, StorageError
from ..machine.turnstile import run_at_once
from ..records.batch import read_header
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from .producer_snapshot import SNAPSHOT_KIND, encode_snapshot, snapshot_entries
from .transaction_index import (
    TRANSACTION_INDEX_KIND,
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import TypeAlias

    from ..contracts.storage import PartitionLog
    from ..contracts.tiering import TieredLog
    from ..records.batch import BatchHeader
    from .producer_table import ProducerStateTable

    Steps: TypeAlias = Generator[None, None, None]

log = logging.getLogger(__name__)

SNAPSHOTS_KEPT: Final = 2
BYTES_PER_STEP: Final = 16 * 1024
"""So much of a log is read in a step, about."""


def recover_in_steps(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> Steps:
    """Fill an empty table with what the log says, and put the transaction indexes right by it.

    Snapshots that a crash could have outrun (taken beyond the recovery point) are not trusted.

    Args:
        partition_log: An open log.
        producers: An empty table.
        now_ms: The wall clock.
    """
    trusted_end = partition_log.log_end_offset if partition_log.was_clean else partition_log.recovery_point
    for offset in partition_log.sidecars(SNAPSHOT_KIND):
        if offset > trusted_end:
            # Also of an empty log: it will grow past them.
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
    if partition_log.log_end_offset == 0:
        return
    snapshots = partition_log.sidecars(SNAPSHOT_KIND)
    if partition_log.was_clean and not snapshots and not partition_log.sidecars(TRANSACTION_INDEX_KIND):
        # Whoever closes a log that knows producers keeps a snapshot, or has it read: this one need not be read whole.
        return
    yield from _fill(partition_log, producers, now_ms)


def rebuild_producers(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> None:
    """Do what `rebuild_in_steps` does in one go: where the log is known to be short."""
    run_at_once(rebuild_in_steps(partition_log, producers, now_ms))


def rebuild_in_steps(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> Steps:
    """Fill a table anew after its log was truncated, which has dropped the snapshots above the cut: for a follower."""
    producers.clear()
    yield from _fill(partition_log, producers, now_ms)


def knows_producers(partition_log: PartitionLog, producers: ProducerStateTable) -> bool:
    """Return whether anything is known of producers, beside a log or of it."""
    return bool(
        len(producers)
        or producers.transactions.unstable_count
        or partition_log.sidecars(SNAPSHOT_KIND)
        or partition_log.sidecars(TRANSACTION_INDEX_KIND)
    )


def _fill(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> Steps:
    start_offset = yield from _load_newest(partition_log, producers, now_ms)
    yield from _replay_in_steps(partition_log, producers, start_offset)
    _put_indexes_right(partition_log, producers.transactions.aborted())
    producers.transactions.advance_log_start(partition_log.log_start_offset)


def _load_newest(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> Generator[None, None, int]:
    """Load the newest sound snapshot; return from where on the log is to be replayed.

    That is at the snapshot, or where the first segment begins, also below the log's start: who began a transaction
    there, whose records are partly deleted, may still have to be told as aborted. A snapshot of before that is of no
    use: by its sequences the next batch would be out of order, and its transactions would never end.

    *Source:* ProducerStateManager.truncateAndReload, which deletes what was taken at the log's start, too.
    """
    # Of the part of a tiered log that is in the store there is nothing to replay: its indexes tell it. `segments` would
    # tell where the first begins, and look for times in all of them.
    headers = (header for header, _ in _readable_batches(partition_log, 0))
    first_offset = next((header.base_offset for header in headers), partition_log.log_end_offset)
    aborted = _read_indexes(partition_log)
    for offset in reversed(partition_log.sidecars(SNAPSHOT_KIND) if aborted is not None else ()):
        if offset < first_offset:  # what came between was deleted: nobody knows what its producers did there
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
            continue
        try:
            entries = snapshot_entries(partition_log.read_sidecar(offset, SNAPSHOT_KIND))
        except CorruptionError as error:
            log.warning("%s: producer snapshot %d is left out: %s", partition_log.partition, offset, error)
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
            continue
        yield from producers.load_in_steps(
            entries, [each for each in aborted or () if each.last_offset < offset], now_ms
        )
        return offset
    producers.load((), [each for each in aborted or () if each.last_offset < first_offset], now_ms)
    return first_offset


def replay(partition_log: PartitionLog, producers: ProducerStateTable, start_offset: int) -> None:
    """Take note of every batch from `start_offset` on."""
    run_at_once(_replay_in_steps(partition_log, producers, start_offset))


def _replay_in_steps(partition_log: PartitionLog, producers: ProducerStateTable, start_offset: int) -> Steps:
    if start_offset >= partition_log.log_end_offset:
        return
    for header, batch in _readable_batches(partition_log, start_offset):
        for _ in range(1 + len(batch) // BYTES_PER_STEP):
            yield
        if header.producer_id < 0 or header.base_offset < start_offset:
            continue
        if not header.is_control:
            producers.append(header)
            continue
        if not header.records_count:
            continue  # compaction left it: of its transaction there is nothing any more, as Kafka takes it
        control = read_control_record(batch, header)
        if isinstance(control, EndTransactionMarker):
            producers.append_marker(
                header,
                is_commit=control.type is ControlRecordType.COMMIT,
                coordinator_epoch=control.coordinator_epoch,
            )


def _readable_batches(partition_log: PartitionLog, start_offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Iterate over the batches from an offset on; where one cannot be, what is left of its segment is passed over.

    Recovery has cut what was doubtful, so a disk has forgotten something since. Whoever reads that is told; to have the
    whole partition offline for it would take away what is sound, and nobody could produce any more.
    """
    next_offset: int | None = start_offset
    while next_offset is not None:
        try:
            for batch in partition_log.batches(next_offset):
                header = read_header(batch)
                yield header, batch
                next_offset = max(next_offset, header.next_offset)
        except CorruptionError as error:
            bases = (segment.base_offset for segment in partition_log.segments())
            unread_from, next_offset = next_offset, next((base for base in bases if base > next_offset), None)
            until = "the log's end" if next_offset is None else f"offset {next_offset}"
            told = "%s: what its producers did from offset %d to %s is not known: %s"
            log.error(told, partition_log.partition, unread_from, until, error)
        else:
            return


def _read_indexes(partition_log: PartitionLog) -> list[AbortedTransaction] | None:
    """Return what the transaction indexes say, None when one of them is damaged: then only the log can tell."""
    aborted: list[AbortedTransaction] = []
    for base_offset in partition_log.sidecars(TRANSACTION_INDEX_KIND):
        try:
            data = partition_log.read_sidecar(base_offset, TRANSACTION_INDEX_KIND)
            aborted += decode_transaction_index(data, is_torn=not partition_log.was_clean)
        except CorruptionError as error:
            log.warning("%s: %d.txnindex is rebuilt: %s", partition_log.partition, base_offset, error)
            return None
    return aborted


def _put_indexes_right(partition_log: PartitionLog, aborted: Sequence[AbortedTransaction]) -> None:
    """Have each segment's transaction index say what the log says: an end of it may have been lost, or cut off."""
    indexed = set(partition_log.sidecars(TRANSACTION_INDEX_KIND))
    if not aborted and not indexed:
        return
    by_segment: dict[int, list[AbortedTransaction]] = {}
    bases = [segment.base_offset for segment in partition_log.segments()]
    for transaction in aborted:
        number = bisect_right(bases, transaction.last_offset)
        if number:  # the others' markers were deleted, with all that they could hide
            by_segment.setdefault(bases[number - 1], []).append(transaction)
    for base_offset in sorted(indexed | by_segment.keys()):
        data = encode_transaction_index(by_segment.get(base_offset, ()))
        if base_offset in indexed and partition_log.read_sidecar(base_offset, TRANSACTION_INDEX_KIND) == data:
            continue
        if data:
            partition_log.write_sidecar(base_offset, TRANSACTION_INDEX_KIND, data)
        else:
            partition_log.delete_sidecar(base_offset, TRANSACTION_INDEX_KIND)


def keep_producers(partition_log: PartitionLog, producers: ProducerStateTable, tiered_log: TieredLog | None) -> None:
    """Write a snapshot at the log's end, unless there is one, and drop all but a few older ones; durable on return."""
    offset = partition_log.log_end_offset
    if offset not in partition_log.sidecars(SNAPSHOT_KIND):
        partition_log.write_sidecar(offset, SNAPSHOT_KIND, encode_snapshot(producers.snapshot()))
    remove_old_snapshots(partition_log, tiered_log)


def have_producers_read(partition_log: PartitionLog) -> None:
    """See to it that whoever opens a log next reads it for its producers, though it is about to be closed as clean.

    For a log whose replica failed, or never came to be: nobody is sure of what it knows. A log that is offline is not
    closed as clean, so nothing is to be done; neither is one in which this cannot be kept, as it is offline then.
    """
    with suppress(StorageError):
        is_read = partition_log.sidecars(SNAPSHOT_KIND) or partition_log.sidecars(TRANSACTION_INDEX_KIND)
        if partition_log.log_end_offset and not is_read:
            # At the log's begin nobody is known yet: what follows is read.
            partition_log.append_sidecar(0, SNAPSHOT_KIND, encode_snapshot(()))


def remove_old_snapshots(partition_log: PartitionLog, tiered_log: TieredLog | None) -> None:
    """Remove the producer snapshots that nobody needs any more.

    What stays: the newest few, as the one before the last serves when the last is damaged; the newest that a crash
    cannot make doubtful; those that go to the remote store with the segments that end there.
    """
    offsets = list(partition_log.sidecars(SNAPSHOT_KIND))
    recovery_point = partition_log.recovery_point
    kept = {*offsets[-SNAPSHOTS_KEPT:], *[offset for offset in offsets if offset <= recovery_point][-1:]}
    if tiered_log is not None:
        tiered_end = tiered_log.tiered_end_offset
        kept.update(each.base_offset for each in partition_log.segments() if each.base_offset > tiered_end)
    for offset in offsets:
        if offset not in kept:
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
