"""Shell: an object's bytes, beside the checksum that its manifest gives.

    chunks ── as they come ──> who decodes them ── the last once the checksum was compared
        │ settle(): what comes next is told by nothing but that checksum
        └── all that is left, kept in memory or in a file without a name ── compared ──> who decodes them

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from crc32c import crc32c

from odradek.kernel.records.batch import CorruptRecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import TracebackType
    from typing import Self

    from .pieces import TierPiece

KEPT_BYTES_MAX: Final = 16 << 20
"""Objects up to this size are compared before anything of them is given out, and kept in memory for that."""

_CHUNK_BYTES: Final = 4 << 20


class CheckedObject:
    """Gives out the bytes of a piece of an object; one piece, one owner, used with `with`.

    A part of an object has no checksum: it is given out as it comes.
    """

    __slots__ = ("_chunks", "_crc", "_file", "_is_compared", "_open_file", "_piece", "_place", "_rest", "_size_bytes")

    def __init__(
        self,
        piece: TierPiece,
        place: str,
        chunks: Generator[bytes, None, None],
        open_file: Callable[[], IO[bytes]],
    ) -> None:
        """Begin.

        Args:
            piece: What is read.
            place: The store and the object, for errors.
            chunks: The bytes from the piece's position on.
            open_file: Opens an empty file that is gone once it is closed.
        """
        self._piece = piece
        self._place = place
        self._chunks = chunks
        self._open_file = open_file
        self._file: IO[bytes] | None = None
        self._rest: Iterator[bytes] = iter(())
        self._crc = self._size_bytes = 0
        self._is_compared = not piece.is_whole

    def __enter__(self) -> Self:
        """Return the object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give back what is held."""
        self._chunks.close()
        if self._file is not None:
            self._file.close()

    def settle(self) -> None:
        """Get all that is left and compare the checksum, before anything more is given out; once is enough.

        Raises:
            CorruptRecordsError: It is not what was put.
            RemoteStoreError: The store fails.
            OSError: There is no room for what is left.
        """
        if self._is_compared:
            return
        if self._piece.object_bytes <= KEPT_BYTES_MAX:
            self._rest = iter(list(self._counted()))
        else:
            self._file = file = self._open_file()
            for data in self._counted():
                file.write(data)
            file.seek(0)
            self._rest = iter(lambda: file.read(_CHUNK_BYTES), b"")
        self._compare()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes; of a whole object the last ones once the checksum was compared.

        Raises:
            CorruptRecordsError: It is not what was put; what was given out may be right nevertheless.
            RemoteStoreError: The store fails.
        """
        for data in self._counted():
            if self._size_bytes == self._piece.object_bytes:
                self._compare()
            yield data
        self._compare()
        yield from self._rest

    def _counted(self) -> Iterator[bytes]:
        for data in self._chunks:
            self._crc, self._size_bytes = crc32c(data, self._crc), self._size_bytes + len(data)
            yield data

    def _compare(self) -> None:
        if self._is_compared:
            return
        wanted = self._piece
        if (self._crc, self._size_bytes) != (wanted.crc32c, wanted.object_bytes):
            raise CorruptRecordsError(
                f"{self._place} has {self._size_bytes} bytes with the CRC-32C {self._crc}, and {wanted.object_bytes} "
                f"with {wanted.crc32c} by the manifest: it was damaged; see `odradek tiered verify`"
            )
        self._is_compared = True
