"""Records: varints, round trips, laziness, and every way of being malformed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError, TimestampType, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_batch, read_records
from odradek.kernel.records.record import (
    Record,
    decode_records,
    decode_varint,
    decode_varlong,
    encode_record,
    encode_varint,
)

NOW = 1_700_000_000_000
SHORT = st.none() | st.binary(max_size=20) | st.integers(60, 200).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=5), SHORT), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(Record, offset=st.just(0), timestamp=st.integers(-1, 2**45), key=SHORT, value=SHORT, headers=HEADERS),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101"), (8191, "fe7f"),
     (8192, "808001"), (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f")],
)  # fmt: skip
def test_varint_stands_as_the_protocol_says(value: int, expected: str) -> None:
    assert expected == encode_varint(value).hex()
    assert (value, len(expected) // 2) == decode_varint(bytes.fromhex(expected), 0)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_comes_back(value: int) -> None:
    encoded = encode_varint(value)

    assert (value, len(encoded)) == decode_varlong(encoded, 0)
    assert len(encoded) <= 10


@pytest.mark.parametrize(("decode", "bytes_max"), [(decode_varint, 5), (decode_varlong, 10)])
def test_varint_has_so_many_bytes_and_no_more(decode: object, bytes_max: int) -> None:
    assert callable(decode)
    assert (0, bytes_max) == decode(b"\x80" * (bytes_max - 1) + b"\0", 0)
    with pytest.raises(CorruptRecordsError, match="too long"):
        decode(b"\x80" * bytes_max + b"\0", 0)
    for size in range(bytes_max):
        with pytest.raises(CorruptRecordsError, match="cut off"):
            decode(b"\x80" * size, 0)


@given(
    records=RECORDS,
    codec=st.sampled_from(CompressionType),
    base_offset=st.integers(0, 2**60),
    gaps=st.lists(st.integers(1, 200), min_size=8, max_size=8),
)
def test_built_records_come_back(
    records: list[Record], codec: CompressionType, base_offset: int, gaps: list[int]
) -> None:
    offset = base_offset
    expected = []
    for record, gap in zip(records, gaps, strict=False):
        expected.append(record._replace(offset=offset))
        offset += gap
    builder = BatchBuilder(compression=codec, base_offset=base_offset)
    builder.extend(expected)
    size_bytes = builder.size_bytes
    assert len(records) == builder.records_count
    batch = builder.build()

    assert expected == list(read_records(batch))
    header = read_header(batch)
    assert (len(records), expected[-1].offset) == (header.records_count, header.last_offset)
    assert max(record.timestamp for record in records) == header.max_timestamp
    if codec is CompressionType.NONE:
        assert size_bytes == len(batch)


def test_header_keys_that_are_no_text_keep_their_bytes() -> None:
    body = b"\0\0\0\1\1" + b"\2\4\xff\xfe\2x"
    payload = encode_varint(len(body)) + body
    (record,) = decode_records(payload, 1)

    assert payload == encode_record(0, 0, record.key, record.value, record.headers)


def test_records_are_decoded_only_as_far_as_they_are_asked_for() -> None:
    payload = encode_record(0, 0, b"k", b"v") + b"\xff\xff\xff"
    records = decode_records(payload, 2, base_offset=7, base_timestamp=NOW)

    assert Record(7, NOW, b"k", b"v") == next(records)
    with pytest.raises(CorruptRecordsError):
        next(records)


def test_log_append_time_replaces_every_timestamp() -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME)
    builder.append(None, b"a", timestamp=NOW)
    builder.append(None, b"b", timestamp=NOW + 5)

    assert [record.timestamp for record in read_records(builder.build())] == [NOW + 5, NOW + 5]


def test_compacted_batch_keeps_the_offsets_that_it_stood_for() -> None:
    builder = BatchBuilder(base_offset=100)
    builder.append(b"k", b"v", timestamp=NOW, offset=103)
    batch = builder.build(last_offset=109)

    assert (
        read_header(batch).base_offset,
        read_header(batch).last_offset,
        read_header(batch).next_offset,
    ) == (100, 109, 110)
    assert [record.offset for record in read_records(batch)] == [103]


@pytest.mark.parametrize("codec", CompressionType)
def test_batch_that_lost_all_records_still_stands_for_its_offsets(codec: CompressionType) -> None:
    batch = BatchBuilder(base_offset=5, producer_id=1, producer_epoch=0, base_sequence=0, compression=codec).build(
        last_offset=9
    )

    assert (read_header(batch).next_offset, read_header(batch).records_count) == (10, 0)
    assert list(read_records(batch)) == []


def test_delete_horizon_does_not_move_the_timestamps() -> None:
    builder = BatchBuilder(delete_horizon_ms=NOW + 10**9)
    builder.append(b"k", None, timestamp=NOW)

    assert [record.timestamp for record in read_records(builder.build())] == [NOW]


@pytest.mark.parametrize(
    ("count", "payload"),
    [
        (2, encode_record(0, 0, b"k", b"v")),
        (0, encode_record(0, 0, b"k", b"v")),
        (1, encode_record(0, 0, b"k", b"v")[:-1]),
        (1, encode_record(0, 0, b"k", b"v") + b"x"),
        (1, b"\x0e\0\0\0\1\1\0"),
        (1, b"\x0a\0\0\0\1\1\0"),
        (1, b"\x0c\0\0\0\x7ek\0"),
        (1, b"\x0c\0\0\0\1\1\1"),
        (1, b"\x12\0\0\0\1\1\2\1\1"),
        (1, b"\x0c\0\0\0\1\1\x7e"),
    ],
)
def test_malformed_records_are_corrupt(count: int, payload: bytes) -> None:
    with pytest.raises(CorruptRecordsError):
        list(decode_records(payload, count))


def make_batch(codec: CompressionType) -> bytearray:
    builder = BatchBuilder(compression=codec)
    for index in range(6):
        builder.append(b"key", b"value %d" % index * index, timestamp=NOW + index, headers=(("h", b"x"), ("n", None)))
    return builder.build()


def test_every_truncation_of_a_payload_is_corrupt() -> None:
    batch = make_batch(CompressionType.NONE)
    header = read_header(batch)
    for size in range(61, len(batch)):
        with pytest.raises(CorruptRecordsError):
            list(read_batch(batch[:size], 0, header))


def mutate_and_read(codec: CompressionType, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    intact = make_batch(codec)
    for _ in range(rounds):
        batch = bytearray(intact)
        for _ in range(rng.randint(1, 4)):
            batch[rng.randrange(len(batch))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            for record in read_records(batch, check_crc=False, with_control=True, decompressed_bytes_max=10**6):
                assert isinstance(record, Record)
        except CorruptRecordsError:
            continue


@pytest.mark.parametrize("codec", CompressionType)
def test_mutations_end_in_records_or_in_our_error(codec: CompressionType) -> None:
    mutate_and_read(codec, 1, 1_000)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("codec", CompressionType)
def test_many_mutations_end_in_records_or_in_our_error(codec: CompressionType, seed: int) -> None:
    mutate_and_read(codec, seed, 5_000)


def test_wrong_crc_is_corrupt_unless_nobody_asks() -> None:
    batch = make_batch(CompressionType.NONE)
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordsError, match="CRC"):
        list(read_records(batch))
