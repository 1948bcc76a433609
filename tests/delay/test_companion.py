"""The control batch that delayed records wait in: what is written is read, and to others it is an idle marker."""

from __future__ import annotations

import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.delay.companion import (
    CANCELLER_DUE,
    Companion,
    WaitingEntry,
    build_companion,
    decode_value,
    encode_value,
    read_companion,
)
from odradek.kernel.delay.headers import ID_DIGEST_BYTES
from odradek.kernel.records.batch import CorruptRecordsError, assign_offset_and_epoch, is_crc_valid, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType, compress
from odradek.kernel.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_control_batch,
    read_control_record,
)
from odradek.kernel.records.record import Record, encode_record

OFFSET = 1_000
EPOCH = 3
INT64S = st.integers(-(2**63), 2**63 - 1)
DUES = st.integers(CANCELLER_DUE, 2**63 - 1)
DIGESTS = st.none() | st.binary(min_size=ID_DIGEST_BYTES, max_size=ID_DIGEST_BYTES).filter(any)
PRODUCED = st.lists(st.builds(WaitingEntry, DUES, st.integers(0, 2**31 - 1), st.just(-1), DIGESTS), max_size=5)
PLACED = st.builds(WaitingEntry, DUES, st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1), DIGESTS)
COMMON = {
    "payload": st.binary(max_size=20),
    "crc": st.none() | st.integers(0, 2**32 - 1),
    "codec": st.sampled_from(CompressionType),
    "base_timestamp": INT64S,
    "append_time_ms": INT64S,
    "producer_id": INT64S,
    "producer_epoch": st.integers(-(2**15), 2**15 - 1),
}
COMPANIONS = (
    st.builds(Companion, entries=PRODUCED.map(tuple), **COMMON)
    | st.builds(Companion, entries=st.tuples(PLACED), is_delivery=st.just(True), **COMMON)
    | st.builds(Companion, entries=st.lists(PLACED).map(tuple), carried_from=st.integers(0, OFFSET - 1), **COMMON)
)
GOLDEN = (
    "0000 00000000"  # a marker's value: version, coordinator epoch
    "6f6464 00"  # "odd", version 0
    "02 89abcdef"  # has ids; the CRC of the batch behind
    "0000000000000007 0001"  # the producer whose transaction is waited for, its epoch
    "0000018bcfe56800 ffffffffffffffff"  # base timestamp; no append time
    "ffffffffffffffff"  # it was not carried
    "00000002"
    "0000018bcfe57b88 0000000000000002 ffffffff"  # due; third of its batch; the companion's epoch
    "ffffffffffffffff 0000000000000004 ffffffff"  # a canceller, fifth of its batch
    "00000000000000000000000000000000"  # without a name
    "6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"  # what is withdrawn
    "0e 00 00 04 01 02 76 00"  # one record, without a key
)


def golden_companion() -> Companion:
    return Companion(
        entries=(
            WaitingEntry(1_700_000_005_000, 2),
            WaitingEntry(CANCELLER_DUE, 4, id_digest=b"n" * ID_DIGEST_BYTES),
        ),
        payload=encode_record(0, 2, None, b"v"),
        crc=0x89ABCDEF,
        base_timestamp=1_700_000_000_000,
        producer_id=7,
        producer_epoch=1,
    )


def placed(companion: Companion) -> Companion:
    """Return a companion as it is read from where it stands in these tests."""
    if companion.is_delivery or companion.is_carried:
        return companion
    entries = (entry._replace(origin=OFFSET + 1 + entry.origin, leader_epoch=EPOCH) for entry in companion.entries)
    return attrs.evolve(companion, entries=tuple(entries))


def test_a_value_is_written_as_it_is_described() -> None:
    assert encode_value(golden_companion()) == bytes.fromhex(GOLDEN)


@given(COMPANIONS)
def test_what_is_written_is_read_where_it_stands(companion: Companion) -> None:
    assert decode_value(encode_value(companion), OFFSET, EPOCH) == placed(companion)


@given(COMPANIONS)
def test_its_batch_is_read_whatever_offset_and_epoch_it_was_given(companion: Companion) -> None:
    batch = build_companion(companion, timestamp=5)
    header = read_header(batch)
    assign_offset_and_epoch(batch, header, OFFSET, EPOCH)

    assert is_crc_valid(batch, 0, header)
    assert (header.max_timestamp, header.last_offset) == (5, OFFSET)
    assert read_companion(batch, header) == placed(companion)


