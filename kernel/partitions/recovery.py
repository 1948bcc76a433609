"""Shell: brings a partition's producer state back from its log: the newest snapshot, then the batches after it.

Also keeps it: snapshots are sidecars of the log (`snapshot`, Kafka's format), aborted transactions stand in the
sidecars of its segments (`txnindex`).

*Source:* Kafka's UnifiedLog.rebuildProducerState and ProducerStateManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..errors import CorruptionError
from ..records.batch import read_header
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from .producer_snapshot import SNAPSHOT_KIND, decode_snapshot, encode_snapshot
from .transaction_index import TRANSACTION_INDEX_KIND, AbortedTransaction, decode_transaction_index

if TYPE_CHECKING:
    from ..contracts.storage import PartitionLog
    from .producer_state import ProducerStateTable

log = logging.getLogger(__name__)

SNAPSHOTS_KEPT: Final = 2


def recover_producers(partition_log: PartitionLog, producers: ProducerStateTable, now_ms: int) -> None:
    """Fill an empty table with what the log says.

    Snapshots that a crash could have outrun (taken beyond the recovery point) are not trusted.

    Args:
        partition_log: An open log.
        producers: An empty table.
        now_ms: The wall clock.
    """
    trusted_end = partition_log.log_end_offset if partition_log.was_clean else partition_log.recovery_point
    start_offset = partition_log.log_start_offset
    snapshots = partition_log.sidecars(SNAPSHOT_KIND)
    for offset in snapshots:
        if offset > trusted_end:
            # Also of an empty log: it will grow past them.
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
    if partition_log.log_end_offset == 0:
        return
    if partition_log.was_clean and not snapshots and not partition_log.sidecars(TRANSACTION_INDEX_KIND):
        # A clean shutdown keeps a snapshot of every log that knows producers: this one need not be read whole.
        return
    for offset in reversed(snapshots):
        if offset > trusted_end:
            continue
        try:
            entries = decode_snapshot(partition_log.read_sidecar(offset, SNAPSHOT_KIND))
        except CorruptionError as error:
            log.warning("%s: producer snapshot %d is left out: %s", partition_log.partition, offset, error)
            partition_log.delete_sidecar(offset, SNAPSHOT_KIND)
            continue
        producers.load(entries, _aborted_below(partition_log, offset), now_ms)
        start_offset = max(offset, start_offset)
        break
    replay(partition_log, producers, start_offset)
    producers.advance_log_start(partition_log.log_start_offset)


def replay(partition_log: PartitionLog, producers: ProducerStateTable, start_offset: int) -> None:
    """Take note of every batch from `start_offset` on."""
    if start_offset >= partition_log.log_end_offset:
        return
    for batch in partition_log.batches(start_offset):
        header = read_header(batch)
        if header.producer_id < 0 or header.base_offset < start_offset:
            continue
        if not header.is_control:
            producers.append(header)
            continue
        control = read_control_record(batch, header)
        if isinstance(control, EndTransactionMarker):
            producers.append_marker(
                header,
                is_commit=control.type is ControlRecordType.COMMIT,
                coordinator_epoch=control.coordinator_epoch,
            )


def _aborted_below(partition_log: PartitionLog, offset: int) -> list[AbortedTransaction]:
    return [
        aborted
        for base_offset in partition_log.sidecars(TRANSACTION_INDEX_KIND)
        for aborted in decode_transaction_index(partition_log.read_sidecar(base_offset, TRANSACTION_INDEX_KIND))
        if aborted.last_offset < offset
    ]


def keep_producers(partition_log: PartitionLog, producers: ProducerStateTable) -> None:
    """Write a snapshot at the log's end, unless there is one, and drop all but a few older ones; durable on return."""
    offset = partition_log.log_end_offset
    if offset not in partition_log.sidecars(SNAPSHOT_KIND):
        partition_log.write_sidecar(offset, SNAPSHOT_KIND, encode_snapshot(producers.snapshot()))
    remove_old_snapshots(partition_log)


def remove_old_snapshots(partition_log: PartitionLog) -> None:
    """Remove all producer snapshots but the newest few: the one before the last serves when the last is damaged."""
    for old in list(partition_log.sidecars(SNAPSHOT_KIND))[:-SNAPSHOTS_KEPT]:
        partition_log.delete_sidecar(old, SNAPSHOT_KIND)
