"""The leader's checks, beside what Apache Kafka's own answers hold: modes, bounds, bytes kept, hostile bytes."""

from __future__ import annotations

import random

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import TimestampType, encode_batch, is_crc_valid, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.reader import read_records
from odradek.kernel.records.record import encode_record
from odradek.kernel.records.validation import (
    ValidatedBatch,
    ValidationMode,
    ValidationRules,
    needs_walk,
    validate_batch,
    walks_records,
)

NOW = 1_700_000_000_000
PLAIN = ValidationRules()
WALK = ValidationRules(walks_records=True)


def build(*values: bytes, timestamp: int = NOW, compression: CompressionType = CompressionType.NONE) -> bytearray:
    builder = BatchBuilder(compression=compression)
    for position, value in enumerate(values):
        builder.append(b"key", value, timestamp=timestamp + position)
    return builder.build()


def edit(batch: bytearray, **fields: int) -> bytearray:
    header = read_header(batch)
    for name, value in fields.items():
        setattr(header, name, value)
    return encode_batch(header, batch[61:])


def check(batch: bytearray, rules: ValidationRules = PLAIN, *, now_ms: int = NOW) -> ValidatedBatch:
    return validate_batch(batch, 0, len(batch), rules, now_ms=now_ms, produce_version=9, partition_name="t-0")


@pytest.mark.parametrize(
    ("mode", "is_compacted", "has_kernel", "expected"),
    [
        ("auto", False, False, False),
        ("auto", True, False, True),
        ("auto", False, True, True),
        ("full", False, False, True),
        ("headers", True, True, False),
    ],
)
def test_mode_says_whether_records_are_walked(mode: str, is_compacted: bool, has_kernel: bool, expected: bool) -> None:
    found = walks_records(ValidationMode(mode), is_compacted=is_compacted, has_compiled_kernel=has_kernel)

    assert expected == found


@pytest.mark.parametrize("rules", [ValidationRules(), WALK])
@pytest.mark.parametrize("codec", CompressionType)
def test_good_batch_keeps_every_byte_wherever_it_stands(rules: ValidationRules, codec: CompressionType) -> None:
    batch = build(b"a", b"b" * 100, compression=codec)
    buffer = bytearray(b"before" + batch + b"after")

    validated = validate_batch(
        memoryview(buffer), 6, 6 + len(batch), rules, now_ms=NOW, produce_version=9, partition_name="t-0"
    )

    assert bytearray(b"before" + batch + b"after") == buffer
    assert ValidatedBatch(read_header(batch)) == validated
    assert validated.log_append_time_ms == -1


@pytest.mark.parametrize("rules", [
    ValidationRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
    ValidationRules(timestamp_type=TimestampType.LOG_APPEND_TIME, walks_records=True),
    ValidationRules(timestamp_type=TimestampType.LOG_APPEND_TIME, compression=CompressionType.ZSTD),
])  # fmt: skip
def test_log_append_time_is_stamped_whatever_the_records_say(rules: ValidationRules) -> None:
    batch = build(b"a", b"b", timestamp=NOW + 10**12)

    validated = check(batch, rules)

    stamped = batch if validated.rewritten is None else validated.rewritten
    assert validated.log_append_time_ms == NOW
    assert validated.header == read_header(stamped)
    assert is_crc_valid(stamped, 0, validated.header)
    assert [record.timestamp for record in read_records(stamped)] == [NOW, NOW]


def test_recompressed_batch_keeps_producer_and_records() -> None:
    builder = BatchBuilder(
        compression=CompressionType.GZIP, producer_id=7, producer_epoch=1, base_sequence=3, is_transactional=True
    )
    for i in range(3):
        builder.append(b"k", b"v" * i, timestamp=NOW + i, headers=(("h", None),))
    batch = builder.build()

    validated = check(batch, ValidationRules(compression=CompressionType.LZ4, compression_level=3))

    assert validated.rewritten is not None
    header = read_header(validated.rewritten)
    assert header.compression_id == CompressionType.LZ4
    assert (
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
    ) == (7, 1, 3, True)
    assert list(read_records(batch)) == list(read_records(validated.rewritten))


