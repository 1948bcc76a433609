"""Codecs: both ways, against other libraries, within bounds, and on bytes that are nothing."""

from __future__ import annotations

import contextlib
import gzip
import subprocess
import sys
from typing import TYPE_CHECKING

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # has no stubs
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.compression import (
    CODECS,
    CompressionType,
    DecompressedTooLargeError,
    UnknownCodecError,
    codec_of,
    compress,
    decompress,
)

if TYPE_CHECKING:
    from collections.abc import Callable

COMPRESSING = [codec for codec in CompressionType if codec is not CompressionType.NONE]
TEXT = b"".join(b"%d green bottles, " % i for i in range(20_000))


def snappy_raw(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4_as_java(data: bytes) -> bytes:
    packed = lz4.frame.compress(data, store_size=False, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB)
    return bytes(packed)


def lz4_checked(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data, content_checksum=True, block_checksum=True))


def zstd_without_size(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def zstd_with_checksum(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def gzip_members(data: bytes) -> bytes:
    middle = len(data) // 2
    return gzip.compress(data[:middle]) + gzip.compress(data[middle:])


OTHERS: list[tuple[CompressionType, Callable[[bytes], bytes]]] = [
    (CompressionType.GZIP, gzip.compress),
    (CompressionType.GZIP, gzip_members),
    (CompressionType.SNAPPY, snappy_raw),
    (CompressionType.LZ4, lz4_as_java),
    (CompressionType.LZ4, lz4_checked),
    (CompressionType.ZSTD, zstd_without_size),
    (CompressionType.ZSTD, zstd_with_checksum),
]


def test_table_is_ordered_by_number_and_named_as_kafka_names() -> None:
    assert [(i, codec.name) for i, codec in enumerate(CODECS)] == [
        (0, "none"),
        (1, "gzip"),
        (2, "snappy"),
        (3, "lz4"),
        (4, "zstd"),
    ]
    assert all(codec.compression_type == i for i, codec in enumerate(CODECS))


@pytest.mark.parametrize("unknown", [5, 6, 7, -1])
def test_codec_that_nobody_defined_is_refused(unknown: int) -> None:
    with pytest.raises(UnknownCodecError):
        codec_of(unknown)


@pytest.mark.parametrize("codec", CompressionType)
@given(data=st.binary(max_size=2_000))
def test_what_is_compressed_comes_back_within_exactly_its_size(codec: CompressionType, data: bytes) -> None:
    packed = compress(codec, data)

    assert data == decompress(codec, packed, len(data))
    assert data == decompress(codec, memoryview(packed), len(data) + 1)
    if data:
        with pytest.raises(DecompressedTooLargeError):
            decompress(codec, packed, len(data) - 1)


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024, len(TEXT)])
def test_sizes_around_block_and_guess_come_back(codec: CompressionType, size: int) -> None:
    assert TEXT[:size] == decompress(codec, compress(codec, TEXT[:size]))


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec.level_max])
def test_every_level_comes_back(codec: object) -> None:
    assert isinstance(codec, type(CODECS[0]))
    for level in {max(codec.level_min, -5), 1, codec.level_max}:
        assert codec.decompress(codec.compress(TEXT, level), len(TEXT)) == TEXT


@pytest.mark.parametrize(("codec", "pack"), OTHERS)
def test_what_other_libraries_compress_is_read(codec: CompressionType, pack: Callable[[bytes], bytes]) -> None:
    for data in (b"x", TEXT):
        assert data == decompress(codec, pack(data))


def test_other_libraries_read_what_we_compress() -> None:
    assert gzip.decompress(compress(CompressionType.GZIP, TEXT)) == TEXT
    assert lz4.frame.decompress(compress(CompressionType.LZ4, TEXT)) == TEXT
    assert zstandard.ZstdDecompressor().decompressobj().decompress(compress(CompressionType.ZSTD, TEXT)) == TEXT


def test_lz4_frames_have_independent_blocks_as_java_wants_them() -> None:
    info = lz4.frame.get_frame_info(compress(CompressionType.LZ4, TEXT))

    assert not info["block_linked"]


def test_snappy_is_framed_as_java_frames_it() -> None:
    packed = compress(CompressionType.SNAPPY, TEXT)

    assert packed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    length = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == TEXT[: 32 * 1024]


MEASURE = """
import re, sys
from odradek.kernel.records.compression import DecompressedTooLargeError, decompress

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

codec, limit = map(int, sys.argv[1:])
bomb = sys.stdin.buffer.read()
before = peak()
try:
    print(len(decompress(codec, bomb, limit)))
except DecompressedTooLargeError:
    print("too large")
print(peak() - before)
"""
"""What a process of its own says, in which nothing else takes memory: the result, by how much its peak rose."""


def cost(codec: CompressionType, bomb: bytes, limit: int) -> tuple[str, int]:
    """Return what became of a bomb, and what memory that cost at most, whoever took it."""
    command = [sys.executable, "-c", MEASURE, str(int(codec)), str(limit)]
    result, rise = subprocess.run(command, input=bomb, capture_output=True, check=True, timeout=60).stdout.split(b"\n")[
        :2
    ]
    return result.decode(), int(rise)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's peak of memory in /proc")
@pytest.mark.parametrize("codec", COMPRESSING)
def test_bomb_costs_no_more_than_the_limit(codec: CompressionType) -> None:
    size, limit = 50_000_000, 1_000_000
    bomb = compress(codec, bytes(size))
    result, rise = cost(codec, bomb, limit)
    whole, whole_rise = cost(codec, bomb, size)

    assert (result, whole) == ("too large", str(size))
    assert rise < 8 * limit < size < whole_rise, "the last says that the measure sees what is taken"


def test_snappy_block_that_lies_about_its_size_is_refused_before_it_is_read() -> None:
    liar = b"\xff\xff\xff\xff\x0f" + snappy_raw(b"x")[1:]

    with pytest.raises(DecompressedTooLargeError):
        decompress(CompressionType.SNAPPY, liar, 1000)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_every_truncation_is_refused(codec: CompressionType) -> None:
    packed = compress(codec, TEXT[:3_000])
    for size in range(1, len(packed)):
        if codec is CompressionType.SNAPPY and size == 16:
            continue  # xerial's header alone is an empty stream
        with pytest.raises(CorruptRecordsError):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
def test_damage_ends_in_bytes_or_in_our_error(codec: CompressionType, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, TEXT[:500]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptRecordsError):
        assert len(decompress(codec, packed, 100_000)) <= 100_000


@pytest.mark.parametrize("codec", COMPRESSING)
@given(noise=st.binary(max_size=200))
def test_noise_ends_in_bytes_or_in_our_error(codec: CompressionType, noise: bytes) -> None:
    with contextlib.suppress(CorruptRecordsError):
        assert len(decompress(codec, noise, 100_000)) <= 100_000
