"""Batches that take long: not begun where brevity is asked for, and elsewhere within bounds of memory and of errors."""

from __future__ import annotations

import contextlib
import errno
import gzip
import mmap
import os
import struct
import tracemalloc
from typing import TYPE_CHECKING

import attrs
import cramjam
import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records import compression, scan
from odradek.kernel.records.batch import TimestampType, read_header
from odradek.kernel.records.compression import (
    CODECS,
    Codec,
    CompressedTooLargeError,
    CompressionType,
    compress_pieces,
    decompress,
)
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.reader import read_records
from odradek.kernel.records.record import encode_record
from odradek.kernel.records.record_errors import RECORD_ERRORS_MAX
from odradek.kernel.records.validation import (
    BRIEF_BYTES_MAX,
    BRIEF_PARTS_MAX,
    BRIEF_REWRITE_BYTES_MAX,
    ValidatedBatch,
    ValidationRules,
    validate_batch,
    validate_briefly,
)

from .bombs import FUTURE, NOW, RECORD, batch_around, bomb, packed_as, row_of_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.types import Buffer

MIB = 1 << 20
MANY = 600_000
"""Records of 4 MB, in 600 bytes."""
WALK = ValidationRules(walks_records=True)

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)

needs_kernel = pytest.mark.skipif(not scan.HAS_COMPILED_KERNEL, reason="the record kernel was not compiled")


def judge(batch: bytearray, rules: ValidationRules) -> ValidatedBatch:
    return validate_batch(batch, 0, len(batch), rules, now_ms=NOW, produce_version=9, partition_name="t-0")


def judge_briefly(batch: bytearray, rules: ValidationRules) -> ValidatedBatch | None:
    return validate_briefly(batch, 0, read_header(batch), rules, now_ms=NOW, partition_name="t-0")


def refused(batch: bytearray, rules: ValidationRules) -> InvalidBatchError:
    with pytest.raises(InvalidBatchError) as caught:
        judge(batch, rules)
    return caught.value


def peak_of(call: Callable[[], object]) -> int:
    """Return by how many bytes memory rose at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG = {
    "many records, in time": (bomb(MANY), WALK),
    "many records, out of time": (bomb(MANY, timestamp=FUTURE), ValidationRules()),
    "many records, gzip": (bomb(MANY, codec=CompressionType.GZIP), WALK),
    "many records without keys": (bomb(MANY), ValidationRules(walks_records=True, is_compacted=True)),
    "one large record": (batch_around(bytes(BRIEF_BYTES_MAX + 1), 1), WALK),
    "one large record, gzip": (batch_around(bytes(BRIEF_BYTES_MAX + 1), 1, codec=CompressionType.GZIP), WALK),
    "to be packed anew": (
        bomb(BRIEF_REWRITE_BYTES_MAX // 7 + 1),
        ValidationRules(compression=CompressionType.GZIP),
    ),
    "to be unpacked": (
        batch_around(bytes(BRIEF_REWRITE_BYTES_MAX + 1), 1),
        ValidationRules(compression=CompressionType.NONE),
    ),
    "of empty snappy blocks": (
        packed_as(XERIAL_HEADER + struct.pack(">ib", 1, 0) * (BRIEF_PARTS_MAX + 1), CompressionType.SNAPPY),
        WALK,
    ),
    "of empty gzip members": (packed_as(gzip.compress(b"") * (BRIEF_PARTS_MAX + 1), CompressionType.GZIP), WALK),
    "a large batch, plain": (
        batch_around(bytes(BRIEF_BYTES_MAX), 1, codec=CompressionType.NONE),
        ValidationRules(max_message_bytes=2 * BRIEF_BYTES_MAX),
    ),
}


@pytest.mark.parametrize("case", LONG)
def test_what_may_take_long_is_not_judged_briefly_and_left_as_it_was(case: str) -> None:
    batch, rules = LONG[case]
    given = bytearray(batch)

    peak = peak_of(lambda: judge_briefly(given, rules))

    assert judge_briefly(given, rules) is None
    assert given == batch
    assert peak < 3 * BRIEF_BYTES_MAX


@needs_kernel
@pytest.mark.parametrize("codec", CompressionType)
def test_what_ordinary_producers_send_is_judged_briefly(codec: CompressionType) -> None:
    count = MIB // 100
    batch = bomb(count, codec=codec, record=RECORD)
    large = batch_around(RECORD, 1, codec=codec)

    assert judge_briefly(large, WALK) == judge(large, WALK)
    if codec is CompressionType.NONE:  # packed, the gaps of its offsets would have it refused
        assert judge_briefly(batch, WALK) == judge(batch, WALK)


@pytest.mark.parametrize("case", ["of empty snappy blocks", "of empty gzip members"])
def test_what_is_in_many_parts_is_judged_where_it_may_take_long(case: str) -> None:
    batch, rules = LONG[case]

    assert refused(bytearray(batch), rules).code is ErrorCode.INVALID_RECORD  # it says one record, and has none


def test_a_batch_that_is_too_large_is_refused_briefly() -> None:
    batch, _ = LONG["a large batch, plain"]

    with pytest.raises(InvalidBatchError) as caught:
        judge_briefly(batch, ValidationRules())

    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@needs_kernel
@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_millions_of_wrong_records_are_counted_and_the_first_told(codec: CompressionType) -> None:
    mistimed = bomb(MANY, codec=codec, timestamp=FUTURE)
    keyless = bomb(MANY, codec=codec)

    by_time = refused(mistimed, ValidationRules())
    by_key = refused(keyless, ValidationRules(walks_records=True, is_compacted=True))

    assert by_time.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in by_time.record_errors] == list(range(RECORD_ERRORS_MAX))
    assert by_time.record_errors[999][1].startswith(f"Timestamp {FUTURE} of message with offset 0 is out of range.")
    assert by_key.code is ErrorCode.INVALID_RECORD
    assert len(by_key.record_errors) == RECORD_ERRORS_MAX
    assert by_key.error_message is not None
    assert f"rejected due to {MANY} record errors in total" in by_key.error_message


@needs_kernel
@pytest.mark.parametrize("is_compacted", [False, True])
def test_one_wrong_record_behind_many_is_found_and_decides_the_code(is_compacted: bool) -> None:
    count = 100_000
    wrong = encode_record(10**10, 0, b"", b"")
    batch = batch_around(RECORD * count + wrong, count + 1)

    error = refused(batch, ValidationRules(walks_records=True, is_compacted=is_compacted))

    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == (RECORD_ERRORS_MAX if is_compacted else 1)


@needs_kernel
@pytest.mark.parametrize(
    "rules",
    [
        ValidationRules(),
        ValidationRules(walks_records=True, is_compacted=True),
        ValidationRules(compression=CompressionType.GZIP),
        ValidationRules(compression=CompressionType.NONE),
        ValidationRules(compression=CompressionType.ZSTD, timestamp_type=TimestampType.LOG_APPEND_TIME),
    ],
    ids=["timestamps", "keys", "gzip", "none", "stamped"],
)
def test_memory_is_bounded_by_what_may_be_unpacked(rules: ValidationRules) -> None:
    rules = attrs.evolve(rules, decompressed_bytes_max=5 * MIB)
    timestamp = NOW if rules.compression is not None or rules.is_compacted else FUTURE
    codec = CompressionType.GZIP if rules.compression is CompressionType.ZSTD else CompressionType.ZSTD
    batch = bomb(MANY, codec=codec, timestamp=timestamp)

    def try_it() -> None:
        with contextlib.suppress(InvalidBatchError):
            judge(batch, rules)

    # Errors and pieces; the records themselves are in memory that the system maps.
    assert peak_of(try_it) < 3 * MIB


@pytest.mark.parametrize("codec", CODECS[1:], ids=lambda codec: codec.name)
def test_what_a_large_batch_is_unpacked_into_is_not_cleared_while_all_other_threads_wait(
    codec: Codec,
) -> None:
    """32 MiB of Python's memory are 10 to 30 ms; what the system maps is none of that, nor seen by who counts it."""
    packed = bomb(MANY, codec=codec.compression_type)[61:]
    unpacked: list[Buffer] = []

    assert peak_of(lambda: unpacked.append(codec.decompress(packed, 32 * MIB))) < 2 * MIB
    assert unpacked[0] == RECORD * MANY


