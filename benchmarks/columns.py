"""Record batches to Arrow's columns and back: `python -m benchmarks columns`.

Million records a CPU second: the medians of rounds in which every case has its turn, so that a busy minute of the
machine hits all alike. A record is 100 B of words and a key of 11 B; 1,000 of them make a batch unless said otherwise,
and about 4 MiB of batches are decoded at once, as a fetch brings them. `all columns` is what Spark gets: key, value,
topic, partition, offset, timestamp, timestamp type, as a `pyarrow.RecordBatch`.
"""

from __future__ import annotations

import random
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.client.fetched_records import FetchedRecords
from odradek.kernel.records.batch import HEADER_SIZE, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import HAS_COMPILED_COLUMNS, Column, ColumnReader, encode_batch
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.record import decode_records, decode_records_in_python
from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.arrow import encodable, record_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from odradek.kernel.records.record import Record

ROUNDS = 9
LEAST_S = 0.04
"""So long a case works in each round, at least: the clock of processor time is coarse."""
RECORDS = 34_000
NOW = 1_700_000_000_000
HEADERS = (("trace-id", b"0123456789abcdef"), ("source", b"web"))
RNG = random.Random(1)
WORDS = [bytes(RNG.choices(b"abcdefghijklmnopqrstuvwxyz", k=2 + i % 9)) for i in range(2_000)]
FLAGS = {
    "key": Column.KEY,
    "value": Column.VALUE,
    "topic": Column(0),
    "partition": Column(0),
    "offset": Column.OFFSET,
    "timestamp": Column.TIMESTAMP,
    "timestampType": Column.TIMESTAMP_TYPE,
    "headers": Column.HEADERS,
}
ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


class Names(NamedTuple):
    """Columns in order."""

    names: tuple[str, ...]


class Case(NamedTuple):
    """Something to be timed: what it is called, what it does, and of how many records."""

    name: str
    work: Callable[[], object]
    records: int


def values(count: int, size: int) -> list[bytes]:
    """Return texts of so many bytes each."""
    text = b" ".join(RNG.choices(WORDS, k=50_000))
    return [text[at : at + size] for at in (RNG.randrange(len(text) - size) for _ in range(count))]


def run_of(
    count: int,
    *,
    size: int = 100,
    per_batch: int = 1_000,
    compression: CompressionType = CompressionType.NONE,
    headers: tuple[tuple[str, bytes], ...] = (),
) -> bytes:
    """Return batches of records."""
    parts = []
    texts = values(count, size)
    for first in range(0, count, per_batch):
        builder = BatchBuilder(base_offset=first, compression=compression)
        for number in range(first, min(first + per_batch, count)):
            builder.append(b"key-%07d" % (number % 10_000), texts[number], timestamp=NOW + number, headers=headers)
        parts.append(bytes(builder.build()))
    return b"".join(parts)


def decode(
    data: bytes, names: tuple[str, ...], *, checks_crc: bool = True, is_compiled: bool = HAS_COMPILED_COLUMNS
) -> list[pa.RecordBatch]:
    """Return all of a run as Arrow's record batches."""
    wanted = Column(0)
    for name in names:
        wanted |= FLAGS[name]
    reader = ColumnReader(0, 2**40, wanted, is_read_committed=False, checks_crc=checks_crc, is_compiled=is_compiled)
    return [record_batch(columns, "orders", 3, Names(names)) for columns in reader.feed(data)]


def encode(batches: list[pa.RecordBatch], compression: CompressionType, *, is_compiled: bool) -> int:
    """Return how many bytes some rows are as record batches of at most 1 MB before compression."""
    size = 0
    for batch in batches:
        columns = encodable(batch, now_ms=NOW)
        position = 0
        while position < columns.rows:
            written, position = encode_batch(
                columns,
                None,
                position,
                timestamp_ms=NOW,
                bytes_max=1_000_000,
                compression=compression,
                is_compiled=is_compiled,
            )
            size += len(written)
    return size


def fetch(data: bytes) -> int:
    """Return how many records the client's consumer makes of a run."""
    return sum(1 for _ in FetchedRecords(TopicPartition("orders", 3), data, 0, None, checks_crcs=True))


def decode_objects(data: bytes, decode: Callable[..., Iterable[Record]]) -> int:
    """Return how many records one of the twins makes of a run of one batch."""
    return sum(1 for _ in decode(data[HEADER_SIZE:], read_header(data).records_count))


