"""Pure core: record batches as columns, in the layout of Apache Arrow, and columns as record batches.

No object is made of a record: its key, value, headers, offset and timestamp are copied into buffers that any Arrow
library takes as they are. The buffers are bytes, or read-only views of memory that is used again when nobody sees it
any more, in this machine's byte order; nothing here knows such a library.

| column | buffers |
| --- | --- |
| key, value | validity bitmap or None, offsets int32, data |
| offset | int64 |
| timestamp | int64, microseconds since the Unix epoch (a record without one has -1 ms) |
| timestamp type | int32: 0 CreateTime, 1 LogAppendTime |
| headers | validity (null: a record without headers) and offsets of the lists; keys and values of all headers |

The walk over records is compiled (`_columns.c`) where that was built, else Python's (`column_walk.py`): same answers.

*Source:* Arrow columnar format, "Physical Memory Layout"; Kafka documentation, "Message Format"; KIP-98.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import TYPE_CHECKING, Final

import attrs
from crc32c import crc32c

from ..types import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from .aborted import AbortedTransactions
from .batch import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptRecordsError,
    put_header,
    read_header,
)
from .batch import encode_batch as whole_batch
from .column_walk import INT64_MAX, PythonColumnBuilder, encode_rows_in_python, follow_batches_in_python
from .compression import DECOMPRESSED_BYTES_MAX, CompressionType, compress, decompress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from ..types import Buffer
    from .column_walk import BinaryBuffers, BinarySource, ColumnBuilder, HeadersSource, TakenColumns

if TYPE_CHECKING:
    from . import _columns
else:
    try:
        from . import _columns
    except ImportError:  # there was no compiler when the package was built
        _columns = None

HAS_COMPILED_COLUMNS: Final = _columns is not None

ROWS_MAX: Final = 20_000
BYTES_MAX: Final = 4 * 1024 * 1024
_START: Final = struct.Struct(">qi")
"""What batches of every format begin with: base offset, and the bytes that follow."""
_INT32_BYTES: Final = 4
_BASE_OFFSET_MAX: Final = INT64_MAX - 2**31


class Column(IntFlag):
    """What of a record is wanted. Topic and partition are constants of a whole range: nothing decodes them."""

    KEY = 1
    VALUE = 2
    OFFSET = 4
    TIMESTAMP = 8
    TIMESTAMP_TYPE = 16
    HEADERS = 32


ALL_COLUMNS: Final = (
    Column.KEY | Column.VALUE | Column.OFFSET | Column.TIMESTAMP | Column.TIMESTAMP_TYPE | Column.HEADERS
)


@attrs.frozen
class BinaryColumn:
    """Nullable bytes, or text in UTF-8, a value for each row.

    Row `i` is `data[offsets[first + i] : offsets[first + i + 1]]`, and null when bit `first + i` of the bitmap is 0;
    bits count from a byte's least.

    Attributes:
        offsets: int32 each, one more than there are values.
        data: The values, one after the other.
        validity: A bit for each value; None where nothing is null.
        first: Where row 0 stands: more than 0 in a slice of a column.
    """

    offsets: Buffer
    data: Buffer
    validity: Buffer | None = None
    first: int = 0


@attrs.frozen
class HeadersColumn:
    """Nullable lists of headers: row `i` has the headers from `offsets[first + i]` to `offsets[first + i + 1]`.

    Attributes:
        offsets: int32 each, one more than there are lists.
        keys: Of all headers, text in UTF-8, never null.
        values: Of all headers.
        validity: A bit for each list, 0 where a record has no headers; None where each has some.
        first: As in `BinaryColumn`.
    """

    offsets: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    validity: Buffer | None = None
    first: int = 0

    @property
    def headers_count(self) -> int:
        """How many headers there are in all lists."""
        return len(memoryview(self.keys.offsets).cast("B")) // _INT32_BYTES - 1 - self.keys.first


@attrs.frozen
class Columns:
    """Rows of records, rising by offset; None for a column that is not wanted.

    Attributes:
        rows: How many.
        keys: The keys.
        values: The values.
        offsets: int64 each.
        timestamps: int64 each, microseconds since the Unix epoch.
        timestamp_types: int32 each.
        headers: The headers.
    """

    rows: int
    keys: BinaryColumn | None = None
    values: BinaryColumn | None = None
    offsets: Buffer | None = None
    timestamps: Buffer | None = None
    timestamp_types: Buffer | None = None
    headers: HeadersColumn | None = None


class ColumnReader:
    """Makes columns of one range of a partition, from bytes that come piece by piece; one owner.

    It is fed pieces of the partition in order: first one that holds `start`, then each from `position` on. Control
    records, records outside the range and, for a read-committed reader, those of aborted transactions are left out; so
    is a record whose offset does not rise.

    Attributes:
        position: The next offset that is missing, at most the range's end: all before it was given out, or is none of
            the reader's business (gaps, control batches, aborted records).
    """

    def __init__(
        self,
        start: int,
        end: int,
        wanted: Column,
        *,
        is_read_committed: bool,
        checks_crc: bool = True,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
        is_compiled: bool = HAS_COMPILED_COLUMNS,
    ) -> None:
        """Read nothing yet.

        Args:
            start: First offset of the range.
            end: The offset after its last.
            wanted: Which columns.
            is_read_committed: Whether records of aborted transactions are left out.
            checks_crc: Whether each batch's checksum is verified.
            rows_max: Rows of one `Columns`, at most.
            bytes_max: Bytes of keys, values and headers of one `Columns`, at most 1 GiB; a row with more stands alone.
            decompressed_bytes_max: Bound of one batch's decompressed size.
            is_compiled: Whether the compiled walk is taken.
        """
        assert 0 <= start <= end, "a range is not negative"
        assert rows_max >= 1, "a row is the least"
        assert 0 <= bytes_max <= 2**30, "Arrow's offsets are int32"
        self.position = start
        self._end = end
        self._is_read_committed = is_read_committed
        self._checks_crc = checks_crc
        self._decompressed_bytes_max = decompressed_bytes_max
        builder = _columns.ColumnBuilder if is_compiled else PythonColumnBuilder
        self._builder: ColumnBuilder = builder(int(wanted), rows_max, bytes_max)

    @property
    def is_done(self) -> bool:
        """Whether nothing is missing any more."""
        return self.position >= self._end

    def feed(self, data: Buffer, aborted: Sequence[tuple[int, int]] = ()) -> Iterator[Columns]:
        """Yield the rows in whole batches of the partition.

        `position` is moved as rows are given out: after the last one, past everything in `data`. An iterator that is
        not used up leaves it after the rows that it gave; feed from there.

        Args:
            data: The batches; the last one may be cut off, and is then no part of it. Not kept.
            aborted: First offset and producer id of each aborted transaction that has records or its marker in `data`,
                rising by offset: what a Fetch response or a segment's transaction index says.

        Raises:
            CorruptRecordsError: While iterating: a batch or record is damaged, or is of an older format than v2; or
                there are bytes, but not one whole batch. Rows of `data` not yet given out are lost with it.
        """
        view = memoryview(data).cast("B")
        self._builder.clear()
        hidden = AbortedTransactions(aborted) if self._is_read_committed else None
        place, following = 0, self.position
        while True:
            place, following = self._run(view, place, following)
            header = _whole_batch(view, place)
            if header is None:
                break
            if header.base_offset >= self._end:
                following = self._end
                break
            if self._checks_crc:
                _check_crc(view, place, header)
            # An abort marker before the position counts too: it ends a transaction that `aborted` may name.
            is_hidden = header.is_control if hidden is None else hidden.hides(view, place, header)
            if not is_hidden and header.next_offset > following:
                following = yield from self._rows(view, place, header, following)
            following = max(following, header.next_offset)
            place += header.length_bytes
        self.position = min(following, self._end)
        if self._builder.rows:
            yield columns_of(self._builder.take())

    def _run(self, view: memoryview, place: int, start: int) -> tuple[int, int]:
        """Collect batches that need no look of their own; return where the next one begins, and the offset there."""
        try:
            return self._builder.add_run(view, place, self._checks_crc, self._is_read_committed, start, self._end)
        except ValueError as exc:
            raise CorruptRecordsError(str(exc)) from exc

    def _rows(self, view: memoryview, place: int, header: BatchHeader, start: int) -> Generator[Columns, None, int]:
        """Collect records of a batch from offset `start` on, yield what is full, return the offset after the last."""
        is_by_broker = bool(header.timestamp_type)
        base_timestamp = header.max_timestamp if is_by_broker else header.base_timestamp
        builder, position, index = self._builder, 0, 0
        try:
            payload: Buffer = view[place + HEADER_SIZE : place + header.length_bytes]
            if header.compression_id and payload:
                payload = decompress(header.compression_id, payload, self._decompressed_bytes_max)
            while True:
                position, index, start = builder.add(
                    payload,
                    position,
                    index,
                    header.records_count,
                    header.base_offset,
                    base_timestamp,
                    is_by_broker,
                    start,
                    self._end,
                )
                if index >= header.records_count:
                    return start
                self.position = start
                yield columns_of(builder.take())
        except (CorruptRecordsError, ValueError) as exc:
            raise CorruptRecordsError(f"batch at offset {header.base_offset}: {exc}", position=place) from exc


def encode_batch(
    columns: Columns,
    rows: Buffer | None = None,
    position: int = 0,
    *,
    timestamp_ms: int,
    bytes_max: int,
    compression: CompressionType = CompressionType.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_compiled: bool = HAS_COMPILED_COLUMNS,
) -> tuple[bytearray, int]:
    """Return one record batch of rows, and the position after the last of them; called again from there for the rest.

    Args:
        columns: Keys, values, timestamps (none is null) and headers; offsets and timestamp types mean nothing here.
            A column that is missing is null in every record. Slices of Arrow's columns are taken as they are (`first`).
        rows: Which rows, int32 each, in the order of the batch; None for all. Rows may repeat.
        position: Which of `rows` is the batch's first; less than there are.
        timestamp_ms: Timestamp of every record, where `columns` has none.
        bytes_max: Size of the batch before compression, at most 1 GiB; a record that is larger goes alone.
        compression: The codec.
        compression_level: Its level; None is the codec's default.
        producer_id: -1 without an idempotent producer, and so the next two.
        producer_epoch: The producer's epoch.
        base_sequence: Sequence of the first record.
        is_transactional: Whether the batch belongs to a transaction.
        is_compiled: Whether the compiled twin writes.

    Raises:
        ValueError: A header has no key, a record is longer than a batch can be (2 GiB), or `rows` or `columns` are not
            what they should be.
    """
    assert 0 <= bytes_max <= 2**30, "a batch's length is an int32"
    encode_rows = _columns.encode_rows if is_compiled else encode_rows_in_python
    batch, following, base_timestamp, max_timestamp = encode_rows(
        columns.rows,
        None if columns.keys is None else _source(columns.keys),
        None if columns.values is None else _source(columns.values),
        columns.timestamps,
        None if columns.headers is None else _headers_source(columns.headers),
        rows,
        position,
        bytes_max,
        timestamp_ms,
    )
    header = BatchHeader(
        0,
        0,
        NO_EPOCH,
        MAGIC,
        0,
        compression | (TRANSACTIONAL_FLAG if is_transactional else 0),
        following - position - 1,
        base_timestamp,
        max(max_timestamp, NO_TIMESTAMP),
        producer_id,
        producer_epoch,
        base_sequence,
        following - position,
    )
    if compression is CompressionType.NONE:
        put_header(batch, header)
    else:
        batch = whole_batch(header, compress(compression, bytes(memoryview(batch)[HEADER_SIZE:]), compression_level))
    return batch, following


def _source(column: BinaryColumn) -> BinarySource:
    return column.offsets, column.data, column.validity, column.first


def _headers_source(column: HeadersColumn) -> HeadersSource:
    return column.offsets, _source(column.keys), _source(column.values), column.validity, column.first


def _whole_batch(view: memoryview, place: int) -> BatchHeader | None:
    """Return the header of the batch at `place`, or None where the run ends, or has no more than a part of one.

    Raises:
        CorruptRecordsError: Nothing that begins so can be read; or a part of a batch is all there is.
    """
    if place + MAGIC_POSITION < len(view):
        base_offset, length = _START.unpack_from(view, place)
        magic = view[place + MAGIC_POSITION]
        where = f"batch at offset {base_offset}"
        if magic != MAGIC:
            known = "an old message format, which is not supported" if magic < MAGIC else "no message format"
            raise CorruptRecordsError(f"{where}: v{magic} is {known}; v{MAGIC} is", position=place)
        if length < HEADER_SIZE - LOG_OVERHEAD:
            raise CorruptRecordsError(f"{where}: {length} bytes are too few", position=place)
        if place + LOG_OVERHEAD + length <= len(view):
            header = read_header(view, place)
            if not 0 <= base_offset <= _BASE_OFFSET_MAX or header.last_offset_delta < 0:
                raise CorruptRecordsError(f"{where}: impossible offsets", position=place)
            return header
    if place == 0 and view:
        # KIP-74: a broker sends the first batch whole, however large: less than a batch would be no progress, ever.
        raise CorruptRecordsError(f"{len(view)} bytes, but not one whole batch")
    return None


def _check_crc(view: memoryview, place: int, header: BatchHeader) -> None:
    """Compare a batch's checksum.

    Raises:
        CorruptRecordsError: It is not the batch's.
    """
    crc = crc32c(view[place + ATTRIBUTES_POSITION : place + header.length_bytes])
    if crc != header.crc:
        raise CorruptRecordsError(
            f"batch at offset {header.base_offset}: its checksum is {crc:#010x}, not {header.crc:#010x}",
            position=place,
        )


def columns_of(taken: TakenColumns) -> Columns:
    """Return what a builder gave as columns."""
    rows, keys, values, offsets, timestamps, types, headers = taken
    lists = headers and HeadersColumn(headers[1], _binary(headers[2]), _binary(headers[3]), headers[0])
    return Columns(rows, keys and _binary(keys), values and _binary(values), offsets, timestamps, types, lists)


def _binary(buffers: BinaryBuffers) -> BinaryColumn:
    validity, offsets, data = buffers
    return BinaryColumn(offsets, data, validity)


def follow_batches(
    run: Buffer, next_offset: int, end_offset: int, *, is_compiled: bool = HAS_COMPILED_COLUMNS
) -> tuple[int, int, bool]:
    """Walk the whole batches at the beginning of a run as long as their offsets rise and stay inside of a range.

    It says nothing of what stopped it: the run's end, a batch that is cut off, one that is none or out of place.

    Args:
        run: Batches.
        next_offset: The first offset that may come.
        end_offset: The offset after the last that may come.
        is_compiled: Whether the compiled twin walks.

    Returns:
        How many bytes these batches are, the offset after the last of them (`next_offset` where there is none), and
        whether offsets are missing before or between them.
    """
    walk = _columns.follow_batches if is_compiled else follow_batches_in_python
    return walk(run, next_offset, end_offset)
