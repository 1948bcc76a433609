"""Shell: walks over the batches of a segment, piece by piece. Blocks; for worker threads and processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import HEADER_SIZE, LOG_OVERHEAD, CorruptRecordsError, iterate_batches, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.kernel.api import ObjectStore


def iterate_object(
    store: ObjectStore, name: str, position: int, size_bytes: int, piece_bytes: int
) -> Iterator[memoryview]:
    """Iterate over an object's batches; CRCs are not checked. A view is good for as long as it is held.

    Args:
        store: Where.
        name: The object.
        position: Where a batch begins.
        size_bytes: Of the object.
        piece_bytes: How much is got at a time, at least.

    Raises:
        RemoteStoreError: The store fails.
        CorruptRecordsError: There is no batch.
    """
    return iterate_pieces(f"{store.url}: {name}", partial(store.get, name), position, size_bytes, piece_bytes)


def iterate_pieces(
    name: str, get: Callable[[int, int], bytes], position: int, size_bytes: int, piece_bytes: int
) -> Iterator[memoryview]:
    """Iterate over the batches of whatever `get` reads; see `iterate_object`.

    Args:
        name: What it is, for errors.
        get: Takes a position and a size, and returns the bytes there, fewer at the end.
        position: Where a batch begins.
        size_bytes: Of it all.
        piece_bytes: How much is got at a time, at least.

    Raises:
        CorruptRecordsError: There is no batch.
    """
    wanted = piece_bytes
    while position < size_bytes:
        data = memoryview(get(position, min(wanted, size_bytes - position)))
        end = 0
        for at, header in iterate_batches(data):
            end = at + header.length_bytes
            yield data[at:end]
        if not end and (len(data) < wanted or position + len(data) >= size_bytes):
            raise CorruptRecordsError(f"{name} ends within a batch", position=position)
        wanted = piece_bytes if end else max(wanted * 2, _length(data))
        position += end


def _length(data: memoryview) -> int:
    return read_header(data).length_bytes if len(data) >= LOG_OVERHEAD + HEADER_SIZE else HEADER_SIZE
