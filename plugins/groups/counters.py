"""Pure core: what the group coordinator counts, all its shards together."""

from __future__ import annotations

from odradek.kernel.api import define


@define
class GroupCounters:
    """Plain numbers that only grow; `metrics.py` reads them.

    Attributes:
        offset_commits: Offsets written, not requests.
        offset_expirations: Offsets that were removed because they were old.
        offset_deletions: Offsets that were removed because somebody asked for it.
        classic_rebalances: Generations of classic groups that began.
        consumer_rebalances: Epochs of groups of the consumer protocol that began.
    """

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    classic_rebalances: int = 0
    consumer_rebalances: int = 0
