"""What a newer version wrote is refused in one line that says what to do, and is left as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.records import FORMAT_VERSION, FormatRecord, decode_record, encode_record
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.reader import read_batch

from ..broker.broker_process import BrokerProcess, broker_process
from .test_upgrade import FORMATS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data directory of the newest released format."""
    newest = max(FORMATS.iterdir())
    shutil.copytree(newest, tmp_path / "data")
    return tmp_path / "data"


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Return what is kept; the room that a broker holds in reserve for a full disk says nothing."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in {".lock", "odradek.reserve"})
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refusal(data: Path) -> str:
    """Start a broker that must refuse; return what it says, after looking that nothing was changed."""
    before = bytes_below(data)
    broker = BrokerProcess(data)
    status, said = broker.finish()

    assert (status, len(said.splitlines())) == (1, 1), said
    assert before == bytes_below(data)
    return said


def rewritten(log: bytes, change: FormatRecord) -> bytes:
    """Return a metadata log or snapshot whose first record is another one."""
    written = bytearray()
    for position, header in iterate_batches(log):
        builder = BatchBuilder(base_offset=header.base_offset, partition_leader_epoch=header.partition_leader_epoch)
        for record in read_batch(log, position, header):
            assert record.value is not None
            value = bytes(record.value)
            if isinstance(decode_record(value), FormatRecord):
                value = encode_record(change, METADATA_VERSION_MAX)
            builder.append(record.key, value, timestamp=record.timestamp, offset=record.offset)
        written += builder.build()
    return bytes(written)


def newer() -> FormatRecord:
    return FormatRecord(format_version=FORMAT_VERSION + 1)


def test_a_newer_data_directory_is_refused(data: Path) -> None:
    properties = data / "meta.properties"
    properties.write_text(properties.read_text().replace("version=1", "version=2"))

    said = refusal(data)

    assert "meta.properties" in said
    assert "version '2'" in said
    assert "start the version that wrote it" in said


def test_a_newer_metadata_log_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with broker_process(data):
        pass  # a young broker has no snapshot yet: the format stands at the beginning of the log
    log = data / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(rewritten(log.read_bytes(), newer()))

    said = refusal(data)

    assert f"format version {FORMAT_VERSION + 1}" in said
    assert "start the newer version" in said


def test_a_newer_snapshot_is_refused(data: Path) -> None:
    (*_, snapshot) = sorted((data / "__cluster_metadata-0").glob("*.checkpoint"))
    snapshot.write_bytes(rewritten(snapshot.read_bytes(), newer()))

    said = refusal(data)

    assert f"format version {FORMAT_VERSION + 1}" in said
