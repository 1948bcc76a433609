"""Pure core: walks the records of one batch without making objects of them; what full validation needs to know.

`scan_records` is the compiled kernel's (`_kernel.c`) where that was built, else the one written here. Both give the
same answers; only the words of an error differ.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from .batch import CorruptRecordsError
from .record import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, decode_varint, long_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..types import Buffer


def _load_kernel() -> Callable[[Buffer, int], tuple[int, int, int, bool]] | None:
    """Return the compiled walk; None where there was no compiler when the package was built."""
    try:
        from . import _kernel
    except ImportError:
        return None
    return _kernel.scan_records


_kernel_scan: Final = _load_kernel()
HAS_COMPILED_KERNEL: Final = _kernel_scan is not None

_NO_DELTA_MIN: Final = 2**63
_NO_DELTA_MAX: Final = -(2**63) - 1


class RecordsScan(NamedTuple):
    """What a walk over a batch's records found.

    Attributes:
        timestamp_delta_min: Least timestamp delta; 0 without records.
        timestamp_delta_max: Greatest.
        null_keys_count: How many records have no key.
        has_offset_gaps: Whether the offset deltas are anything but 0, 1, 2, ...
    """

    timestamp_delta_min: int
    timestamp_delta_max: int
    null_keys_count: int
    has_offset_gaps: bool


_make_scan: Final[Callable[[tuple[object, ...]], RecordsScan]] = partial(tuple.__new__, RecordsScan)
"""Half the time of `RecordsScan._make`, on a path where a batch of one record takes 2 us."""


def scan_records_compiled(payload: Buffer, count: int) -> RecordsScan:
    """Do as `scan_records`, by the compiled kernel.

    Raises:
        CorruptRecordsError: as there.
    """
    assert _kernel_scan is not None, "the record kernel was not compiled"
    try:
        return _make_scan(_kernel_scan(payload, count))
    except ValueError as exc:
        raise CorruptRecordsError(str(exc)) from exc


def scan_records_in_python(payload: Buffer, count: int) -> RecordsScan:
    """Do as `scan_records`, in Python.

    The varints' common one-byte form is read in place: a call each would triple the cost.

    Raises:
        CorruptRecordsError: as there.
    """
    payload = bytes(payload)  # bytes are indexed faster than views
    position = 0
    delta_min, delta_max = _NO_DELTA_MIN, _NO_DELTA_MAX
    null_keys_count = 0
    has_offset_gaps = False
    try:
        for index in range(count):
            length, start = decode_varint(payload, position)
            zigzag = payload[start + 1]
            if zigzag < 0x80:
                delta, after = (zigzag >> 1) ^ -(zigzag & 1), start + 2
            else:
                delta, after = long_varint(payload, start + 2, zigzag, VARLONG_BYTES_MAX)
            if delta < delta_min:
                delta_min = delta
            if delta > delta_max:
                delta_max = delta
            offset_delta, after = decode_varint(payload, after)
            if offset_delta != index:
                has_offset_gaps = True
            zigzag = payload[after]
            null_keys_count += zigzag & 1
            after = _skip_bytes(payload, after)
            after = _skip_bytes(payload, after)
            after = after + 1 if payload[after] == 0 else _skip_headers(payload, after)
            if after != start + length:
                raise CorruptRecordsError(f"record of {length} bytes holds {after - start}", position=position)
            position = after
    except IndexError as exc:
        raise CorruptRecordsError("record cut off", position=position) from exc
    if position != len(payload):
        raise CorruptRecordsError(f"{len(payload) - position} bytes after {count} records", position=position)
    if count <= 0:
        delta_min = delta_max = 0
    return RecordsScan(delta_min, delta_max, null_keys_count, has_offset_gaps)


def _skip_bytes(payload: bytes, position: int) -> int:
    """Return the position after the nullable bytes at `position`; past the end raises IndexError at the next read."""
    zigzag = payload[position]
    if zigzag < 0x80:
        return position + 1 if zigzag & 1 else position + 1 + (zigzag >> 1)
    length, after = long_varint(payload, position + 1, zigzag, VARINT_BYTES_MAX)
    return after if length < 0 else after + length


def _skip_headers(payload: bytes, position: int) -> int:
    """Return the position after the headers whose count stands at `position`."""
    count, after = decode_varint(payload, position)
    if not 0 <= count <= len(payload) - after:
        raise CorruptRecordsError(f"{count} record headers", position=position)
    for _ in range(count):
        if payload[after] & 1:
            raise CorruptRecordsError("null key of a record header", position=after)
        after = _skip_bytes(payload, _skip_bytes(payload, after))
    if after > len(payload):
        raise CorruptRecordsError("record cut off", position=position)
    return after


scan_records: Final[Callable[[Buffer, int], RecordsScan]] = (
    scan_records_compiled if HAS_COMPILED_KERNEL else scan_records_in_python
)
"""Walk `count` records of `payload`, what follows the header of a batch, decompressed.

Raises:
    CorruptRecordsError: a record is malformed, or they are fewer or more than `count`.
"""
