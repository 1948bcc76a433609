"""Pure core: a response frame of which only a few numbers change from one request to the next.

Encoding the answer of a small Produce costs more than appending its record. Its bytes are the same every time but for
the correlation id and three offsets: so the codec encodes it once, with marks in their place, and afterwards the
numbers are put between its pieces. So it is with a Fetch of one partition, which has records besides. The layout stays
the codec's own business: nothing here knows it but for where it found the marks.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from .headers import encode_response
from .records import records_size
from .varint import unsigned_varint

if TYPE_CHECKING:
    from .message import Message
    from .records import Part

_CORRELATION_POSITION: Final = 4
_NUMBERS_POSITION: Final = 8
_NUMBER: Final = struct.Struct(">q")
_NUMBERS_MAX: Final = 8
_LENGTH: Final = struct.Struct(">i")


def mark(number: int) -> int:
    """Return the value that stands for the `number`-th number (from 0) in a template's message."""
    return 0x5A17_C0DE_0000_0000 + number


class _RecordsMark:
    """Stands for records in a template's message."""

    size_bytes = 0x5A17_C0D


RECORDS_MARK: Final = _RecordsMark()
"""What stands for records in a template's message."""


def _split(frame: bytes) -> tuple[bytes, int, bytes]:
    """Return what stands between the correlation id and the marks, how many they are, and what stands behind them."""
    found = [number for number in map(mark, range(_NUMBERS_MAX)) if _NUMBER.pack(number) in frame]
    marks = b"".join(map(_NUMBER.pack, found))
    assert found, "a template has marks"
    assert frame.count(marks) == 1, "the numbers stand one behind the other, once"
    position = frame.index(marks)
    return frame[_NUMBERS_POSITION:position], len(found), frame[position + len(marks) :]


class FrameTemplate:
    """A frame with room for int64 numbers that stand one behind the other. Immutable."""

    __slots__ = ("_after", "_before", "_between", "_count", "_pack")

    def __init__(self, message: Message, version: int) -> None:
        """Encode `message`, whose changing fields hold `mark(0)`, `mark(1)`, ...

        Fields that the version does not have must come last among the marks.
        """
        frame = encode_response(message, version, 0).join()
        self._before = frame[:_CORRELATION_POSITION]
        self._between, self._count, self._after = _split(frame)
        self._pack = struct.Struct(
            f">{_CORRELATION_POSITION}si{len(self._between)}s{self._count}q{len(self._after)}s"
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


class RecordsFrameTemplate:
    """A frame with room for int64 numbers that stand one behind the other, and for records behind them. Immutable."""

    __slots__ = ("_after", "_between", "_count", "_fixed_bytes", "_is_flexible", "_pack", "_to_length")

    def __init__(self, message: Message, version: int) -> None:
        """Encode `message`: numbers as with `FrameTemplate`, and `RECORDS_MARK` in the one field of records."""
        parts: list[Any] = encode_response(message, version, 0).parts
        head, records, *rest = parts
        assert records is RECORDS_MARK, "there are records behind the numbers"
        self._is_flexible = version >= type(message).__flexible_from__
        self._between, self._count, to_records = _split(head)
        self._to_length = to_records[: -len(self._length_of(RECORDS_MARK.size_bytes))]
        self._after = b"".join(rest)
        self._fixed_bytes = len(head) - len(to_records) + len(self._to_length) + len(self._after) - _LENGTH.size
        self._pack = struct.Struct(f">ii{len(self._between)}s{self._count}q{len(self._to_length)}s").pack

    def _length_of(self, size_bytes: int) -> bytes:
        return unsigned_varint(size_bytes + 1) if self._is_flexible else _LENGTH.pack(size_bytes)

    def fill(self, correlation_id: int, numbers: tuple[int, ...], records: Any) -> list[Part]:
        """Return the parts of a frame, its size included; the first is bytes, the records are the caller's own. Hot.

        Args:
            correlation_id: The request's.
            numbers: At least as many as there are places; those beyond are for other versions.
            records: What a records field may hold, but null; placed as they are.
        """
        size_bytes = records_size(records)
        length = self._length_of(size_bytes)
        if len(numbers) != self._count:
            numbers = numbers[: self._count]
        frame_bytes = self._fixed_bytes + len(length) + size_bytes
        head = self._pack(frame_bytes, correlation_id, self._between, *numbers, self._to_length) + length
        after = self._after
        if not size_bytes:
            return [head + after]
        parts: list[Part] = [head]
        if isinstance(records, list | tuple):
            parts += records
        else:
            parts.append(records)
        if after:
            parts.append(after)
        return parts
