"""Pure core: who reads which offsets of a range: a file, an object, or a broker.

    wanted      [---------------------------------------------------)
    tier        ====|======|===|
    local disk             |====|=====|========>
    stable      ------------------------------>|
    pieces      tier|tier  |loc |local|local   |broker

Local files come first, then objects; the broker gets what neither has, what lies at or above the last stable offset,
and what a tier alone cannot decide: offsets behind the first record of a transaction whose end it does not hold.

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import attrs

from ..ranges import OffsetRange
from .pieces import AbortedRange, BrokerPiece, Owner, SegmentPiece, TierPiece
from .sparse_index import BEGINNING, SparseIndex

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from odradek.plugins.storage_tiered.manifest import Manifest, StoredSegment

    from .pieces import Piece, Tail
    from .settings import DirectSettings


@attrs.frozen
class PartitionFacts:
    """What brokers say of a partition, asked before files and objects are looked at.

    Attributes:
        topic_id: The topic's id: another one is another topic, whatever its name.
        last_stable_offset: Below it every transaction is decided, and every record on every replica that counts.
        high_watermark: Below it records are committed; at least the last stable offset.
        log_start_offset: Below it records were deleted.
        owner: Whose files and objects may be read.
    """

    topic_id: uuid.UUID
    last_stable_offset: int
    high_watermark: int
    log_start_offset: int = 0
    owner: Owner = attrs.field(factory=Owner)


@attrs.frozen
class LocalSegment:
    """A segment on a local disk.

    Attributes:
        base_offset: The first offset that it stands for.
        end_offset: The offset after the last one that it stands for, as far as it may be read.
        size_bytes: Of its batches, as far as it may be read.
        index: Its index, empty where nobody needs it.
        tail: Where to stop, when it may still grow.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    index: SparseIndex
    tail: Tail | None = None


@attrs.frozen
class LocalView:
    """What a data directory holds of a partition, all at one moment.

    Attributes:
        directory: The log's directory.
        segments: Rising, without gaps.
        aborted: Aborted transactions, all those that have batches in the wanted offsets.
    """

    directory: str
    segments: tuple[LocalSegment, ...]
    aborted: tuple[AbortedRange, ...] = ()

    @property
    def start_offset(self) -> int:
        """The first offset."""
        return self.segments[0].base_offset


@attrs.frozen
class TierView:
    """What a bucket holds of a partition.

    Attributes:
        manifest: The newest.
        indexes: By the segment's uid; of those that somebody needs.
        aborted: Aborted transactions that the bucket tells of.
        decided_end: Below it no transaction is open as far as the bucket goes: its `aborted` are all there are.
    """

    manifest: Manifest
    indexes: Mapping[str, SparseIndex]
    aborted: tuple[AbortedRange, ...]
    decided_end: int


class _Part(NamedTuple):
    """A part of a segment."""

    start: int
    end: int
    position: int
    anchor_offset: int
    size_bytes: int


def needs_index(
    base_offset: int, end_offset: int, size_bytes: int, wanted: Iterable[OffsetRange], max_bytes: int
) -> bool:
    """Say whether a segment's index is needed: not where a range takes all of it in one piece.

    Args:
        base_offset: The segment's.
        end_offset: The offset after its last.
        size_bytes: Its size.
        wanted: The ranges of its partition.
        max_bytes: How much one piece should have at most, 0 for no bound.
    """
    return any(
        base_offset < one.start < end_offset
        or base_offset < one.end < end_offset
        or (0 < max_bytes < size_bytes and one.start < end_offset and base_offset < one.end)
        for one in wanted
    )


def plan_range(
    wanted: OffsetRange,
    facts: PartitionFacts,
    settings: DirectSettings,
    *,
    local: LocalView | None,
    tier: TierView | None,
    max_bytes: int = 0,
) -> list[Piece]:
    """Return the pieces of a range, in order.

    Args:
        wanted: The range.
        facts: What brokers say of its partition.
        settings: Sent along with each piece.
        local: What the local disk has.
        tier: What the store has.
        max_bytes: Segments with more are cut, at boundaries of batches; 0 for no bound.
    """
    limit = min(wanted.end, facts.last_stable_offset)
    pieces: list[Piece] = []
    position = wanted.start
    while position < wanted.end:
        end = wanted.end
        if facts.log_start_offset <= position < limit:
            found, end = _direct(wanted, position, limit, facts, settings, local, tier, max_bytes)
            if found:
                pieces += found
                position = end
                continue
        elif position < facts.log_start_offset:
            end = min(end, facts.log_start_offset)
        _add_broker_piece(pieces, attrs.evolve(wanted, start=position, end=end))
        position = end
    return pieces


def _add_broker_piece(pieces: list[Piece], wanted: OffsetRange) -> None:
    if pieces and isinstance(last := pieces[-1], BrokerPiece):
        pieces[-1] = BrokerPiece(attrs.evolve(last.range, end=wanted.end))
    else:
        pieces.append(BrokerPiece(wanted))


