"""Pure core: a response frame of which only a few numbers change from one request to the next.

Encoding the answer of a small Produce costs more than appending its record. Its bytes are the same every time but for
the correlation id and three offsets: so the codec encodes it once, with marks in their place, and afterwards the
numbers are stamped into copies. The layout stays the codec's own business: nothing here knows it but for where it
found the marks.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from .headers import encode_response

if TYPE_CHECKING:
    from .message import Message

_put_correlation: Final = struct.Struct(">i").pack_into
_CORRELATION_POSITION: Final = 4
_NUMBER: Final = struct.Struct(">q")


def mark(number: int) -> int:
    """Return the value that stands for the `number`-th number (from 0) in a template's message."""
    return 0x5A17_C0DE_0000_0000 + number


class FrameTemplate:
    """A frame with room for int64 numbers that stand one behind the other. Immutable."""

    __slots__ = ("_count", "_frame", "_position", "_put_numbers")

    def __init__(self, message: Message, version: int, numbers_count: int) -> None:
        """Encode `message`, whose changing fields hold `mark(0)`, `mark(1)`, ... up to `numbers_count`.

        Fields that the version does not have must come last among the marks: leave them out of the count.
        """
        frame = encode_response(message, version, 0).join()
        marks = b"".join(_NUMBER.pack(mark(number)) for number in range(numbers_count))
        assert frame.count(marks) == 1, "the numbers stand one behind the other, once"
        self._count = numbers_count
        self._frame = frame
        self._position = frame.index(marks)
        self._put_numbers = struct.Struct(f">{numbers_count}q").pack_into

    def fill(self, correlation_id: int, numbers: tuple[int, ...]) -> bytearray:
        """Return a frame, its size included, with the correlation id and the numbers in their places.

        Args:
            correlation_id: The request's.
            numbers: At least as many as there are places; those beyond are for other versions.
        """
        frame = bytearray(self._frame)
        _put_correlation(frame, _CORRELATION_POSITION, correlation_id)
        if len(numbers) != self._count:
            numbers = numbers[: self._count]
        self._put_numbers(frame, self._position, *numbers)
        return frame
