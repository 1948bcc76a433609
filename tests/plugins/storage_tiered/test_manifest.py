"""Manifests: what they hold, how they are stored, and how names say where."""

from __future__ import annotations

import json
import uuid

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import TopicIdPartition, id_text
from odradek.plugins.storage_tiered.documents import CorruptDocumentError, LaterFormatError, encode_document
from odradek.plugins.storage_tiered.manifest import (
    Manifest,
    StoredFile,
    StoredSegment,
    decode_manifest,
    encode_manifest,
)
from odradek.plugins.storage_tiered.names import (
    FILE_KINDS,
    ManifestName,
    SegmentFileName,
    TopicName,
    manifest_name,
    parse_name,
    segment_file_name,
    topic_file_name,
)
from tests.plugins.storage_tiered.manifest_values import PARTITION, bounds, manifest, manifests, segment

STORED = b"""{
"crc32c": 1192932684,
"format_version": 1,
"version": 7,
"cluster_id": "cluster-A",
"topic": "orders",
"topic_id": "AAAAAAAAAE0AAAAAAAAAAA",
"partition": 3,
"leader_epoch": 5,
"log_start_offset": 40,
"segments": [
{"base_offset":0,"files":{"log":{"crc32c":7,"size_bytes":100}},"leader_epochs":[[0,0]],"max_timestamp":1100,\
"next_offset":100,"uid":"uid-0"},
{"base_offset":100,"files":{"log":{"crc32c":7,"size_bytes":100}},"leader_epochs":[[1,100]],"max_timestamp":1150,\
"next_offset":150,"uid":"uid-100"}
]
}
"""
"""A manifest as version 1 stores it: it has to be readable for ever."""


def test_the_stored_form_stays_as_it_is() -> None:
    made = manifest(segment(0, 100), segment(100, 150), version=7, log_start_offset=40)

    assert encode_manifest(made) == STORED
    assert decode_manifest(STORED, "it") == made


def test_white_space_and_order_may_change() -> None:
    fields = json.loads(STORED)

    assert decode_manifest(json.dumps(fields, indent=8, sort_keys=True).encode(), "it") == decode_manifest(STORED, "it")


@given(manifests())
def test_what_was_stored_is_read(made: Manifest) -> None:
    assert decode_manifest(encode_manifest(made), "it") == made


@given(manifests(), st.data())
def test_no_flipped_bit_goes_unseen(made: Manifest, data: st.DataObject) -> None:
    stored = bytearray(encode_manifest(made))
    place = data.draw(st.integers(0, len(stored) - 1))
    stored[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = decode_manifest(bytes(stored), "it")
    except (CorruptDocumentError, LaterFormatError):
        return

    assert found == made  # white space


@given(manifests(), st.data())
def test_what_is_cut_off_is_seen(made: Manifest, data: st.DataObject) -> None:
    stored = encode_manifest(made)
    with pytest.raises(CorruptDocumentError):
        decode_manifest(stored[: data.draw(st.integers(0, len(stored) - 3))], "it")


def test_a_later_format_is_refused_with_its_place_and_what_to_do() -> None:
    later = STORED.replace(b'"format_version": 1', b'"format_version": 2')

    with pytest.raises(LaterFormatError) as caught:
        decode_manifest(later, "the manifest of partition orders-3")
    assert str(caught.value) == (
        "the manifest of partition orders-3 has format version 2, and this odradek reads no later one than 1: a later "
        "odradek wrote it; upgrade this one to at least that version"
    )


def test_an_unknown_field_is_ignored_on_reading_and_not_kept() -> None:
    known = json.loads(STORED)
    del known["crc32c"], known["format_version"]
    known["colour"] = "blue"
    found = decode_manifest(encode_document(known), "it")

    assert encode_manifest(found) == STORED


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("version", "7", "the field 'version' is '7', no int"),
        ("partition", True, "the field 'partition' is True, no int"),
        ("topic_id", "x", "an id has 22 characters"),
        ("segments", [1], "something other than objects"),
        ("segments", None, "no list"),
        ("log_start_offset", 100, "a segment lies below the log start offset 100"),
    ],
)
def test_a_wrong_field_is_told(field: str, value: object, told: str) -> None:
    fields = json.loads(STORED)
    del fields["crc32c"]

    with pytest.raises(CorruptDocumentError, match=told):
        decode_manifest(encode_document({**fields, field: value}), "it")


@pytest.mark.parametrize("field", ["files", "leader_epochs"])
def test_a_wrong_field_of_a_segment_is_told(field: str) -> None:
    fields = json.loads(STORED)
    del fields["crc32c"]
    fields["segments"][1][field] = [["x", "y"]] if field == "leader_epochs" else {"log": 5}

    with pytest.raises(
        CorruptDocumentError, match=rf"it, segments\[1\] is damaged: the field '{field}' holds something"
    ):
        decode_manifest(encode_document(fields), "it")


def test_json_that_is_no_object_is_told() -> None:
    with pytest.raises(CorruptDocumentError, match="it is damaged: not an object"):
        decode_manifest(b"[]", "it")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"base_offset": 150}, "from offset 150 up to 100"),
        ({"files": {}}, "has the files"),
        ({"files": {"log": StoredFile(1, 1), "other": StoredFile(1, 1)}}, "has the files"),
        ({"leader_epochs": ((1, 0), (1, 5))}, "out of order"),
        ({"leader_epochs": ((1, 5), (2, 5))}, "out of order"),
        ({"leader_epochs": ((1, 100),)}, "begins outside of it"),
    ],
)
def test_an_impossible_segment_cannot_be_made(change: dict[str, object], told: str) -> None:
    fields = attrs.asdict(segment(0, 100), recurse=False)

    with pytest.raises(ValueError, match=told):
        StoredSegment(**{**fields, **change})


