"""Control records: every kind both ways, several in a batch, and what cannot be one."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError, is_crc_valid, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    KRaftControlRecord,
    KRaftVersion,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControlRecord,
    VoterEndpoint,
    build_control_batch,
    decode_control_record,
    encode_control_record,
    read_control_record,
    read_control_records,
)

NOW = 1_700_000_000_000
DIRECTORY = uuid.UUID(int=7)
VOTER = KRaftVoter(
    voter_id=1,
    voter_directory_id=DIRECTORY,
    endpoints=[VoterEndpoint(name="CONTROLLER", host="localhost", port=65_000)],
    k_raft_version_feature=KRaftVersionRange(min_supported_version=0, max_supported_version=1),
)
KRAFT_RECORDS: list[KRaftControlRecord] = [
    LeaderChange(version=0, leader_id=1, voters=[QuorumVoter(voter_id=1)], granting_voters=[QuorumVoter(voter_id=1)]),
    LeaderChange(version=1, leader_id=2, voters=[QuorumVoter(voter_id=2, voter_directory_id=DIRECTORY)]),
    SnapshotHeader(last_contained_log_timestamp=NOW),
    SnapshotFooter(),
    KRaftVersion(k_raft_version=1),
    KRaftVoters(voters=[VOTER]),
]


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_marker_ends_its_producers_transaction(kind: ControlRecordType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=9)

    batch = build_control_batch(
        [marker], timestamp=NOW, base_offset=77, partition_leader_epoch=3, producer_id=4000, producer_epoch=2
    )

    header = read_header(batch)
    assert is_crc_valid(batch, 0, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.base_offset, header.partition_leader_epoch, header.records_count) == (77, 3, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 2, -1)
    assert header.last_sequence == -1
    assert marker == read_control_record(batch, header)


def test_krafts_records_stand_in_one_batch_and_are_no_transaction() -> None:
    batch = build_control_batch(KRAFT_RECORDS, timestamp=NOW)
    header = read_header(batch)

    assert header.is_control
    assert not header.is_transactional
    assert [repr(record) for record in KRAFT_RECORDS] == [
        repr(record) for record in read_control_records(batch, header)
    ]


def test_voters_stand_as_kafkas_schema_says() -> None:
    # By hand from VotersRecord.json: version, array of 1, id, directory, endpoints, range, tags.
    expected = (
        "0000" "02" "00000001" "00000000000000000000000000000007"
        "02" "0b434f4e54524f4c4c4552" "0a6c6f63616c686f7374" "fde8" "00"
        "0000" "0001" "00" "00" "00"
    )  # fmt: skip

    key, value = encode_control_record(KRAFT_RECORDS[-1])

    assert key.hex() == "00000006"
    assert expected == value.hex()


def test_newer_version_is_read_as_the_newest_known() -> None:
    key, value = encode_control_record(SnapshotHeader(last_contained_log_timestamp=5))

    newer = decode_control_record(key, b"\0\x07" + value[2:-1] + b"\x01\x63\x01x")

    assert isinstance(newer, SnapshotHeader)
    assert (newer.version, newer.last_contained_log_timestamp) == (7, 5)
    assert decode_control_record(b"\0\1\0\1", b"\0\1\0\0\0\x05more") == EndTransactionMarker(
        ControlRecordType.COMMIT, 5
    )


def test_unknown_type_is_handed_on_to_be_skipped() -> None:
    assert decode_control_record(b"\0\0\0\x63", b"x") == UnknownControlRecord(99, b"x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\1"),
        (b"\0\0\0", b"\0\0\0\0\0\1"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\1"),
        (b"\0\0\0\0", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
        (b"\0\0\0\2", None),
        (b"\0\0\0\2", b"\0"),
        (b"\0\0\0\2", b"\xff\xff\0\0\0\0"),
        (b"\0\0\0\3", b"\0\0\0"),
    ],
)
def test_what_cannot_be_a_control_record_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecordsError):
        decode_control_record(key, value)


@given(type_id=st.integers(0, 8), value=st.none() | st.binary(max_size=60))
def test_noise_ends_in_a_record_or_in_our_error(type_id: int, value: bytes | None) -> None:
    with contextlib.suppress(CorruptRecordsError):
        decode_control_record(b"\0\0" + type_id.to_bytes(2, "big"), value)


def test_control_batch_without_a_record_is_corrupt() -> None:
    batch = BatchBuilder(is_control=True).build(last_offset=0)

    with pytest.raises(CorruptRecordsError):
        read_control_record(batch, read_header(batch))
