"""Requests that say the same again: recognised without decoding, and answered as if they had been decoded."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.dispatch import repeated_produce
from odradek.kernel.dispatch.repeated_produce import RepeatedProduce, RepeatedProduces, find_repeated_in_python
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.codec import decode, encode_bytes
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .house import House, batch, produce_parts, produce_request
from .memory_client import Asked, MemoryClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.dispatch.repeated_produce import Finder
    from odradek.kernel.dispatch.router import Router

KERNEL = "odradek.kernel.dispatch.handlers._repeated"
needs_kernel = pytest.mark.skipif(find_spec(KERNEL) is None, reason="the finder was not compiled")
HEAD = b"\0\0\0\x09\0\0\0\x01\0\x01c\0"
CONNECTION = MemoryClient(cast("Router", None)).connection
"""Whose it is does not matter: what is known is known of all."""
SIZES = st.sampled_from([0, 1, 61, 100, 126, 127, 128, 300, 16_383, 16_384])


def compiled() -> Finder:
    return cast("Finder", import_module(KERNEL).find_repeated)


@pytest.fixture(scope="module", params=["python", pytest.param("compiled", marks=needs_kernel)], autouse=True)
def finder(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        chosen = compiled() if request.param == "compiled" else find_repeated_in_python
        patched.setattr(repeated_produce, "_find_repeated", chosen)
        yield


def request(
    name: str = "t",
    index: int = 0,
    records: bytes | None = b"",
    *,
    txn: str | None = None,
    acks: int = 1,
    count: int = 1,
) -> ProduceRequest:
    part = PartitionProduceData(index=index, records=records)
    topic = TopicProduceData(name=name, topic_id=UUID(int=len(name)), partition_data=[part] * count)
    return ProduceRequest(transactional_id=txn, acks=acks, timeout_ms=1_000 * index, topic_data=[topic])


def frame_of(asked: ProduceRequest, version: int) -> memoryview:
    return memoryview(bytearray(HEAD + encode_bytes(asked, version)))


def learn(
    repeats: RepeatedProduces,
    frame: memoryview,
    body: ProduceRequest,
    version: int,
    client: tuple[int, str | None] = (1, "c"),
) -> None:
    asked: Any = Asked(CONNECTION, version, client[1])
    repeats.learn(asked, frame, client[0], body)


def learned(repeats: RepeatedProduces, asked: ProduceRequest, version: int) -> None:
    frame = frame_of(asked, version)
    learn(repeats, frame, decode(ProduceRequest, frame[len(HEAD) :], version), version)


def find(repeats: RepeatedProduces, frame: memoryview, version: int) -> tuple[ProduceRequest, memoryview] | None:
    found = repeats.find(CONNECTION, frame, version, 1)
    assert found is None or found[0].client_id == "c"
    return None if found is None else (found[0].request, found[1])


@given(
    name=st.text(min_size=0, max_size=50),
    index=st.integers(0, 2**31 - 1),
    first=SIZES,
    second=SIZES,
    version=st.integers(9, 13),
)
def test_a_repeated_request_is_found_with_its_own_records(
    name: str, index: int, first: int, second: int, version: int
) -> None:
    index %= 1_000_000
    repeats = RepeatedProduces()
    learned(repeats, request(name, index, b"x" * first), version)
    frame = frame_of(request(name, index, b"y" * second), version)
    found = find(repeats, frame, version)
    has_long_name = version < 13 and len(name.encode()) >= 127

    assert (found is None) is has_long_name
    if found is not None:
        asked, records = found
        assert bytes(records) == b"y" * second
        asked.topic_data[0].partition_data[0].records = b"y" * second
        assert encode_bytes(asked, version) == bytes(frame[len(HEAD) :])


@given(first=st.data(), version=st.integers(3, 13), other_version=st.integers(3, 13))
def test_only_what_repeats_is_found(first: st.DataObject, version: int, other_version: int) -> None:
    requests = st.builds(
        request,
        st.sampled_from(["t", "u", "topic"]),
        st.integers(0, 2),
        st.none() | SIZES.map(bytes),
        txn=st.sampled_from([None, "", "x"]),
        acks=st.sampled_from([0, 1, -1]),
        count=st.integers(1, 2),
    )
    known, asked = first.draw(requests), first.draw(requests)
    repeats = RepeatedProduces()
    learned(repeats, known, version)
    frame = frame_of(asked, other_version)
    found = find(repeats, frame, other_version)
    if found is not None:
        again, records = found
        again.topic_data[0].partition_data[0].records = bytes(records)

        assert encode_bytes(again, other_version) == bytes(frame[len(HEAD) :])


@given(cut=st.integers(0, 60), tail=st.binary(max_size=4), position=st.integers(0, 80), byte=st.integers(0, 255))
def test_a_damaged_repetition_is_left_to_the_decoder(cut: int, tail: bytes, position: int, byte: int) -> None:
    repeats = RepeatedProduces()
    learned(repeats, request(records=b"r" * 40), 9)
    sound = frame_of(request(records=b"r" * 40), 9)
    for damaged in (sound[:-cut] if cut else sound, memoryview(bytes(sound) + tail)):
        found = find(repeats, damaged, 9)
        assert (found is not None) is (bytes(damaged) == bytes(sound))
    changed = bytearray(sound)
    changed[position % len(changed)] = byte
    found = find(repeats, memoryview(changed), 9)
    if found is not None:
        again, records = found
        again.topic_data[0].partition_data[0].records = bytes(records)
        assert encode_bytes(again, 9) == bytes(changed[len(HEAD) :])


@needs_kernel
@given(
    body=st.binary(max_size=40),
    tail=st.sampled_from([b"", b"\0\0\0", b"\5abcd\0\0\0", b"\x80\x80\x80\x80\x80\x01", b"\x81\0\0\0\0"]),
    has_topic_id=st.booleans(),
    client_id_size=st.integers(-2, 50),
    length=st.integers(0, 60),
)
def test_both_finders_say_the_same_of_any_bytes(
    body: bytes, tail: bytes, has_topic_id: bool, client_id_size: int, length: int
) -> None:
    frame = memoryview(body + tail)
    known = {bytes(frame[8:length]): RepeatedProduce(ProduceRequest(), None)}

    expected = find_repeated_in_python(known, frame, has_topic_id, client_id_size)
    assert expected == compiled()(known, frame, has_topic_id, client_id_size)


@needs_kernel
def test_the_compiled_finder_refuses_what_is_no_question() -> None:
    find = compiled()
    questions: list[tuple[Any, ...]] = [(), (1, b"", False, 0), ({}, 1, False, 0), ({}, b"", False, "x")]
    for question in questions:
        with pytest.raises(TypeError):
            find(*question)


def test_clients_with_other_names_and_headers_are_told_apart() -> None:
    repeats = RepeatedProduces()
    body = encode_bytes(request(records=b"r"), 9)
    heads = {
        (-1, None): b"\xff\xff\0",
        (0, ""): b"\0\0\0",
        (1, "c"): b"\0\1c\0",
        (2, "cc"): b"\0\2cc\0",
    }
    frames = {client: memoryview(b"\0\0\0\x09" + b"\0\0\0\x01" + head + body) for client, head in heads.items()}
    for (size, client_id), frame in frames.items():
        assert repeats.find(CONNECTION, frame, 9, size) is None
        learn(repeats, frame, decode(ProduceRequest, memoryview(body), 9), 9, (size, client_id))
    found = {client: repeats.find(CONNECTION, frame, 9, client[0]) for client, frame in frames.items()}

    assert {client: each and each[0].client_id for client, each in found.items()} == {
        client: client[1] for client in heads
    }
    tagged = memoryview(b"\0\0\0\x09" + b"\0\0\0\x01" + b"\0\1c\1\x63\0" + body)
    learn(repeats, tagged, decode(ProduceRequest, memoryview(body), 9), 9)
    assert repeats.find(CONNECTION, tagged, 9, 1) is None


@pytest.mark.parametrize("version", [9, 13])
def test_of_a_client_with_a_long_name_nothing_is_kept_and_it_is_decoded_as_ever(version: int) -> None:
    repeats = RepeatedProduces()
    sizes = [1, 250, 400, 32_765]
    found = []
    for size in sizes:
        client_id = "c" * size
        head = HEAD[:8] + size.to_bytes(2, "big") + client_id.encode() + b"\0"
        frame = memoryview(head + encode_bytes(request(name="t" * 100, records=b"r"), version))
        body = decode(ProduceRequest, frame[len(head) :], version)
        learn(repeats, frame, body, version, (size, client_id))
        found.append(repeats.find(CONNECTION, frame, version, size) is not None)
        kept = body.topic_data[0].partition_data[0].records is None

        assert kept is found[-1], "what is answered by the codec keeps its records"
    longest = max(len(key) for known in repeats._known.values() for key in known)

    assert found == [True, True, version == 13, False]
    assert longest <= repeated_produce.KEY_BYTES_MAX


def test_no_more_requests_are_kept_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_produce, "KNOWN_MAX", 3)
    repeats = RepeatedProduces()
    for index in range(4):
        learned(repeats, request(index=index), 9)

    assert [find(repeats, frame_of(request(index=index), 9), 9) is not None for index in range(4)] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("version", [8, 9, 13])
def test_repetitions_are_answered_as_the_first_was(tmp_path: Path, version: int) -> None:
    house = House(tmp_path)
    house.hosted.open("t", 2)
    ask = house.client.ask
    asked = produce_request((0, batch(b"a")))
    asked.topic_data[0].topic_id = house.hosted.replicas.topics["t"].topic_id
    answers = [produce_parts(ask(asked, version))[0] for _ in range(3)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 1), (0, 2)]

    asked.topic_data[0].partition_data[0].records = batch(b"b")[:-1] + b"?"
    assert produce_parts(ask(asked, version))[0].error_code == ErrorCode.CORRUPT_MESSAGE
    asked.topic_data[0].partition_data[0].records = b""
    assert produce_parts(ask(asked, version))[0].error_code == ErrorCode.INVALID_RECORD
    run_at_once(house.hosted.lifecycle.delete_topic_in_steps("t", 2))
    asked.topic_data[0].partition_data[0].records = batch(b"c")
    expected = ErrorCode.UNKNOWN_TOPIC_ID if version == 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce_parts(ask(asked, version))[0].error_code == expected
