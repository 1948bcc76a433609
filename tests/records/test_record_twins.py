"""Records as objects: compiled functions and their Python twins do the same, with what is sound and what is not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.record import (
    HAS_COMPILED_RECORDS,
    Record,
    decode_records_compiled,
    decode_records_in_python,
    encode_record_compiled,
    encode_record_in_python,
)

pytestmark = pytest.mark.skipif(not HAS_COMPILED_RECORDS, reason="the record kernel was not compiled")

BYTES = st.none() | st.binary(max_size=4) | st.integers(60, 70).map(bytes)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h", "ключ", "\udcff"]), BYTES), max_size=3)
INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)
RECORD = st.tuples(INT64, st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5), BYTES, BYTES, HEADERS)
Drawn = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
Decode = Callable[..., Iterator[Record]]


def outcome(decode: Decode, payload: bytes, count: int, **options: Any) -> tuple[list[Record], bool]:
    """Return what is decoded before an error, and whether there was one."""
    found: list[Record] = []
    try:
        found.extend(decode(payload, count, **options))
    except CorruptRecordsError:
        return found, True
    return found, False


@given(drawn=RECORD)
def test_twins_write_the_same_record(drawn: Drawn) -> None:
    timestamp, offset, key, value, headers = drawn
    views = (key if key is None else memoryview(key), value if value is None else bytearray(value))
    expected = encode_record_in_python(timestamp, offset, key, value, headers)

    assert expected == encode_record_compiled(timestamp, offset, key, value, headers)
    assert expected == encode_record_compiled(timestamp, offset, *views, headers)


@given(
    drawn=st.lists(RECORD, max_size=5),
    count=st.none() | st.integers(-1, 6),
    base_offset=INT64,
    base_timestamp=INT64,
    log_append_time=st.none() | INT64,
    tail=st.sampled_from([b"", b"", b"\0"]),
)
def test_twins_read_the_same_records(drawn: list[Drawn], count: int | None, tail: bytes, **options: int | None) -> None:
    payload = b"".join(encode_record_in_python(*each) for each in drawn) + tail
    wanted = len(drawn) if count is None else count
    expected = outcome(decode_records_in_python, payload, wanted, **options)

    assert expected == outcome(decode_records_compiled, payload, wanted, **options)
    assert all(type(each) is Record for each in expected[0])


@given(drawn=st.lists(RECORD, min_size=1, max_size=3), seed=st.integers(0, 2**32))
def test_of_damaged_records_twins_read_as_many(drawn: list[Drawn], seed: int) -> None:
    sound = b"".join(encode_record_in_python(*each) for each in drawn)
    rng = random.Random(seed)
    for _ in range(20):
        damaged = bytearray(sound)
        at = rng.randrange(len(damaged))
        damaged[at : at + rng.choice((0, 1, 1, 1))] = rng.choice((b"\0", b"\x80", b"\xff", rng.randbytes(1), b""))
        expected = outcome(decode_records_in_python, bytes(damaged), len(drawn))
        assert expected == outcome(decode_records_compiled, bytes(damaged), len(drawn))


def test_more_records_than_are_made_at_once_come_in_order() -> None:
    payload = b"".join(encode_record_in_python(number, number, None, b"v") for number in range(1_000))
    found = list(decode_records_compiled(payload, 1_000, base_offset=5))

    assert [each.offset for each in found] == list(range(5, 1_005))
    found, failed = outcome(decode_records_compiled, payload + b"\x7f", 1_001)
    assert (len(found), failed) == (1_000, True)


def test_a_number_of_headers_that_cannot_be_costs_no_memory() -> None:
    body = b"\0\0\0\x01\x01" + b"\xfe\xff\xff\xff\x0f"
    payload = bytes((len(body) << 1,)) + body
    assert outcome(decode_records_compiled, payload, 1) == ([], True)


def test_arguments_that_are_none_are_refused() -> None:
    kernel: Any = import_module("odradek.kernel.records._kernel")
    with pytest.raises(AssertionError):
        kernel.decode_records(Record, b"", 1, 1, 0, 0, None)
    with pytest.raises(AssertionError):
        kernel.decode_records(int, b"", 0, 1, 0, 0, None)
    with pytest.raises(TypeError):
        kernel.encode_record(1, 2)
    with pytest.raises(TypeError):
        kernel.encode_record(1, 2, "text", None, None)
    with pytest.raises(OverflowError):
        kernel.encode_record(2**63, 2, None, None, None)
