"""Pure core: what of a log is to be uploaded next, what may leave the local disk, what may leave the store.

```text
            cold                 both                    only local
    ┌────────────────────┬────────────────────┬───────────────────────────────┐
    log start       local start          tiered end                     log end
```

The rule behind all three: what the newest manifest and the local log say together is the whole log, at every moment.

*Source:* KIP-405, and RemoteLogManager of Kafka 4.3 for which segments are candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs

from odradek.kernel.api import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from odradek.kernel.api import SegmentInfo, TierSettings

    from .forks import LogWay
    from .manifest import Manifest, StoredSegment


class LocalCopy(NamedTuple):
    """A local segment as it was when it was uploaded: one that was rewritten since differs in something."""

    next_offset: int
    size_bytes: int
    modified_ms: int


def copy_of(segment: SegmentInfo) -> LocalCopy:
    """Return what tells this state of a segment from others."""
    return LocalCopy(segment.next_offset, segment.size_bytes, segment.modified_ms)


@attrs.frozen
class TieredState:
    """What planning looks at.

    Attributes:
        local: The segments of the local log, oldest first, the active one last.
        copies: By base offset, what of them was uploaded, and is named by the newest manifest.
        log_start_offset: Of the whole log.
        uploadable_end: Only segments that end at or below it are uploaded: they are durable, no transaction that is
            still open began in them, and the snapshot of producers at their end is there.
        removable_end: Only segments that end at or below it leave the local disk: here stands a producer snapshot
            that the next start will trust. Without one it would have to replay what is not here any more, to know
            where a transaction began. 0 while a pass of compaction reads them.
        settings: The topic's.
        now_ms: The wall clock.
        manifest: The newest one known.
        stored_end: Local segments that end at or below it are in the store, whoever sent them; 0 where segments may
            have been rewritten, and only `copies` tells.
        local_start_offset: Of the local log; perhaps inside its first segment.
    """

    local: Sequence[SegmentInfo]
    copies: Mapping[int, LocalCopy]
    log_start_offset: int
    uploadable_end: int
    removable_end: int
    settings: TierSettings
    now_ms: int
    manifest: Manifest | None = None
    stored_end: int = 0
    local_start_offset: int = 0


def _closed(state: TieredState) -> Iterator[SegmentInfo]:
    return (segment for segment in state.local if not segment.is_active)


def is_uploaded(state: TieredState, segment: SegmentInfo) -> bool:
    """Say whether the store has a segment as it is now: sent by this broker, or by one that led before it."""
    copy = state.copies.get(segment.base_offset)
    return segment.next_offset <= state.stored_end if copy is None else copy == copy_of(segment)


def _counts(state: TieredState, segment: SegmentInfo) -> bool:
    """Say whether the store has to have a segment before it leaves: also one of which compaction has left nothing.

    Where the store has records in its place, these would be read again.
    """
    if segment.size_bytes or state.manifest is None:
        return bool(segment.size_bytes)
    return any(each.size_bytes for each in _met(state.manifest, segment.base_offset, segment.next_offset))


def may_be_rewritten(settings: TierSettings) -> bool:
    """Say whether a topic's segments are rewritten: then two replicas have different ones for the same offsets."""
    return settings.cleanup.cleanup_policy != ("delete",)


def upload_start(state: TieredState, segment: SegmentInfo) -> int:
    """Return from where on the store lacks a segment that is to be uploaded: a leader before sent what is below.

    One that this broker sent, and that was rewritten since, takes its own place.
    """
    if segment.base_offset in state.copies:
        return segment.base_offset
    return max(segment.base_offset, min(state.stored_end, segment.next_offset - 1))


def plan_uploads(state: TieredState) -> list[SegmentInfo]:
    """Return the segments to upload, oldest first; one that was rewritten since its upload is among them.

    Where nothing is left of it that is sent too: as an object without records.

    One that was rewritten, and begins inside a segment that another leader sent, can take nobody's place, and stays.
    """
    if state.settings.remote_log_copy_disable:
        return []
    return [
        segment
        for segment in _closed(state)
        if _counts(state, segment)
        and state.log_start_offset < segment.next_offset <= state.uploadable_end
        and not is_uploaded(state, segment)
        and _fits(state.manifest, upload_start(state, segment), segment.next_offset)
    ]


def plan_local_removal(state: TieredState) -> int | None:
    """Return the offset below which local segments may go, a segment's end; None when all stay.

    Source: UnifiedLog.deleteOldSegments with `local.retention.ms` and `local.retention.bytes`.
    """
    settings = state.settings
    size_bytes = sum(segment.size_bytes for segment in state.local)
    below = None
    for segment in _closed(state):
        if segment.next_offset > state.removable_end or (_counts(state, segment) and not is_uploaded(state, segment)):
            break
        size_bytes -= segment.size_bytes
        is_old = (
            settings.local_retention_ms != FOR_EVER and state.now_ms - _newest_ms(segment) > settings.local_retention_ms
        )
        is_too_much = settings.local_retention_bytes != FOR_EVER and size_bytes >= settings.local_retention_bytes
        if not (is_old or is_too_much):
            break
        below = segment.next_offset
    return below


