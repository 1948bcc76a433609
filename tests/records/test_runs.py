"""What compaction does with the records of a batch: winners against a dictionary, compiled against Python."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.header_due import HeaderDue
from odradek.kernel.records.key_table import NO_VERSION, KeyTable, Winner, number_of
from odradek.kernel.records.record import Record, encode_record
from odradek.kernel.records.record_view import NEVER_DUE
from odradek.kernel.records.run import HAS_COMPILED_RUNS, Kept, RecordRun, walk_records

needs_compiled = pytest.mark.skipif(not HAS_COMPILED_RUNS, reason="the compiled functions were not built")
TWINS = [False, pytest.param(True, marks=needs_compiled)]

NUMBERS = st.sampled_from(
    [b"1", b"2", b"-7", b"+2", b"", b"x", b"12345678", b"9" * 19, b"1" * 20, b"\0" * 7 + b"\x02", b"\xff" * 8, None]
)
HEADERS = st.lists(st.tuples(st.sampled_from(["v", "w", "vv", "\udcff"]), NUMBERS), max_size=3).map(tuple)
KEYS = st.none() | st.binary(max_size=3) | st.sampled_from([b"k" * 127, b"k" * 128, b"k" * 129, b"k" * 300])
RECORDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-5, 200), KEYS, st.none() | st.binary(max_size=3), HEADERS), max_size=12
)
Drawn = list[tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]


def run_of(drawn: Drawn, base_offset: int = 10, append_time_ms: int | None = None) -> RecordRun:
    payload, delta = b"", 0
    for gap, timestamp_delta, key, value, headers in drawn:
        delta += gap
        payload += encode_record(timestamp_delta, delta, key, value, headers)
        delta += 1
    return RecordRun(payload, len(drawn), base_offset, 1_000, append_time_ms)


def record(offset: int, timestamp: int = 0, header: bytes | None = None) -> Record:
    return Record(offset, timestamp, b"k", b"", (("v", header),))


def test_a_number_is_decimal_or_eight_bytes_big_endian() -> None:
    assert [number_of(value) for value in (b"0", b"-12", b"+12", b"0012", b"9223372036854775807")] == [
        0,
        -12,
        12,
        12,
        (1 << 63) - 1,
    ]
    assert [number_of(value) for value in (b"\0" * 7 + b"\x01", b"\xff" * 8)] == [1, -1]
    assert number_of(b"20261121") == 20_261_121
    assert [number_of(value) for value in (None, b"", b"-", b"1 ", b"1.5", b"\x01", b"\0\0\0\x01", b"9" * 19)] == [
        None
    ] * 8


@pytest.mark.parametrize("is_compiled", TWINS)
def test_the_last_header_counts_and_digits_alone_say_when_a_record_is_to_go(is_compiled: bool) -> None:
    headers = [(("t", b"1"), ("t", b"5")), (("t", b"5"), ("t", None)), (("t", b"-5"),), (("t", b"\0" * 8),), ()]
    run = run_of([(0, 0, None, None, each) for each in headers])

    assert list(HeaderDue("t", is_compiled).of_run(run)) == [5, NEVER_DUE, NEVER_DUE, NEVER_DUE, NEVER_DUE]


def versions_of(records: Sequence[Record], winner: Winner) -> list[int]:
    if winner is Winner.OFFSET:
        return [0] * len(records)
    if winner is Winner.TIMESTAMP:
        return [each.timestamp for each in records]
    found = [next((value for name, value in reversed(each.headers) if name == "v"), None) for each in records]
    return [NO_VERSION if number_of(value) is None else int(number_of(value) or 0) for value in found]


@pytest.mark.parametrize("winner", list(Winner))
@pytest.mark.parametrize("is_compiled", TWINS)
@given(clean=RECORDS, dirty=RECORDS, keeps_tombstones=st.booleans())
def test_of_each_key_the_winner_stays(
    winner: Winner, is_compiled: bool, clean: Drawn, dirty: Drawn, keeps_tombstones: bool
) -> None:
    old = run_of(clean, 0)
    new = run_of(dirty, 1_000)
    table = KeyTable(1 << 16, len(dirty) + 1, winner=winner, header="v", is_compiled=is_compiled)
    assert table.note_run(new, 0) is None
    if table.weighs:
        table.weigh_run(old, 1_000)

    noted = list(new.records())
    everything = [*old.records(), *noted]
    best: dict[bytes, tuple[int, int]] = {}
    for each, version in zip(everything, versions_of(everything, winner), strict=True):
        if each.key is not None and any(other.key == each.key for other in noted):
            best[each.key] = max(best.get(each.key, (NO_VERSION, -1)), (version, each.offset))
    for run in (old, new):
        flags = table.keep_run(run, 2_000, keeps_tombstones=keeps_tombstones)
        assert len(flags) == run.count
        for each, flag in zip(run.records(), flags, strict=True):
            if each.key is None:
                assert not flag
            elif each.key not in best:
                assert bool(flag) == (each.value is not None or keeps_tombstones)
            elif best[each.key][1] != each.offset:
                assert not flag
            elif winner is Winner.OFFSET:
                assert bool(flag) == (each.value is not None or keeps_tombstones)
            else:
                assert flag == 2, "it has won over others of this pass: nothing may take it away"
    assert len(table) == len({each.key for each in noted if each.key is not None})


@pytest.mark.parametrize("is_compiled", TWINS)
def test_a_table_that_is_full_says_where_and_keeps_what_it_has(is_compiled: bool) -> None:
    run = run_of([(0, 0, b"%d" % number, b"", ()) for number in range(100)])
    table = KeyTable(24 * 20, 100, 0.9, is_compiled=is_compiled)
    full_at = table.note_run(run, 12)

    assert full_at == 12 + 18
    assert len(table) == 18
    assert table.note_run(run, full_at) == full_at


@pytest.mark.parametrize("is_compiled", TWINS)
def test_records_from_the_end_of_what_was_noted_stay(is_compiled: bool) -> None:
    run = run_of([(0, 0, b"a", b"", ()), (0, 0, b"a", b"", ()), (0, 0, None, None, ()), (0, 0, b"a", None, ())])
    table = KeyTable(1 << 10, 4, is_compiled=is_compiled)
    table.note_run(run, 0)

    assert table.keep_run(run, 12, keeps_tombstones=True) == b"\0\0\1\1"


def test_single_records_are_told_the_same() -> None:
    table = KeyTable(1 << 10, 4, winner=Winner.HEADER, header="v")
    assert table.note(b"k", record(5, header=b"3"))
    assert table.note(b"k", record(6, header=None))
    table.weigh(b"k", record(1, header=b"7"))
    table.weigh(b"other", record(2, header=b"7"))

    assert [table.keeps(b"k", record(offset, header=value)) for offset, value in ((1, b"7"), (5, b"3"), (6, None))] == [
        True,
        False,
        False,
    ]
    assert table.keeps(b"other", record(2))
    assert len(table) == 1


@given(RECORDS, st.data())
def test_what_stays_is_copied_as_it_is(drawn: Drawn, data: st.DataObject) -> None:
    run = run_of(drawn)
    flags = bytes(data.draw(st.lists(st.sampled_from([0, 1, 2]), min_size=len(drawn), max_size=len(drawn))))
    stay = [each for each, flag in zip(run.records(), flags, strict=True) if flag]
    kept = run.kept(flags)

    assert stay == list(RecordRun(kept.payload, kept.records_count, 10, 1_000).records())
    assert kept.has_tombstones == any(each.value is None for each in stay)
    assert kept.timestamp_delta_max == max((each.timestamp - 1_000 for each in stay), default=0)
    moved = RecordRun(run.rebased(flags, 7), kept.records_count, 10, 993)
    assert stay == list(moved.records())


def outcome(run: RecordRun, *, is_compiled: bool) -> object:
    """Return all that can be asked of a run, or that it is malformed."""
    found: list[object] = []
    for winner in Winner:
        try:
            table = KeyTable(24 * 40, 20, winner=winner, header="v", is_compiled=is_compiled)
            found.append(table.note_run(run, 11))
            table.weigh_run(run, 12)
            found.append(table.keep_run(run, 25, keeps_tombstones=False))
            found.append(bytes(table._table))
        except CorruptRecordsError:
            found.append("malformed")
    try:
        found.append(list(HeaderDue("v", is_compiled).of_run(run)))
    except CorruptRecordsError:
        found.append("malformed")
    flags = bytes(index % 3 for index in range(run.count))
    try:
        found.append(run.kept_compiled(flags) if is_compiled else run.kept_in_python(flags))
    except CorruptRecordsError:
        found.append("malformed")
    return found


@needs_compiled
@given(RECORDS, st.none() | st.integers(-1, 5))
def test_both_twins_say_the_same(drawn: Drawn, append_time_ms: int | None) -> None:
    run = run_of(drawn, append_time_ms=append_time_ms)

    assert outcome(run, is_compiled=False) == outcome(run, is_compiled=True)


@needs_compiled
@given(RECORDS, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4), st.integers(-2, 2))
@example(drawn=[(0, 0, b"k", b"", ())], damage=[(0, 0x80), (1, 0x80), (2, 0x80), (3, 0x80), (4, 0x80)], more=0)
def test_both_twins_find_the_same_damage(drawn: Drawn, damage: list[tuple[int, int]], more: int) -> None:
    run = run_of(drawn)
    payload = bytearray(run.payload)
    for position, byte in damage:
        if payload:
            payload[position % len(payload)] = byte
    damaged = RecordRun(bytes(payload), max(run.count + more, 0), 10, 1_000)

    assert outcome(damaged, is_compiled=False) == outcome(damaged, is_compiled=True)


def test_a_run_of_nothing_keeps_nothing() -> None:
    run = RecordRun(b"", 0, 0)

    assert run.kept(b"") == Kept(b"", 0, 0, False)
    assert list(walk_records(b"", 0)) == []
