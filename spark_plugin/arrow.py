"""Pure core: the kernel's columns as record batches of Arrow's, and Arrow's as what the kernel encodes.

Buffers are handed over, not copied, in both directions. Types, names, order and nullability are those that PySpark
makes of the source's schema: it compares them with the first batch of a task, and trusts the others.

*Source:* Arrow columnar format; `pyspark.sql.pandas.types.to_arrow_schema`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from odradek.kernel.records.columns import BinaryColumn, Columns, HeadersColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.types import Buffer

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_TYPE: Final = pa.timestamp("us", "UTC")

_CONSTANT_ROWS_MIN: Final = 1024
_CONSTANTS_KEPT: Final = 64
_SCHEMAS_KEPT: Final = 16
_INT64_BYTES: Final = 8


class Projected(Protocol):
    """What is needed of a `schema.Projection`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns, in the user's order."""
        ...


def record_batch(columns: Columns, topic: str, partition: int, projection: Projected) -> pa.RecordBatch:
    """Return rows as Spark takes them.

    Args:
        columns: The rows, with every column that the projection needs.
        topic: Where they come from.
        partition: Likewise.
        projection: Which columns, in which order.
    """
    names = tuple(projection.names)
    arrays = [_MAKERS[name](columns, topic, partition) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(names))


@lru_cache(maxsize=_SCHEMAS_KEPT)
def schema_of(names: tuple[str, ...]) -> pa.Schema:
    """Return the schema of columns with these names, every one nullable, as the JVM's connector has them."""
    return pa.schema([(name, _TYPES[name]) for name in names])


def _binary(column: BinaryColumn | None, rows: int, arrow_type: pa.DataType) -> pa.Array:
    assert column is not None, "the reader was asked for the column"
    buffers = [_py_buffer(column.validity), _py_buffer(column.offsets), _py_buffer(column.data)]
    return pa.Array.from_buffers(arrow_type, rows, buffers, null_count=_null_count(column.validity))


def _numbers(buffer: Buffer | None, rows: int, arrow_type: pa.DataType) -> pa.Array:
    assert buffer is not None, "the reader was asked for the column"
    return pa.Array.from_buffers(arrow_type, rows, [None, pa.py_buffer(buffer)], null_count=0)


def _headers(column: HeadersColumn | None, rows: int) -> pa.Array:
    assert column is not None, "the reader was asked for the column"
    count = column.headers_count
    children = [_binary(column.keys, count, pa.string()), _binary(column.values, count, pa.binary())]
    structs = pa.Array.from_buffers(HEADER_TYPE, count, [None], null_count=0, children=children)
    buffers = [_py_buffer(column.validity), _py_buffer(column.offsets)]
    null_count = _null_count(column.validity)
    return pa.Array.from_buffers(HEADERS_TYPE, rows, buffers, null_count=null_count, children=[structs])


def _null_count(validity: Buffer | None) -> int:
    """Return 0 where nothing is null; -1 leaves the counting to Arrow, for whoever asks."""
    return 0 if validity is None else -1


def _py_buffer(buffer: Buffer | None) -> pa.Buffer | None:
    return None if buffer is None else pa.py_buffer(buffer)


def _constant(value: str | int, rows: int, arrow_type: pa.DataType) -> pa.Array:
    """Return a column that has the same value in each row: a slice of one that is kept."""
    size = _CONSTANT_ROWS_MIN
    while size < rows:
        size *= 2
    return _repeated(value, size, arrow_type).slice(0, rows)


@lru_cache(maxsize=_CONSTANTS_KEPT)
def _repeated(value: str | int, rows: int, arrow_type: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, arrow_type), rows)


