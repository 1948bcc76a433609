"""Pure core: what a storage has to give to `LogBase`: where batches, segments and small files are kept.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..contracts.rewriting import SegmentRewrite
    from ..types import Buffer


class StoredBatch(NamedTuple):
    """A batch as a storage keeps it: its bytes, its last offset, its largest timestamp (-1 without one)."""

    data: Buffer
    last_offset: int
    max_timestamp: int


@attrs.define(eq=False)
class LogSegment:
    """A run of a log, from a base offset to the next segment's. A storage may subclass it.

    Attributes:
        base_offset: Where it begins.
        modified_ms: When it was written last, milliseconds since the epoch.
        size_bytes: Of its batches.
        max_timestamp: The largest, -1 without one.
        key: Whatever the storage knows it by.
    """

    base_offset: int
    modified_ms: int
    size_bytes: int = 0
    max_timestamp: int = -1
    key: int = 0


SegmentT = TypeVar("SegmentT", bound=LogSegment)


class LogStore(Generic[SegmentT]):
    """The methods that a subclass of `LogBase` overrides: all of the first part, what it needs of the second."""

    # ----------------------------------------------------------------------------------- what a storage has to give

    def new_segment(self, base_offset: int) -> SegmentT:
        """Begin a segment at the log's end."""
        raise NotImplementedError

    def write_batches(self, batches: Sequence[tuple[SegmentT, StoredBatch]]) -> None:
        """Write batches, so that they survive the death of the process. Their bytes are borrowed.

        Raises:
            StorageError: None of them counts.
        """
        raise NotImplementedError

    def stored(self, segment: SegmentT, offset: int) -> Iterator[StoredBatch]:
        """Iterate over a segment's batches, from the first that ends at or after `offset`."""
        raise NotImplementedError

    def cut_segment(self, segment: SegmentT, offset: int) -> None:
        """Drop a segment's batches that end at or after `offset`."""
        raise NotImplementedError

    def drop_segments(self, segments: Sequence[SegmentT]) -> None:
        """Drop whole segments, which are the log's no more."""
        raise NotImplementedError

    def rewrite_of(self, segments: Sequence[tuple[SegmentT, int]]) -> SegmentRewrite:
        """Return sources of closed segments, each given with where it ends, and a place for new ones."""
        raise NotImplementedError

    def take_rewritten(self, base_offset: int) -> tuple[SegmentT, Mapping[str, bytes]]:
        """Take over a segment that a `SegmentWriter` finished, with the small files that it was given."""
        raise NotImplementedError

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        raise NotImplementedError

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        raise NotImplementedError

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`."""
        raise NotImplementedError

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        raise NotImplementedError

    def cut_sidecars(self, offset: int) -> None:
        """Remove the small files above `offset`."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------- what a storage with a disk adds

    def atomically(self) -> AbstractContextManager[object]:
        """Return a context in which all changes are one: after a crash all of them are there, or none."""
        return nullcontext()

    def keep_bounds(self) -> None:
        """Keep the log's start, recovery point, clean end and epochs, which have changed."""

    def sync(self) -> None:
        """Make durable all that is written by now, for a worker thread: must touch nothing but files.

        Raises:
            OSError: The disk failed.
        """

    def keep_close(self) -> None:
        """Keep the mark that everything was written: the next opening need check nothing, and `was_clean` is true."""
