"""Pure core: the pieces that ranges are read in: by whom, and from where. What a task is sent.

All are frozen, small and can be pickled; pieces of a range follow each other without gap or overlap. This module
imports nothing of a plugin: a task that reads from brokers alone pays nothing for the others.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import attrs

from odradek.kernel.errors import OdradekError

if TYPE_CHECKING:
    import uuid

    from ..ranges import OffsetRange
    from .settings import DirectSettings

UNKNOWN_SIZE: Final = -1


class DirectReadError(OdradekError):
    """Records cannot be read past the brokers, and `readFrom` lets nobody else read them."""


class PieceGoneError(OdradekError):
    """A piece is not (any more) where the plan saw it, nor anywhere else past the brokers."""


class AbortedRange(NamedTuple):
    """An aborted transaction: its producer's batches in `[first_offset, last_offset]` are hidden."""

    producer_id: int
    first_offset: int
    last_offset: int


class Tail(NamedTuple):
    """The last batch of a growing segment that may be read.

    Attributes:
        position: Where it begins.
        end_position: Where it ends: bytes behind may be written at any moment.
        next_offset: The offset after its last.
    """

    position: int
    end_position: int
    next_offset: int


class Owner(NamedTuple):
    """Whose files and objects may be read for a piece: what brokers said when it was planned.

    Attributes:
        cluster_id: Whose partition; empty where that is not known.
        leader_id: The node that led it, whose copy has all that was planned and nothing else; -1 where that is not
            known.
    """

    cluster_id: str = ""
    leader_id: int = -1


def _count(aborted: tuple[AbortedRange, ...]) -> str:
    return f"<{len(aborted)} transactions>"


@attrs.frozen
class BrokerPiece:
    """A range that the partition's leader serves; of how many bytes, nobody knows."""

    range: OffsetRange
    size_bytes: int = UNKNOWN_SIZE


@attrs.frozen
class SegmentPiece:
    """Offsets in a segment file on a local disk.

    Attributes:
        range: The offsets.
        size_bytes: About how much is read.
        topic_id: The topic's id, which its directory has to have.
        directory: The log's directory.
        base_offset: The segment's.
        position: Where to begin in the file.
        anchor_offset: The last offset of the batch there, by the index; -1 at the file's beginning.
        tail: Where to stop in a segment that still grew; None for a closed one, which is read to its end.
        aborted: Aborted transactions with batches in these offsets; empty where everything is read.
        settings: Where to look when it moved.
        owner: Whose it has to be there.
        moves: How often it was looked for anew.
    """

    range: OffsetRange
    size_bytes: int
    topic_id: uuid.UUID
    directory: str
    base_offset: int
    position: int
    anchor_offset: int
    tail: Tail | None
    aborted: tuple[AbortedRange, ...] = attrs.field(repr=_count)
    settings: DirectSettings = attrs.field(repr=False)
    owner: Owner
    moves: int = 0


@attrs.frozen
class TierPiece:
    """Offsets in an object of a tier.

    Attributes:
        range: The offsets.
        size_bytes: About how much is got.
        topic_id: The topic's id, part of the object's name.
        uid: Of the upload, part of the object's name.
        base_offset: The first offset that the segment stands for.
        next_offset: The offset after the last one that it stands for.
        object_bytes: The object's size.
        crc32c: The object's checksum by the manifest.
        position: Where to begin in the object.
        anchor_offset: The last offset of the batch there, by the index; -1 at the object's beginning.
        aborted: Aborted transactions with batches in these offsets; empty where everything is read.
        settings: The store, and where to look when it moved.
        owner: Whose it has to be there.
        moves: How often it was looked for anew.
    """

    range: OffsetRange
    size_bytes: int
    topic_id: uuid.UUID
    uid: str
    base_offset: int
    next_offset: int
    object_bytes: int
    crc32c: int
    position: int
    anchor_offset: int
    aborted: tuple[AbortedRange, ...] = attrs.field(repr=_count)
    settings: DirectSettings = attrs.field(repr=False)
    owner: Owner
    moves: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the whole object is got, so that its checksum can be compared."""
        return self.position == 0 and self.range.end >= self.next_offset


Piece: TypeAlias = BrokerPiece | SegmentPiece | TierPiece
DirectPiece: TypeAlias = SegmentPiece | TierPiece
