"""Shell: brings what waits in a partition back from its log: the newest checkpoint, then the batches after it.

Checkpoints are sidecars of the log (`delay`), each at the offset up to which the log was read. One that a crash could
have outrun is not trusted, as with producer snapshots; a truncation drops those above the cut.

Of a log in two tiers all of this is about the local part, which holds all that waits (`delay_carrying`): the log that
is read begins where that does, whatever the store has before it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..records.batch import CorruptRecordsError, read_header
from .recovery import BYTES_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.storage import PartitionLog
    from ..delay.ledger import DelayLedger
    from .replica import Replica

DELAY_KIND: Final = "delay"
CHECKPOINTS_KEPT: Final = 2
ENTRY_BYTES: Final = 64
"""About so many bytes of a companion are a record that waits, which takes a step or a few to take note of."""
WAITING_PER_OFFSET: Final = 10
"""As the log grows by one offset in so many records that wait, they are kept again: each offset pays for so many."""

log = logging.getLogger(__name__)


def recover_delays_in_steps(partition_log: PartitionLog, ledger: DelayLedger) -> Generator[None, None, None]:
    """Fill a ledger with what an opened log says."""
    trusted_end = partition_log.log_end_offset if partition_log.was_clean else partition_log.recovery_point
    for offset in partition_log.sidecars(DELAY_KIND):
        if offset > trusted_end:
            partition_log.delete_sidecar(offset, DELAY_KIND)
    yield from read_delays_in_steps(partition_log, ledger)


def read_delays_in_steps(partition_log: PartitionLog, ledger: DelayLedger) -> Generator[None, None, int]:
    """Fill a ledger anew from the newest sound checkpoint on; return up to where the log was read."""
    ledger.clear()
    start_offset = _restore_newest(partition_log, ledger)
    ledger.start_advanced(partition_log.log_start_offset)  # so nothing is kept of what does not count any more
    end_offset = yield from replay_delays_in_steps(partition_log, ledger, start_offset)
    ledger.start_advanced(partition_log.log_start_offset)
    return end_offset


def replay_delays_in_steps(
    partition_log: PartitionLog, ledger: DelayLedger, start_offset: int
) -> Generator[None, None, int]:
    """Take note of every batch that is written from `start_offset` on; return where the last one ended."""
    if start_offset >= partition_log.log_end_offset:
        return start_offset
    for batch in partition_log.batches(start_offset):
        header = read_header(batch)
        is_companion = header.is_control and not header.has_producer_id
        for _ in range(1 + len(batch) // (ENTRY_BYTES if is_companion else BYTES_PER_STEP)):
            yield
        if header.base_offset >= start_offset:
            ledger.saw(batch, header)
            start_offset = header.next_offset
    return start_offset


def start_with_companion(partition_log: PartitionLog, offset: int) -> int:
    """Return where a log has to start so that what was produced from an offset on still waits.

    A producer is told the offset of its first record; what holds its batch's delayed records lies right before that.
    """
    from ..delay.companion import read_companion  # a broker without delayed records does not pay for it

    if offset <= partition_log.log_start_offset:
        return offset
    batch = next(iter(partition_log.batches(offset - 1)), None)
    if batch is None or (header := read_header(batch)).base_offset != offset - 1:
        return offset
    try:
        companion = read_companion(batch, header)
    except CorruptRecordsError:
        return offset
    return offset if companion is None or companion.is_delivery else offset - 1


def kept_end(replica: Replica) -> int:
    """Return up to where a replica's log is committed, and durable here.

    What a delivery behind it has delivered may wait again: another leader may not have that, a loss of power may take
    it. So until then what held it stays.
    """
    return min(replica.high_watermark, replica.log.recovery_point)


def keeps_waiting(replica: Replica) -> bool:
    """Return whether a replica's topic has a ledger: records may wait in its local log, or soon will."""
    return replica.delays is not None or replica.delay_beginning is not None


def _restore_newest(partition_log: PartitionLog, ledger: DelayLedger) -> int:
    for offset in reversed(partition_log.sidecars(DELAY_KIND)):
        try:
            ledger.restore(partition_log.read_sidecar(offset, DELAY_KIND))
        except ValueError as error:
            log.warning("%s: what waits is read from the log, not from %d: %s", partition_log.partition, offset, error)
            partition_log.delete_sidecar(offset, DELAY_KIND)
        else:
            return offset
    return 0


def is_worth_keeping(partition_log: PartitionLog, ledger: DelayLedger) -> bool:
    """Return whether a checkpoint would save so much reading that it is worth writing all that waits."""
    if ledger.is_amidst:
        return False
    kept_offset = max(partition_log.sidecars(DELAY_KIND), default=0)
    return partition_log.log_end_offset - kept_offset > ledger.queue.waiting_count // WAITING_PER_OFFSET


def keep_delays(partition_log: PartitionLog, ledger: DelayLedger) -> None:
    """Write a checkpoint at the log's end, unless there is one, and drop all but a few older ones; durable on return.

    All that was appended is written by then.
    """
    offset = partition_log.log_end_offset
    if not ledger.is_amidst and offset not in partition_log.sidecars(DELAY_KIND):
        partition_log.write_sidecar(offset, DELAY_KIND, b"".join(ledger.encode()))
        remove_old_checkpoints(partition_log)


def delete_checkpoints(partition_log: PartitionLog) -> None:
    """Forget what was kept of a log that begins elsewhere now, and may have gone another way before."""
    for offset in list(partition_log.sidecars(DELAY_KIND)):
        partition_log.delete_sidecar(offset, DELAY_KIND)


def remove_old_checkpoints(partition_log: PartitionLog) -> None:
    """Remove the checkpoints that nobody needs: the newest few stay, and the newest that a crash cannot outrun."""
    offsets = list(partition_log.sidecars(DELAY_KIND))
    recovery_point = partition_log.recovery_point
    kept = {*offsets[-CHECKPOINTS_KEPT:], *[offset for offset in offsets if offset <= recovery_point][-1:]}
    for offset in offsets:
        if offset not in kept:
            partition_log.delete_sidecar(offset, DELAY_KIND)
