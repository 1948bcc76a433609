"""Records survive their bytes, strangers are refused, and the reference page lists them all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.metadata.features import METADATA_VERSION_ELR, METADATA_VERSION_MAX
from odradek.kernel.metadata.records import (
    RECORD_TYPES,
    WRITTEN_VERSIONS,
    BrokerRecord,
    FormatRecord,
    PartitionRecord,
    SupportedFeature,
    decode_record,
    encode_record,
    written_version,
)
from odradek.kernel.wire.errors import EncodeError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metadata-records.md"

VERSION_AT = 2
"""Where a record's value has the version of its type."""


@pytest.mark.parametrize("record_type", RECORD_TYPES.values(), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("level", [0, METADATA_VERSION_MAX])
def test_a_record_survives_its_bytes(record_type: type[FormatRecord], level: int) -> None:
    record = record_type()

    assert record == decode_record(encode_record(record, level))


def test_a_records_bytes_are_these() -> None:
    # Computed by hand: frame 1, type 1, version 0; int16 1; compact string of 3; no tags.
    expected = bytes.fromhex("01 01 00 0001 04 616263 00")

    assert expected == encode_record(FormatRecord(format_version=1, cluster_id="abc"), METADATA_VERSION_MAX)


@pytest.mark.parametrize(
    ("level", "version"),
    [(0, 0), (7, 0), (METADATA_VERSION_ELR - 1, 0), (METADATA_VERSION_ELR, 1), (METADATA_VERSION_MAX, 1)],
)
def test_a_partition_is_written_in_the_version_that_the_finalized_level_allows(level: int, version: int) -> None:
    assert encode_record(PartitionRecord(), level)[VERSION_AT] == version


def test_the_newest_level_writes_the_newest_version_of_every_type() -> None:
    for record_type in RECORD_TYPES.values():
        assert written_version(record_type, METADATA_VERSION_MAX) == record_type.__versions__.highest


def test_a_higher_level_never_writes_an_older_version() -> None:
    for versions in WRITTEN_VERSIONS.values():
        assert list(versions) == sorted(versions)
        assert [version for _, version in versions] == sorted({version for _, version in versions})


def test_what_an_older_version_has_no_place_for_is_not_left_out() -> None:
    with pytest.raises(EncodeError, match="eligible_leader_replicas"):
        encode_record(PartitionRecord(eligible_leader_replicas=[1]), METADATA_VERSION_ELR - 1)


def test_every_level_has_the_features_of_a_broker() -> None:
    record = BrokerRecord(
        incarnation_id=RandomIds(random.Random(1)).new_id(),
        features=[SupportedFeature(name="metadata.version", level_min=7, level_max=22)],
    )

    assert record == decode_record(encode_record(record, 0))


@pytest.mark.parametrize("frame", [b"\x02\x01\x00", b"\x01\x7f\x00", b"\x01\x01\x09"])
def test_a_newer_record_is_refused_with_what_to_do(frame: bytes) -> None:
    with pytest.raises(StorageError, match=r"newer version.*lower metadata\.version"):
        decode_record(frame + bytes(20))


def test_damaged_bytes_are_told_as_corruption() -> None:
    data = encode_record(FormatRecord(format_version=1, cluster_id="abc"), METADATA_VERSION_MAX)
    for end in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_record(data[:end])


def test_the_page_lists_every_record_and_field() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for number, record_type in RECORD_TYPES.items():
        fields = ", ".join(f"`{spec.name}`" for spec in record_type.__fields__) or "none"
        summary = (record_type.__doc__ or "").strip()

        assert f"| {number} | `{record_type.__name__}` | {record_type.__versions__} | {fields} | {summary} |" in text


def test_the_page_says_which_level_writes_which_version() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for record_type, versions in WRITTEN_VERSIONS.items():
        for level, version in versions:
            assert f"| `{record_type.__name__}` | {version} | {level} |" in text
