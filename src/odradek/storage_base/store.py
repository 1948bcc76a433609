"""Pure core: what a storage has to give to `LogBase`: where batches, segments and small files are kept.

.. versionadded:: 0.1
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import attrs

from odradek.kernel.api import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.kernel.contracts.rewriting import SegmentRewrite
    from odradek.kernel.types import Buffer


class StoredBatch(NamedTuple):
    """A batch as a storage keeps it: its bytes, its last offset, its largest timestamp (-1 without one)."""

    data: Buffer
    last_offset: int
    max_timestamp: int


@define(eq=False)
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


@frozen
class LogBounds:
    """What is to be kept of a log beside its batches and small files.

    Attributes:
        log_start_offset: The first offset that may be read.
        recovery_point: What is below was synced.
        clean_end: What is below was compacted.
        epochs: Leader epochs with their start offsets, oldest first.
        is_closed: Whether nothing was left unfinished.
    """

    log_start_offset: int = 0
    recovery_point: int = 0
    clean_end: int = 0
    epochs: Sequence[tuple[int, int]] = ()
    is_closed: bool = True

    def encode(self) -> str:
        """Return them as one line of JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def decode(cls, text: str) -> LogBounds:
        """Read what `encode` wrote."""
        return cls(**json.loads(text))


SegmentT = TypeVar("SegmentT", bound=LogSegment)


class LogStore(ABC, Generic[SegmentT]):
    """The methods that a subclass of `LogBase` overrides: all of the first part, what it needs of the second."""

    # ----------------------------------------------------------------------------------- what a storage has to give

    @abstractmethod
    def new_segment(self, base_offset: int) -> SegmentT:
        """Begin a segment at the log's end."""

    @abstractmethod
    def write_batches(self, batches: Sequence[tuple[SegmentT, StoredBatch]]) -> None:
        """Write batches, so that they survive the death of the process. Their bytes are borrowed.

        Raises:
            StorageError: None of them counts.
        """

    @abstractmethod
    def stored(self, segment: SegmentT, offset: int) -> Iterator[StoredBatch]:
        """Iterate over a segment's batches, from the first that ends at or after `offset`."""

    @abstractmethod
    def cut_segment(self, segment: SegmentT, offset: int) -> None:
        """Drop a segment's batches that end at or after `offset`."""

    @abstractmethod
    def drop_segments(self, segments: Sequence[SegmentT]) -> None:
        """Drop whole segments, which are the log's no more."""

    @abstractmethod
    def rewrite_of(self, segments: Sequence[tuple[SegmentT, int]]) -> SegmentRewrite:
        """Return sources of closed segments, each given with where it ends, and a place for new ones."""

    @abstractmethod
    def take_rewritten(self, base_offset: int) -> tuple[SegmentT, Mapping[str, bytes]]:
        """Take over a segment that a `SegmentWriter` finished, with the small files that it was given."""

    @abstractmethod
    def sidecar_places(self) -> Iterable[tuple[str, int]]:
        """Return kind and offset of every small file."""

    @abstractmethod
    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """Return a small file's bytes.

        Raises:
            StorageError: It is not there.
        """

    @abstractmethod
    def put_sidecar(self, offset: int, kind: str, data: bytes | None) -> None:
        """Keep a small file in the place of what was there; None removes it, if it is there."""

    # ------------------------------------------------------------------------------- what a storage with a disk adds

    def atomically(self) -> AbstractContextManager[object]:
        """Return a context in which all changes are one: after a crash all of them are there, or none."""
        return nullcontext()

    def keep_bounds(self) -> None:
        """Keep `self.bounds`, which have changed."""

    def sync(self) -> None:
        """Make durable all that is written by now, for a worker thread: must touch nothing but files.

        Raises:
            OSError: The disk failed.
        """
