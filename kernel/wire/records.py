"""Pure core: what a `records` field may hold, and what an encoded message is.

Decoded, a records field is a view into the buffer that was decoded (writable if the buffer is), or `None`. To be
encoded it may be

    None                        null: only where the field is nullable. Answer a fetch with `b""`, never with null.
    bytes | bytearray | memoryview
    RecordsSlice                an opaque piece of a file, placed in the output as it is, to be sent by sendfile
    a list or tuple of these
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from ..types import Buffer


@runtime_checkable
class RecordsSlice(Protocol):
    """Bytes that are somewhere else, for instance in a file.

    The codec asks for the size and hands the object on, in its place among the output buffers.
    """

    @property
    def size_bytes(self) -> int:
        """How many bytes this stands for, >= 0; must not change until they are sent."""
        ...


Part: TypeAlias = Buffer | RecordsSlice
"""One thing to send: bytes, or something that knows where its bytes are."""

Records: TypeAlias = Buffer | RecordsSlice | Sequence[Buffer | RecordsSlice]
"""What a records field may hold when encoded, beside null."""


class Encoded(NamedTuple):
    """A message in bytes.

    Attributes:
        parts: For a gathered write, in order; small neighbours are joined, records are the caller's own objects.
        size_bytes: The sizes of all parts together.
    """

    parts: list[Part]
    size_bytes: int

    def join(self) -> bytes:
        """Return the bytes in one piece.

        Raises:
            TypeError: A part is a `RecordsSlice`, whose bytes are not here.
        """
        return b"".join(cast("list[bytes]", self.parts))


class KeptItem:
    """An item of one of a message's own arrays that is encoded already, in the version in which the message will be.

    Only encoders in steps take it.

    Attributes:
        data: Its bytes.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        """Keep them."""
        self.data = data


JOIN_BYTES_MAX: Final = 512
"""Records up to this size are copied into their neighbours: cheaper than one more part in a gathered write."""

_BUFFERS: Final = frozenset({bytes, bytearray, memoryview})


def records_size(records: Any) -> int:
    """Return the number of bytes that the value of a records field stands for."""
    kind = type(records)
    if kind is memoryview:
        view: memoryview = records
        return view.nbytes
    if kind is bytes or kind is bytearray:
        return len(records)
    if kind is list or kind is tuple:
        return sum(map(records_size, records))
    piece: RecordsSlice = records
    return piece.size_bytes


def place_records(records: Any, size_bytes: int, small: list[bytes], parts: list[Part]) -> None:
    """Put records behind what is written: among the small things if small, else in a place of their own."""
    kind = type(records)
    if kind is list or kind is tuple:
        for piece in records:
            place_records(piece, records_size(piece), small, parts)
    elif size_bytes <= JOIN_BYTES_MAX and kind in _BUFFERS:
        small.append(records)
    elif size_bytes:
        if small:
            parts.append(b"".join(small))
            small.clear()
        parts.append(records)


def finish(small: list[bytes], parts: list[Part]) -> Encoded:
    """Return everything that was placed, and its size."""
    if small:
        parts.append(b"".join(small))
    size_bytes = 0
    for part in parts:
        size_bytes += len(part) if type(part) is bytes else records_size(part)
    return Encoded(parts, size_bytes)
