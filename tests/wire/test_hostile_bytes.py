"""Whatever the bytes, decoding ends in a message or in a DecodeError, and within bounds."""

from __future__ import annotations

import random
import struct
import zlib

import pytest

from odradek.kernel.wire import ELEMENTS_MAX, DecodeError, Message, decode, encode_bytes
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.varint import unsigned_varint

from .random_messages import all_messages, random_message, versions_of

MUTATIONS_IN_GATE = 12
MUTATIONS_IN_SWEEP = 100_000


def _name(value: object) -> str | None:
    return value.__name__ if isinstance(value, type) else None


def _survives(cls: type[Message], version: int, data: bytes | bytearray) -> bool:
    """Return whether the bytes were taken; any exception but DecodeError fails the test."""
    try:
        decode(cls, memoryview(data), version, elements_max=10_000)
    except DecodeError:
        return False
    return True


def _mutated(data: bytes, source: random.Random) -> bytearray:
    """Return the bytes with one to three wounds: a byte changed, an extreme number written, a piece cut or doubled."""
    wounded = bytearray(data)
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(wounded) + 1)
        kind = source.randrange(4)
        if kind == 0 and place < len(wounded):
            wounded[place] = source.choice([0, 1, 127, 128, 255, source.randrange(256)])
        elif kind == 1:
            wounded[place : place + 4] = struct.pack(">i", source.choice([-1, -2, -(1 << 31), (1 << 31) - 1, 1 << 16]))
        elif kind == 2:
            del wounded[place : place + source.randint(1, 8)]
        else:
            wounded[place:place] = wounded[place : place + source.randint(1, 8)]
    return wounded


def _seeded(cls: type[Message], version: int) -> random.Random:
    return random.Random(zlib.crc32(f"hostile {cls.__name__} {version}".encode()))


@pytest.mark.parametrize("cls", all_messages(), ids=_name)
def test_a_truncated_message_is_refused(cls: type[Message]) -> None:
    for version in versions_of(cls):
        data = encode_bytes(random_message(cls, version, _seeded(cls, version), items_max=1), version)
        lengths = range(0, len(data), max(1, len(data) // 30))

        assert not any(_survives(cls, version, data[:length]) for length in lengths), version


@pytest.mark.parametrize("cls", all_messages(), ids=_name)
def test_mutated_bytes_end_in_a_message_or_in_a_decode_error(cls: type[Message]) -> None:
    for version in versions_of(cls):
        source = _seeded(cls, version)
        data = encode_bytes(random_message(cls, version, source, items_max=2), version)
        for _ in range(MUTATIONS_IN_GATE):
            _survives(cls, version, _mutated(data, source))


@pytest.mark.sweep
@pytest.mark.parametrize("cls", all_messages(), ids=_name)
def test_very_many_mutations_end_in_a_message_or_in_a_decode_error(cls: type[Message]) -> None:
    source = _seeded(cls, -1)
    for _ in range(MUTATIONS_IN_SWEEP // 100):
        version = source.choice(versions_of(cls))
        data = encode_bytes(random_message(cls, version, source, items_max=2), version)
        for _ in range(100):
            _survives(cls, version, _mutated(data, source))


@pytest.mark.sweep
@pytest.mark.parametrize("cls", all_messages(), ids=_name)
def test_every_truncation_of_every_message_is_refused(cls: type[Message]) -> None:
    for version in versions_of(cls):
        data = encode_bytes(random_message(cls, version, _seeded(cls, version)), version)

        assert not any(_survives(cls, version, data[:length]) for length in range(len(data))), version


def test_a_truncated_produce_request_is_refused_at_every_byte() -> None:
    for version in range(3, 14):
        data = encode_bytes(random_message(ProduceRequest, version, random.Random(version)), version)

        assert not any(_survives(ProduceRequest, version, data[:length]) for length in range(len(data)))


def test_an_array_longer_than_its_bytes_is_refused_before_anything_is_made() -> None:
    with pytest.raises(DecodeError, match="length 2147483647 does not fit"):
        decode(MetadataRequest, struct.pack(">i", 2**31 - 1), 1)


def test_the_element_budget_ends_a_message_of_empty_names() -> None:
    count = ELEMENTS_MAX + 1
    data = unsigned_varint(count + 1) + b"\x01\x00" * count + b"\x01\x00\x00"

    with pytest.raises(DecodeError, match="more elements than one message may hold"):
        decode(MetadataRequest, data, 9)


def test_the_element_budget_counts_unknown_tags() -> None:
    data = b"\x01\x01" + unsigned_varint(1001) + b"\x07\x00" * 1001

    with pytest.raises(DecodeError, match="more elements"):
        decode(ApiVersionsRequest, data, 3, elements_max=1000)


def test_the_element_budget_spans_nested_arrays() -> None:
    request = random_message(ProduceRequest, 9, random.Random(4), items_max=6)
    items = len(request.topic_data) + sum(len(topic.partition_data) for topic in request.topic_data)
    data = encode_bytes(request, 9)

    assert request == decode(ProduceRequest, memoryview(data), 9, elements_max=items)
    with pytest.raises(DecodeError, match="more elements"):
        decode(ProduceRequest, memoryview(data), 9, elements_max=items - 1)


@pytest.mark.parametrize("number", [b"\xff" * 5 + b"\x01", b"\xff\xff\xff\xff\x1f", b"\x80" * 6 + b"\x00"])
def test_a_varint_of_more_than_32_bits_is_refused(number: bytes) -> None:
    with pytest.raises(DecodeError, match="32 bits"):
        decode(MetadataRequest, number + bytes(9), 9)


def test_a_known_tag_that_does_not_fill_its_size_is_refused() -> None:
    empty = encode_bytes(ApiVersionsResponse(), 3)
    assert empty.endswith(b"\x00")
    epoch = struct.pack(">q", 5)
    good = empty[:-1] + b"\x01\x01\x08" + epoch
    padded = empty[:-1] + b"\x01\x01\x09" + epoch + b"\x00"

    assert decode(ApiVersionsResponse, good, 3, exact=True).finalized_features_epoch == 5
    with pytest.raises(DecodeError, match="tagged field 1"):
        decode(ApiVersionsResponse, padded, 3)
