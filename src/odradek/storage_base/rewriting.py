"""Pure core: what compaction reads and writes, made of functions; all of it can be pickled if they can.

.. versionadded:: 0.1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import frozen

from .store import StoredBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.contracts.rewriting import SegmentWriter
    from odradek.kernel.types import Buffer

PIECE_BYTES: Final = 1 << 18


@frozen
class StoredSource:
    """A closed segment: a `SegmentSource`.

    Attributes:
        base_offset: Where it begins.
        next_offset: Where the next one begins.
        size_bytes: Of its batches.
        read: Gives its batches from the first that ends at or after an offset.
        index_bytes: Of its larger index.
        paths: Its files, where it has files as Kafka's.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    read: Callable[[int], Iterable[StoredBatch]]
    index_bytes: int = 0
    paths: Mapping[str, Path] = attrs.field(factory=dict)

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        """See `SegmentSource.batches`."""
        del buffer_bytes
        for batch in self.read(start_offset):
            yield memoryview(batch.data)


@frozen
class StoredPlace:
    """Where new segments are written: a `RewritePlace`.

    Attributes:
        on_clear: Removes what an earlier rewrite left.
        begin: Begins a segment at a base offset.
    """

    on_clear: Callable[[], None]
    begin: Callable[[int], SegmentWriter]

    def clear(self) -> None:
        """See `RewritePlace.clear`."""
        self.on_clear()

    def new_segment(self, base_offset: int) -> SegmentWriter:
        """See `RewritePlace.new_segment`."""
        return self.begin(base_offset)


class PieceWriter(ABC):
    """A `SegmentWriter` that gathers batches, so that its subclass writes some at a time."""

    def __init__(self) -> None:
        self._pending: list[StoredBatch] = []
        self._pending_bytes = 0

    @abstractmethod
    def write(self, batches: Sequence[StoredBatch]) -> None:
        """Write batches behind those before them."""

    @abstractmethod
    def keep(self, sidecars: Mapping[str, bytes]) -> None:
        """Make all durable, with these small files."""

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """See `SegmentWriter.append`."""
        self._pending.append(StoredBatch(bytes(batch), last_offset, max_timestamp))
        self._pending_bytes += len(batch)
        if self._pending_bytes >= PIECE_BYTES:
            self._write()

    def _write(self) -> None:
        self.write(self._pending)
        self._pending, self._pending_bytes = [], 0

    def finish(self, sidecars: Mapping[str, bytes]) -> None:
        """See `SegmentWriter.finish`."""
        self._write()
        self.keep(sidecars)
