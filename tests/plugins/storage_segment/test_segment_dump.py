"""The rows that a dump shows."""

import struct
from pathlib import Path

import pytest

from odradek.plugins.storage_segment.dump import DumpRow, dump_file, is_dumpable
from odradek.testing.batches import make_batch

GOLDEN = Path(__file__).parent / "golden" / "kafka-4.3.1"
LOG_NAME = "00000000000000000010.log"


def rows(name: str, data: bytes, *, with_records: bool = False) -> list[DumpRow]:
    return list(dump_file(name, data, with_records=with_records))


def problems(name: str, data: bytes) -> list[object]:
    return [row.fields["text"] for row in rows(name, data, with_records=True) if row.kind == "problem"]


def test_every_file_that_kafka_wrote_is_shown_without_a_problem() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    found = {p: rows(p.name, p.read_bytes(), with_records=True) for p in files}

    assert {p.name: r for p, r in found.items() if any(row.kind == "problem" for row in r)} == {}
    assert sum(row.kind == "record" for r in found.values() for row in r) == 92
    assert all(is_dumpable(path.name) for path in files)
    kinds = {row.kind for r in found.values() for row in r}
    assert kinds >= {"batch", "record", "index", "timeindex", "producer", "epoch", "offset", "partition", "directory"}


def test_a_record_of_kafka_is_shown_whole() -> None:
    name = "00000000000000000018.log"
    found = rows(name, (GOLDEN / "golden-0" / name).read_bytes(), with_records=True)

    assert [row.fields["codec"] for row in found if row.kind == "batch"][:1] == ["snappy"]
    assert found[1].fields == {
        "offset": 18,
        "timestamp": 1_700_000_080_000,
        "key": b"k0",
        "value": b"snappy-0-0-0-" + b"x" * 20,
        "headers": [("phase", b"0")],
    }


def test_a_row_reads_as_a_line() -> None:
    (row,) = rows("leader-epoch-checkpoint", b"0\n1\n5 40\n")

    assert str(row) == "epoch: leader_epoch=5 start_offset=40"


@pytest.mark.parametrize(
    "name",
    [
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_every_checkpoint_of_offsets_is_shown(name: str) -> None:
    (row,) = rows(name, b"0\n1\norders 3 40\n")

    assert is_dumpable(name)
    assert str(row) == "offset: topic=orders partition=3 offset=40"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        (LOG_NAME, make_batch(10)[:-1], "160 bytes at the end are no batch"),
        (LOG_NAME, make_batch(10) + bytes(5), "5 bytes at the end are no batch"),
        (LOG_NAME, make_batch(10) + bytes(500), "500 bytes at the end are allocated and not yet used"),
        (LOG_NAME, make_batch(9), "offset 9 after 9"),
        (LOG_NAME, make_batch(10)[:-1] + b"!", "the CRC does not match"),
        ("00000000000000000010.index", bytes(9), "1 bytes at the end are no entry"),
        ("00000000000000000010.index", struct.pack(">iiii", 5, 50, 4, 60), "entry (14, 60) after (15, 50)"),
        ("00000000000000000010.timeindex", struct.pack(">qiqi", 9, 5, 9, 6), "entry (9, 16) after (9, 15)"),
        ("00000000000000000010.snapshot", b"12", "the file ends within its header"),
        ("00000000000000000010.snapshot", struct.pack(">hIi", 1, 0, 2), "the file ends before producer 0 of 2"),
        ("00000000000000000010.txnindex", bytes(35), "1 bytes at the end are no entry"),
        ("meta.properties", b"version=7", "meta.properties version '7' is not known"),
        ("partition.metadata", b"version: 3", "partition.metadata version '3' is not known"),
        ("leader-epoch-checkpoint", b"0\n2\n5 40\n", "checkpoint says 2 lines and has 1"),
        ("recovery-point-offset-checkpoint", b"7\n0\n", "checkpoint version '7' is not known"),
        ("recovery-point-offset-checkpoint", b"0\n1\na b\n", "checkpoint line 'a b' has not 3 columns"),
        ("holiday.jpg", b"", "no file of a log directory"),
    ],
)
def test_what_is_wrong_is_told(name: str, data: bytes, text: str) -> None:
    assert text in problems(name, data)
