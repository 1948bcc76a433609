"""Pure core: a batch's records written anew, in pieces, for a batch that is built anew: offsets 0, 1, 2, ... no gaps.

Millions of records make one small batch once they are compressed: they are never all there at once, and never objects.
The compiled function (`_renumbering.h`) is used where it was built, else the one written here. Both give the same
records; the pieces differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .batch import CorruptRecordsError
from .finding import find_record
from .record import decode_records_in_python, encode_record_in_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..types import Buffer
    from . import _kernel
else:
    try:
        from . import _kernel
    except ImportError:  # there was no compiler when the package was built
        _kernel = None

HAS_COMPILED_RENUMBERING: Final = _kernel is not None
PIECE_BYTES: Final = 256 * 1024
"""How much is written at once; a record that is larger is a piece of its own."""
_INT64_MIN: Final = -(2**63)
_INT32_MIN: Final = -(2**31)


def first_timestamp_delta(payload: Buffer) -> int:
    """Return the timestamp delta of the first record; 0 where there is none.

    Raises:
        CorruptRecordsError: it is malformed.
    """
    first = find_record(payload, 1, _INT64_MIN, _INT32_MIN) if len(payload) else None
    return 0 if first is None else first[0]


def renumbered_compiled(payload: Buffer, count: int, timestamp_shift: int, *, is_stamped: bool) -> Iterator[bytes]:
    """Do as `renumbered`, by the compiled function."""
    position = index = 0
    while position < len(payload):
        try:
            piece, position, index = _kernel.renumber_records(
                payload, position, index, timestamp_shift, is_stamped, PIECE_BYTES
            )
        except ValueError as exc:
            raise CorruptRecordsError(str(exc), position=position) from exc
        yield piece
    if index != count:
        raise CorruptRecordsError(f"{index} records instead of {count}")


def renumbered_in_python(payload: Buffer, count: int, timestamp_shift: int, *, is_stamped: bool) -> Iterator[bytes]:
    """Do as `renumbered`, in Python."""
    parts: list[bytes] = []
    size_bytes = 0
    for index, record in enumerate(decode_records_in_python(bytes(payload), count)):
        delta = 0 if is_stamped else record.timestamp - timestamp_shift
        if not _INT64_MIN <= delta < -_INT64_MIN:
            raise CorruptRecordsError("timestamps too far apart")
        parts.append(encode_record_in_python(delta, index, record.key, record.value, record.headers))
        size_bytes += len(parts[-1])
        if size_bytes >= PIECE_BYTES:
            yield b"".join(parts)
            parts, size_bytes = [], 0
    if parts:
        yield b"".join(parts)


renumbered: Final[Callable[..., Iterator[bytes]]] = (
    renumbered_compiled if HAS_COMPILED_RENUMBERING else renumbered_in_python
)
"""Yield the records of a batch as they stand in the one that replaces it, in pieces of about `PIECE_BYTES`.

Args:
    payload: The records, decompressed.
    count: How many.
    timestamp_shift: What is taken from each timestamp delta: the new base timestamp's.
    is_stamped: All have the same timestamp: their deltas are 0.

Raises:
    CorruptRecordsError: a record is malformed, or there are not `count` of them.
"""
