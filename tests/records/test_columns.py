"""Batches read as columns: the client's reader of records is the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.fetched_records import FetchedRecords
from odradek.kernel.records.batch import HEADER_SIZE, CorruptRecordsError
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import ALL_COLUMNS, Column, ColumnReader
from odradek.kernel.records.control import ControlRecordType
from odradek.kernel.types import TopicPartition

from .column_rows import Row, Run, all_rows, marker, rows_of, runs, twins

END = 2**40
WHERE = TopicPartition("t", 0)


def reader(start: int = 0, end: int = END, wanted: Column = ALL_COLUMNS, **options: int) -> ColumnReader:
    return ColumnReader(start, end, wanted, **{"is_read_committed": False, **options})  # type: ignore[arg-type]  # flags


def batch(base_offset: int, values: Sequence[bytes | None], timestamp: int = 1) -> bytes:
    builder = BatchBuilder(base_offset=base_offset)
    for value in values:
        builder.append(b"k", value, timestamp=timestamp)
    return bytes(builder.build())


def utf8(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def oracle(data: bytes, first: int, aborted: list[tuple[int, int]] | None) -> Iterator[Row]:
    for record in FetchedRecords(WHERE, data, first, aborted, checks_crcs=True):
        headers = [(utf8(name), value) for name, value in record.headers] or None
        yield (
            record.key,
            record.value,
            record.offset,
            record.timestamp * 1000,
            int(record.is_log_append_time),
            headers,
        )


@twins
@given(
    run=runs(),
    is_read_committed=st.booleans(),
    cut=st.tuples(st.integers(0, 12), st.integers(0, 400)),
    rows_max=st.integers(1, 4),
    bytes_max=st.sampled_from([0, 50, 4096]),
)
def test_columns_hold_what_a_consumer_reads(
    is_compiled: bool,
    run: Run,
    is_read_committed: bool,
    cut: tuple[int, int],
    rows_max: int,
    bytes_max: int,
) -> None:
    data, aborted, following = run
    first = int.from_bytes(data[:8])
    start, end = first + cut[0], first + cut[0] + cut[1]
    wanted = [
        row
        for row in oracle(data, first, list(aborted) if is_read_committed else None)
        if isinstance(row[2], int) and start <= row[2] < end
    ]
    columns = reader(
        start, end, is_read_committed=is_read_committed, rows_max=rows_max, bytes_max=bytes_max, is_compiled=is_compiled
    )
    several = list(columns.feed(data, aborted))

    assert wanted == all_rows(several)
    assert columns.position == (end if end <= following else max(start, following))
    assert columns.is_done == (columns.position >= end)
    assert all(1 <= each.rows <= rows_max for each in several)


@twins
@settings(max_examples=50)
@given(run=runs(), wanted=st.integers(0, ALL_COLUMNS).map(Column))
def test_a_projection_is_the_same_rows_with_fewer_columns(is_compiled: bool, run: Run, wanted: Column) -> None:
    data, _, _ = run
    expected = [
        tuple(value if wanted & flag else None for value, flag in zip(row, Column, strict=True))
        for row in all_rows(reader(is_compiled=is_compiled).feed(data))
    ]

    assert expected == all_rows(reader(wanted=wanted, is_compiled=is_compiled).feed(data))


@twins
@settings(max_examples=50)
@given(run=runs(), rows_max=st.integers(1, 3), fed=st.integers(0, 6))
def test_a_reader_fed_again_from_its_position_neither_skips_nor_repeats(
    is_compiled: bool, run: Run, rows_max: int, fed: int
) -> None:
    data, aborted, _ = run
    expected = all_rows(reader(is_read_committed=True, is_compiled=is_compiled).feed(data, aborted))
    columns = reader(is_read_committed=True, rows_max=rows_max, is_compiled=is_compiled)
    rows: list[Row] = []
    for number, each in enumerate(columns.feed(data, aborted)):
        rows += rows_of(each)
        assert rows[-1][2] < columns.position  # type: ignore[operator]  # offsets are wanted
        if number == fed:
            break
    rows += all_rows(reader(columns.position, is_read_committed=True, is_compiled=is_compiled).feed(data, aborted))

    assert expected == rows


@twins
def test_a_huge_value_stands_alone(is_compiled: bool) -> None:
    data = batch(0, [b"a", b"b" * 10_000, b"c", None, b"d"])
    several = list(reader(bytes_max=100, is_compiled=is_compiled).feed(data))

    assert [each.rows for each in several] == [1, 1, 3]
    assert several[1].values is not None
    assert several[1].values.data == b"b" * 10_000


@twins
def test_the_position_passes_gaps_control_batches_and_aborted_records(is_compiled: bool) -> None:
    builder = BatchBuilder(base_offset=5, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(b"k", b"v", timestamp=1)
    data = batch(2, [b"a"]) + bytes(builder.build()) + marker(9, 3, ControlRecordType.ABORT)
    columns = reader(0, 20, is_read_committed=True, is_compiled=is_compiled)

    assert [row[2] for row in all_rows(columns.feed(data, [(5, 3)]))] == [2]
    assert columns.position == 10
    assert not columns.is_done
    assert list(columns.feed(batch(30, [b"z"]))) == []
    assert columns.position == 20
    assert columns.is_done


@twins
def test_a_transaction_whose_records_were_compacted_away_hides_none_of_the_next(is_compiled: bool) -> None:
    builder = BatchBuilder(base_offset=12, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(b"k", b"v", timestamp=1)
    data = marker(10, 3, ControlRecordType.ABORT) + bytes(builder.build()) + marker(13, 3, ControlRecordType.COMMIT)

    assert [
        row[2] for row in all_rows(reader(is_read_committed=True, is_compiled=is_compiled).feed(data, [(5, 3)]))
    ] == [12]
    assert [
        row[2] for row in all_rows(reader(11, is_read_committed=True, is_compiled=is_compiled).feed(data, [(5, 3)]))
    ] == [12]
    assert [row[2] for row in oracle(data, 0, [(5, 3)])] == [12]


@twins
def test_a_batch_cut_off_at_the_end_is_no_part_and_nothing_whole_is_an_error(is_compiled: bool) -> None:
    whole, cut = batch(0, [b"a"]), batch(1, [b"b"])
    for size in range(len(cut)):
        columns = reader(is_compiled=is_compiled)
        assert [row[2] for row in all_rows(columns.feed(whole + cut[:size]))] == [0]
        assert columns.position == 1
        if size:
            with pytest.raises(CorruptRecordsError, match="not one whole batch"):
                list(reader(is_compiled=is_compiled).feed(cut[:size]))
    assert list(reader(is_compiled=is_compiled).feed(b"")) == []


@twins
def test_a_wrong_checksum_names_the_batch_unless_nobody_asks(is_compiled: bool) -> None:
    data = bytearray(batch(0, [b"a"]) + batch(77, [b"value"]))
    data[-3] ^= 1
    with pytest.raises(CorruptRecordsError, match="batch at offset 77: its checksum"):
        list(reader(is_compiled=is_compiled).feed(data))

    assert len(all_rows(reader(checks_crc=False, is_compiled=is_compiled).feed(data))) == 2


@twins
def test_old_formats_are_told_by_name(is_compiled: bool) -> None:
    data = bytearray(batch(5, [b"a"]))
    data[16] = 1
    with pytest.raises(CorruptRecordsError, match="offset 5: v1 is an old message format, which is not supported"):
        list(reader(is_compiled=is_compiled).feed(data))
    with pytest.raises(CorruptRecordsError, match="offset 5: v1 is an old"):
        list(reader(is_compiled=is_compiled).feed(data[:34]))
    data[16] = 9
    with pytest.raises(CorruptRecordsError, match="v9 is no message format"):
        list(reader(is_compiled=is_compiled).feed(data))


@twins
def test_lengths_and_offsets_that_cannot_be_are_refused(is_compiled: bool) -> None:
    for position, lie in ((8, b"\0\0\0\0"), (8, b"\xff\xff\xff\xff"), (0, b"\xff" * 8), (0, b"\x7f" + b"\xff" * 7)):
        data = bytearray(batch(5, [b"a"]))
        data[position : position + len(lie)] = lie
        with pytest.raises(CorruptRecordsError, match=r"too few|impossible"):
            list(reader(checks_crc=False, is_compiled=is_compiled).feed(data))


@twins
def test_a_timestamp_too_far_for_microseconds_is_an_error_where_it_is_wanted(is_compiled: bool) -> None:
    data = batch(5, [b"a"], timestamp=2**62)
    with pytest.raises(CorruptRecordsError, match="batch at offset 5: a timestamp that"):
        list(reader(is_compiled=is_compiled).feed(data))

    assert [row[2] for row in all_rows(reader(wanted=Column.OFFSET, is_compiled=is_compiled).feed(data))] == [5]


@twins
def test_bytes_after_the_records_and_a_count_too_large_are_refused(is_compiled: bool) -> None:
    for count in (b"\0\0\0\x01", b"\0\0\0\x03", b"\xff\xff\xff\xff"):
        data = bytearray(batch(0, [b"a", b"b"]))
        data[HEADER_SIZE - 4 : HEADER_SIZE] = count
        with pytest.raises(CorruptRecordsError, match="batch at offset 0"):
            list(reader(checks_crc=False, is_compiled=is_compiled).feed(data))
