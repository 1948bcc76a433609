"""Records survive their bytes, strangers are refused, and the reference page lists them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.metadata.records import RECORD_TYPES, FormatRecord, decode_record, encode_record

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metadata-records.md"


@pytest.mark.parametrize("record_type", RECORD_TYPES.values(), ids=lambda cls: cls.__name__)
def test_a_record_survives_its_bytes(record_type: type[FormatRecord]) -> None:
    record = record_type()

    assert record == decode_record(encode_record(record))


def test_a_records_bytes_are_these() -> None:
    # Computed by hand: frame 1, type 1, version 0; int16 1; compact string of 3; no tags.
    expected = bytes.fromhex("01 01 00 0001 04 616263 00")

    assert expected == encode_record(FormatRecord(format_version=1, cluster_id="abc"))


@pytest.mark.parametrize("frame", [b"\x02\x01\x00", b"\x01\x7f\x00", b"\x01\x01\x09"])
def test_a_newer_record_is_refused_with_what_to_do(frame: bytes) -> None:
    with pytest.raises(StorageError, match="newer version"):
        decode_record(frame + bytes(20))


def test_damaged_bytes_are_told_as_corruption() -> None:
    data = encode_record(FormatRecord(format_version=1, cluster_id="abc"))
    for end in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_record(data[:end])


def test_the_page_lists_every_record_and_field() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for number, record_type in RECORD_TYPES.items():
        fields = ", ".join(f"`{spec.name}`" for spec in record_type.__fields__) or "none"
        summary = (record_type.__doc__ or "").strip()

        assert f"| {number} | `{record_type.__name__}` | {record_type.__versions__} | {fields} | {summary} |" in text