def test_segments_do_not_overlap_and_uids_are_not_doubled() -> None:
    with pytest.raises(ValueError, match="into the one at 99"):
        manifest(segment(0, 100), segment(99, 120))
    with pytest.raises(ValueError, match="the same uid"):
        manifest(segment(0, 100, "x"), segment(100, 120, "x"))


def test_a_reader_meets_the_segments_from_its_offset_on() -> None:
    made = manifest(segment(10, 20), segment(20, 30), segment(40, 50), log_start_offset=10)
    met = {offset: [each.base_offset for each in made.segments_from(offset)] for offset in (0, 19, 20, 29, 30, 49, 50)}

    assert met == {0: [10, 20, 40], 19: [10, 20, 40], 20: [20, 40], 29: [20, 40], 30: [40], 49: [40], 50: []}
    assert (made.gaps, made.end_offset, made.size_bytes) == ([(30, 40)], 50, 300)


def test_segments_below_a_new_log_start_leave() -> None:
    made = manifest(segment(0, 20), segment(20, 30), segment(30, 40))

    assert bounds(made.without_below(20)) == [(20, 30), (30, 40)]
    assert bounds(made.without_below(29)) == [(20, 30), (30, 40)]
    assert made.without_below(29).log_start_offset == 29
    assert bounds(made.without_below(99)) == []
    assert made.without_below(29).without_below(5).log_start_offset == 29


def test_a_segment_comes_behind_the_others() -> None:
    made = manifest(segment(0, 20)).with_segment(segment(20, 30))

    assert bounds(made) == [(0, 20), (20, 30)]
    with pytest.raises(ValueError, match="into the one at 29"):
        made.with_segment(segment(29, 40))
    with pytest.raises(ValueError, match="below the log start offset"):
        manifest(log_start_offset=20).with_segment(segment(10, 20))


def test_rewritten_segments_take_the_place_of_their_originals() -> None:
    made = manifest(segment(0, 20), segment(20, 30), segment(30, 40), segment(40, 50))
    replaced = made.with_replacement({"uid-20", "uid-30"}, [segment(25, 40, "new")])

    assert bounds(replaced) == [(0, 20), (25, 40), (40, 50)]
    for uids in ({"uid-20", "uid-40"}, {"uid-20", "missing"}, set[str]()):
        with pytest.raises(ValueError, match="to replace"):
            made.with_replacement(uids, [])
    with pytest.raises(ValueError, match="more than the replaced offsets, 20 to 30"):
        made.with_replacement(["uid-20"], [segment(20, 31, "new")])


def test_offsets_of_which_compaction_left_nothing_are_still_accounted_for() -> None:
    made = manifest(segment(0, 20), segment(20, 30), segment(30, 40))
    middle = made.with_replacement(["uid-20"], [])
    last = made.with_replacement(["uid-20", "uid-30"], [])

    assert (bounds(middle), middle.gaps) == ([(0, 30), (30, 40)], [])
    assert (bounds(last), last.end_offset) == ([(0, 40)], 40)
    with pytest.raises(ValueError, match="nothing stands for the offsets from 0 up to 20 any more"):
        made.with_replacement(["uid-0"], [])


def test_a_leader_epoch_never_goes_back() -> None:
    assert manifest(leader_epoch=5).with_leader_epoch(6).leader_epoch == 6
    with pytest.raises(ValueError, match="leader epoch 4 after 5"):
        manifest(leader_epoch=5).with_leader_epoch(4)


def test_a_manifest_names_the_objects_of_its_segments() -> None:
    files = {"log": StoredFile(1, 1), "txnindex": StoredFile(2, 2)}
    made = manifest(attrs.evolve(segment(20, 30, "u"), files=files))

    assert list(made.object_names()) == [
        f"topics/orders/{id_text(PARTITION.topic_id)}/3/segments/00000000000000000020-u.{kind}"
        for kind in ("log", "txnindex")
    ]


topics = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
partitions = st.builds(TopicIdPartition, st.uuids(), topics, st.integers(0, (1 << 31) - 1))
numbers = st.integers(0, (1 << 63) - 1)


@given(partitions, numbers, st.uuids().map(id_text), st.sampled_from(FILE_KINDS))
def test_a_name_tells_what_it_was_made_of(partition: TopicIdPartition, number: int, uid: str, kind: str) -> None:
    found = [
        parse_name(topic_file_name(partition.topic, partition.topic_id)),
        parse_name(manifest_name(partition, number)),
        parse_name(segment_file_name(partition, number, uid, kind)),
    ]

    assert found == [
        TopicName(partition.topic, partition.topic_id),
        ManifestName(partition, number),
        SegmentFileName(partition, number, uid, kind),
    ]


@given(st.uuids(), numbers, numbers)
def test_names_in_order_are_numbers_in_order(topic_id: uuid.UUID, one: int, other: int) -> None:
    partition = TopicIdPartition(topic_id, "t", 0)

    assert (manifest_name(partition, one) < manifest_name(partition, other)) == (one < other)


@pytest.mark.parametrize(
    "name",
    [
        "odradek.json",
        "topics/orders/topic.json",
        f"topics/orders/{'A' * 22}/00/manifest/{0:020d}.json",
        f"topics/orders/{'A' * 22}/0/manifest/{0:019d}.json",
        f"topics/orders/{'A' * 22}/0/segments/{0:020d}-uid.exe",
        f"topics/or/ders/{'A' * 22}/topic.json",
        "somebody else's",
    ],
)
def test_a_name_of_something_else_says_nothing(name: str) -> None:
    assert parse_name(name) is None
