"""Codecs that work in steps make the same of the same bytes, and rest after each item."""

from __future__ import annotations

import random
from typing import Any

import pytest

from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire import DecodeError, Message, decode, encode_bytes
from odradek.kernel.wire.codec import ELEMENTS_MAX, decoder_in_steps, encoder_in_steps, item_encoder_in_steps
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.kernel.wire.records import KeptItem

from .random_messages import all_messages, random_message, versions_of


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_what_is_coded_in_steps_is_the_same(cls: type[Message]) -> None:
    for version in versions_of(cls):
        message = random_message(cls, version, random.Random(f"{cls.__name__} {version}"))
        data = encode_bytes(message, version)

        assert data == run_at_once(encoder_in_steps(cls, version)(message)).join()
        found, end = run_at_once(decoder_in_steps(cls, version)(memoryview(data), 0, ELEMENTS_MAX))

        assert decode(cls, memoryview(data), version) == found
        assert len(data) == end


def test_every_item_is_a_step() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=str(number)) for number in range(100)])
    data = encode_bytes(request, 9)

    assert sum(1 for _ in decoder_in_steps(MetadataRequest, 9)(memoryview(data), 0, ELEMENTS_MAX)) > 100
    assert sum(1 for _ in encoder_in_steps(MetadataRequest, 9)(request)) > 100


def test_numbers_count_as_elements() -> None:
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=list(range(1000)))
    group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    data = encode_bytes(OffsetFetchRequest(groups=[group]), 9)

    with pytest.raises(DecodeError, match="more elements"):
        decode(OffsetFetchRequest, memoryview(data), 9, elements_max=1000)


def test_an_unknown_tag_is_a_step() -> None:
    data = b"\x01\x01" + b"\x64" + b"\x07\x00" * 100

    steps = decoder_in_steps(MetadataRequest, 12)(memoryview(b"\x01\x00\x00" + data[2:]), 0, ELEMENTS_MAX)

    assert sum(1 for _ in steps) > 100


def test_items_that_are_encoded_already_are_put_in_as_they_are() -> None:
    topics = [MetadataRequestTopic(name=str(number)) for number in range(3)]
    encode = item_encoder_in_steps(MetadataRequest, MetadataRequestTopic, 12)
    kept = KeptItem(run_at_once(encode(topics[1])).join())
    mixed: list[Any] = [topics[0], kept, topics[2]]

    found = run_at_once(encoder_in_steps(MetadataRequest, 12)(MetadataRequest(topics=mixed))).join()

    assert found == encode_bytes(MetadataRequest(topics=topics), 12)
