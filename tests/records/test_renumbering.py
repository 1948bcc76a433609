"""Records written anew, a piece at a time: as our encoder writes them, whatever they looked like; both twins alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records import renumbering
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.record import decode_records, encode_record
from odradek.kernel.records.renumbering import (
    PIECE_BYTES,
    first_timestamp_delta,
    renumbered_compiled,
    renumbered_in_python,
)

from .test_scan import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Renumbered = Callable[..., Iterator[bytes]]

needs_kernel = pytest.mark.skipif(not renumbering.HAS_COMPILED_RENUMBERING, reason="the record kernel was not compiled")
TWINS = [renumbered_in_python, pytest.param(renumbered_compiled, marks=needs_kernel)]


def outcome(twin: Renumbered, payload: bytes, count: int, shift: int, *, is_stamped: bool) -> bytes | None:
    try:
        return b"".join(twin(payload, count, shift, is_stamped=is_stamped))
    except CorruptRecordsError:
        return None


@pytest.mark.parametrize("twin", TWINS)
def test_offsets_become_a_row_and_timestamps_count_from_the_first(twin: Renumbered) -> None:
    headers = (("h", b"x"), ("", None))
    payload = encode_record(70, 5, b"k" * 70, None, headers) + encode_record(-9, 900, None, b"v" * 9000)

    found = b"".join(twin(payload, 2, first_timestamp_delta(payload), is_stamped=False))

    assert found == encode_record(0, 0, b"k" * 70, None, headers) + encode_record(-79, 1, None, b"v" * 9000)


@pytest.mark.parametrize("twin", TWINS)
def test_what_another_writer_may_write_becomes_what_ours_writes(twin: Renumbered) -> None:
    # attributes 7; a delta, a size and the headers' number in more bytes than they need; a null of -3
    odd = bytes((7, 0x80, 0x00, 0x00, 0x82, 0x00, 0x61, 0x05, 0x80, 0x00))

    found = b"".join(twin(bytes((2 * len(odd),)) + odd, 1, 0, is_stamped=False))

    assert found == encode_record(0, 0, b"a", None)


@pytest.mark.parametrize("twin", TWINS)
def test_pieces_are_bounded_whatever_there_is(twin: Renumbered) -> None:
    count = 3 * PIECE_BYTES // 7
    small, large = encode_record(0, 0, None, None), encode_record(0, 0, None, bytes(3 * PIECE_BYTES))

    pieces = list(twin(small * count + large, count + 1, 0, is_stamped=True))

    assert len(pieces) >= 4
    assert all(len(piece) <= PIECE_BYTES + len(large) + 20 for piece in pieces)
    records = list(decode_records(b"".join(pieces), count + 1))
    assert [record.offset for record in records] == list(range(count + 1))
    assert len(records[-1].value or b"") == 3 * PIECE_BYTES


@pytest.mark.parametrize("twin", TWINS)
def test_timestamps_too_far_apart_and_another_number_of_records_are_corrupt(twin: Renumbered) -> None:
    far = encode_record(-(2**63), 0, None, None) + encode_record(1, 1, None, None)

    assert outcome(twin, far, 2, -(2**63), is_stamped=False) is None
    assert outcome(twin, far, 2, -(2**63), is_stamped=True) is not None
    assert outcome(twin, far, 3, 0, is_stamped=True) is None
    assert outcome(twin, far, 1, 0, is_stamped=True) is None


@needs_kernel
@given(
    records=st.lists(RECORD, max_size=5),
    damage=st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    shift=st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
    is_stamped=st.booleans(),
)
def test_twins_write_the_same(
    records: list[bytes], damage: tuple[int, int] | None, shift: int, is_stamped: bool
) -> None:
    payload = bytearray(b"".join(records))
    if damage is not None and payload:
        payload[damage[0] % len(payload)] = damage[1]
    given_bytes = bytes(payload)

    assert outcome(renumbered_in_python, given_bytes, len(records), shift, is_stamped=is_stamped) == outcome(
        renumbered_compiled, given_bytes, len(records), shift, is_stamped=is_stamped
    )
