"""The quick way of committed offsets gives what the general codec gives, or leaves it to that."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import ZERO_ID, CorruptionError
from odradek.kernel.wire.errors import EncodeError
from odradek.kernel.wire.messages.data_group_records import OffsetCommitKey, OffsetCommitValue
from odradek.plugins.groups import records
from odradek.plugins.groups.offset_records import decode_offset, encode_key, encode_value
from odradek.plugins.groups.records import GroupRecord, decode_record, encode_record

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(max_size=40) | st.text(st.sampled_from("ab\u00e9\U0001f600"), min_size=100, max_size=200)
KEYS = st.builds(OffsetCommitKey, group=TEXT, topic=TEXT, partition=INT32)
VALUES = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=INT32,
    metadata=TEXT,
    commit_timestamp=INT64,
    expire_timestamp=st.just(-1) | INT64,
    topic_id=st.just(ZERO_ID) | st.uuids(),
)


def general(key: bytes, value: bytes | None) -> Any:
    """Read a record by the general codec alone."""
    try:
        return records._decode_any(key, value)
    except CorruptionError as error:
        return str(error)


def quick(key: bytes, value: bytes | None) -> Any:
    try:
        return decode_record(key, value)
    except CorruptionError as error:
        return str(error)


@given(KEYS, st.none() | VALUES)
def test_both_ways_write_the_same(key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    assert encode_record(GroupRecord(key, value)) == records._encode_any(key, value)


@given(KEYS, st.none() | VALUES)
def test_both_ways_read_the_same(key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    written = records._encode_any(key, value)

    assert quick(*written) == general(*written)


@given(KEYS, VALUES, st.integers(0, 300), st.integers(0, 255), st.binary(max_size=3), st.booleans())
def test_of_damaged_bytes_both_ways_say_the_same(
    key: OffsetCommitKey, value: OffsetCommitValue, at: int, byte: int, tail: bytes, in_key: bool
) -> None:
    parts = [bytearray(part) for part in records._encode_any(key, value) if part is not None]
    damaged = parts[0 if in_key else 1]
    damaged[at % len(damaged)] = byte
    damaged += tail
    written = [bytes(part) for part in parts]

    assert quick(*written) == general(*written)
    for cut in (1, len(damaged) // 2):
        shorter = [bytes(part[:-cut]) if part is damaged else bytes(part) for part in parts]
        assert quick(*shorter) == general(*shorter)


def test_the_usual_record_takes_the_quick_way() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=5, leader_epoch=0, metadata="", commit_timestamp=9, topic_id=uuid.UUID(int=1))
    encoded = encode_key(key), encode_value(value)

    assert encoded == records._encode_any(key, value)
    assert decode_offset(encoded[0] or b"", encoded[1]) == (key, value)
    assert decode_offset(memoryview(encoded[0] or b""), None) == (key, None)


def test_what_does_not_fit_is_refused_as_by_the_general_codec() -> None:
    value = OffsetCommitValue(offset=2**63, metadata="")
    for key in (OffsetCommitKey(group="g" * 40_000, topic="t", partition=1), OffsetCommitKey(group="g", topic="t")):
        try:
            encode_record(GroupRecord(key, value))
        except EncodeError:
            continue
        raise AssertionError("it was written")
