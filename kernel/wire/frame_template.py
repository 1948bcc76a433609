"""Pure core: a response frame of which only a few numbers change from one request to the next.

Encoding the answer of a small Produce costs more than appending its record. Its bytes are the same every time but for
the correlation id and three offsets: so the codec encodes it once, with marks in their place, and afterwards the
numbers are put between its pieces. The layout stays the codec's own business: nothing here knows it but for where it
found the marks.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from .headers import encode_response

if TYPE_CHECKING:
    from .message import Message

_CORRELATION_POSITION: Final = 4
_CORRELATION_BYTES: Final = 4
_NUMBER: Final = struct.Struct(">q")


def mark(number: int) -> int:
    """Return the value that stands for the `number`-th number (from 0) in a template's message."""
    return 0x5A17_C0DE_0000_0000 + number


class FrameTemplate:
    """A frame with room for int64 numbers that stand one behind the other. Immutable."""

    __slots__ = ("_after", "_before", "_between", "_count", "_pack")

    def __init__(self, message: Message, version: int, numbers_count: int) -> None:
        """Encode `message`, whose changing fields hold `mark(0)`, `mark(1)`, ... up to `numbers_count`.

        Fields that the version does not have must come last among the marks: leave them out of the count.
        """
        frame = encode_response(message, version, 0).join()
        marks = b"".join(_NUMBER.pack(mark(number)) for number in range(numbers_count))
        assert frame.count(marks) == 1, "the numbers stand one behind the other, once"
        position = frame.index(marks)
        after = position + len(marks)
        self._count = numbers_count
        self._before = frame[:_CORRELATION_POSITION]
        self._between = frame[_CORRELATION_POSITION + _CORRELATION_BYTES : position]
        self._after = frame[after:]
        self._pack = struct.Struct(
            f">{_CORRELATION_POSITION}si{len(self._between)}s{numbers_count}q{len(self._after)}s"
        ).pack

    def fill(self, correlation_id: int, numbers: tuple[int, ...]) -> bytes:
        """Return a frame, its size included, with the correlation id and the numbers in their places. Hot.

        Args:
            correlation_id: The request's.
            numbers: At least as many as there are places; those beyond are for other versions.
        """
        if len(numbers) != self._count:
            numbers = numbers[: self._count]
        return self._pack(self._before, correlation_id, self._between, *numbers, self._after)
