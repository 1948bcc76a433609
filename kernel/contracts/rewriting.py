"""Pure core: how segments are rewritten beside the reactor: read, written anew, and put in their place.

    reactor's task    log.begin_rewrite(end)       sources of the closed segments below, a place for new ones
    another process   source.batches, writer.append, writer.finish     the new segment is durable, and nobody's yet
    reactor's task    log.begin_replacement(...)   a work: it takes the place of the old ones, atomically

Sources, places and writers belong to whoever rewrites: a worker process, to which they are pickled, unless the storage
says that they cannot be; then a thread of this one. A rewrite that is given up leaves nothing behind but what the next
one, or the log's next opening, removes. Only one may be under way for each log.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..types import Buffer
    from .disk_work import DiskWork


class SegmentSource(Protocol):
    """A closed segment, to be read by somebody else than its log. It may vanish meanwhile: reading then fails."""

    @property
    def base_offset(self) -> int:
        """Where it begins."""
        ...

    @property
    def next_offset(self) -> int:
        """The base offset of the segment after it."""
        ...

    @property
    def size_bytes(self) -> int:
        """Of its batches."""
        ...

    @property
    def index_bytes(self) -> int:
        """Of its larger index; 0 without indexes."""
        ...

    @property
    def paths(self) -> Mapping[str, Path]:
        """Files to send as they are, by Kafka's kinds (`log`, `index`, `timeindex`); empty where there are none.

        `log` holds exactly the batches. Tiering uploads them; without files it makes its own from `batches`.
        """
        ...

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        """Iterate over the batches from the one that holds `start_offset` on; a view is good until the next step.

        Args:
            start_offset: Where to begin.
            buffer_bytes: How much is read at a time, at least.

        Raises:
            CorruptRecordsError: There is no batch.
            OSError: The disk fails; also `StorageError`.
        """
        ...


class SegmentWriter(Protocol):
    """A segment that is written. Life: any number of `append`, then `finish`."""

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write a batch behind those before it.

        Args:
            batch: One whole batch.
            last_offset: Its last offset.
            max_timestamp: Its largest timestamp, milliseconds, -1 without one.

        Raises:
            OSError: The disk fails; also `StorageError`.
        """
        ...

    def finish(self, sidecars: Mapping[str, bytes]) -> None:
        """Make it durable, with the small files that stand beside it, by kind; it is nobody's until it replaces others.

        Raises:
            OSError: The disk fails; also `StorageError`.
        """
        ...


class RewritePlace(Protocol):
    """Where new segments of one log are written."""

    def clear(self) -> None:
        """Remove what an earlier rewrite left.

        Raises:
            OSError: The disk fails; also `StorageError`.
        """
        ...

    def new_segment(self, base_offset: int) -> SegmentWriter:
        """Begin a segment.

        Raises:
            OSError: The disk fails; also `StorageError`.
        """
        ...


@frozen
class SegmentRewrite:
    """A rewrite that a log has begun.

    Attributes:
        sources: Closed segments, oldest first, neighbours.
        place: For the new ones.
        is_portable: Whether both can be pickled into another process.
        border_offset: No new segment may stand for segments on both sides of it, which lie in different tiers.
    """

    sources: Sequence[SegmentSource]
    place: RewritePlace
    is_portable: bool
    border_offset: int = 0


class RewritableLog(Protocol):
    """The part of `PartitionLog` that compaction calls. Owned, as all of it, by the reactor's task."""

    @property
    def clean_end(self) -> int:
        """What `note_clean_end` was told last, also before the last checkpoint; 0 when it never was."""
        ...

    def note_clean_end(self, offset: int) -> None:
        """Take note that compaction has been through everything below `offset`. Kept by the next checkpoint."""
        ...

    @property
    def rewritable_end(self) -> int:
        """Segments that end at or below this may be rewritten: they are closed, and known to be durable."""
        ...

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """Return the closed segments that begin below `end_offset`, for a rewrite beside the reactor.

        Who only wants to read them asks too, also while a rewrite is under way, which notices nothing of that.
        """
        ...

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        """Begin to put the new segment at `base_offsets[0]`, which a `SegmentWriter` finished, in the place of others.

        With `finish` readers get the new one; who reads an old one goes on reading. A crash leaves either the old ones
        or the new one. If one of them was deleted or the log was cut meanwhile, or `run` failed, the new one is given
        up and `finish` raises; the log stays as it was.

        Args:
            base_offsets: Of the segments to replace: closed ones, neighbours, oldest first.

        Raises:
            StorageError: They are not there any more.
        """
        ...
