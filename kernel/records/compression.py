"""Pure core: the codecs of record batches, one table: number to name, compress, and decompress within a bound.

| id | name | how it stands in a batch |
| --- | --- | --- |
| 0 | none | as it is |
| 1 | gzip | one or more members |
| 2 | snappy | xerial framing (Java, kafka-python, ours) or one raw block (librdkafka, franz-go) |
| 3 | lz4 | LZ4 frame with independent blocks, which is all that the Java client reads |
| 4 | zstd | frames, often without a content size |

Decompressing writes into a buffer of our own and never past the caller's limit, so a small batch that unpacks to
gigabytes costs no more than the limit.

*Source:* Kafka documentation, "Record Batch" (attributes); KIP-110 (zstd), KIP-390 (levels);
snappy-java's stream format.
"""

from __future__ import annotations

import mmap
import struct
import sys
import zlib
from enum import IntEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import cramjam

from ..classes import frozen
from .batch import CorruptRecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..types import Buffer

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Default bound of what one batch may decompress to."""

_GUESSED_RATIO: Final = 4
_SECOND_GUESS_RATIO: Final = 8
_FIRST_GUESS_MIN: Final = 64 * 1024
_CLEARED_BYTES_MAX: Final = 1024 * 1024
"""Python clears memory as it makes it, and no other thread runs meanwhile: a larger buffer is mapped, not cleared."""
_BUFFER_FULL: Final = "failed to write whole buffer"
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_BEGIN: Final = _GZIP_MAGIC + b"\x08"
"""What a member begins with that can be read; among packed bytes it stands once in 16 MiB by chance."""
_GZIP_WINDOW: Final = 31
"""zlib's way of saying: a gzip header, and any window."""
_GZIP_FIRST_SLICE_BYTES: Final = 64 * 1024
_GZIP_SLICE_BYTES: Final = 1024
"""Of what follows the first member: most members after it are tiny."""
_GZIP_PART_BYTES: Final = 256 * 1024
_LZ4_DEFAULT_LEVEL: Final = 9
_LZ4_FAST: Final = 1
_LZ4_FLAGS_AT: Final = 4
_LZ4_INDEPENDENT_FLAG: Final = 0x20


class CompressionType(IntEnum):
    """The codec numbers of a batch's attributes (`compression.type`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnknownCodecError(CorruptRecordsError):
    """A batch names codec 5, 6 or 7, which nobody has defined."""


class DecompressedTooLargeError(CorruptRecordsError):
    """A batch decompresses to more than the caller allows."""


class CompressedTooLargeError(CorruptRecordsError):
    """What was to be compressed takes more than the caller allows."""


@frozen
class Codec:
    """One row of the table.

    Attributes:
        compression_type: Its number.
        name: As in `compression.type`.
        compress: `(data, level)` to compressed bytes; level None is the codec's default.
        decompress: `(data, limit)` to at most `limit` bytes.
        compress_pieces: As `compress`, of data that comes in pieces.
        level_min: Least level that Kafka's configuration takes; 0 with `level_max` 0: the codec has none.
        level_max: Greatest.
    """

    compression_type: CompressionType
    name: str
    compress: Callable[[Buffer, int | None], bytes]
    decompress: Callable[[Buffer, int], Buffer]
    compress_pieces: Callable[[Iterable[Buffer], int | None], Iterator[bytes]]
    level_min: int = 0
    level_max: int = 0


def codec_of(compression_id: int) -> Codec:
    """Return the codec with this number.

    Raises:
        UnknownCodecError: there is none.
    """
    if 0 <= compression_id < len(CODECS):
        return CODECS[compression_id]
    raise UnknownCodecError(f"unknown compression type id {compression_id}")


def compress(compression_id: int, payload: Buffer, level: int | None = None) -> bytes:
    """Return `payload`, a batch's records, compressed.

    Raises:
        UnknownCodecError: no such codec.
    """
    return codec_of(compression_id).compress(payload, level)


def compress_pieces(
    compression_id: int, pieces: Iterable[Buffer], level: int | None = None, *, limit: int = DECOMPRESSED_BYTES_MAX
) -> bytearray:
    """Return what `pieces` are together, a batch's records, compressed; only one of them is there at a time.

    Raises:
        UnknownCodecError: no such codec.
        CompressedTooLargeError: it takes more than `limit` bytes; known as soon as the codec gives out so many.
    """
    packed = bytearray()
    for part in codec_of(compression_id).compress_pieces(pieces, level):
        packed += part
        if len(packed) > limit:
            raise CompressedTooLargeError(f"compresses to more than {limit} bytes")
    return packed


def decompress(compression_id: int, payload: Buffer, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Do as `decompress_uncopied`, and return bytes."""
    return bytes(decompress_uncopied(compression_id, payload, limit))