_TYPES: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP_TYPE,
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}
_MAKERS: Final[dict[str, Callable[[Columns, str, int], pa.Array]]] = {
    "key": lambda columns, topic, partition: _binary(columns.keys, columns.rows, pa.binary()),
    "value": lambda columns, topic, partition: _binary(columns.values, columns.rows, pa.binary()),
    "topic": lambda columns, topic, partition: _constant(topic, columns.rows, pa.string()),
    "partition": lambda columns, topic, partition: _constant(partition, columns.rows, pa.int32()),
    "offset": lambda columns, topic, partition: _numbers(columns.offsets, columns.rows, pa.int64()),
    "timestamp": lambda columns, topic, partition: _numbers(columns.timestamps, columns.rows, TIMESTAMP_TYPE),
    "timestampType": lambda columns, topic, partition: _numbers(columns.timestamp_types, columns.rows, pa.int32()),
    "headers": lambda columns, topic, partition: _headers(columns.headers, columns.rows),
}


# ------------------------------------------------------------------------------------------------------------ encoding


def encodable(batch: pa.RecordBatch, *, now_ms: int) -> Columns:
    """Return the columns `key`, `value`, `headers` and `timestamp` of a batch as `columns.encode_batch` takes them.

    A column that is missing stays so. Other layouts of bytes and text than the plain ones (large, views, dictionaries)
    are cast, and so are other units of time; buffers of the plain ones are shared with the batch.

    Args:
        batch: Rows to be written; a slice or not.
        now_ms: Timestamp of rows whose `timestamp` is null.

    Raises:
        ValueError: A column cannot be cast, or a row has a header that is null.
    """
    names = batch.schema.names
    wanted: dict[str, Any] = {name: batch.column(name) for name in _SOURCES if name in names}
    try:
        return Columns(
            batch.num_rows,
            _binary_source(wanted.get("key")),
            _binary_source(wanted.get("value")),
            timestamps=_timestamps_source(wanted.get("timestamp"), now_ms),
            headers=_headers_source(wanted.get("headers")),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        types = ", ".join(f"{name} {array.type}" for name, array in wanted.items())
        raise ValueError(f"columns that cannot be written ({types}): {exc}") from exc


_SOURCES: Final = ("key", "value", "headers", "timestamp")


# Arrays of Arrow's have no types; None stands for a column that is not there.


def _binary_source(array: Any) -> BinaryColumn | None:
    if array is None or pa.types.is_null(array.type):
        return None
    if not pa.types.is_binary(array.type) and not pa.types.is_string(array.type):
        array = array.cast(pa.binary())
    validity, offsets, data = array.buffers()
    return BinaryColumn(_view(offsets), _view(data), None if validity is None else memoryview(validity), array.offset)


def _timestamps_source(array: Any, now_ms: int) -> Buffer | None:
    if array is None or pa.types.is_null(array.type):
        return None
    array = array.cast(pa.timestamp("us", array.type.tz))
    if array.null_count:
        from pyarrow.compute import fill_null  # 0.1 s, which who reads does without

        array = fill_null(array, pa.scalar(now_ms * 1000, array.type))
    place = array.offset * _INT64_BYTES
    return _view(array.buffers()[1])[place : place + len(array) * _INT64_BYTES]


def _headers_source(array: Any) -> HeadersColumn | None:
    if array is None or pa.types.is_null(array.type):
        return None
    if array.type != HEADERS_TYPE:
        array = array.cast(HEADERS_TYPE)
    if array.values.null_count and array.flatten().null_count:
        raise ValueError("a row has a header that is null: each has a key, and a value that may be null")
    keys, values = _binary_source(array.values.field(0)), _binary_source(array.values.field(1))
    assert keys is not None, "the type says so"
    assert values is not None, "the type says so"
    validity, offsets = array.buffers()[:2]
    return HeadersColumn(_view(offsets), keys, values, None if validity is None else memoryview(validity), array.offset)


def _view(buffer: pa.Buffer | None) -> memoryview:
    """Return a buffer's bytes; Arrow may leave the buffers of an empty column out."""
    return memoryview(b"" if buffer is None else buffer).cast("B")