def plan_removal(state: TieredState, may_leave: Callable[[int], int | None]) -> int | None:
    """Return the offset below which the local log is to go, None when all stays.

    Of a topic whose records wait the local log has to begin where a segment of the store ends, inside one of its own if
    need be: a follower that begins at the store begins there, and must not lack what waits behind.

    Args:
        state: What there is.
        may_leave: See `BrokerHandle.may_leave_disk`.
    """
    below = plan_local_removal(state)
    wanted = max(below or 0, _parted_end(state))
    if not wanted:
        return None
    free = may_leave(wanted)
    return below if free is None else max(_stored_ends(state, free), default=None)


def _parted_end(state: TieredState) -> int:
    """Return where the segment of the store ends inside which the local log begins; 0 where it does not, or stays."""
    local_start = state.local_start_offset
    if state.manifest is not None and state.log_start_offset < local_start:
        for segment in state.manifest.segments:
            if segment.base_offset < local_start < segment.next_offset <= state.removable_end:
                return segment.next_offset
    return 0


def _stored_ends(state: TieredState, below: int) -> list[int]:
    """Return where segments of the store end, behind where the local log begins and not above an offset."""
    segments = state.manifest.segments if state.manifest is not None else ()
    return [each.next_offset for each in segments if state.local_start_offset < each.next_offset <= below]


def _newest_ms(segment: SegmentInfo) -> int:
    """Return the time of a segment's newest record; without timestamps that of its file, as Kafka does."""
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms


def with_upload(manifest: Manifest, stored: StoredSegment) -> Manifest:
    """Return a manifest that names an upload, in the place of what it named for these offsets before."""
    old = _met(manifest, stored.base_offset, stored.next_offset)
    if not old:
        return manifest.with_segment(stored)
    if not _fits(manifest, stored.base_offset, stored.next_offset):
        raise ValueError(
            f"segment {stored.base_offset} up to {stored.next_offset} does not fit what the manifest names there: "
            f"{[(each.base_offset, each.next_offset) for each in old]}"
        )
    if (old[0].base_offset, old[-1].next_offset) == (stored.base_offset, stored.next_offset):
        return manifest.with_replacement([each.uid for each in old], [stored])
    before = tuple(each for each in manifest.segments if each.next_offset <= stored.base_offset)
    return attrs.evolve(manifest, segments=(*before, stored))


def _met(manifest: Manifest, base_offset: int, next_offset: int) -> list[StoredSegment]:
    return [each for each in manifest.segments_from(base_offset) if each.base_offset < next_offset]


def _fits(manifest: Manifest | None, base_offset: int, next_offset: int) -> bool:
    """Say whether an upload of these offsets may come behind all segments, or take the place of whole ones."""
    if manifest is None:
        return True
    old = _met(manifest, base_offset, next_offset)
    if not old:
        return base_offset >= manifest.end_offset
    if base_offset > old[0].base_offset or old[-1].next_offset > next_offset:
        return False
    is_same = (old[0].base_offset, old[-1].next_offset) == (base_offset, next_offset)
    return is_same or old[-1] is manifest.segments[-1]


def contradiction(manifest: Manifest, way: LogWay) -> str:
    """Say what tells that a manifest is of another log than the local one; "" when it may be of this one.

    A local log that was lost begins anew at offset 0, under a later leader epoch: what it would send takes the place of
    what was acknowledged.

    Args:
        manifest: The newest one in the store.
        way: The local log's.
    """
    end_offset = max(manifest.end_offset, manifest.log_start_offset)
    if end_offset > way.end_offset:
        return f"the store has offsets up to {end_offset}, and the local log ends at {way.end_offset}"
    if max(end_offset, way.start_offset) < way.local_start_offset:
        return f"the store has offsets up to {end_offset}, and the local log begins at {way.local_start_offset}"
    return next((told for segment in manifest.segments if (told := way.difference(segment))), "")


def confirmed_copies(
    local: Sequence[SegmentInfo], copies: Mapping[int, LocalCopy], manifest: Manifest
) -> dict[int, LocalCopy]:
    """Return which of the noted copies a manifest, perhaps of another leader, still names, and are still local."""
    named = {each.base_offset: each for each in manifest.segments}
    kept = {}
    for segment in local:
        copy, stored = copies.get(segment.base_offset), named.get(segment.base_offset)
        if copy is not None and stored is not None and stored.next_offset == copy.next_offset:
            kept[segment.base_offset] = copy
    return kept
