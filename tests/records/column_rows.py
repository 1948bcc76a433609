"""Columns as rows, and batches to read them from: what the tests of columns share."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pytest
from hypothesis import strategies as st

from odradek.kernel.records.batch import TimestampType
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import HAS_COMPILED_COLUMNS, BinaryColumn, Columns, HeadersColumn
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.types import Buffer

needs_compiled = pytest.mark.skipif(not HAS_COMPILED_COLUMNS, reason="the compiled functions were not built")
twins = pytest.mark.parametrize("is_compiled", [False, pytest.param(True, marks=needs_compiled)])

Row = tuple[object, ...]
"""Key, value, offset, timestamp in microseconds, timestamp type, headers: None for what is not wanted."""


def is_valid(validity: Buffer | None, index: int) -> bool:
    return validity is None or bool(bytes(validity)[index >> 3] >> (index & 7) & 1)


def numbers(buffer: Buffer, typecode: str) -> list[int]:
    return array(typecode, bytes(buffer)).tolist()


def values_of(column: BinaryColumn, rows: int) -> list[bytes | None]:
    offsets = numbers(column.offsets, "i")[column.first :]
    data = bytes(column.data)
    return [
        data[offsets[index] : offsets[index + 1]] if is_valid(column.validity, column.first + index) else None
        for index in range(rows)
    ]


def headers_of(column: HeadersColumn, rows: int) -> list[object]:
    offsets = numbers(column.offsets, "i")[column.first :]
    keys, values = values_of(column.keys, column.headers_count), values_of(column.values, column.headers_count)
    pairs = list(zip(keys, values, strict=True))
    return [
        pairs[offsets[index] : offsets[index + 1]] if is_valid(column.validity, column.first + index) else None
        for index in range(rows)
    ]


def rows_of(columns: Columns) -> list[Row]:
    """Return the rows; every buffer must be as long as they are."""
    rows = columns.rows
    absent: list[object] = [None] * rows
    parts: list[list[object]] = [
        list(values_of(columns.keys, rows)) if columns.keys else absent,
        list(values_of(columns.values, rows)) if columns.values else absent,
        list(numbers(columns.offsets, "q")) if columns.offsets is not None else absent,
        list(numbers(columns.timestamps, "q")) if columns.timestamps is not None else absent,
        list(numbers(columns.timestamp_types, "i")) if columns.timestamp_types is not None else absent,
        headers_of(columns.headers, rows) if columns.headers else absent,
    ]
    return list(zip(*parts, strict=True))


def all_rows(several: Iterable[Columns]) -> list[Row]:
    return [row for columns in several for row in rows_of(columns)]


Run = tuple[bytes, list[tuple[int, int]], int]
"""Batches, the aborted transactions in them, the offset after the last."""
Drawn = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

BYTES = st.none() | st.binary(max_size=8) | st.integers(60, 200).map(lambda size: b"x" * size)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h", "ключ", "\udcff"]), BYTES), max_size=3).map(tuple)
RECORD = st.tuples(st.sampled_from([0, 0, 0, 1, 70]), st.integers(-70, 2**40), BYTES, BYTES, HEADERS)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw batches that follow each other."""
    following = draw(st.sampled_from([0, 5, 2**33]))
    parts: list[bytes] = []
    aborted: list[tuple[int, int]] = []
    began: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 5))):
        following += draw(st.sampled_from([0, 0, 1, 300]))
        ends_one = draw(st.booleans())
        if began and ends_one:
            producer_id = draw(st.sampled_from(sorted(began)))
            kind = draw(st.sampled_from([ControlRecordType.ABORT, ControlRecordType.COMMIT]))
            first = began.pop(producer_id)
            if kind is ControlRecordType.ABORT:
                aborted.append((first, producer_id))
            parts.append(marker(following, producer_id, kind))
            following += 1
            continue
        is_transactional = draw(st.booleans())
        builder = BatchBuilder(
            base_offset=following,
            compression=draw(st.sampled_from(CompressionType)),
            timestamp_type=draw(st.sampled_from(TimestampType)),
            producer_id=draw(st.integers(0, 2)) if is_transactional else -1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=is_transactional,
            delete_horizon_ms=draw(st.sampled_from([None, None, 1_000])),
        )
        if is_transactional:
            began.setdefault(builder.producer_id, following)
        drawn: list[Drawn] = draw(st.lists(RECORD, max_size=6))
        offset = following
        for gap, timestamp, key, value, headers in drawn:
            offset = builder.append(key, value, timestamp=timestamp, headers=headers, offset=offset + gap) + 1
        last = max(offset, following + 1) + draw(st.sampled_from([0, 0, 2])) - 1
        parts.append(bytes(builder.build(last_offset=last)))
        following = last + 1
    # What is still open aborts after the run: the broker names it when it answers for a stable part only.
    return b"".join(parts), sorted(aborted), following


def marker(offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    return bytes(
        build_control_batch(
            [EndTransactionMarker(kind, 0)],
            timestamp=7,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
        )
    )
