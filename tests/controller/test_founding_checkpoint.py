"""What a cluster was founded with: written and read as a whole, of Kafka's form, and refused when it is not whole."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from odradek.kernel.controller.founding_checkpoint import (
    FILE_NAME,
    FoundingCheckpoint,
    decode_founding,
    encode_founding,
    keep_founding,
    read_founding,
)
from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.machine.files import DiskError, OsFiles
from odradek.kernel.metadata.records import FORMAT_VERSION, ConfigRecord, FormatRecord, encode_record
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import (
    KRaftControlRecord,
    KRaftVersion,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    VoterEndpoint,
    build_control_batch,
    read_control_records,
)
from odradek.testing.faults import FaultyFiles

from .metadata_helpers import CLUSTER_ID

VOTERS = KRaftVoters(
    voters=[
        KRaftVoter(
            voter_id=each,
            voter_directory_id=UUID(int=each),
            endpoints=[VoterEndpoint(name="CONTROLLER", host="127.0.0.1", port=9093 + each)],
            k_raft_version_feature=KRaftVersionRange(max_supported_version=1),
        )
        for each in (1, 2, 3)
    ]
)
FOUNDING = FoundingCheckpoint(VOTERS, CLUSTER_ID, {"metadata.version": 30, "group.version": 1})


def kafka_batches(*control: KRaftControlRecord, values: tuple[bytes, ...] = ()) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, timestamp=0)
    first, last = control[:-1], control[-1:]
    data = bytes(builder.build()) if values else b""
    return bytes(build_control_batch(first, timestamp=0)) + data + bytes(build_control_batch(last, timestamp=0))


def test_a_founding_says_what_it_was_written_with() -> None:
    assert decode_founding(encode_founding(FOUNDING, 5), "here") == FOUNDING
    assert encode_founding(FOUNDING, 5) == encode_founding(FOUNDING, 5)


def test_a_founding_has_the_form_of_a_snapshot_of_krafts() -> None:
    data = encode_founding(FOUNDING, 5)
    batches = list(iterate_batches(memoryview(data)))
    (first_at, first), (_, between), (last_at, last) = batches

    assert FILE_NAME == "00000000000000000000-0000000000.checkpoint"
    assert read_control_records(data, first, first_at) == [
        SnapshotHeader(last_contained_log_timestamp=5),
        KRaftVersion(k_raft_version=1),
        VOTERS,
    ]
    assert read_control_records(data, last, last_at) == [SnapshotFooter()]
    assert (first.base_offset, between.base_offset, last.base_offset, last.next_offset) == (0, 3, 6, 7)


def test_of_a_founding_that_kafkas_tool_wrote_the_voters_count() -> None:
    feature = bytes((1, 12, 0)) + b"\x11metadata.version\x00\x1e\x00"  # FeatureLevelRecord, as KIP-584 has it
    data = kafka_batches(SnapshotHeader(), KRaftVersion(k_raft_version=1), VOTERS, SnapshotFooter(), values=(feature,))

    assert decode_founding(data, "here") == FoundingCheckpoint(VOTERS)


def test_a_founding_cut_off_anywhere_is_refused() -> None:
    data = encode_founding(FOUNDING, 5)
    for size in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_founding(data[:size], "here")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (kafka_batches(SnapshotHeader(), SnapshotFooter()), "names nobody"),
        (kafka_batches(SnapshotHeader(), KRaftVoters(), SnapshotFooter()), "names nobody"),
        (kafka_batches(SnapshotHeader(), VOTERS, KRaftVersion()), "breaks off"),
        (
            kafka_batches(
                SnapshotHeader(),
                VOTERS,
                SnapshotFooter(),
                values=(
                    encode_record(FormatRecord(format_version=1, cluster_id="a"), 0),
                    encode_record(ConfigRecord(resource_type=4, resource_name="", name="a", value="b"), 0),
                ),
            ),
            "says format and features, and nothing else",
        ),
    ],
)
def test_what_founds_nothing_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(CorruptionError, match=says):
        decode_founding(data, "here")


def test_a_founding_of_a_newer_format_is_refused() -> None:
    newer = encode_record(FormatRecord(format_version=FORMAT_VERSION + 1, cluster_id="a"), 0)
    data = kafka_batches(SnapshotHeader(), VOTERS, SnapshotFooter(), values=(newer,))

    with pytest.raises(StorageError, match="start the newer version that wrote it"):
        decode_founding(data, "here")


def test_a_founding_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    files, data = OsFiles(), encode_founding(FOUNDING, 5)

    assert read_founding(tmp_path, files) is None
    with pytest.raises(CorruptionError):
        keep_founding(tmp_path, files, data[:-1])
    full = FaultyFiles(tmp_path, fail_at=1, error=errno.ENOSPC, is_full_after=True)
    with pytest.raises(DiskError, match="cannot write"):
        keep_founding(tmp_path, full, data)
    assert read_founding(tmp_path, files) is None
    assert keep_founding(tmp_path, files, data) == FOUNDING
    assert read_founding(tmp_path, files) == FOUNDING


def test_a_founding_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(DiskError, match="cannot read"):
        read_founding(tmp_path, OsFiles())