def test_bomb_is_too_large_and_not_unpacked() -> None:
    batch = build(bytes(10_000_000), compression=CompressionType.ZSTD)

    with pytest.raises(InvalidBatchError) as caught:
        check(batch, ValidationRules(walks_records=True, decompressed_bytes_max=1_000_000))

    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_header_that_lies_about_timestamps_is_judged_by_its_records() -> None:
    honest = build(b"a", b"b")
    future = edit(honest, max_timestamp=NOW + 10**10)

    validated = check(future)

    assert validated.header.max_timestamp == NOW + 1
    assert honest == future


def test_timestamps_beyond_an_int64_are_refused() -> None:
    header = read_header(build(b"a"))
    header.base_timestamp = 2**63 - 1
    batch = encode_batch(header, encode_record(1, 0, None, b"v"))

    with pytest.raises(InvalidBatchError) as caught:
        check(batch, ValidationRules(timestamp_after_max_ms=2**63 - 1))

    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


def test_only_what_asks_for_records_walks_them() -> None:
    header = read_header(build(b"a"))
    plain = ValidationRules()
    stamping = ValidationRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    uncompressing = ValidationRules(compression=CompressionType.NONE)

    assert not needs_walk(header, plain, NOW)
    assert not needs_walk(header, stamping, 0)
    assert not needs_walk(header, uncompressing, NOW)
    assert needs_walk(header, WALK, NOW)
    assert needs_walk(header, plain, NOW - 3_600_001)
    assert needs_walk(header, ValidationRules(timestamp_before_max_ms=10), NOW + 11)
    assert needs_walk(header, ValidationRules(compression=CompressionType.GZIP), NOW)


def hostile(batch: bytearray, rng: random.Random) -> bytearray:
    """Damage a batch; mostly so that CRC and length still fit, or nothing behind them would be reached."""
    batch = bytearray(batch)
    for _ in range(rng.randint(1, 4)):
        batch[rng.randrange(8 if rng.random() < 0.1 else 21, len(batch))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    if rng.random() < 0.1:
        batch = batch[: rng.randrange(len(batch) + 1)] + rng.randbytes(rng.randrange(20))
    elif rng.random() < 0.95:
        batch = encode_batch(read_header(batch), batch[61:])
    return batch


def mutate_and_validate(codec: CompressionType, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    intact = build(b"", b"b" * 100, b"c", compression=codec)
    rules = [
        ValidationRules(
            walks_records=walks,
            timestamp_type=stamp,
            compression=target,
            is_compacted=True,
            decompressed_bytes_max=10**6,
        )
        for walks in (False, True)
        for stamp in TimestampType
        for target in (None, CompressionType.NONE, CompressionType.LZ4)
    ]
    for number in range(rounds):
        batch = hostile(intact, rng)
        try:
            validated = check(batch, rules[number % len(rules)])
        except InvalidBatchError:
            continue
        kept = batch[: validated.header.length_bytes] if validated.rewritten is None else validated.rewritten
        assert validated.header == read_header(kept)
        assert is_crc_valid(kept, 0, validated.header)


@pytest.mark.parametrize("codec", CompressionType)
def test_hostile_batches_are_refused_or_end_valid(codec: CompressionType) -> None:
    mutate_and_validate(codec, 7, 1_200)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("codec", CompressionType)
def test_many_hostile_batches_are_refused_or_end_valid(codec: CompressionType, seed: int) -> None:
    mutate_and_validate(codec, seed, 5_000)


@pytest.mark.parametrize("size", range(0, 180, 7))
def test_noise_is_refused(size: int) -> None:
    noise = bytearray(random.Random(size).randbytes(size))

    with pytest.raises(InvalidBatchError):
        validate_batch(noise, 0, size, ValidationRules(), now_ms=NOW, produce_version=9)
