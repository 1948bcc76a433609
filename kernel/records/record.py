"""Pure core: one record inside a batch: varints, headers, reading and writing.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
    | key length varint | key | value length varint | value | headers count varint | headers...
    header: key length varint | key | value length varint | value

Varints are zigzag-coded, least significant group first; a length of -1 is null, and Kafka's readers take any negative
length so (a header's key is never null).

Compiled functions (`_kernel.c`) decode and encode where they were built, else those written here. Both give the same
answers; only the words of an error differ.

*Source:* Kafka documentation, "Record" and "Record Header"; KIP-82.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .batch import CorruptRecordsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..types import Buffer
    from . import _kernel
else:
    try:
        from . import _kernel
    except ImportError:  # there was no compiler when the package was built
        _kernel = None

HAS_COMPILED_RECORDS: Final = _kernel is not None

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"

_SMALL: Final = tuple(bytes((value,)) for value in range(128))
_NULL: Final = _SMALL[1]
_NO_HEADERS: Final[Headers] = ()
VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10
_RECORDS_AT_ONCE: Final = 256
"""How many records are made before the first of them is asked for."""


class Record(NamedTuple):
    """One record, its offset and timestamp absolute.

    Header keys that are not UTF-8 keep their bytes as lone surrogates, so that writing gives back what was read.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = _NO_HEADERS


def encode_varint(value: int) -> bytes:
    """Return `value`, within an int64, as a zigzag varint."""
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag < 0x80:
        return _SMALL[zigzag]
    if zigzag < 0x4000:
        return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))
    groups = bytearray()
    while zigzag > 0x7F:
        groups.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    groups.append(zigzag)
    return bytes(groups)


_NUMBERS_COUNT: Final = 1024
_NUMBERS: Final = tuple(encode_varint(number) for number in range(_NUMBERS_COUNT))
"""The encodings of the numbers that records are full of."""
_ZERO: Final = _NUMBERS[0]


