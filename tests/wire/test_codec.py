"""What coding promises: versions, defaults, nulls, tags, text, records."""

from __future__ import annotations

from uuid import UUID

import pytest

from odradek.kernel.errors import MalformedRequestError
from odradek.kernel.wire import DecodeError, EncodeError, Message, Records, decode, encode, encode_bytes
from odradek.kernel.wire import fields as f
from odradek.kernel.wire.messages.api_00_produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.records import JOIN_BYTES_MAX
from odradek.kernel.wire.varint import IDS
from odradek.kernel.wire.versions import NO_VERSIONS, Versions, parse_versions


class Piece(Message):
    """A structure inside `Everything`."""

    text: str = f.string()
    since_two: int = f.int8("2+", default=-1)


class Everything(Message, key=77, versions="0-2", flexible="1+"):
    """One field of every wire type."""

    truth: bool = f.boolean(default=True)
    tiny: int = f.int8()
    small: int = f.int16()
    port: int = f.uint16()
    middle: int = f.int32(default=-1)
    unsigned: int = f.uint32()
    large: int = f.int64()
    real: float = f.float64()
    identifier: UUID = f.uuid()
    text: str = f.string()
    maybe_text: str | None = f.string(nullable="0+", default=None)
    blob: bytes = f.binary()
    maybe_blob: bytes | None = f.binary(nullable="0+", default=None)
    batch: Records | None = f.records(nullable="1+")
    numbers: list[int] = f.int32s()
    bytes_: list[int] = f.int8s()
    shorts: list[int] = f.int16s()
    longs: list[int] = f.int64s()
    identifiers: list[UUID] = f.uuids()
    texts: list[str] = f.strings()
    pieces: list[Piece] | None = f.array(Piece, nullable="1+")
    piece: Piece = f.struct(Piece)
    maybe_piece: Piece | None = f.struct(Piece, "1+", nullable="1+")
    tagged: int = f.int32("1+", default=5, tag=0)
    tagged_texts: list[str] | None = f.strings("1+", nullable="1+", default=None, tag=1)
    tagged_piece: Piece | None = f.struct(Piece, "2+", tag=3, ignorable=True)
    ignored: int = f.int32("2+", ignorable=True)
    demanded: int = f.int32("2+")
    late_piece: Piece = f.struct(Piece, "2+", ignorable=True)


