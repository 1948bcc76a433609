"""Records of `__consumer_offsets`: byte for byte Kafka's, and refused when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import ZERO_ID, CorruptionError
from odradek.kernel.wire.messages.data_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.plugins.groups.records import RECORD_TYPES, GroupRecord, decode_record, encode_record

from .driven import DrivenGroups

GOLDEN = [
    (bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
    for key, value in (
        line.split()
        for line in (Path(__file__).parent / "golden/consumer_offsets.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]


@pytest.mark.parametrize(("key", "value"), GOLDEN)
def test_kafkas_records_are_read_and_written_again_byte_for_byte(key: bytes, value: bytes | None) -> None:
    record = decode_record(memoryview(key), None if value is None else memoryview(value))
    assert record is not None

    assert (key, value) == encode_record(record)


def bare(record: GroupRecord | None) -> Any:
    """Return what a record says, without times, ids and names that a run has drawn."""
    assert record is not None
    key, value = record.key, record.value
    if isinstance(key, OffsetCommitKey):
        return value and (value.offset, value.leader_epoch, value.metadata, value.topic_id == ZERO_ID)  # type: ignore[attr-defined] # of this key
    assert isinstance(key, GroupMetadataKey)
    if value is None:
        return None
    assert isinstance(value, GroupMetadataValue)
    members = [
        (
            member.group_instance_id,
            member.member_id == value.leader,
            len(member.member_id),
            member.client_host,
            member.session_timeout,
            member.rebalance_timeout,
            member.subscription,
            member.assignment,
        )
        for member in value.members
    ]
    return value.protocol_type, value.generation, value.protocol, value.leader is None, members


def kafkas(group_id: str) -> list[Any]:
    """Return what Kafka wrote about a classic group."""
    records = [decode_record(key, value) for key, value in GOLDEN]
    return [
        bare(record)
        for record in records
        if record and isinstance(record.key, GroupMetadataKey) and record.key.group == group_id
    ]


def test_a_group_writes_what_kafka_writes() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    for _ in range(2):
        waiter = driven.join("probe", session_ms=10_000, rebalance_ms=20_000, version=5)
        driven.harness.advance(0)
        driven.learn("probe", waiter.response)
    driven.sync("probe", 1, {"probe": b"share"})
    driven.leave(("probe", None))
    ours = [bare(record) for record in driven.harness.records]

    assert _without_id_lengths(kafkas("life")) == _without_id_lengths(ours)


def test_a_static_member_that_comes_back_is_written_as_by_kafka() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    for _ in range(2):
        waiter = driven.join("m", member_id="", instance_id="one", session_ms=10_000, rebalance_ms=20_000)
        driven.harness.advance(0)
        driven.learn("m", waiter.response)
        driven.sync("m", 1, {"m": b"share"}, instance_id="one")
    driven.leave(("", "one"))
    driven.harness.run(lambda shard, _: shard.delete_groups(["g"]))

    assert kafkas("static") == [bare(record) for record in driven.harness.records]


def _without_id_lengths(told: list[Any]) -> list[Any]:
    """Return the same without the length of member ids, which begin with the client's name."""
    return [(*entry[:-1], [(*member[:2], *member[3:]) for member in entry[-1]]) if entry else entry for entry in told]


texts = st.text(max_size=20)
offsets = st.builds(
    OffsetCommitValue,
    offset=st.integers(-(2**63), 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=texts,
    commit_timestamp=st.integers(0, 2**62),
    topic_id=st.uuids(),
)
members = st.builds(
    MemberMetadata,
    member_id=texts,
    group_instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    rebalance_timeout=st.integers(0, 2**31 - 1),
    session_timeout=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
groups = st.builds(
    GroupMetadataValue,
    protocol_type=texts,
    generation=st.integers(0, 2**31 - 1),
    protocol=st.none() | texts,
    leader=st.none() | texts,
    current_state_timestamp=st.integers(-1, 2**62),
    members=st.lists(members, max_size=3),
)


@given(group=texts, topic=texts, partition=st.integers(0, 2**31 - 1), value=st.none() | offsets)
def test_an_offset_comes_back_from_its_bytes(
    group: str, topic: str, partition: int, value: OffsetCommitValue | None
) -> None:
    record = GroupRecord(OffsetCommitKey(group=group, topic=topic, partition=partition), value)

    assert record == decode_record(*encode_record(record))


@given(group=texts, value=st.none() | groups)
def test_a_group_comes_back_from_its_bytes(group: str, value: GroupMetadataValue | None) -> None:
    record = GroupRecord(GroupMetadataKey(group=group), value)

    assert record == decode_record(*encode_record(record))


@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
def test_any_bytes_are_a_record_unknown_or_refused(key: bytes, value: bytes | None) -> None:
    try:
        record = decode_record(key, value)
    except CorruptionError:
        return

    assert record is None or record.key.__api_key__ in RECORD_TYPES


@given(number=st.sampled_from(sorted(RECORD_TYPES)), rest=st.binary(max_size=40), value=st.binary(max_size=80))
def test_bytes_behind_a_known_type_are_a_record_or_refused(number: int, rest: bytes, value: bytes) -> None:
    try:
        record = decode_record(number.to_bytes(2, "big") + rest, value)
    except CorruptionError:
        return
    assert record is not None

    assert number == record.key.__api_key__


def test_the_oldest_type_of_offset_is_read_as_the_present_one() -> None:
    key, value = encode_record(
        GroupRecord(OffsetCommitKey(group="g", topic="t", partition=1), OffsetCommitValue(offset=5))
    )
    record = decode_record(b"\0\0" + key[2:], b"\0\0" + (5).to_bytes(8, "big") + b"\0\1m" + (7).to_bytes(8, "big"))
    assert record is not None
    assert value is not None

    assert OffsetCommitKey(group="g", topic="t", partition=1) == record.key
    assert OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7) == record.value


@pytest.mark.parametrize("number", [9, 10, 15, 17, 99, -1])
def test_a_type_of_another_plugin_is_passed_over(number: int) -> None:
    assert decode_record(number.to_bytes(2, "big", signed=True) + b"\0\1g", b"\0\0anything") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"", None, id="no key"),
        pytest.param(b"\0", None, id="half a type"),
        pytest.param(b"\0\2\0\5g", None, id="a key that is cut off"),
        pytest.param(b"\0\2\0\1g", b"", id="no version"),
        pytest.param(b"\0\2\0\1g", b"\0\x63", id="an unknown version"),
        pytest.param(b"\0\2\0\1g", b"\0\3\0", id="a value that is cut off"),
    ],
)
def test_what_is_no_record_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(CorruptionError):
        decode_record(key, value)