def decompress_uncopied(compression_id: int, payload: Buffer, limit: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Return `payload`, what follows a batch's header, decompressed to at most `limit` bytes.

    Raises:
        UnknownCodecError: no such codec.
        DecompressedTooLargeError: there are more than `limit` bytes; no more than that were written.
        CorruptRecordsError: the codec cannot read it.
    """
    return codec_of(compression_id).decompress(payload, limit)


def is_in_many_parts(compression_id: int, payload: Buffer, parts_max: int) -> bool:
    """Return whether a payload may be of more members (gzip) or blocks (snappy) than that: each costs, empty or not."""
    if compression_id == CompressionType.GZIP:
        return bytes(payload).count(_GZIP_BEGIN) > parts_max
    if compression_id == CompressionType.SNAPPY:
        return next(islice(_snappy_blocks(memoryview(payload)), parts_max, None), None) is not None
    return False


def check_lz4_blocks(payload: Buffer) -> None:
    """Refuse an LZ4 frame whose blocks lean on each other: our library reads it, Kafka's Java client does not.

    Raises:
        CorruptRecordsError: the frame's descriptor does not say that its blocks are independent.
    """
    if len(payload) <= _LZ4_FLAGS_AT or not payload[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT_FLAG:
        raise CorruptRecordsError("an LZ4 frame of dependent blocks")


def _stored(data: Buffer, level: int | None) -> bytes:
    del level
    return bytes(data)


def _stored_pieces(pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    del level
    return map(bytes, pieces)


def _stored_bounded(data: Buffer, limit: int) -> bytes:
    if len(data) > limit:
        raise DecompressedTooLargeError(f"{len(data)} bytes, more than {limit}")
    return bytes(data)


def _joined(
    compress_pieces: Callable[[Iterable[Buffer], int | None], Iterator[bytes]],
) -> Callable[[Buffer, int | None], bytes]:
    def compress_one(data: Buffer, level: int | None) -> bytes:
        return b"".join(compress_pieces((data,), level))

    return compress_one


def _gzip_pieces(pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    deflater = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    yield from map(deflater.compress, pieces)
    yield deflater.flush()


def _snappy_pieces(pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    """Compress in xerial's framing; a piece of any size becomes blocks of its own."""
    del level
    yield _XERIAL_HEADER
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            yield _INT32.pack(len(block)) + block


def _gzip_bounded(data: Buffer, limit: int) -> Buffer:
    """Decompress one member, or several one after the other; what follows and is no member is ignored, as Java does."""
    parts = _gzip_parts(memoryview(data))
    first = next(parts)
    second = next(parts, None)
    if second is None and len(first) <= limit:
        return first
    out = _room(limit)
    end = 0
    for part in chain((first, second or b""), parts):
        if end + len(part) > limit:
            raise DecompressedTooLargeError(f"decompresses to more than {limit} bytes")
        out[end : end + len(part)] = part
        end += len(part)
    return out[:end]


def _gzip_parts(view: memoryview) -> Iterator[bytes]:
    """Yield what the members hold, in parts that zlib can join while no other thread runs; of usual batches it is one.

    zlib hands back what it did not read as a copy, so the data is given to it in slices: of thousands of tiny members
    each would copy all the others otherwise.
    """
    position = 0
    slice_bytes = _GZIP_FIRST_SLICE_BYTES
    while position == 0 or bytes(view[position : position + len(_GZIP_MAGIC)]) == _GZIP_MAGIC:
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        while not inflater.eof:
            if position == len(view):
                raise CorruptRecordsError("gzip member cut off")
            piece = view[position : position + slice_bytes]
            yield _inflated(inflater, piece)
            position += len(piece) - len(inflater.unused_data) - len(inflater.unconsumed_tail)
        slice_bytes = _GZIP_SLICE_BYTES


def _inflated(inflater: Any, data: Buffer) -> bytes:
    try:
        part: bytes = inflater.decompress(data, _GZIP_PART_BYTES)
    except zlib.error as exc:
        raise CorruptRecordsError(f"cannot decompress: {exc}") from exc
    return part


def _lz4_pieces(pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    # Java's reader refuses frames whose blocks depend on each other, which is cramjam's default. Kafka's default level,
    # 9, means the fast compressor; any other is a level of the slow one.
    is_fast = level is None or level == _LZ4_DEFAULT_LEVEL
    compressor = cramjam.lz4.Compressor(_LZ4_FAST if is_fast else level, False, False)
    for piece in pieces:
        compressor.compress(piece)
    yield bytes(compressor.finish())


def _zstd(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level))


def _zstd_pieces(pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    compressor = cramjam.zstd.Compressor(level)
    for piece in pieces:
        compressor.compress(piece)
    yield bytes(compressor.finish())


def _bounded(decompress_into: Callable[[Buffer, memoryview], int]) -> Callable[[Buffer, int], Buffer]:
    """Make a bounded decompressor of one that fills a buffer of fixed size.

    The size is not known beforehand. A guess, or eight times as much, serves nearly all; what does not fit is begun
    anew once, in a buffer of the limit's size, of which the system gives only the pages that are written to. A byte
    more than the limit tells "just fits" from "too large".
    """

    def fill(data: Buffer, size: int) -> memoryview | None:
        """Return what is in `data`, None where it has more than `size` bytes; no copy is made of what is large."""
        out = _room(size)
        try:
            written = decompress_into(data, out)
        except cramjam.DecompressionError as exc:
            if str(exc) != _BUFFER_FULL:
                raise CorruptRecordsError(f"cannot decompress: {exc}") from exc
            return None
        return out[:written]

    def decompress_bounded(data: Buffer, limit: int) -> Buffer:
        guess = max(_GUESSED_RATIO * len(data), _FIRST_GUESS_MIN)
        for size in (guess, _SECOND_GUESS_RATIO * guess, limit + 1):
            out = fill(data, min(size, limit + 1))
            if out is not None and len(out) <= limit:
                return out
            if size > limit:
                break
        raise DecompressedTooLargeError(f"decompresses to more than {limit} bytes")

    return decompress_bounded


def _room(size: int) -> memoryview:
    """Return a buffer to decompress into; of a large one the system gives only the pages that are written to."""
    if size <= _CLEARED_BYTES_MAX:
        return memoryview(bytearray(size))
    try:
        if sys.platform == "win32":
            return memoryview(mmap.mmap(-1, size))
        return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    except OSError as exc:  # nobody is to take it for an error of a disk
        raise MemoryError(f"no room for {size} bytes") from exc


def _snappy_bounded(data: Buffer, limit: int) -> Buffer:
    """Decompress either framing; the first bytes of each block tell its size, which the library holds it to."""
    view = memoryview(data)
    try:
        size = sum(map(cramjam.snappy.decompress_raw_len, _snappy_blocks(view)))
        if size > limit:
            raise DecompressedTooLargeError(f"decompresses to more than {limit} bytes")
        out = _room(size)
        end = 0
        for block in _snappy_blocks(view):
            end += cramjam.snappy.decompress_raw_into(block, out[end:])
    except cramjam.DecompressionError as exc:
        raise CorruptRecordsError(f"cannot decompress: {exc}") from exc
    return out


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """Yield raw blocks: one unless the stream begins with xerial's magic, as snappy-java decides it."""
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield view
        return
    if len(view) < len(_XERIAL_HEADER):
        raise CorruptRecordsError("snappy header cut off")
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if len(view) - position < _INT32.size:
            raise CorruptRecordsError("snappy block length cut off", position=position)
        (length,) = _INT32.unpack_from(view, position)
        position += _INT32.size
        if not 0 <= length <= len(view) - position:
            raise CorruptRecordsError(f"snappy block of {length} bytes", position=position)
        yield view[position : position + length]
        position += length


CODECS: Final = (
    Codec(CompressionType.NONE, "none", _stored, _stored_bounded, _stored_pieces),
    Codec(CompressionType.GZIP, "gzip", _joined(_gzip_pieces), _gzip_bounded, _gzip_pieces, 1, 9),
    Codec(CompressionType.SNAPPY, "snappy", _joined(_snappy_pieces), _snappy_bounded, _snappy_pieces),
    Codec(CompressionType.LZ4, "lz4", _joined(_lz4_pieces), _bounded(cramjam.lz4.decompress_into), _lz4_pieces, 1, 17),
    Codec(CompressionType.ZSTD, "zstd", _zstd, _bounded(cramjam.zstd.decompress_into), _zstd_pieces, -131072, 22),
)
"""The table, a codec's number being its place."""
