"""Pure core: what of a store's segments is another way that a log went: that of leaders before an unclean election.

```text
 the store       segment │ segment │ segment │ segment        sent by leaders that were in sync
                                   ╎
 this log        ────────┴─────────┴── has other records, or ends, from here on, and leads now
                  stay in the manifest ╎ abandoned: their objects stay, nobody reads them
```

The new leader sends on behind the last segment that its log has as a whole. What it abandons loses no object: should a
replica of the other way lead again, it takes up what it has there and nowhere else. Abandoned segments leave the store
as others do, when the log's start has passed their end.

*Source:* KIP-405; RemoteLogManager.findHighestRemoteOffset of Kafka 4.3, which walks a leader's own epochs back to the
last that has something in the store, and copies on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .manifest import Manifest, StoredSegment


@attrs.frozen
class LogWay:
    """The way that a log of a broker went, as far as it can be told from others.

    Attributes:
        epochs: Its leader epochs, of both tiers, each with its first offset, in order.
        start_offset: Where it begins, in whatever tier.
        local_start_offset: Where its local part begins: what is below, it has in the store alone.
        end_offset: Where it ends.
    """

    epochs: Sequence[tuple[int, int]]
    start_offset: int
    local_start_offset: int
    end_offset: int

    def difference(self, segment: StoredSegment) -> str:
        """Say what tells that a segment is not of this way, as far as both are known; "" when nothing does."""
        starts = [start for _, start in self.epochs if segment.base_offset <= start < segment.next_offset]
        for offset in sorted({*starts, *(start for _, start in segment.leader_epochs)}):
            here, there = epoch_at(self.epochs, offset), epoch_at(segment.leader_epochs, offset)
            if -1 not in (here, there) and here != there:
                return f"offset {offset} has the leader epoch {there} in the store, and {here} in the local log"
        return ""

    def has(self, segment: StoredSegment) -> bool:
        """Say whether a segment is of this way as a whole, and is known to be."""
        base_offset = segment.base_offset
        is_known = epoch_at(self.epochs, base_offset) == epoch_at(segment.leader_epochs, base_offset) != -1
        return is_known and segment.next_offset <= self.end_offset and not self.difference(segment)


def epoch_at(epochs: Sequence[tuple[int, int]], offset: int) -> int:
    """Return the epoch of an offset, -1 where it lies before all."""
    return next((epoch for epoch, start in reversed(epochs) if start <= offset), -1)


def on_own_way(manifest: Manifest, way: LogWay) -> Manifest | None:
    """Return a manifest of what the store has of this log; all else is abandoned.

    Args:
        manifest: The newest one, which names what this log does not have.
        way: The log's, which leads now.

    Returns:
        None when that would be a log with a hole, or nothing tells that it is a log of which something was sent: it has
        lost what it had in the store alone, begins in the midst of a segment of which it has a part, or was begun anew.
    """
    kept: list[StoredSegment] = []
    everything = (*manifest.segments, *manifest.abandoned)
    for segment in sorted(everything, key=lambda each: (each.base_offset, -each.next_offset)):
        if way.has(segment) and (not kept or kept[-1].next_offset <= segment.base_offset):
            kept.append(segment)
    sent = {epoch for segment in everything for epoch, _ in segment.leader_epochs}
    uids = {segment.uid for segment in kept}
    own = attrs.evolve(
        manifest,
        log_start_offset=min(manifest.log_start_offset, way.end_offset),
        segments=tuple(kept),
        abandoned=tuple(segment for segment in everything if segment.uid not in uids),
    )
    start_offset = max(way.start_offset, own.log_start_offset)
    is_whole = max(own.unbroken_end(start_offset), start_offset) >= way.local_start_offset
    return own if is_whole and any(epoch in sent for epoch, _ in way.epochs) else None
