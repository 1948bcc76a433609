"""Looking for records of a batch: who is to be refused, whom a time means; compiled and Python twin find the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records import finding
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.finding import (
    Acceptable,
    FoundRecord,
    RefusedRecords,
    find_record_compiled,
    find_record_in_python,
    refused_records_compiled,
    refused_records_in_python,
)
from odradek.kernel.records.record import encode_record

from .test_scan import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.types import Buffer

    Refused = Callable[[Buffer, int, Acceptable, int], RefusedRecords]
    Find = Callable[[Buffer, int, int, int], tuple[int, int] | None]

needs_kernel = pytest.mark.skipif(not finding.HAS_COMPILED_FINDING, reason="the record kernel was not compiled")
REFUSED = [refused_records_in_python, pytest.param(refused_records_compiled, marks=needs_kernel)]
FIND = [find_record_in_python, pytest.param(find_record_compiled, marks=needs_kernel)]
INT64 = st.integers(-(2**63), 2**63 - 1)
RECORDS = b"".join(
    [
        encode_record(0, 0, b"k", b"v"),
        encode_record(-300, 1, None, b"v" * 300, (("h", None),)),
        encode_record(2**40, 2, b"", None),
        encode_record(-1001, 3, b"k", b""),
    ]
)


@pytest.mark.parametrize("refused", REFUSED)
def test_records_are_refused_for_their_time_and_for_a_missing_key(refused: Refused) -> None:
    in_time = Acceptable(1000, 900, 1100, takes_no_timestamp=True, needs_keys=False)
    early, late = FoundRecord(1, 1, -300, -1, 300), FoundRecord(2, 2, 2**40, 0, -1)

    assert refused(RECORDS, 4, in_time, 10) == RefusedRecords([early, late], 2, 2)
    assert refused(RECORDS, 4, in_time._replace(needs_keys=True), 10) == RefusedRecords([early, late], 2, 1)
    assert refused(RECORDS, 4, in_time._replace(takes_no_timestamp=False), 10).total == 3
    assert refused(RECORDS, 4, in_time._replace(earliest=1, latest=0, takes_no_timestamp=False), 10).total == 4
    assert refused(RECORDS, 4, in_time._replace(earliest=-(2**80), latest=2**80), 10).total == 0


@pytest.mark.parametrize("refused", REFUSED)
def test_no_more_records_are_given_out_than_were_asked_for_and_all_are_counted(refused: Refused) -> None:
    nothing = Acceptable(0, 1, 0, takes_no_timestamp=False, needs_keys=False)
    many = encode_record(0, 0, b"k", b"v") * 5000

    found = refused(many, 5000, nothing, 7)

    assert ([record.position for record in found.first], found.total) == (list(range(7)), 5000)


@pytest.mark.parametrize("find", FIND)
def test_the_first_record_at_or_above_time_and_offset_is_found(find: Find) -> None:
    assert find(RECORDS, 4, 0, 0) == (0, 0)
    assert find(RECORDS, 4, 0, 1) == (2**40, 2)
    assert find(RECORDS, 4, -(2**80), 3) == (-1001, 3)
    assert find(RECORDS, 4, 2**40 + 1, 0) is None
    assert find(RECORDS, 4, 2**80, 0) is None
    assert find(b"", 0, 0, 0) is None


@pytest.mark.parametrize("find", FIND)
def test_a_record_that_is_cut_off_is_corrupt(find: Find) -> None:
    for size in range(len(encode_record(0, 0, b"k", b"v"))):
        with pytest.raises(CorruptRecordsError):
            find(RECORDS[:size], 4, 1, 0)


@needs_kernel
@given(
    records=st.lists(RECORD, max_size=5),
    damage=st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    base=INT64,
    earliest=INT64,
    latest=INT64,
    flags=st.tuples(st.booleans(), st.booleans()),
    offset=st.integers(-5, 8),
)
def test_twins_find_the_same(
    records: list[bytes],
    damage: tuple[int, int] | None,
    base: int,
    earliest: int,
    latest: int,
    flags: tuple[bool, bool],
    offset: int,
) -> None:
    payload = bytearray(b"".join(records))
    if damage is not None and payload:
        payload[damage[0] % len(payload)] = damage[1]
    acceptable = Acceptable(base, earliest, latest, *flags)

    def outcome(call: Callable[[], object]) -> object:
        try:
            return call()
        except CorruptRecordsError:
            return "corrupt"

    count = len(records)
    assert outcome(lambda: refused_records_in_python(payload, count, acceptable, 3)) == outcome(
        lambda: refused_records_compiled(payload, count, acceptable, 3)
    )
    assert outcome(lambda: find_record_in_python(payload, count, earliest, offset)) == outcome(
        lambda: find_record_compiled(payload, count, earliest, offset)
    )
