"""Pure core: records to columns and back, in Python: the twins of what `_columns.c` compiles, with the same answers.

A *builder* collects rows of any number of batches until it has as many as are wanted at once. `columns.py` gives it the
records of a batch, and takes what it has collected.

Every method's positional arguments are those of the compiled twin; only the words of an error differ.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from .batch import HEADER_SIZE, CorruptRecordsError, iterate_batches
from .record import VARINT_BYTES_MAX, decode_varint, decode_varlong, encode_record, long_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types import Buffer

BinaryBuffers: TypeAlias = "tuple[Buffer | None, Buffer, Buffer]"
"""Validity (None: nothing is null), offsets, data."""
HeadersBuffers: TypeAlias = "tuple[Buffer | None, Buffer, BinaryBuffers, BinaryBuffers]"
"""Validity, offsets, keys, values."""
TakenColumns: TypeAlias = """tuple[
    int,
    BinaryBuffers | None,
    BinaryBuffers | None,
    Buffer | None,
    Buffer | None,
    Buffer | None,
    HeadersBuffers | None,
]"""
"""Rows, then a column for each flag of `columns.Column`, in their order; None for those that are not wanted."""

BinarySource: TypeAlias = "tuple[Buffer, Buffer, Buffer | None, int]"
"""Offsets, data, validity, where row 0 stands: the attributes of a `columns.BinaryColumn`."""
HeadersSource: TypeAlias = "tuple[Buffer, BinarySource, BinarySource, Buffer | None, int]"
"""The attributes of a `columns.HeadersColumn`."""

KEY: Final = 1
VALUE: Final = 2
OFFSET: Final = 4
TIMESTAMP: Final = 8
TIMESTAMP_TYPE: Final = 16
HEADERS: Final = 32

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1
_MICROSECONDS: Final = 1_000


class ColumnBuilder(Protocol):
    """What `columns.ColumnReader` needs of a builder; one owner."""

    @property
    def rows(self) -> int:
        """How many rows were collected."""
        ...

    def add(
        self,
        payload: Buffer,
        position: int,
        index: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        start: int,
        end: int,
        /,
    ) -> tuple[int, int, int]:
        """Collect records of one batch until they end or there are rows enough.

        Args:
            payload: The batch's records, decompressed.
            position: Where in it to go on.
            index: Which record begins there.
            count: How many records the batch has.
            base_offset: The batch's; with any int32 added it is an int64.
            base_timestamp: The batch's; its max timestamp where the broker sets the records' timestamps.
            timestamp_type: 0: the records' own timestamps count; 1: they do not.
            start: Records with smaller offsets are left out, and so is a record whose offset is not greater than that
                of the one before, as Kafka's consumer does.
            end: The first record with this offset, or a greater one, ends the batch.

        Returns:
            Where to go on, with which record (`count`: the batch has ended), and the offset after the last row.

        Raises:
            ValueError: A record is malformed, or they are fewer or more than `count`; or a timestamp in microseconds is
                wanted that is no int64. What was collected before is good for nothing but `clear`.
        """
        ...

    def add_run(
        self, run: Buffer, place: int, checks_crc: bool, is_read_committed: bool, start: int, end: int, /
    ) -> tuple[int, int]:
        """Collect small whole batches of which nothing is odd, as far as there is room for all rows of each.

        A batch is odd that is compressed, of control records, damaged, at or behind `end`, or, for a read-committed
        reader, transactional: the caller looks at the batch where this stops, as if nothing had been looked at before.

        Args:
            run: Batches.
            place: Where in it to begin.
            checks_crc: Whether a batch with a wrong checksum is odd.
            is_read_committed: See above.
            start: See `add`.
            end: See `add`.

        Returns:
            Where it stopped, and the offset after the last batch, or `start`.

        Raises:
            ValueError: See `add`; with the batch's offset.
        """
        ...

    def take(self) -> TakenColumns:
        """Return what was collected, and begin anew."""
        ...

    def clear(self) -> None:
        """Forget what was collected."""
        ...


class _BinaryRoom:
    """A nullable column of bytes that grows."""

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.data = bytearray()
        self._valid = bytearray()
        self._has_nulls = False

    def append(self, content: Buffer | None) -> None:
        if content is None:
            self._has_nulls = True
        else:
            self.data += content
        self._valid.append(content is not None)
        self.offsets.append(len(self.data))

    def take(self) -> BinaryBuffers:
        validity = pack_bits(self._valid) if self._has_nulls else None
        return validity, self.offsets.tobytes(), bytes(self.data)


class _HeadersRoom:
    """A nullable column of lists of headers that grows."""

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.keys = _BinaryRoom()
        self.values = _BinaryRoom()
        self._valid = bytearray()

    def append(self, payload: bytes, position: int, end: int) -> None:
        """Add the headers that stand at `position` and end at `end`."""
        count, at = decode_varint(payload, position)
        if not 0 <= count <= end - at:
            raise ValueError(f"{count} record headers")
        for _ in range(count):
            key, at = _nullable(payload, at, end)
            if key is None:
                raise ValueError("null key of a record header")
            self.keys.append(_as_utf8(key))
            content, at = _nullable(payload, at, end)
            self.values.append(content)
        if at != end:
            raise ValueError("record of another length than it tells")
        self._valid.append(count > 0)
        self.offsets.append(len(self.keys.offsets) - 1)

    def take(self) -> HeadersBuffers:
        validity = None if all(self._valid) else pack_bits(self._valid)
        return validity, self.offsets.tobytes(), self.keys.take(), self.values.take()


class PythonColumnBuilder:
    """See `ColumnBuilder`."""

    def __init__(self, wanted: int, rows_max: int, bytes_max: int, /) -> None:
        """Collect nothing yet.

        Args:
            wanted: Flags of `columns.Column`.
            rows_max: How many rows are enough, >= 1.
            bytes_max: How many bytes of keys, values and headers are enough, below 2**31; a row that has more of its
                own stands alone.
        """
        self._wanted = wanted
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self.clear()

    def clear(self) -> None:
        """See `ColumnBuilder.clear`."""
        self.rows = 0
        self._bytes = 0
        self._keys = _BinaryRoom()
        self._values = _BinaryRoom()
        self._headers = _HeadersRoom()
        self._offsets = array("q")
        self._timestamps = array("q")
        self._types = array("i")

    def take(self) -> TakenColumns:
        """See `ColumnBuilder.take`."""
        wanted = self._wanted
        taken = (
            self.rows,
            self._keys.take() if wanted & KEY else None,
            self._values.take() if wanted & VALUE else None,
            self._offsets.tobytes() if wanted & OFFSET else None,
            self._timestamps.tobytes() if wanted & TIMESTAMP else None,
            self._types.tobytes() if wanted & TIMESTAMP_TYPE else None,
            self._headers.take() if wanted & HEADERS else None,
        )
        self.clear()
        return taken

    def add(
        self,
        payload: Buffer,
        position: int,
        index: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        start: int,
        end: int,
        /,
    ) -> tuple[int, int, int]:
        """See `ColumnBuilder.add`."""
        payload = bytes(payload)  # bytes are indexed faster than views
        try:
            for number in range(index, count):
                stop, delta, offset_delta, at = _begin(payload, position)
                offset = base_offset + offset_delta
                if offset >= end:
                    return len(payload), count, start
                if offset >= start:
                    timestamp = base_timestamp if timestamp_type else base_timestamp + delta
                    if self.rows >= self._rows_max or not self._append(payload, at, stop, offset, timestamp):
                        return position, number, start
                    self._types.append(timestamp_type)
                    start = offset + 1
                else:
                    self._check(payload, at, stop)
                position = stop
        except IndexError:
            raise ValueError("record cut off") from None
        if position != len(payload):
            raise ValueError("bytes after the records")
        return position, max(count, 0), start

    def add_run(
        self, run: Buffer, place: int, checks_crc: bool, is_read_committed: bool, start: int, end: int, /
    ) -> tuple[int, int]:
        """See `ColumnBuilder.add_run`; it is there to save calls from Python, so here it stops at once."""
        del self, run, checks_crc, is_read_committed, end
        return place, start

    def _append(self, payload: bytes, at: int, stop: int, offset: int, timestamp: int) -> bool:
        """Add the row whose key's length stands at `at`; return False when it is too much for what is there already."""
        wanted = self._wanted
        key: bytes | None = None
        value: bytes | None = None
        size = 0
        if wanted & (KEY | VALUE | HEADERS):
            key, at = _nullable(payload, at, stop)
            size += len(key or b"") if wanted & KEY else 0
        if wanted & (VALUE | HEADERS):
            value, at = _nullable(payload, at, stop)
            size += len(value or b"") if wanted & VALUE else 0
        size += stop - at if wanted & HEADERS else 0
        if self.rows and self._bytes + size > self._bytes_max:
            return False
        if wanted & KEY:
            self._keys.append(key)
        if wanted & VALUE:
            self._values.append(value)
        if wanted & OFFSET:
            self._offsets.append(offset)
        if wanted & TIMESTAMP:
            self._timestamps.append(_as_microseconds(timestamp))
        if wanted & HEADERS:
            self._headers.append(payload, at, stop)
        self._bytes += size
        self.rows += 1
        return True

    def _check(self, payload: bytes, at: int, stop: int) -> None:
        """Look at the parts of a record that nobody wants as closely as if they were wanted."""
        wanted = self._wanted
        if wanted & (KEY | VALUE | HEADERS):
            _, at = _nullable(payload, at, stop)
        if wanted & (VALUE | HEADERS):
            _, at = _nullable(payload, at, stop)
        if wanted & HEADERS:
            _HeadersRoom().append(payload, at, stop)


