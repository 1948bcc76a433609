"""Columns as Arrow's record batches, and back: what Spark compares, and what is written."""

from __future__ import annotations

import datetime

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import ALL_COLUMNS, Column, ColumnReader, Columns, encode_batch
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.record import Record
from odradek.spark_plugin.arrow import HEADERS_TYPE, encodable, record_batch, schema_of

NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
NOW = 1_700_000_000_000
UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class Names:
    names: tuple[str, ...]


BYTES = st.none() | st.binary(max_size=5)
RECORDS = st.lists(
    st.tuples(
        BYTES,
        BYTES,
        st.integers(-1, 2**40),
        st.lists(st.tuples(st.sampled_from(["a", "ключ", ""]), BYTES), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=12,
)
Drawn = list[tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]]


def columns_of(records: Drawn, wanted: Column = ALL_COLUMNS) -> Columns:
    builder = BatchBuilder(base_offset=5)
    for key, value, timestamp, headers in records:
        builder.append(key, value, timestamp=timestamp, headers=headers)
    (columns,) = ColumnReader(0, 100, wanted, is_read_committed=False).feed(builder.build())
    return columns


def encoded(batch: pa.RecordBatch, **options: int) -> list[Record]:
    """Return what the records are that a batch of Arrow's is written as."""
    columns = encodable(batch, now_ms=NOW)
    written, _ = encode_batch(columns, timestamp_ms=NOW, bytes_max=10**6, **options)  # type: ignore[arg-type]  # numbers
    return list(read_batch(written, 0, read_header(written)))


@given(records=RECORDS)
@settings(max_examples=50)
def test_rows_are_what_was_appended(records: Drawn) -> None:
    batch = record_batch(columns_of(records), "orders", 3, Names(NAMES))
    batch.validate(full=True)
    expected = [
        {
            "key": key,
            "value": value,
            "topic": "orders",
            "partition": 3,
            "offset": 5 + number,
            "timestamp": EPOCH + datetime.timedelta(milliseconds=timestamp),
            "timestampType": 0,
            "headers": [{"key": name, "value": content} for name, content in headers] or None,
        }
        for number, (key, value, timestamp, headers) in enumerate(records)
    ]

    assert expected == batch.to_pylist()


def test_the_schema_is_what_pyspark_makes_of_it() -> None:
    types = pytest.importorskip("pyspark.sql.types", reason="the extra `spark` is not installed")
    from pyspark.sql.pandas.types import to_arrow_schema

    header = types.StructType(
        [types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())]
    )
    of_spark = {
        "key": types.BinaryType(),
        "value": types.BinaryType(),
        "topic": types.StringType(),
        "partition": types.IntegerType(),
        "offset": types.LongType(),
        "timestamp": types.TimestampType(),
        "timestampType": types.IntegerType(),
        "headers": types.ArrayType(header),
    }
    fields = [types.StructField(name, of_spark[name]) for name in NAMES]
    batch = record_batch(columns_of([(b"k", b"v", 0, ())]), "orders", 3, Names(NAMES))

    assert to_arrow_schema(types.StructType(fields), timezone="UTC").equals(batch.schema, check_metadata=True)


def test_columns_come_in_the_users_order_and_only_those() -> None:
    columns = columns_of([(b"k", b"v", 0, ())], Column.OFFSET | Column.VALUE)
    batch = record_batch(columns, "t", 0, Names(("value", "topic", "offset")))

    assert batch.to_pylist() == [{"value": b"v", "topic": "t", "offset": 5}]
    assert batch.schema is not None
    assert batch.schema.names == ["value", "topic", "offset"]


def test_constants_are_as_long_as_the_rows_however_many() -> None:
    for rows in (1, 1024, 1025, 5000):
        batch = record_batch(Columns(rows), "orders", 7, Names(("partition", "topic")))
        batch.validate(full=True)
        assert set(batch.column(0).to_pylist()) == {7}
        assert batch.num_rows == rows


@given(records=RECORDS, start=st.integers(0, 5))
@settings(max_examples=50)
def test_what_is_written_of_a_slice_is_what_it_holds(records: Drawn, start: int) -> None:
    start = min(start, len(records) - 1)
    batch = record_batch(columns_of(records), "orders", 3, Names(NAMES)).slice(start)
    expected = [(key, value, timestamp, headers) for key, value, timestamp, headers in records[start:]]

    assert expected == [(each.key, each.value, each.timestamp, each.headers) for each in encoded(batch)]


def a_batch(**arrays: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.binary(),
        pa.string(),
        pa.large_binary(),
        pa.large_string(),
        pa.binary_view(),
        pa.string_view(),
        pa.binary(3),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_every_layout_of_bytes_and_text_can_be_written(arrow_type: pa.DataType) -> None:
    of_text = pa.types.is_dictionary(arrow_type) or str(arrow_type) in {"string", "large_string", "string_view"}
    values = ["abc", None, "abc"] if of_text else [b"abc", None, b"abc"]
    batch = a_batch(value=pa.array(["zzz", *values] if of_text else [b"zzz", *values], arrow_type)).slice(1)

    assert [record.value for record in encoded(batch)] == [b"abc", None, b"abc"]


def test_columns_of_nulls_alone_and_missing_ones_are_null() -> None:
    batch = a_batch(value=pa.nulls(2), headers=pa.nulls(2), timestamp=pa.nulls(2), other=pa.array([1, 2]))

    assert {tuple(record)[1:] for record in encoded(batch)} == {(NOW, None, None, ())}


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_of_every_unit_are_milliseconds_and_null_is_now(unit: str) -> None:
    batch = a_batch(timestamp=pa.array([0, 7, None], pa.timestamp(unit, "UTC"))).slice(1)
    milliseconds = {"s": 7000, "ms": 7, "us": 0}[unit]

    assert [record.timestamp for record in encoded(batch)] == [milliseconds, NOW]


def test_headers_of_large_types_are_cast() -> None:
    large = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    batch = a_batch(headers=pa.array([[], None, [{"key": "a", "value": None}]], large))

    assert [record.headers for record in encoded(batch)] == [(), (), (("a", None),)]


def test_a_header_that_is_null_is_an_error_unless_no_row_has_it() -> None:
    headers = pa.array([[None], [{"key": "a", "value": b"1"}]], HEADERS_TYPE)
    with pytest.raises(ValueError, match="a header that is null"):
        encodable(a_batch(headers=headers), now_ms=NOW)

    assert [record.headers for record in encoded(a_batch(headers=headers).slice(1))] == [(("a", b"1"),)]


def test_a_column_that_cannot_be_bytes_is_told_with_its_type() -> None:
    with pytest.raises(ValueError, match=r"value double"):
        encodable(a_batch(value=pa.array([1.5])), now_ms=NOW)


def test_schemas_are_made_once() -> None:
    assert schema_of(("key", "offset")) is schema_of(("key", "offset"))
