"""Shell: the bytes of an object, some megabytes at a time, the next ones on their way while the last are used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.kernel.contracts.remote_store import ObjectStore

_SLACK_BYTES: Final = 64 << 10


def iterate_gets(
    store: ObjectStore, name: str, position: int, likely_end: int, size_bytes: int, get_bytes: int
) -> Generator[bytes, None, None]:
    """Yield an object's bytes from a position on; who has enough closes the iterator.

    Args:
        store: Where.
        name: The object.
        position: The first byte.
        likely_end: Where the reader probably stops: nothing behind is got before it is asked for.
        size_bytes: The object's size.
        get_bytes: How much one request gets, at most.

    Raises:
        RemoteStoreError: The store fails.
    """
    likely_end = min(likely_end + _SLACK_BYTES, size_bytes)
    threads = ThreadPoolExecutor(1, thread_name_prefix="odradek-get")
    try:
        size = _size(position, likely_end, size_bytes, get_bytes)
        coming = threads.submit(store.get, name, position, size) if size else None
        while coming is not None:
            data = coming.result()
            position += len(data)
            is_cut = len(data) < size
            size = 0 if is_cut else _size(position, likely_end, size_bytes, get_bytes)
            is_ahead = position < likely_end
            coming = threads.submit(store.get, name, position, size) if size and is_ahead else None
            yield data
            if size and coming is None:
                coming = threads.submit(store.get, name, position, size)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _size(position: int, likely_end: int, size_bytes: int, get_bytes: int) -> int:
    end = likely_end if position < likely_end else size_bytes
    return min(get_bytes, end - position)