def decode_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the zigzag varint at `position`, an int32, and the position after it.

    Raises:
        CorruptRecordsError: it is cut off or longer than an int32 needs.
    """
    try:
        byte = buffer[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        return long_varint(buffer, position + 1, byte, VARINT_BYTES_MAX)
    except IndexError as exc:
        raise CorruptRecordsError("varint cut off", position=position) from exc


def decode_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the zigzag varint at `position`, an int64, and the position after it.

    Raises:
        CorruptRecordsError: it is cut off or longer than an int64 needs.
    """
    try:
        byte = buffer[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        return long_varint(buffer, position + 1, byte, VARLONG_BYTES_MAX)
    except IndexError as exc:
        raise CorruptRecordsError("varint cut off", position=position) from exc


def long_varint(buffer: Buffer, position: int, first: int, bytes_max: int) -> tuple[int, int]:
    """Return the zigzag varint whose first byte, at `position - 1`, was `first`, and the position after it.

    Bits beyond the 32 (or, for a varlong, 64) that it stands for are dropped, as Kafka's reader drops them.

    Raises:
        CorruptRecordsError: it has more than `bytes_max` bytes.
        IndexError: it is cut off.
    """
    result = first & 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 7 * bytes_max:
            raise CorruptRecordsError("varint too long", position=position)
    result &= 0xFFFF_FFFF if bytes_max == VARINT_BYTES_MAX else 0xFFFF_FFFF_FFFF_FFFF
    return (result >> 1) ^ -(result & 1), position


def encode_record_in_python(
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """Do as `encode_record`, in Python."""
    key_size, value_size = (-1 if key is None else len(key)), (-1 if value is None else len(value))
    # Nearly every number here is small: looking into the table in place saves a call each.
    head = b"".join(
        (
            _ZERO,
            _NUMBERS[timestamp_delta] if 0 <= timestamp_delta < _NUMBERS_COUNT else encode_varint(timestamp_delta),
            _NUMBERS[offset_delta] if 0 <= offset_delta < _NUMBERS_COUNT else encode_varint(offset_delta),
            _NUMBERS[key_size] if 0 <= key_size < _NUMBERS_COUNT else encode_varint(key_size),
            key or b"",
            _NUMBERS[value_size] if 0 <= value_size < _NUMBERS_COUNT else encode_varint(value_size),
        )
    )
    tail = _encode_headers(headers) if headers else _ZERO
    value = value or b""
    size = len(head) + len(value) + len(tail)
    length = _NUMBERS[size] if size < _NUMBERS_COUNT else encode_varint(size)
    return b"".join((length, head, value, tail))


def encode_record_compiled(
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """Do as `encode_record`, by the compiled function."""
    return _kernel.encode_record(
        timestamp_delta, offset_delta, key, value, _encode_headers(headers) if headers else None
    )


encode_record: Final = encode_record_compiled if HAS_COMPILED_RECORDS else encode_record_in_python
"""Return one record as it stands in a batch, its length first.

Args:
    timestamp_delta: Milliseconds after the batch's base timestamp, an int64.
    offset_delta: Distance from the batch's base offset.
    key: The key, or None.
    value: The value; None is a tombstone on a compacted topic.
    headers: Names and values, in order; names may repeat.
"""


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Return a record's headers, their number first."""
    parts: list[bytes] = [encode_varint(len(headers))]
    for name, content in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (encode_varint(len(content)), content)
    return b"".join(parts)


def decode_records_in_python(
    payload: bytes, count: int, *, base_offset: int = 0, base_timestamp: int = 0, log_append_time: int | None = None
) -> Iterator[Record]:
    """Do as `decode_records`, in Python.

    Raises:
        CorruptRecordsError: as there.
    """
    position = 0
    try:
        for _ in range(count):
            length, start = decode_varint(payload, position)
            timestamp_delta, after = decode_varlong(payload, start + 1)
            offset_delta, after = decode_varint(payload, after)
            key, after = _decode_bytes(payload, after)
            value, after = _decode_bytes(payload, after)
            if payload[after] == 0:
                headers, after = _NO_HEADERS, after + 1
            else:
                headers, after = _decode_headers(payload, after)
            if after != start + length or after > len(payload):
                raise CorruptRecordsError(f"record of {length} bytes holds {after - start}", position=position)
            position = after
            timestamp = base_timestamp + timestamp_delta if log_append_time is None else log_append_time
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError as exc:
        raise CorruptRecordsError("record cut off", position=position) from exc
    if position != len(payload):
        raise CorruptRecordsError(f"{len(payload) - position} bytes after {count} records", position=position)


def decode_records_compiled(
    payload: bytes, count: int, *, base_offset: int = 0, base_timestamp: int = 0, log_append_time: int | None = None
) -> Iterator[Record]:
    """Do as `decode_records`, by the compiled function.

    Raises:
        CorruptRecordsError: as there.
    """
    position = 0
    while count > 0:
        try:
            records, position = _kernel.decode_records(
                Record, payload, position, min(count, _RECORDS_AT_ONCE), base_offset, base_timestamp, log_append_time
            )
        except ValueError as exc:
            raise CorruptRecordsError(str(exc), position=position) from exc
        yield from records
        count -= len(records)
    if position != len(payload):
        raise CorruptRecordsError(f"{len(payload) - position} bytes after the records", position=position)


decode_records: Final = decode_records_compiled if HAS_COMPILED_RECORDS else decode_records_in_python
"""Yield the records of a batch, whose `payload` is already decompressed, one by one.

Args:
    payload: All that follows the header, decompressed.
    count: The header's `records_count`.
    base_offset: The header's, for absolute offsets.
    base_timestamp: The header's, for absolute timestamps.
    log_append_time: The header's `max_timestamp` where its timestamp type is LogAppendTime: it replaces the records'
        own timestamps.

Raises:
    CorruptRecordsError: while iterating: a record is malformed, or they are fewer or more than `count`. Records before
        that one were yielded.
"""


def _decode_bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    """Return the nullable bytes at `position`, possibly cut short, and the position after them."""
    length, start = decode_varint(payload, position)
    if length < 0:
        return None, start
    end = start + length
    return payload[start:end], end


def _decode_headers(payload: bytes, position: int) -> tuple[Headers, int]:
    """Return the headers whose count stands at `position`, and the position after them."""
    count, after = decode_varint(payload, position)
    if not 0 <= count <= len(payload) - after:
        raise CorruptRecordsError(f"{count} record headers", position=position)
    headers = []
    for _ in range(count):
        name, after = _decode_bytes(payload, after)
        if name is None:
            raise CorruptRecordsError("null key of a record header", position=after)
        content, after = _decode_bytes(payload, after)
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return tuple(headers), after
