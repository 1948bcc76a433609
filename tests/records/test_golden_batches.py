"""Batches that other programs wrote, and batches of ours that other programs read."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from kio.records.readers import read_batch as kio_read_batch
from kio.records.writers import write_prepared_batch

from odradek.kernel.records.batch import assign_offset_and_epoch, is_crc_valid, iterate_batches, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import encode_control_record, read_control_records
from odradek.kernel.records.reader import read_batch, read_records
from odradek.kernel.records.record import Record
from tests.interop.clients import import_or_skip

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by a deprecated function
    from kafka.record import memory_records as kafka_python

GOLDEN: dict[str, dict[str, str]] = {
    entry["name"]: entry for entry in json.loads((Path(__file__).parent / "golden" / "batches.json").read_text())
}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
NOW = 1_700_000_000_000
HEADERS = (("h", b"x"), ("h", b"again"), ("null", None), ("empty", b""), ("ünïcode", b"y"))
RECORDS = [
    Record(40, NOW, b"key", b"value " * 30),
    Record(41, NOW - 7, None, b"no key"),
    Record(42, NOW + 90_000, b"tombstone", None),
    Record(43, NOW + 1, b"", b"", HEADERS),
]


def golden(name: str) -> bytes:
    return bytes.fromhex(GOLDEN[name]["batch"])


@pytest.mark.parametrize("codec", CODECS)
def test_batch_of_the_java_producer_is_read(codec: str) -> None:
    expected = [
        Record(
            i,
            NOW + i,
            None if i == 3 else b"key-%d" % i,
            None if i == 4 else b"value %d " % i * 8,
            (("h", b"x"), ("n", None)),
        )
        for i in range(6)
    ]

    actual = list(read_records(golden(f"java {codec}")))

    assert expected == [record._replace(offset=record.offset - actual[0].offset) for record in actual]


@pytest.mark.parametrize("codec", CODECS)
def test_batch_of_librdkafka_is_read(codec: str) -> None:
    actual = list(read_records(golden(f"librdkafka {codec}")))
    first = 6 - len(actual)  # its first, uncompressed record went in a batch of its own

    assert [(b"key-%d" % i, b"value %d " % i * 8, NOW + i, (("h", b"x"),)) for i in range(first, 6)] == [
        (record.key, record.value, record.timestamp, record.headers) for record in actual
    ]


@pytest.mark.parametrize("name", [name for name in GOLDEN if "none" in name or "transactional" in name])
def test_uncompressed_batch_is_built_byte_for_byte_as_others_build_it(name: str) -> None:
    expected = golden(name)
    header = read_header(expected)
    builder = BatchBuilder(
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    builder.extend(read_batch(expected, 0, header))

    assert expected == builder.build()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("marker at 1", "EndTransactionMarker(type=<ControlRecordType.COMMIT: 1>, coordinator_epoch=0)"),
        ("marker at 3", "EndTransactionMarker(type=<ControlRecordType.ABORT: 0>, coordinator_epoch=0)"),
        ("leader change", "LeaderChange(version=0, leader_id=1"),
        ("snapshot header", "SnapshotHeader(version=0, last_contained_log_timestamp=0)"),
        ("snapshot footer", "SnapshotFooter(version=0)"),
    ],
)
def test_control_batch_of_kafka_is_read_and_written_again(name: str, says: str) -> None:
    batch = golden(name)
    header = read_header(batch)
    ((raw, control),) = zip(read_batch(batch, 0, header), read_control_records(batch, header), strict=True)

    assert header.is_control
    assert repr(control).startswith(says)
    assert (raw.key, raw.value) == encode_control_record(control)  # type: ignore[arg-type]  # none is unknown
    assert list(read_records(batch)) == []


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_crc_is_valid_wherever_the_batch_is_put(name: str) -> None:
    batch = bytearray(golden(name))
    assign_offset_and_epoch(batch, read_header(batch), 2**62, 77)

    assert [(position, is_crc_valid(batch, position, h)) for position, h in iterate_batches(batch)] == [(0, True)]


def ours(codec: CompressionType) -> bytes:
    builder = BatchBuilder(
        compression=codec, base_offset=40, producer_id=9000, producer_epoch=2, base_sequence=5, is_transactional=True
    )
    builder.extend(RECORDS)
    return bytes(builder.build())


def check_reader(reader: Any) -> None:
    """Take our batch through a foreign reader: a `MemoryRecords` of kafka-python, or of aiokafka, which began as it."""
    batch = reader.next_batch()
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (9000, 2, 5, True)

    actual = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]

    assert actual == RECORDS


@pytest.mark.parametrize("codec", CompressionType)
def test_our_batch_is_read_by_kafka_python(codec: CompressionType) -> None:
    check_reader(kafka_python.MemoryRecords(ours(codec)))


@pytest.mark.interop
@pytest.mark.parametrize("codec", CompressionType)
def test_our_batch_is_read_by_aiokafka(codec: CompressionType) -> None:
    aiokafka = import_or_skip("aiokafka.record.memory_records")
    check_reader(aiokafka.MemoryRecords(ours(codec)))


def test_our_batch_is_read_by_kio() -> None:
    batch, size = kio_read_batch(ours(CompressionType.NONE), 0)

    assert len(ours(CompressionType.NONE)) == size
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (40, 9000, 2, 5)
    assert [(record.offset, record.key, record.value) for record in RECORDS] == [
        (record.offset, record.key, record.value) for record in batch.records
    ]


def test_kio_builds_the_same_bytes() -> None:
    builder = BatchBuilder(base_offset=40, producer_id=1, producer_epoch=0, base_sequence=0)
    for record in RECORDS:  # whole seconds: kio takes times through floats
        builder.append(record.key, record.value, timestamp=record.timestamp // 1000 * 1000, headers=record.headers)
    expected = bytes(builder.build())
    batch, _ = kio_read_batch(expected, 0)
    written = io.BytesIO()
    write_prepared_batch(written, batch)

    assert expected == written.getvalue()


@pytest.mark.parametrize("codec", CompressionType)
def test_batch_of_kafka_python_is_read(codec: CompressionType) -> None:
    builder = kafka_python.MemoryRecordsBuilder(magic=2, compression_type=int(codec), batch_size=10**6)
    for record in RECORDS:
        builder.append(timestamp=record.timestamp, key=record.key, value=record.value, headers=list(record.headers))
    builder.close()

    actual = [record._replace(offset=record.offset + 40) for record in read_records(builder.buffer())]

    assert actual == RECORDS