def build(data: list[bytes]) -> int:
    """Return how many bytes the client's producer makes of values."""
    builder = BatchBuilder()
    for value in data:
        builder.append(b"key-0000000", value, timestamp=NOW)
    return len(builder.build())


def decoding() -> list[Case]:
    """Return what reads."""
    plain = run_of(RECORDS)
    of_headers = run_of(RECORDS // 2, headers=HEADERS)
    large = run_of(4_000, size=1_024)
    few = run_of(2_000)
    cases = [
        Case("all columns", partial(decode, plain, ALL), RECORDS),
        Case("all columns, CRC not checked", partial(decode, plain, ALL, checks_crc=False), RECORDS),
        Case("all columns, 100 records a batch", partial(decode, run_of(RECORDS, per_batch=100), ALL), RECORDS),
        Case("all columns, 10 records a batch", partial(decode, run_of(RECORDS, per_batch=10), ALL), RECORDS),
        Case("all columns, 1 record a batch", partial(decode, run_of(8_000, per_batch=1), ALL), 8_000),
        Case("all columns, 1 KiB records", partial(decode, large, ALL), 4_000),
        Case("value", partial(decode, plain, ("value",)), RECORDS),
        Case("key, offset", partial(decode, plain, ("key", "offset")), RECORDS),
        Case("offset", partial(decode, plain, ("offset",)), RECORDS),
        Case("partition", partial(decode, plain, ("partition",)), RECORDS),
        Case("all columns and 2 headers", partial(decode, of_headers, (*ALL, "headers")), RECORDS // 2),
        Case("all columns but the 2 headers", partial(decode, of_headers, ALL), RECORDS // 2),
    ]
    for codec in list(CompressionType)[1:]:
        data = run_of(RECORDS, compression=codec)
        cases.append(Case(f"all columns, {codec.name.lower()}", partial(decode, data, ALL), RECORDS))
    cases += [
        Case("all columns, in Python", partial(decode, few, ALL, is_compiled=False), 2_000),
        Case("2 headers, in Python", partial(decode, run_of(1_000, headers=HEADERS), ALL, is_compiled=False), 1_000),
        Case("objects", partial(decode_objects, run_of(1_000), decode_records), 1_000),
        Case("objects, in Python", partial(decode_objects, run_of(1_000), decode_records_in_python), 1_000),
        Case("objects, as the client's consumer", partial(fetch, few), 2_000),
    ]
    return cases


def encoding() -> list[Case]:
    """Return what writes."""
    rows = decode(run_of(RECORDS), ("key", "value"))
    of_headers = decode(run_of(RECORDS // 2, headers=HEADERS), ("key", "value", "headers"))
    few = [rows[0].slice(0, 2_000)]
    cases = [
        Case(
            "encode key, value", partial(encode, rows, CompressionType.NONE, is_compiled=HAS_COMPILED_COLUMNS), RECORDS
        ),
        Case(
            "encode key, value, 2 headers",
            partial(encode, of_headers, CompressionType.NONE, is_compiled=HAS_COMPILED_COLUMNS),
            RECORDS // 2,
        ),
    ]
    for codec in list(CompressionType)[1:]:
        work = partial(encode, rows, codec, is_compiled=HAS_COMPILED_COLUMNS)
        cases.append(Case(f"encode key, value, {codec.name.lower()}", work, RECORDS))
    cases += [
        Case("encode, in Python", partial(encode, few, CompressionType.NONE, is_compiled=False), 2_000),
        Case("build, as the client's producer", partial(build, values(1_000, 100)), 1_000),
    ]
    return cases


def rate(case: Case) -> float:
    """Return million records a second of processor time."""
    times = 0
    begin = time.process_time()
    while (spent := time.process_time() - begin) < LEAST_S:
        case.work()
        times += 1
    return times * case.records / spent / 1e6


def main() -> None:
    """Measure and print."""
    print(f"million records a CPU second: median of {ROUNDS} alternated rounds (least, greatest)")
    cases = [*decoding(), *encoding()]
    rounds = [[rate(case) for case in cases] for _ in range(ROUNDS)]
    for case, rates in zip(cases, zip(*rounds, strict=True), strict=True):
        print(f"  {case.name:36} {statistics.median(rates):7.2f} ({min(rates):.2f} .. {max(rates):.2f})")


if __name__ == "__main__":
    main()