def test_to_others_it_is_a_commit_marker_without_a_producer() -> None:
    batch = build_companion(golden_companion(), timestamp=5)
    header = read_header(batch)

    assert header.is_control
    assert not header.is_transactional
    assert header.producer_id == -1
    assert read_control_record(batch, header) == EndTransactionMarker(ControlRecordType.COMMIT, 0)


def test_a_marker_is_no_companion() -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    for producer_id in (-1, 7):
        batch = build_control_batch([marker], timestamp=5, producer_id=producer_id)

        assert read_companion(batch, read_header(batch)) is None


def test_data_is_no_companion_whatever_it_says() -> None:
    builder = BatchBuilder()
    builder.append(struct.pack(">hh", 0, 1), encode_value(golden_companion()), timestamp=5)
    batch = builder.build()

    assert read_companion(batch, read_header(batch)) is None


def test_a_control_batch_without_a_record_is_no_companion() -> None:
    batch = BatchBuilder(is_control=True).build(last_offset=0)

    assert read_companion(batch, read_header(batch)) is None


def test_it_counts_with_the_batch_that_it_was_written_with_and_no_other() -> None:
    builder = BatchBuilder(base_offset=OFFSET + 1)
    builder.append(None, b"v", timestamp=5)
    header = read_header(builder.build())
    companion = attrs.evolve(golden_companion(), crc=header.crc)

    assert companion.counts_with(header, OFFSET)
    assert not companion.counts_with(header, OFFSET - 1)
    assert not attrs.evolve(companion, crc=header.crc ^ 1).counts_with(header, OFFSET)
    assert attrs.evolve(companion, crc=None).counts_with(header, 0)


@pytest.mark.parametrize("codec", CompressionType)
def test_its_records_are_as_they_were_produced_at_their_first_offsets(codec: CompressionType) -> None:
    payload = encode_record(10, 2, b"k", b"v", [("h", b"x")]) + encode_record(20, 7, None, None)
    companion = Companion(
        entries=(WaitingEntry(50, 9_002), WaitingEntry(CANCELLER_DUE, 9_003), WaitingEntry(40, 9_007)),
        payload=compress(codec, payload),
        codec=codec,
        base_timestamp=1_000,
    )

    assert list(companion.records()) == [
        (companion.entries[0], Record(9_002, 1_010, b"k", b"v", (("h", b"x"),))),
        (companion.entries[2], Record(9_007, 1_020, None, None)),
    ]
    stamped = attrs.evolve(companion, append_time_ms=7)
    assert [record.timestamp for _, record in stamped.records()] == [7, 7]


def test_one_of_cancellers_alone_has_no_records() -> None:
    companion = Companion(entries=(WaitingEntry(CANCELLER_DUE, 5),), payload=b"", codec=CompressionType.ZSTD)

    assert list(companion.records()) == []


def test_records_that_are_not_as_many_as_wait_are_refused() -> None:
    one = Companion(entries=(WaitingEntry(50, 1),), payload=encode_record(0, 0, None, b"v"))
    two = attrs.evolve(one, entries=(WaitingEntry(50, 1), WaitingEntry(60, 2)))
    none = attrs.evolve(one, entries=())

    assert len(list(one.records())) == 1
    for wrong in (two, none):
        with pytest.raises(CorruptRecordsError):
            list(wrong.records())


@pytest.mark.parametrize("size", [0, 6, 10, 30, 53, 54, 80, 95])
def test_a_value_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(CorruptRecordsError, match="companion at offset 1000"):
        decode_value(encode_value(golden_companion())[:size], OFFSET, EPOCH)


def test_a_codec_that_nobody_has_defined_is_refused() -> None:
    value = bytearray(encode_value(golden_companion()))
    value[10] |= 7 << 4

    with pytest.raises(CorruptRecordsError, match="unknown compression type"):
        decode_value(bytes(value), OFFSET, EPOCH)


@pytest.mark.parametrize(("flags", "carried_from"), [(2, 5), (2 | 4, -1), (2 | 4, -2), (2 | 4, OFFSET)])
def test_what_was_carried_from_nowhere_or_from_behind_is_refused(flags: int, carried_from: int) -> None:
    value = bytearray(encode_value(golden_companion()))
    value[10] = flags
    struct.pack_into(">q", value, 41, carried_from)

    with pytest.raises(CorruptRecordsError, match="companion at offset 1000"):
        decode_value(bytes(value), OFFSET, EPOCH)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_damaged_values_are_read_or_refused(garbage: bytes, position: int) -> None:
    value = bytearray(encode_value(golden_companion()))
    value[10 + position : 10 + position + len(garbage)] = garbage
    try:
        companion = decode_value(bytes(value), OFFSET, EPOCH)
    except CorruptRecordsError:
        return

    assert len(companion.entries) <= len(value)
