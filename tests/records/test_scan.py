"""The walk over records: what it finds, and that the compiled kernel and its Python twin find the same."""

from __future__ import annotations

import random
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records import scan
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.record import encode_record
from odradek.kernel.records.scan import RecordsScan, scan_records_compiled, scan_records_in_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.types import Buffer

    Scan = Callable[[Buffer, int], RecordsScan]

needs_kernel = pytest.mark.skipif(not scan.HAS_COMPILED_KERNEL, reason="the record kernel was not compiled")
TWINS = [scan_records_in_python, pytest.param(scan_records_compiled, marks=needs_kernel)]
SHORT = st.none() | st.binary(max_size=10) | st.integers(60, 200).map(bytes)
RECORD = st.builds(
    encode_record,
    st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
    st.integers(0, 5) | st.integers(-(2**31), 2**31 - 1),
    SHORT,
    SHORT,
    st.lists(st.tuples(st.text(max_size=3), SHORT), max_size=3),
)


def outcome(walk: Scan, payload: Buffer, count: int) -> RecordsScan | None:
    try:
        return walk(payload, count)
    except CorruptRecordsError:
        return None


@pytest.mark.parametrize("walk", TWINS)
def test_walk_tells_timestamps_null_keys_and_gaps(walk: Scan) -> None:
    payload = b"".join(
        [
            encode_record(0, 0, b"k", b"v"),
            encode_record(-300, 1, None, b"v" * 300, (("h", None),)),
            encode_record(2**40, 2, b"", None),
        ]
    )

    assert RecordsScan(-300, 2**40, 1, has_offset_gaps=False) == walk(payload, 3)
    assert RecordsScan(0, 0, 0, has_offset_gaps=False) == walk(b"", 0)
    assert walk(encode_record(0, 1, b"k", b"v"), 1).has_offset_gaps
    assert walk(memoryview(payload).toreadonly(), 3) == walk(payload, 3)


@pytest.mark.parametrize("walk", TWINS)
def test_walk_refuses_every_truncation_and_another_count(walk: Scan) -> None:
    payload = encode_record(0, 0, b"key", b"value", (("h", b"x"),)) + encode_record(300, 1, b"k" * 70, None)
    assert outcome(walk, payload, 2) is not None
    for size in range(len(payload)):
        assert outcome(walk, payload[:size], 2) is None
    for count in (-1, 0, 1, 3, 2**31 - 1):
        assert outcome(walk, payload, count) is None


@needs_kernel
@given(records=st.lists(RECORD, max_size=5), count=st.integers(-1, 6), tail=st.binary(max_size=3))
def test_twins_agree_on_records(records: list[bytes], count: int, tail: bytes) -> None:
    payload = b"".join(records)
    for given_payload, given_count in ((payload, len(records)), (payload, count), (payload + tail, len(records))):
        expected = outcome(scan_records_in_python, given_payload, given_count)

        assert expected == outcome(scan_records_compiled, given_payload, given_count)


def agree_on_damage(seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    intact = b"".join(
        encode_record(i * 50, i, None if i % 3 else b"key", b"v" * (i * 40), (("h", b"x"), ("n", None)))
        for i in range(5)
    )
    for _ in range(rounds):
        payload = bytearray(intact[: rng.randrange(20, len(intact)) if rng.random() < 0.2 else len(intact)])
        for _ in range(rng.randint(1, 3)):
            payload[rng.randrange(len(payload))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))

        assert outcome(scan_records_in_python, payload, 5) == outcome(scan_records_compiled, payload, 5)


@needs_kernel
def test_twins_agree_on_damage() -> None:
    agree_on_damage(3, 10_000)


@needs_kernel
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(20))
def test_twins_agree_on_much_damage(seed: int) -> None:
    agree_on_damage(seed, 50_000)


@needs_kernel
def test_kernel_refuses_wrong_arguments() -> None:
    kernel = import_module("odradek.kernel.records._kernel")
    for arguments in ((), (b"",), (b"", 0, 0), ("text", 0), (b"", "0"), (b"", 2**80)):
        with pytest.raises((TypeError, OverflowError)):
            kernel.scan_records(*arguments)
