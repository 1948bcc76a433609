"""Pure core: numbers of variable length, and what generated decoders share.

Seven bits a byte, lowest first, the high bit says that more follow. Lengths in flexible versions are written so, one
more than they are, so that 0 can stand for null.

*Source:* KIP-482; the encoding is that of Protocol Buffers.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Generator
from typing import Any, Final, NoReturn

from ..types import Buffer
from .errors import DecodeError

UNSIGNED: Final = tuple(bytes((n,)) for n in range(128))
"""The unsigned numbers of one byte, ready to be written."""

STRING_BYTES_MAX: Final = 32767
_IDS_REMEMBERED_MAX: Final = 65536
_COUNTS_REMEMBERED_MAX: Final = 128


def unsigned_varint(value: int) -> bytes:
    """Return `value`, in [0, 2**32), as one to five bytes."""
    if value < 128:
        return UNSIGNED[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the unsigned number at `position` and the position behind it.

    Raises:
        DecodeError: It has more than five bytes, or more than 32 bits.
        IndexError: The buffer ends inside it.
    """
    byte = buffer[position]
    value = byte & 127
    shift = 7
    while byte > 127:
        position += 1
        byte = buffer[position]
        value |= (byte & 127) << shift
        shift += 7
        if shift > 35 or value > 0xFFFFFFFF:
            raise DecodeError("a varint has more than 32 bits")
    return value, position + 1


def read_string_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the compact length (one more than the bytes) of a long string and the position behind it.

    Raises:
        DecodeError: The string has more than 32,767 bytes.
        IndexError: The buffer ends inside the number.
    """
    length, position = read_unsigned_varint(buffer, position)
    if length > STRING_BYTES_MAX + 1:
        raise DecodeError(f"a string has {length - 1} bytes, above {STRING_BYTES_MAX}")
    return length, position


def skip_tags(buffer: Buffer, position: int, end: int, budget: int) -> tuple[int, int]:
    """Step over tagged fields that nobody knows.

    Args:
        buffer: The bytes.
        position: Where their number stands.
        end: Where the bytes end.
        budget: How many elements may still come: each tag counts as one.

    Returns:
        The position behind them, and what is left of the budget.
    """
    steps = skip_tags_in_steps(buffer, position, end, budget)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: tuple[int, int] = done.value
            return found


def skip_tags_in_steps(buffer: Buffer, position: int, end: int, budget: int) -> Generator[None, None, tuple[int, int]]:
    """Step over tagged fields as `skip_tags` does, one after the other."""
    count, position = read_unsigned_varint(buffer, position)
    budget -= count
    if budget < 0:
        fail_budget()
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
        if position > end:
            fail_length(size)
        yield
    return position, budget


def fail_length(length: int) -> NoReturn:
    """Refuse a length that does not fit."""
    raise DecodeError(f"length {length} does not fit into the bytes that are left, or null stands where it may not")


def fail_budget() -> NoReturn:
    """Refuse a message with too many elements."""
    raise DecodeError("more elements than one message may hold")


def fail_tag(tag: int) -> NoReturn:
    """Refuse a tagged field that is longer or shorter than it says."""
    raise DecodeError(f"tagged field {tag} does not have the size that it claims")


class _Ids(dict[bytes, uuid.UUID]):
    """Ids by their bytes: the same few topic ids come again and again, and a UUID is slow to make."""

    def __missing__(self, raw: bytes) -> uuid.UUID:
        if len(self) >= _IDS_REMEMBERED_MAX:
            self.clear()
        identifier = self[raw] = uuid.UUID(bytes=raw)
        return identifier


IDS: Final = _Ids()


class _ByCount(dict[int, Callable[..., Any]]):
    """A bound method of `struct.Struct` by the number of an array's items."""

    def __init__(self, form: str, method: str) -> None:
        super().__init__()
        self._form = form
        self._method = method

    def __missing__(self, count: int) -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(struct.Struct(self._form.format(count)), self._method)
        if count <= _COUNTS_REMEMBERED_MAX:
            self[count] = made
        return made


def packers(code: str) -> dict[int, Callable[..., Any]]:
    """Return what packs so many numbers of one type."""
    return _ByCount(f">{{}}{code}", "pack")


def unpackers(code: str) -> dict[int, Callable[..., Any]]:
    """Return what unpacks so many numbers of one type."""
    return _ByCount(f">{{}}{code}", "unpack_from")
