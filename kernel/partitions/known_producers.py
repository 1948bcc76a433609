"""Pure core: which producer ids a log from elsewhere knows, so that no other producer is given one of them.

A producer that gets an id of which the log has another one's sequences is refused with OUT_OF_ORDER_SEQUENCE_NUMBER,
and many clients do not come back from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import CorruptionError
from ..records.batch import read_header
from .producer_snapshot import SNAPSHOT_KIND, decode_snapshot

if TYPE_CHECKING:
    from ..contracts.storage import PartitionLog


def producer_ids_end(log: PartitionLog) -> int:
    """Return the producer id above all that the newest sound snapshot and the records behind it know; 0 for none.

    Without a snapshot the active segment is looked through: one is taken whenever a segment is rolled.
    """
    end, start_offset = 0, log.active_base_offset
    for offset in reversed(log.sidecars(SNAPSHOT_KIND)):
        try:
            entries = decode_snapshot(log.read_sidecar(offset, SNAPSHOT_KIND))
        except CorruptionError:
            continue  # so does whoever recovers the producers
        end, start_offset = max((entry.producer_id + 1 for entry in entries), default=0), offset
        break
    for batch in log.batches(max(start_offset, log.log_start_offset)):
        end = max(end, read_header(batch).producer_id + 1)
    return end
