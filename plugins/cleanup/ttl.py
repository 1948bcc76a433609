"""Pure core: the policy `ttl`: single records go when the time in their header `odradek.expires.at` has come.

The header holds epoch milliseconds in decimal; of several the last counts. A record without it, or with anything else
in it, stays. Keys and tombstones mean nothing here.

    closed segment, never looked through since the start       look now
    its first record is overdue by `odradek.ttl.lag.ms`        look now: all that have expired by then go together
    otherwise                                                  nothing is read

So an expired record is gone at the latest when its segment has been closed (`segment.ms`, `segment.bytes`) and the lag
and `log.cleaner.backoff.ms` have passed. With `compact` it goes in compaction's passes, which are then made as soon.

*Source:* asked for as KAFKA-19759; Kafka has nothing of the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import CleanupPlan, CleanupPolicy, Deletion, Expiry, HeaderDue

from .settings import TTL_LAG_KEY

if TYPE_CHECKING:
    from odradek.kernel.api import LogState

EXPIRES_AT: Final = "odradek.expires.at"
_DUE_OF: Final = HeaderDue(EXPIRES_AT)


class TtlPolicy(CleanupPolicy):
    """Plans expiries, and the deletion of segments at the log's start of which nothing is left; has no state."""

    expires = True

    def plan(self, log: LogState) -> CleanupPlan:
        """See `CleanupPolicy.plan`."""
        end_offset = min(log.last_stable_offset, log.rewritable_end)
        overdue_ms = log.now_ms - log.settings.number(TTL_LAG_KEY)
        closed = [segment for segment in log.segments if not segment.is_active and segment.next_offset <= end_offset]
        to_look = [
            segment.base_offset
            for segment in closed
            if segment.size_bytes and log.due_ms.get(segment.base_offset, overdue_ms) <= overdue_ms
        ]
        empty_end = None
        for segment in closed:
            if segment.size_bytes:
                break
            empty_end = segment.next_offset
        deletion = Deletion(empty_end, "all records have expired") if empty_end is not None else None
        return CleanupPlan(deletion=deletion, expiry=Expiry(_DUE_OF, to_look))
