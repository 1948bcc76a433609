"""The compiled columns and their Python twin: byte for byte the same, on what is sound and on what is not."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.kernel.records.batch import HEADER_SIZE, CorruptRecordsError, iterate_batches, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.column_walk import PythonColumnBuilder, encode_rows_in_python
from odradek.kernel.records.columns import ALL_COLUMNS, HAS_COMPILED_COLUMNS, Column, ColumnReader, Columns
from odradek.kernel.records.record import encode_varint

from .column_rows import Run, needs_compiled, numbers, runs

_columns: Any = import_module("odradek.kernel.records._columns") if HAS_COMPILED_COLUMNS else None

pytestmark = needs_compiled

WANTED = st.integers(0, ALL_COLUMNS).map(Column)
MUTATIONS = 40
INTERESTING = (
    b"\0",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 4 + b"\x0f",
    b"\xff" * 9 + b"\x01",
    b"\x80" * 11,
)


def read(data: bytes, wanted: Column, rows_max: int, bytes_max: int, *, is_compiled: bool) -> list[Columns] | None:
    """Return all that is read; None where it is refused."""
    options: dict[str, Any] = {"rows_max": rows_max, "bytes_max": bytes_max, "is_compiled": is_compiled}
    reader = ColumnReader(0, 2**40, wanted, is_read_committed=False, checks_crc=False, **options)
    try:
        return list(reader.feed(data))
    except CorruptRecordsError:
        return None


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return other bytes in a place or two, some more or some fewer, none of them in a batch's length."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 2)):
        position = rng.randrange(HEADER_SIZE - 4, len(changed)) if len(changed) > HEADER_SIZE else HEADER_SIZE - 1
        new = rng.choice(INTERESTING) if rng.random() < 0.7 else rng.randbytes(1)
        changed[position : position + rng.choice((1, len(new)))] = new
    return with_length(changed)


def with_length(batch: bytearray) -> bytes:
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    return bytes(batch)


@settings(max_examples=50)
@given(run=runs(), wanted=WANTED, rows_max=st.integers(1, 9), bytes_max=st.sampled_from([0, 100, 10**6]))
def test_twins_make_the_same_buffers(run: Run, wanted: Column, rows_max: int, bytes_max: int) -> None:
    expected = read(run[0], wanted, rows_max, bytes_max, is_compiled=False)

    assert expected is not None
    assert expected == read(run[0], wanted, rows_max, bytes_max, is_compiled=True)


RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1) | st.integers(0, 200),
        st.none() | st.binary(max_size=3) | st.integers(60, 70).map(bytes),
        st.none() | st.binary(max_size=3),
        st.lists(st.tuples(st.sampled_from(["h", "ключ", "\udc80"]), st.none() | st.binary(max_size=2)), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(records=RECORDS, seed=st.integers(0, 2**32), wanted=WANTED | st.just(ALL_COLUMNS), rows_max=st.integers(1, 3))
def test_of_damaged_batches_twins_read_the_same_or_neither_does(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    seed: int,
    wanted: Column,
    rows_max: int,
) -> None:
    builder = BatchBuilder()
    for timestamp, key, value, headers in records:
        builder.append(key, value, timestamp=timestamp & 2**63 - 1, headers=headers)
    sound = bytes(builder.build())
    rng = random.Random(seed)
    for _ in range(MUTATIONS):
        data = mutate(sound, rng)
        assert read(data, wanted, rows_max, 10, is_compiled=False) == read(data, wanted, rows_max, 10, is_compiled=True)


@pytest.mark.parametrize("wanted", [ALL_COLUMNS, Column.VALUE, Column.OFFSET, Column(0)], ids=str)
def test_twins_refuse_every_truncation(wanted: Column) -> None:
    builder = BatchBuilder()
    builder.append(b"key", b"v" * 70, timestamp=1, headers=[("h", b"x"), ("i", None)])
    builder.append(None, b"", timestamp=300)
    sound = builder.build()
    for size in range(HEADER_SIZE, len(sound)):
        data = with_length(sound[:size])
        assert read(data, wanted, 9, 99, is_compiled=False) is None
        assert read(data, wanted, 9, 99, is_compiled=True) is None


@given(payload=st.binary(max_size=40), count=st.integers(-1, 3), wanted=WANTED, index=st.integers(0, 2))
@example(payload=encode_varint(2**31 - 1) + b"\0\0\0\1\1\0", count=1, wanted=ALL_COLUMNS, index=0)
@example(payload=b"\x0c\0\0\0\1\1\0", count=1, wanted=ALL_COLUMNS, index=0)
def test_twins_agree_on_any_bytes(payload: bytes, count: int, wanted: Column, index: int) -> None:
    index = min(index, max(count, 0))

    def outcome(builder: Any) -> object:
        try:
            moved = builder.add(payload, 0, index, count, 5, 7, 0, 0, 100)
        except (ValueError, CorruptRecordsError):
            return None
        return moved, builder.take()

    assert outcome(PythonColumnBuilder(wanted, 2, 100)) == outcome(_columns.ColumnBuilder(wanted, 2, 100))


def test_a_builder_begins_anew_after_it_gave_or_forgot_what_it_had() -> None:
    builder = BatchBuilder()
    for number in range(20):
        builder.append(None if number % 3 else b"k", b"v", timestamp=number, headers=[("h", None)] * (number % 2))
    payload = bytes(builder.build())[HEADER_SIZE:]
    compiled, python = _columns.ColumnBuilder(ALL_COLUMNS, 50, 10**6), PythonColumnBuilder(ALL_COLUMNS, 50, 10**6)
    for add_times in (1, 0, 2, 1):
        for each in (compiled, python):
            each.add(payload, 0, 0, 20, 0, 0, 0, 0, 99)
            each.clear()
            for turn in range(add_times):
                each.add(payload, 0, 0, 20, 100 * turn, 0, 1, 0, 999)
        assert compiled.rows == python.rows == 20 * add_times
        assert python.take() == compiled.take()


def test_a_compiled_builder_refuses_a_position_outside_and_arguments_that_are_none() -> None:
    builder = _columns.ColumnBuilder(ALL_COLUMNS, 50, 100)
    for position, base_offset in ((-1, 0), (1, 0), (0, -1), (0, 2**63 - 1)):
        with pytest.raises(AssertionError):
            builder.add(b"", position, 0, 0, base_offset, 0, 0, 0, 1)
    with pytest.raises(TypeError):
        builder.add(b"")
    with pytest.raises(OverflowError):
        builder.add(b"", 0, 0, 0, 2**64, 0, 0, 0, 1)
    with pytest.raises(TypeError):
        _columns.ColumnBuilder(wanted=1)
    with pytest.raises(TypeError):
        _columns.encode_rows(1)


@given(data=st.binary(max_size=70))
def test_the_checksum_of_any_processor_is_the_librarys(data: bytes) -> None:
    assert _columns.checksums(data) == (crc32c(data), crc32c(data))


@given(run=runs(), rows_max=st.integers(1, 9), bytes_max=st.sampled_from([0, 100, 10**6]), start=st.integers(0, 9))
@settings(max_examples=50)
def test_a_run_stops_at_a_batch_that_python_is_to_look_at(run: Run, rows_max: int, bytes_max: int, start: int) -> None:
    data, _, following = run
    builder = _columns.ColumnBuilder(ALL_COLUMNS, rows_max, bytes_max)
    place, reached = builder.add_run(data, 0, True, True, start, following)
    rows = builder.rows
    offsets = numbers(builder.take()[3] or b"", "q")

    assert len(offsets) == rows <= rows_max
    assert all(start <= offset < reached for offset in offsets)
    assert place in {*(each for each, _ in iterate_batches(data)), len(data)}
    damaged = bytearray(data)
    damaged[17] ^= 1
    assert builder.add_run(damaged, 0, True, True, start, following) == (0, start)
    with pytest.raises(AssertionError):
        builder.add_run(data, len(data) + 1, True, True, 0, 1)
    with pytest.raises(TypeError):
        builder.add_run(data)


# ------------------------------------------------------------------------------------------------------------ encoding

INT32S = st.lists(st.sampled_from([0, 0, 1, 2, 3, 5, 8, -1, 2**31 - 1]), max_size=6).map(
    lambda numbers: b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)
)
SORTED = st.lists(st.integers(0, 9), min_size=2, max_size=9).map(
    lambda numbers: b"".join(number.to_bytes(4, "little") for number in sorted(numbers))
)
BITS = st.none() | st.binary(max_size=2)
COLUMN = st.none() | st.tuples(SORTED | INT32S, st.binary(max_size=9), BITS, st.integers(0, 2))
REAL = st.tuples(SORTED, st.just(b"123456789"), st.none(), st.just(0))


@given(
    rows_count=st.integers(0, 8),
    keys=COLUMN,
    values=COLUMN,
    timestamps=st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=8),
    headers=st.none() | st.tuples(SORTED | INT32S, COLUMN | REAL, COLUMN | REAL, BITS, st.integers(0, 1)),
    rows=st.none() | INT32S,
    position=st.integers(0, 3),
    bytes_max=st.sampled_from([0, HEADER_SIZE + 30, 10**6]),
)
@settings(max_examples=200)
def test_twins_write_the_same_bytes_or_neither_does(
    rows_count: int,
    keys: Any,
    values: Any,
    timestamps: list[int] | None,
    headers: Any,
    rows: bytes | None,
    position: int,
    bytes_max: int,
) -> None:
    times = None if timestamps is None else b"".join(each.to_bytes(8, "little", signed=True) for each in timestamps)
    if headers is not None and (headers[1] is None or headers[2] is None):
        headers = None

    def outcome(encode: Any) -> object:
        try:
            return encode(rows_count, keys, values, times, headers, rows, position, bytes_max, 1_000)
        except ValueError:
            return None

    assert outcome(encode_rows_in_python) == outcome(_columns.encode_rows)


def test_a_batch_grows_as_far_as_its_rows_ask() -> None:
    data = bytes(range(256)) * 1000
    offsets = b"".join((number * 1000).to_bytes(4, "little") for number in range(257))
    arguments: Any = (256, None, (offsets, data, None, 0), None, None, None, 0, 10**6, 5)
    expected = encode_rows_in_python(*arguments)

    assert expected == _columns.encode_rows(*arguments)
    assert expected[1] == 256
    assert numbers(offsets, "i")[256] == len(data)
    assert read_header(expected[0]).records_count == 0