def _begin(payload: bytes, position: int) -> tuple[int, int, int, int]:
    """Return of the record at `position` the end, timestamp and offset deltas, and where its key's length stands.

    Raises:
        IndexError: It is cut off.
    """
    length, at = decode_varint(payload, position)
    stop = at + length
    delta, at = decode_varlong(payload, at + 1)
    offset_delta, at = decode_varint(payload, at)
    if not at <= stop <= len(payload):
        raise IndexError
    return stop, delta, offset_delta, at


def _nullable(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Return the nullable bytes at `position`, and the position after them.

    Raises:
        IndexError: They do not end before `end`.
    """
    zigzag = payload[position]
    if zigzag < 0x80:
        length, position = (zigzag >> 1) ^ -(zigzag & 1), position + 1
    else:
        length, position = long_varint(payload, position + 1, zigzag, VARINT_BYTES_MAX)
    following = position + max(length, 0)
    if following > end:
        raise IndexError
    return (payload[position:following] if length >= 0 else None), following


def _as_utf8(key: bytes) -> bytes:
    """Return a header's key as text that is UTF-8, with U+FFFD for what is not, as Java's readers have it."""
    return key if key.isascii() else key.decode("utf-8", "replace").encode()


def _as_microseconds(timestamp: int) -> int:
    if not INT64_MIN <= timestamp <= INT64_MAX or not INT64_MIN <= timestamp * _MICROSECONDS <= INT64_MAX:
        raise ValueError("a timestamp that 64 bits of microseconds cannot hold")
    return timestamp * _MICROSECONDS


def pack_bits(flags: Sequence[int]) -> bytes:
    """Return a bitmap of as many bits as there are flags, the least significant first, as Arrow has them."""
    bits = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        if flag:
            bits[index >> 3] |= 1 << (index & 7)
    return bytes(bits)


class _BinarySource:
    """A column to read rows from; see `columns.BinaryColumn`."""

    def __init__(self, source: BinarySource) -> None:
        offsets, data, validity, self._first = source
        self._offsets = memoryview(offsets).cast("B").cast("i")
        self._data = memoryview(data).cast("B")
        self._validity = None if validity is None else memoryview(validity).cast("B")

    def at(self, row: int) -> memoryview | None:
        index = self._first + row
        if self._validity is not None and not self._validity[index >> 3] >> (index & 7) & 1:
            return None
        start, end = self._offsets[index], self._offsets[index + 1]
        if not 0 <= start <= end <= len(self._data):
            raise ValueError("offsets that do not fit the data")
        return self._data[start:end]


class _HeadersSource:
    """A column to read headers from; see `columns.HeadersColumn`."""

    def __init__(self, source: HeadersSource) -> None:
        offsets, keys, values, validity, self._first = source
        self._offsets = memoryview(offsets).cast("B").cast("i")
        self._keys, self._values = _BinarySource(keys), _BinarySource(values)
        self._validity = None if validity is None else memoryview(validity).cast("B")

    def at(self, row: int) -> list[tuple[str, bytes | None]]:
        index = self._first + row
        if self._validity is not None and not self._validity[index >> 3] >> (index & 7) & 1:
            return []
        headers: list[tuple[str, bytes | None]] = []
        start, end = self._offsets[index], self._offsets[index + 1]
        if not 0 <= start <= end:
            raise ValueError("offsets that do not fit the data")
        for number in range(start, end):
            key, value = self._keys.at(number), self._values.at(number)
            if key is None:
                raise ValueError(f"row {row} has a header without a key")
            name = bytes(key).decode("utf-8", "surrogateescape")
            headers.append((name, None if value is None else bytes(value)))
        return headers


def encode_rows_in_python(
    rows_count: int,
    keys: BinarySource | None,
    values: BinarySource | None,
    timestamps: Buffer | None,
    headers: HeadersSource | None,
    rows: Buffer | None,
    position: int,
    bytes_max: int,
    timestamp_ms: int,
    /,
) -> tuple[bytearray, int, int, int]:
    """Write records one after the other, behind the room for a batch's header.

    Args:
        rows_count: How many rows the columns have.
        keys: None: no record has a key.
        values: None: no record has a value.
        timestamps: int64 each, microseconds; None: `timestamp_ms` for every record.
        headers: None: no record has headers.
        rows: Which rows, int32 each; None: all of them.
        position: Which of `rows` is the first.
        bytes_max: A record that would make more than so many bytes is not written, unless it is the first.
        timestamp_ms: See `timestamps`.

    Returns:
        The bytes, the position after the last row written, its first record's timestamp and the greatest.

    Raises:
        ValueError: A header has no key; a record is longer than a batch can be; the buffers do not belong together.
    """
    chosen = range(rows_count) if rows is None else memoryview(rows).cast("B").cast("i")
    of_key = _BinarySource(keys) if keys else None
    of_value = _BinarySource(values) if values else None
    of_headers = _HeadersSource(headers) if headers else None
    times = None if timestamps is None else memoryview(timestamps).cast("B").cast("q")
    written = bytearray(HEADER_SIZE)
    base = greatest = 0
    start = position
    try:
        while position < len(chosen):
            row = chosen[position]
            if not 0 <= row < rows_count:
                raise ValueError(f"there is no row {row}")
            timestamp = timestamp_ms if times is None else times[row] // _MICROSECONDS
            if position == start:
                base = greatest = timestamp
            record = encode_record(
                timestamp - base,
                position - start,
                of_key.at(row) if of_key else None,
                of_value.at(row) if of_value else None,
                of_headers.at(row) if of_headers else (),
            )
            if len(written) + len(record) > (bytes_max if position > start else INT32_MAX):
                break
            written += record
            greatest = max(greatest, timestamp)
            position += 1
    except IndexError:
        raise ValueError("buffers that are too short for the rows") from None
    if position == start:
        raise ValueError("a record that is too large for a batch, or no row at all")
    return written, position, base, greatest


def follow_batches_in_python(run: Buffer, next_offset: int, end_offset: int) -> tuple[int, int, bool]:
    """See `columns.follow_batches`."""
    size_bytes = 0
    has_gaps = False
    with suppress(CorruptRecordsError):
        for position, header in iterate_batches(run):
            if not next_offset <= header.base_offset <= header.last_offset < end_offset:
                break
            has_gaps |= header.base_offset != next_offset
            next_offset = header.next_offset
            size_bytes = position + header.length_bytes
    return size_bytes, next_offset, has_gaps