class FileSlice:
    """Stands for a piece of a file."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


def filled(**more: object) -> Everything:
    return Everything(
        truth=False,
        tiny=-128,
        small=-2,
        port=65535,
        unsigned=2**32 - 1,
        large=-(2**63),
        real=1.5,
        identifier=UUID(int=9),
        text="größer",
        maybe_text="",
        blob=b"\x00",
        maybe_blob=b"",
        batch=b"batch",
        numbers=[1, -1],
        bytes_=[-1],
        shorts=[300],
        longs=[2**40],
        identifiers=[UUID(int=1), UUID(int=2)],
        texts=["", "b"],
        pieces=[Piece(text="p")],
        piece=Piece(text="q"),
        **more,  # type: ignore[arg-type]  # the fields of one version
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_wire_type_comes_back(version: int) -> None:
    more = {} if version == 0 else {"maybe_piece": Piece(text="r"), "tagged": 6, "tagged_texts": ["t"]}
    if version == 2:
        more |= {"tagged_piece": Piece(text="s", since_two=3), "ignored": 1, "demanded": 2}
    message = filled(**more)
    data = encode_bytes(message, version)

    assert message == decode(Everything, data, version, exact=True)


@pytest.mark.parametrize("version", [1, 2])
def test_nulls_and_defaults_come_back(version: int) -> None:
    message = Everything(batch=None, pieces=None)
    data = encode_bytes(message, version)

    assert message == decode(Everything, data, version, exact=True)
    assert data.endswith(b"\x00")


def test_a_message_without_arguments_holds_kafkas_defaults() -> None:
    request = FetchRequest()

    assert (
        request.replica_id,
        request.max_bytes,
        request.rack_id,
        request.topics,
        request.replica_state,
    ) == (-1, 0x7FFFFFFF, "", [], None)


def test_two_messages_share_no_default() -> None:
    first, second = Everything(), Everything()
    first.numbers.append(1)
    first.piece.text = "changed"

    assert (second.numbers, second.piece.text) == ([], "")


def test_messages_are_equal_by_value_and_tell_their_fields() -> None:
    assert LeaderIdAndEpoch(leader_id=1) == LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)
    assert LeaderIdAndEpoch(leader_id=1) != LeaderIdAndEpoch(leader_id=2)
    assert LeaderIdAndEpoch() != Piece()
    assert repr(LeaderIdAndEpoch(leader_id=1)) == "LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)"


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError):
        LeaderIdAndEpoch(nonsense=1)  # type: ignore[call-arg]  # that is the point


def test_a_value_that_the_version_cannot_carry_is_refused() -> None:
    with pytest.raises(EncodeError, match="demanded is set, but only versions 2\\+ have it"):
        encode(Everything(batch=b"", demanded=1), 1)


def test_an_ignorable_value_is_dropped_where_the_version_has_no_such_field() -> None:
    plain = encode_bytes(Everything(batch=b""), 1)

    assert plain == encode_bytes(Everything(batch=b"", ignored=1, tagged_piece=Piece(text="x")), 1)


def test_a_leader_hint_cannot_be_sent_in_an_old_produce_response() -> None:
    partition = PartitionProduceResponse(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=1))
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])

    with pytest.raises(EncodeError, match="current_leader"):
        encode(response, 9)
    assert decode(ProduceResponse, encode_bytes(response, 10), 10) == response


def test_a_tagged_structure_of_defaults_is_left_out_and_read_as_none() -> None:
    request = FetchRequest(replica_state=ReplicaState())

    assert encode_bytes(FetchRequest(), 15) == encode_bytes(request, 15)
    assert decode(FetchRequest, encode_bytes(request, 15), 15).replica_state is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": None},
        {"tiny": 128},
        {"port": -1},
        {"text": "x" * 32768},
        {"text": "\ud800"},
        {"numbers": [1 << 40]},
        {"piece": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("version", [0, 1])
def test_a_value_out_of_its_type_is_an_encode_error(wrong: dict[str, object], version: int) -> None:
    with pytest.raises(EncodeError):
        encode(Everything(batch=b"", **wrong), version)  # type: ignore[arg-type]  # that is the point


def test_records_may_be_null_only_where_the_version_says_so() -> None:
    with pytest.raises(EncodeError, match="batch may not be null"):
        encode(Everything(batch=None), 0)


def test_a_version_outside_the_class_is_refused_on_both_sides() -> None:
    with pytest.raises(EncodeError, match="ProduceRequest has no version 2"):
        encode(ProduceRequest(), 2)
    with pytest.raises(DecodeError, match="ProduceRequest has no version 14"):
        decode(ProduceRequest, b"", 14)


def test_a_decode_error_closes_the_connection() -> None:
    assert issubclass(DecodeError, MalformedRequestError)


def test_null_for_a_field_that_is_not_nullable_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode(ApiVersionsRequest, b"\x00\x01\x00", 3)
    with pytest.raises(DecodeError):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"])
def test_any_negative_array_length_is_null(length: bytes) -> None:
    assert decode(MetadataRequest, length, 1).topics is None


def test_bytes_behind_a_message_are_ignored_unless_it_must_be_exact() -> None:
    data = encode_bytes(MetadataRequest(topics=[]), 1) + b"more"

    assert decode(MetadataRequest, data, 1).topics == []
    with pytest.raises(DecodeError, match="4 bytes behind its end"):
        decode(MetadataRequest, data, 1, exact=True)


@pytest.mark.parametrize("version", [1, 9])
def test_text_that_is_not_utf8_is_taken_with_replacement_characters(version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="ab")])
    data = encode_bytes(request, version).replace(b"ab", b"\xffb")
    topics = decode(MetadataRequest, data, version).topics

    assert topics is not None
    assert topics[0].name == "\ufffdb"


def test_an_unknown_tag_is_skipped() -> None:
    data = b"\x02a\x02b\x02\x05\x03xyz\xff\x7f\x00"

    assert ApiVersionsRequest(client_software_name="a", client_software_version="b") == decode(
        ApiVersionsRequest, data, 3, exact=True
    )


def test_decoded_records_are_a_view_of_the_buffer() -> None:
    partition = PartitionProduceData(index=1, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    buffer = bytearray(encode_bytes(request, 9))
    records = decode(ProduceRequest, memoryview(buffer), 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0] = ord("B")

    assert b"Batch" in buffer


def fetch_response(records: Records | None) -> FetchResponse:
    partition = PartitionData(partition_index=1, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def test_large_records_are_parts_of_their_own_and_not_copied() -> None:
    records = memoryview(bytes(JOIN_BYTES_MAX + 1))
    encoded = encode(fetch_response(records), 12)

    assert len(encoded.parts) == 3
    assert encoded.parts[1] is records
    assert encoded.size_bytes == len(encoded.join())


def test_small_records_are_joined_to_their_neighbours() -> None:
    encoded = encode(fetch_response(bytes(JOIN_BYTES_MAX)), 12)

    assert len(encoded.parts) == 1


def test_a_slice_of_a_file_is_placed_as_it_is_and_counted() -> None:
    piece = FileSlice(1000)
    encoded = encode(fetch_response(piece), 12)
    as_bytes = encode(fetch_response(bytes(1000)), 12)

    assert encoded.parts[1] is piece
    assert encoded.parts[::2] == as_bytes.parts[::2]
    assert encoded.size_bytes == as_bytes.size_bytes


def test_pieces_of_records_are_placed_in_order() -> None:
    piece, tail = FileSlice(1000), bytearray(600)
    encoded = encode(fetch_response([b"first", piece, FileSlice(0), tail, b""]), 4)

    assert isinstance(encoded.parts[0], bytes)
    assert encoded.parts[0].endswith(b"first")
    assert encoded.parts[1] is piece
    assert encoded.parts[2] is tail
    assert encoded.size_bytes == encode(fetch_response(bytes(1605)), 4).size_bytes


@pytest.mark.parametrize("version", [4, 12])
def test_empty_records_are_not_null(version: int) -> None:
    empty = decode(FetchResponse, encode_bytes(fetch_response(b""), version), version)
    null = decode(FetchResponse, encode_bytes(fetch_response(None), version), version)

    assert empty.responses[0].partitions[0].records == b""
    assert null.responses[0].partitions[0].records is None


def test_metadata_for_all_topics_differs_from_metadata_for_none() -> None:
    everything = decode(MetadataRequest, encode_bytes(MetadataRequest(topics=None), 12), 12)
    nothing = decode(MetadataRequest, encode_bytes(MetadataRequest(topics=[]), 12), 12)

    assert (everything.topics, nothing.topics) == (None, [])


def test_authorized_operations_default_to_unknown() -> None:
    assert MetadataResponse().cluster_authorized_operations == -2147483648


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3", Versions(3, 3)), ("0-12", Versions(0, 12)), ("9+", Versions(9, 32767)), ("none", NO_VERSIONS)],
)
def test_a_range_of_versions_reads_and_prints(text: str, versions: Versions) -> None:
    assert versions == parse_versions(text)
    assert text == str(versions)


def test_a_message_of_our_own_has_its_key() -> None:
    assert Everything.__api_key__ == 77


def test_a_structure_that_the_version_lacks_is_read_as_one_of_defaults() -> None:
    message = decode(Everything, encode_bytes(Everything(batch=b""), 1), 1)

    assert Piece() == message.late_piece


def test_long_arrays_and_long_text_come_back() -> None:
    message = Everything(numbers=list(range(300)), text="x" * 32767, texts=["y" * 200] * 200, batch=b"")

    assert message == decode(Everything, encode_bytes(message, 1), 1, exact=True)


def test_compact_text_longer_than_kafka_allows_is_refused() -> None:
    data = b"\x81\x80\x02" + b"x" * 32768 + b"\x01\x00"

    with pytest.raises(DecodeError, match="a string has 32768 bytes"):
        decode(ApiVersionsRequest, data, 3)


def test_many_ids_do_not_grow_the_memory_of_known_ids_without_end() -> None:
    message = Everything(batch=b"", identifiers=[UUID(int=number) for number in range(70_000)])

    assert message == decode(Everything, encode_bytes(message, 1), 1)
    assert len(IDS) <= 65536


def test_a_field_prints_its_type_and_its_versions() -> None:
    assert repr(Everything.__fields__[-2]) == "<demanded: int32 2+>"


def test_encoded_records_in_files_cannot_be_joined() -> None:
    with pytest.raises(TypeError):
        encode(fetch_response(FileSlice(1000)), 12).join()
