"""Columns written as batches: what the reader of records finds in them, and what a broker's validation says."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.records.batch import HEADER_SIZE, is_crc_valid, read_header
from odradek.kernel.records.columns import ALL_COLUMNS, BinaryColumn, ColumnReader, Columns, HeadersColumn, encode_batch
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.validation import ValidationRules, validate_batch

from .column_rows import Run, rows_of, runs, twins

NOW = 1_700_000_000_000


def binary(rows: Sequence[bytes | None], first: int = 0) -> BinaryColumn:
    """Return a column; what stands before its first row is none of its rows."""
    values = [*[b"before"] * first, *rows]
    offsets = array("i", [3])
    bits = bytearray(len(values) // 8 + 1)
    for index, value in enumerate(values):
        offsets.append(offsets[-1] + len(value or b""))
        bits[index >> 3] |= (value is not None) << (index & 7)
    data = b"xyz" + b"".join(value or b"" for value in values)
    return BinaryColumn(offsets.tobytes(), data, bytes(bits) if None in values else None, first)


def times(*milliseconds: int) -> bytes:
    return array("q", [each * 1000 for each in milliseconds]).tobytes()


def numbers(*rows: int) -> bytes:
    return array("i", rows).tobytes()


@twins
@settings(max_examples=50)
@given(
    run=runs(),
    compression=st.sampled_from(CompressionType),
    bytes_max=st.sampled_from([0, 200, 10**6]),
    is_transactional=st.booleans(),
    data=st.data(),
)
def test_what_was_read_as_columns_is_written_and_read_again(
    is_compiled: bool,
    run: Run,
    compression: CompressionType,
    bytes_max: int,
    is_transactional: bool,
    data: st.DataObject,
) -> None:
    columns = next(ColumnReader(0, 2**40, ALL_COLUMNS, is_read_committed=False).feed(run[0]), None)
    if columns is None:
        return
    chosen = data.draw(st.none() | st.lists(st.integers(0, columns.rows - 1), min_size=1))
    rows = rows_of(columns)
    expected = [
        row[:2] + row[3:4] + row[5:] for row in (rows if chosen is None else [rows[number] for number in chosen])
    ]
    found = []
    position = 0
    while position < len(expected):
        batch, following = encode_batch(
            columns,
            None if chosen is None else numbers(*chosen),
            position,
            timestamp_ms=NOW,
            is_compiled=is_compiled,
            bytes_max=bytes_max,
            compression=compression,
            producer_id=7,
            producer_epoch=2,
            base_sequence=5,
            is_transactional=is_transactional,
        )
        header = read_header(batch)
        assert is_crc_valid(batch, 0, header)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
        assert (header.is_transactional, header.compression_id) == (is_transactional, compression)
        assert header.records_count == header.last_offset_delta + 1 == following - position
        records = list(read_batch(batch, 0, header))
        assert header.max_timestamp == max(-1, *(record.timestamp for record in records))
        found += [
            (
                each.key,
                each.value,
                each.timestamp * 1000,
                [(name.encode(), value) for name, value in each.headers] or None,
            )
            for each in records
        ]
        position = following

    assert expected == found


@twins
def test_slices_of_columns_are_taken_as_they_are_and_rows_in_any_order(is_compiled: bool) -> None:
    headers = HeadersColumn(
        numbers(9, 1, 3, 3), binary([b"a", b"b", b"c"], 1), binary([b"1", None, b"3"], 2), b"\x06", first=1
    )
    columns = Columns(2, binary([b"k", None], 9), binary([None, b"v"], 3), timestamps=times(1, 2), headers=headers)
    batch, position = encode_batch(
        columns, numbers(1, 0, 1), timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=10_000
    )
    records = [tuple(record)[1:] for record in read_batch(batch, 0, read_header(batch))]

    assert position == 3
    assert records == [
        (2, None, b"v", ()),
        (1, b"k", None, (("b", None), ("c", b"3"))),
        (2, None, b"v", ()),
    ]


@twins
def test_columns_that_are_missing_are_null_and_the_time_is_the_callers(is_compiled: bool) -> None:
    batch, _ = encode_batch(Columns(2), timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=0)
    (record,) = read_batch(batch, 0, read_header(batch))

    assert (record.timestamp, record.key, record.value, record.headers) == (NOW, None, None, ())


@twins
@pytest.mark.parametrize("compression", CompressionType)
def test_a_brokers_validation_takes_the_batch(is_compiled: bool, compression: CompressionType) -> None:
    values = binary([b"v" * 500, None, b""])
    columns = Columns(3, binary([b"a", b"b", b"c"]), values, timestamps=times(NOW, NOW - 9, NOW))
    batch, _ = encode_batch(
        columns, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=10_000, compression=compression
    )
    rules = ValidationRules(walks_records=True)
    answer = validate_batch(batch, 0, len(batch), rules, now_ms=NOW, produce_version=9)

    assert answer is not None


@twins
def test_rows_before_1970_keep_their_milliseconds(is_compiled: bool) -> None:
    columns = Columns(1, timestamps=array("q", [-1]).tobytes())
    batch, _ = encode_batch(columns, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=0)

    assert [record.timestamp for record in read_batch(batch, 0, read_header(batch))] == [-1]
    assert read_header(batch).max_timestamp == -1


@twins
def test_a_header_without_a_key_is_an_error_with_its_row(is_compiled: bool) -> None:
    columns = Columns(2, headers=HeadersColumn(numbers(0, 0, 1), binary([None]), binary([b"v"])))
    with pytest.raises(ValueError, match="row 1 has a header without a key"):
        encode_batch(columns, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=10_000)


SHORT = BinaryColumn(numbers(0, 1), b"a")


@twins
@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (Columns(2, SHORT), None),
        (Columns(2, values=SHORT), None),
        (Columns(1, BinaryColumn(numbers(0, 2), b"a")), None),
        (Columns(1, BinaryColumn(numbers(-1, 1), b"a")), None),
        (Columns(1, BinaryColumn(numbers(1, 0), b"a")), None),
        (Columns(9, BinaryColumn(bytes(40), b"", b"\xff")), None),
        (Columns(2, timestamps=times(1)), None),
        (Columns(1, headers=HeadersColumn(numbers(0, 2), SHORT, SHORT)), None),
        (Columns(1, headers=HeadersColumn(numbers(-1, 1), SHORT, SHORT)), None),
        (Columns(1, SHORT), numbers(1)),
        (Columns(1, SHORT), numbers(-1)),
        (Columns(1, SHORT), b""),
        (Columns(0), None),
    ],
)
def test_buffers_that_do_not_belong_together_are_refused(
    is_compiled: bool, columns: Columns, rows: bytes | None
) -> None:
    with pytest.raises(ValueError, match=r"short|fit|row|large"):
        encode_batch(columns, rows, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=10_000)


@twins
def test_the_first_record_goes_however_large_and_the_next_waits(is_compiled: bool) -> None:
    columns = Columns(3, values=binary([b"v" * 1000, b"w" * 1000, b"x"]))
    batch, position = encode_batch(columns, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=HEADER_SIZE)
    assert position == 1
    assert len(batch) > 1000
    batch, position = encode_batch(columns, None, 1, timestamp_ms=NOW, is_compiled=is_compiled, bytes_max=1100)

    assert position == 3
