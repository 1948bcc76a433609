"""Pure core: the offsets of ListOffsets that tell where tiers end.

    log start               local start           tiered end
        ├─── remote ────────────┼── both ─────────────┼─── local, to be sent ───┤ end
        earliest                earliest-local   latest-tiered, earliest-pending-upload

*Source:* KIP-405, KIP-1005, KIP-1023; answers compared with Apache Kafka 4.3.1 with a remote storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..types import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP
from .timestamp_lookup import TimestampOffset

if TYPE_CHECKING:
    from .replica import Replica

NOTHING: Final = TimestampOffset(NO_TIMESTAMP, NO_OFFSET, NO_EPOCH)


def earliest_local(replica: Replica) -> int:
    """Return the first offset that can be read without a remote store."""
    start_offset = replica.log.log_start_offset
    tiered = replica.tiered_log
    return start_offset if tiered is None else max(start_offset, tiered.local_log_start_offset)


def latest_tiered(replica: Replica, visible_end: int) -> TimestampOffset:
    """Return the last offset that is in the remote store."""
    tiered = replica.tiered_log
    if tiered is None or tiered.tiered_end_offset == 0:
        return NOTHING
    return _shown(replica, tiered.tiered_end_offset - 1, visible_end)


def earliest_pending_upload(replica: Replica, visible_end: int) -> TimestampOffset:
    """Return the first offset that is not in the remote store yet."""
    tiered = replica.tiered_log
    if tiered is None:
        return NOTHING
    start_offset = replica.log.log_start_offset
    if tiered.tiered_end_offset == 0 and earliest_local(replica) != start_offset:
        return NOTHING  # it is not known yet what was sent
    return _shown(replica, max(tiered.tiered_end_offset, start_offset), visible_end)


def _shown(replica: Replica, offset: int, visible_end: int) -> TimestampOffset:
    if offset >= visible_end:
        return NOTHING
    epoch = NO_EPOCH
    for entry_epoch, start_offset in replica.log.epoch_entries():
        if start_offset > offset:
            break
        epoch = entry_epoch
    return TimestampOffset(NO_TIMESTAMP, offset, epoch)
