"""What record batches cost, beside the bare calls beneath; run by hand: `python benchmarks/records.py`.

Prints the best of seven rounds: microseconds a call for the produce path, million records a second for walking,
decoding and building, MB/s of records for the codecs, ours (bounded) beside other libraries (unbounded).
"""

from __future__ import annotations

import random
import struct
import timeit
from importlib import import_module
from typing import TYPE_CHECKING

from crc32c import crc32c

from odradek.kernel.records import scan
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CODECS
from odradek.kernel.records.reader import read_records
from odradek.kernel.records.validation import ValidationRules, validate_batch

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
NOW = 1_700_000_000_000
RECORDS_COUNT = 1_000
WORDS = [bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz", k=2 + i % 9)) for i in range(2_000)]
HEADER = struct.Struct(">qiibIhiqqqhii")


def seconds(call: Callable[[], object], number: int) -> float:
    """Return the best time of one call."""
    return min(timeit.repeat(call, number=number, repeat=ROUNDS)) / number


def build(count: int) -> bytearray:
    """Return a batch of `count` records of 100 B."""
    builder = BatchBuilder()
    for index in range(count):
        builder.append(None, b"x" * 100, timestamp=NOW + index)
    return builder.build()


def produce_path() -> None:
    """Measure what one batch of one record costs on its way into the log."""
    batch = build(1)
    end = len(batch)
    rules, walking = ValidationRules(), ValidationRules(walks_records=True)
    header = read_header(batch)
    covered = memoryview(batch)[21:]
    rows: dict[str, Callable[[], object]] = {
        "bare struct.unpack_from": lambda: HEADER.unpack_from(batch, 0),
        "bare crc32c": lambda: crc32c(covered),
        "read_header": lambda: read_header(batch),
        "validate_batch, headers": lambda: validate_batch(batch, 0, end, rules, now_ms=NOW, produce_version=9),
        "validate_batch, full": lambda: validate_batch(batch, 0, end, walking, now_ms=NOW, produce_version=9),
        "assign_offset_and_epoch": lambda: assign_offset_and_epoch(batch, header, 0, 0),
    }
    print(f"a batch of one record, {end} bytes")
    for name, call in rows.items():
        print(f"  {name:32} {seconds(call, 20_000) * 1e6:8.2f} us")


def many_records() -> None:
    """Measure walking, decoding and building."""
    batch = build(RECORDS_COUNT)
    payload = bytes(batch[61:])
    rows: dict[str, Callable[[], object]] = {
        "walk, Python": lambda: scan.scan_records_in_python(payload, RECORDS_COUNT),
        "decode": lambda: sum(1 for _ in read_records(batch)),
        "build": lambda: build(RECORDS_COUNT),
    }
    if scan.HAS_COMPILED_KERNEL:
        rows["walk, compiled"] = lambda: scan.scan_records_compiled(payload, RECORDS_COUNT)
    print(f"{RECORDS_COUNT} records of 100 B")
    for name, call in rows.items():
        print(f"  {name:32} {RECORDS_COUNT / seconds(call, 5) / 1e6:8.2f} million/s")


def codecs() -> None:
    """Measure the codecs on 1 MB of words."""
    rng = random.Random(2)
    text = b" ".join(rng.choices(WORDS, k=160_000))[:1_000_000]
    print("codecs, 1 MB of words")
    for codec in CODECS[1:]:
        packed = codec.compress(text, None)
        unpack = seconds(lambda codec=codec, packed=packed: codec.decompress(packed, 2**27), 2)  # type: ignore[misc]  # bound early
        pack = seconds(lambda codec=codec: codec.compress(text, None), 1)  # type: ignore[misc]  # bound early
        ratio = len(text) / len(packed)
        print(f"  {codec.name:8} 1:{ratio:.1f}  decompress {1 / unpack:6.0f}  compress {1 / pack:6.0f} MB/s")
    for name, compress, decompress in (
        ("lz4.frame", "compress", "decompress"),
        ("zstandard", "compress", "decompress"),
    ):
        try:
            module = import_module(name)
        except ImportError:
            continue
        other, unpack_other = getattr(module, compress)(text), getattr(module, decompress)
        spent = seconds(lambda call=unpack_other, data=other: call(data), 2)  # type: ignore[misc]  # bound early
        print(f"  {name} decompress {1 / spent:6.0f} MB/s")


if __name__ == "__main__":
    produce_path()
    many_records()
    codecs()