def _direct(
    wanted: OffsetRange,
    position: int,
    limit: int,
    facts: PartitionFacts,
    settings: DirectSettings,
    local: LocalView | None,
    tier: TierView | None,
    max_bytes: int,
) -> tuple[list[Piece], int]:
    """Return the pieces of the segment that holds `position`, and where they end; without one, where to look again."""
    segment = _local_at(local, position)
    if local is not None and segment is not None:
        end = min(limit, segment.end_offset)
        parts = _parts(position, end, segment.end_offset, segment.size_bytes, segment.index, max_bytes)
        return [
            SegmentPiece(
                range=attrs.evolve(wanted, start=part.start, end=part.end),
                size_bytes=part.size_bytes,
                topic_id=facts.topic_id,
                directory=local.directory,
                base_offset=segment.base_offset,
                position=part.position,
                anchor_offset=part.anchor_offset,
                tail=segment.tail,
                aborted=overlapping(local.aborted, part.start, part.end),
                settings=settings,
                owner=facts.owner,
            )
            for part in parts
        ], end
    stored = _stored_at(tier, position)
    local_start = local.start_offset if local is not None and local.start_offset > position else wanted.end
    if tier is not None and stored is not None:
        decided = _decided_end(local, tier)
        end = min(limit, stored.next_offset, decided, local_start)
        if end > position:
            return list(_tier_pieces(wanted, position, end, stored, facts, settings, local, tier, max_bytes)), end
        return [], min(wanted.end, local_start)  # what is not decided is in no later object either
    following = tier.manifest.segments_from(position)[:1] if tier is not None else ()
    return [], min(wanted.end, local_start, *(each.base_offset for each in following))


def _tier_pieces(
    wanted: OffsetRange,
    start: int,
    end: int,
    stored: StoredSegment,
    facts: PartitionFacts,
    settings: DirectSettings,
    local: LocalView | None,
    tier: TierView,
    max_bytes: int,
) -> Iterator[TierPiece]:
    index = tier.indexes.get(stored.uid, SparseIndex(stored.base_offset, b""))
    aborted = tier.aborted + (local.aborted if local is not None else ())
    for part in _parts(start, end, stored.next_offset, stored.size_bytes, index, max_bytes):
        yield TierPiece(
            range=attrs.evolve(wanted, start=part.start, end=part.end),
            size_bytes=part.size_bytes,
            topic_id=facts.topic_id,
            uid=stored.uid,
            base_offset=stored.base_offset,
            next_offset=stored.next_offset,
            object_bytes=stored.size_bytes,
            crc32c=stored.files["log"].crc32c,
            position=part.position,
            anchor_offset=part.anchor_offset,
            aborted=overlapping(aborted, part.start, part.end),
            settings=settings,
            owner=facts.owner,
        )


def _decided_end(local: LocalView | None, tier: TierView) -> int:
    """Return up to where all aborted transactions are known: to the end when the local log goes on there."""
    end = tier.manifest.end_offset
    return end if local is not None and local.start_offset <= end else tier.decided_end


def _local_at(local: LocalView | None, offset: int) -> LocalSegment | None:
    if local is None:
        return None
    number = bisect_right(local.segments, offset, key=_base_offset) - 1
    found = local.segments[number] if number >= 0 else None
    return found if found is not None and offset < found.end_offset else None


def _base_offset(segment: LocalSegment) -> int:
    return segment.base_offset


def _stored_at(tier: TierView | None, offset: int) -> StoredSegment | None:
    if tier is None or offset < tier.manifest.log_start_offset:
        return None
    for found in tier.manifest.segments_from(offset)[:1]:
        return found if found.base_offset <= offset else None
    return None


def _parts(start: int, end: int, end_offset: int, size_bytes: int, index: SparseIndex, max_bytes: int) -> list[_Part]:
    """Return the parts of a segment that hold `[start, end)`, each of about `max_bytes`."""
    begin = index.find(start) if start > index.base_offset else BEGINNING
    end_position = size_bytes if end >= end_offset else index.end_position(end, size_bytes)
    cuts = [begin]
    if max_bytes:
        cuts += [place for place in index.cuts(begin, end_position, max_bytes) if start <= place.last_offset < end - 1]
    parts = []
    for number, place in enumerate(cuts):
        is_last = number + 1 == len(cuts)
        part_end, part_end_position = (
            (end, end_position) if is_last else (cuts[number + 1].last_offset + 1, cuts[number + 1].position)
        )
        part_start = start if not number else place.last_offset + 1
        size = max(part_end_position - place.position, 0)
        parts.append(_Part(part_start, part_end, place.position, place.last_offset, size))
    return parts


def overlapping(aborted: Sequence[AbortedRange], start: int, end: int) -> tuple[AbortedRange, ...]:
    """Return the transactions with offsets in `[start, end)`."""
    return tuple(sorted({each for each in aborted if each.first_offset < end and start <= each.last_offset}))


def group_pieces(pieces: Iterable[Piece], max_bytes: int) -> list[list[Piece]]:
    """Pack pieces that follow each other into tasks.

    Args:
        pieces: Of one partition, in order.
        max_bytes: About how much one task reads at most; 0 puts all into one.

    Returns:
        Tasks, in order; a broker's piece, of which nobody knows the size, stands alone unless there is no bound.
    """
    tasks: list[list[Piece]] = []
    size_bytes = 0
    for piece in pieces:
        is_alone = isinstance(piece, BrokerPiece) or (bool(tasks) and isinstance(tasks[-1][-1], BrokerPiece))
        if tasks and (not max_bytes or (not is_alone and size_bytes + piece.size_bytes <= max_bytes)):
            tasks[-1].append(piece)
            size_bytes += piece.size_bytes
        else:
            tasks.append([piece])
            size_bytes = piece.size_bytes
    return tasks