def test_memory_that_the_system_does_not_map_is_no_error_of_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **flags: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", refuse)

    with pytest.raises(MemoryError, match="no room for"):
        compression.decompress_uncopied(CompressionType.ZSTD, bomb(MANY)[61:], 32 * MIB)


def test_a_bomb_is_unpacked_at_most_once_more_than_the_guesses() -> None:
    packed = bomb(MANY)[61:]
    codec = CODECS[CompressionType.ZSTD]
    sizes: list[int] = []

    def note(data: Buffer, out: memoryview) -> int:
        sizes.append(len(out))
        return original(data, out)

    original = cramjam.zstd.decompress_into
    unpack = compression._bounded(note)

    with pytest.raises(compression.DecompressedTooLargeError):
        unpack(packed, 4 * MIB)

    assert sizes == [64 * 1024, 512 * 1024, 4 * MIB + 1]
    assert len(codec.decompress(packed, 8 * MIB)) == 7 * MANY


@pytest.mark.parametrize("codec", CompressionType)
def test_pieces_are_packed_as_one_and_no_further_than_the_limit(codec: CompressionType) -> None:
    noise = bytes((i * i + (i >> 8) * 77) & 0xFF for i in range(200_000))
    pieces = [noise[start : start + 70_000] for start in range(0, len(noise), 70_000)]

    packed = compress_pieces(codec, iter(pieces), limit=len(noise) * 2)

    assert decompress(codec, packed) == noise
    with pytest.raises(CompressedTooLargeError):
        compress_pieces(codec, iter(pieces), limit=len(packed) - 1)


@pytest.mark.parametrize("target", CompressionType)
def test_a_row_of_records_is_packed_anew_as_it_was(target: CompressionType) -> None:
    count = 50_000
    source = CompressionType.GZIP if target is not CompressionType.GZIP else CompressionType.LZ4
    batch = batch_around(row_of_records(count), count, codec=source)

    validated = judge(batch, ValidationRules(compression=target))

    assert validated.rewritten is not None
    assert list(read_records(validated.rewritten)) == list(read_records(batch))


def test_gzip_of_many_small_members_is_read_and_its_tail_ignored() -> None:
    member = bytes(CODECS[CompressionType.GZIP].compress(b"x", None))

    assert decompress(CompressionType.GZIP, member * 5000 + b"tail", 5000) == b"x" * 5000
