"""The batch header: read, walked, patched, written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import (
    HEADER_SIZE,
    CorruptRecordsError,
    TimestampType,
    assign_offset_and_epoch,
    increment_sequence,
    is_crc_valid,
    iterate_batches,
    patch_max_timestamp,
    read_header,
)
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_records

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


def make_batch(*values: bytes, timestamp: int = 1_700_000_000_000, **fields: object) -> bytearray:
    builder = BatchBuilder(**fields)  # type: ignore[arg-type]  # a test's keywords, checked at run time by attrs
    for position, value in enumerate(values):
        builder.append(b"key", value, timestamp=timestamp + position)
    return builder.build()


def test_header_tells_every_field_of_a_built_batch() -> None:
    batch = make_batch(
        b"a",
        b"b",
        b"c",
        base_offset=100,
        partition_leader_epoch=7,
        producer_id=4000,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        is_transactional=True,
        compression=CompressionType.LZ4,
    )

    header = read_header(batch)

    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (len(batch), 7, 2) == (header.length_bytes, header.partition_leader_epoch, header.magic)
    assert (
        header.records_count,
        header.base_timestamp,
        header.max_timestamp,
    ) == (3, 1_700_000_000_000, 1_700_000_000_002)
    assert (
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
    ) == (4000, 3, 2**31 - 2, 0)
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert header.compression_id == CompressionType.LZ4
    assert TimestampType.CREATE_TIME is header.timestamp_type
    assert header.delete_horizon_ms is None
    assert is_crc_valid(batch, 0, header)


def test_delete_horizon_stands_in_the_base_timestamp() -> None:
    header = read_header(make_batch(b"a", delete_horizon_ms=1_800_000_000_000))

    assert header.delete_horizon_ms == 1_800_000_000_000


@given(base_offset=INT64, epoch=INT32)
def test_assigning_offset_and_epoch_keeps_the_crc_valid(base_offset: int, epoch: int) -> None:
    batch = make_batch(b"a", b"b")
    assigned, header = bytearray(batch), read_header(batch)

    assign_offset_and_epoch(assigned, header, base_offset, epoch)

    assert (base_offset, epoch) == (header.base_offset, header.partition_leader_epoch)
    assert read_header(assigned) == header
    assert is_crc_valid(assigned, 0, header)
    assert batch[8:12] + batch[16:] == assigned[8:12] + assigned[16:]


def test_log_append_time_rules_over_the_records_own_timestamps() -> None:
    batch = make_batch(b"a", b"b")
    header = read_header(batch)

    patch_max_timestamp(batch, 0, header, TimestampType.LOG_APPEND_TIME, 1_900_000_000_000)

    assert header == read_header(batch)
    assert is_crc_valid(batch, 0, header)
    assert TimestampType.LOG_APPEND_TIME is header.timestamp_type
    assert [record.timestamp for record in read_records(batch)] == [1_900_000_000_000] * 2


def test_run_is_walked_batch_by_batch_and_a_torn_tail_ends_it() -> None:
    first, second = make_batch(b"a"), make_batch(b"b", b"c", base_offset=1)
    run = bytes(first + second)

    for end in range(len(run) + 1):
        found = [(position, header.base_offset) for position, header in iterate_batches(run[:end])]
        expected = [(0, 0)] * (end >= len(first)) + [(len(first), 1)] * (end == len(run))

        assert expected == found
        assert found == [(p, h.base_offset) for p, h in iterate_batches(run, end=end)]


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_magic_is_corrupt_and_says_where(magic: int) -> None:
    first, second = make_batch(b"a"), make_batch(b"b")
    second[16] = magic

    with pytest.raises(CorruptRecordsError, match="magic") as caught:
        list(iterate_batches(first + second))

    assert len(first) == caught.value.position


@pytest.mark.parametrize("length", [-(2**31), -1, 0, HEADER_SIZE - 12 - 1])
def test_impossible_length_is_corrupt(length: int) -> None:
    batch = make_batch(b"a")
    batch[8:12] = length.to_bytes(4, "big", signed=True)

    with pytest.raises(CorruptRecordsError):
        list(iterate_batches(batch))


def test_too_few_bytes_for_a_header_are_corrupt() -> None:
    batch = make_batch(b"a")

    for size in range(HEADER_SIZE):
        with pytest.raises(CorruptRecordsError):
            read_header(batch[:size])


def test_every_flipped_byte_after_the_crc_is_noticed() -> None:
    batch = make_batch(b"a" * 20)
    for position in range(17, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 0x10

        assert not is_crc_valid(damaged, 0, read_header(damaged))


def test_cut_batch_has_no_valid_crc() -> None:
    batch = make_batch(b"a")

    assert not is_crc_valid(batch[:-1], 0, read_header(batch))


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_sequence_wraps_to_zero(sequence: int, count: int) -> None:
    expected = sequence + count if sequence + count < 2**31 else sequence + count - 2**31

    assert expected == increment_sequence(sequence, count)
