"""Fetches that go on where the last one of their connection ended: not decoded, and answered as if they had been."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.dispatch import repeated_fetch
from odradek.kernel.dispatch.repeated_fetch import ATTEMPTS, LEARNED_BYTES_MAX, RepeatedFetches
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.codec import decode, encode_bytes
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.records import records_size
from tests.wire.random_messages import random_message, versions_of

from .house import House, batch, produce_request
from .memory_client import Asked, MemoryClient

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.dispatch.router import Router

VERSIONS = st.sampled_from(versions_of(FetchRequest))
FLEXIBLE = FetchRequest.__flexible_from__
TAG = b"\x01\x63\x00"
"""A tagged field that nobody knows, and that none follows."""


def head_of(version: int, client_id: bytes = b"c", tags: bytes = b"\0") -> bytes:
    return bytes([0, 1, 0, version]) + b"corr" + bytes([0, len(client_id)]) + client_id + tags * (version >= FLEXIBLE)


def frame_of(asked: FetchRequest, version: int) -> bytes:
    return head_of(version) + encode_bytes(asked, version)


class Taken(NamedTuple):
    """What became of a frame: the request in bytes again, the client's id, and whether it was found."""

    body: bytes
    client_id: str | None
    is_found: bool


class Fetches:
    """One connection's fetches, taken as the router does."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.repeats = RepeatedFetches()
        self.connection = MemoryClient(cast("Router", None)).connection

    def take(self, frame: bytes, head: bytes = b"") -> Taken:
        view = memoryview(frame)
        found = self.repeats.find(self.connection, view, self.version, 1)
        if found is not None:
            known, numbers = found
            known.go_on(numbers)
            return Taken(encode_bytes(known.request, self.version), known.client_id, is_found=True)
        position = len(head or head_of(self.version))
        request = decode(FetchRequest, view, self.version, position=position)
        body = encode_bytes(request, self.version)
        asked: Any = Asked(self.connection, self.version)
        self.repeats.learn(asked, view, 1, request)
        return Taken(body, "c", is_found=False)


def with_numbers(asked: FetchRequest, version: int, source: random.Random) -> FetchRequest:
    """Return a request that goes on elsewhere."""
    again = decode(FetchRequest, memoryview(encode_bytes(asked, version)), version)
    if version >= 7:
        again.session_epoch = source.randint(-1, 1 << 30)
    for topic in again.topics:
        for part in topic.partitions:
            part.fetch_offset = source.randint(-1, 1 << 62)
    return again


@given(version=VERSIONS, seed=st.integers(0, 1 << 32))
def test_a_fetch_that_goes_on_elsewhere_is_found_with_its_own_numbers(version: int, seed: int) -> None:
    source = random.Random(seed)
    fetches = Fetches(version)
    asked = random_message(FetchRequest, version, source)
    for attempt in range(5):
        frame = frame_of(asked, version)
        assert fetches.take(frame) == Taken(encode_bytes(asked, version), "c", is_found=attempt >= 2)
        asked = with_numbers(asked, version, source)


@given(
    version=VERSIONS,
    seed=st.integers(0, 1 << 32),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=3),
)
def test_what_is_found_is_what_decoding_gives_whatever_bytes_change(
    version: int, seed: int, changes: list[tuple[float, int]]
) -> None:
    fetches = Fetches(version)
    asked = random_message(FetchRequest, version, random.Random(seed))
    sound = frame_of(asked, version)
    for _ in range(2):
        fetches.take(sound)
    changed = bytearray(sound)
    for place, byte in changes:
        changed[int(place * len(changed))] = byte
    start = len(head_of(version))
    found = fetches.repeats.find(fetches.connection, memoryview(changed), version, 1)
    if found is not None:
        known, numbers = found
        known.go_on(numbers)
        assert encode_bytes(known.request, version) == changed[start:]
        assert changed[8:start] == sound[8:start]


@pytest.mark.parametrize("version", [11, 12])
def test_what_the_codec_would_not_write_is_not_learned(version: int) -> None:
    body = encode_bytes(FetchRequest(topics=[]), version)
    bodies = [body + b"\0", body + body]
    heads = [head_of(version)] * len(bodies)
    if version >= FLEXIBLE:
        bodies += [body[:-1] + TAG, body]
        heads += [head_of(version), head_of(version, tags=TAG)]
    for head, odd in zip(heads, bodies, strict=True):
        fetches = Fetches(version)
        assert [fetches.take(head + odd, head).is_found for _ in range(4)] == [False] * 4


def test_another_version_client_or_connection_is_another_fetch() -> None:
    asked = FetchRequest(topics=[])
    fetches, others = Fetches(9), Fetches(9)
    for _ in range(2):
        fetches.take(frame_of(asked, 9))
    frame = memoryview(frame_of(asked, 9))

    assert fetches.repeats.find(fetches.connection, frame, 9, 1) is not None
    assert fetches.repeats.find(fetches.connection, frame, 10, 1) is None, "the bytes are the same, the meaning is not"
    assert fetches.repeats.find(others.connection, frame, 9, 1) is None
    assert not fetches.take(head_of(9, b"d") + encode_bytes(asked, 9)).is_found


def a_fetch(topic: str, offset: int = 0) -> FetchRequest:
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[FetchPartition(fetch_offset=offset)])])


def test_a_connection_that_never_repeats_itself_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[object] = []
    monkeypatch.setattr(repeated_fetch, "_layout_of", lambda *given: learned.append(given))
    fetches = Fetches(11)
    for number in range(3 * ATTEMPTS):
        assert not fetches.take(frame_of(a_fetch(f"topic-{number:03}"), 11)).is_found
    assert len(learned) == ATTEMPTS


def test_a_connection_that_changes_now_and_then_is_found_again_each_time() -> None:
    fetches = Fetches(11)
    for number in range(3 * ATTEMPTS):
        found = [fetches.take(frame_of(a_fetch(f"topic-{number:03}", offset), 11)).is_found for offset in range(4)]
        assert found == [False, number > 0, True, True]


def test_a_long_fetch_is_not_kept() -> None:
    parts = [FetchPartition(partition=number) for number in range(LEARNED_BYTES_MAX // 20)]
    asked = FetchRequest(topics=[FetchTopic(topic="t", partitions=parts)])
    fetches = Fetches(11)

    assert [fetches.take(frame_of(asked, 11)).is_found for _ in range(4)] == [False] * 4


@given(
    version=st.sampled_from([4, 7, 11, 12, 13, 17]),
    in_session=st.booleans(),
    isolation_level=st.sampled_from([0, 1]),
    steps=st.lists(
        st.tuples(st.sampled_from(["fetch", "wait", "produce", "again"]), st.integers(0, 3)), min_size=8, max_size=30
    ),
)
def test_answers_are_those_of_a_broker_that_decodes_everything(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    in_session: bool,
    isolation_level: int,
    steps: list[tuple[str, int]],
) -> None:
    fast, slow = (House(tmp_path_factory.mktemp("house")) for _ in range(2))
    slow.router.routes[1].repeats = None
    expected = answers(slow, version, in_session, isolation_level, steps)
    assert answers(fast, version, in_session, isolation_level, steps) == expected
    for house in (fast, slow):
        counted = house.hosted.replicas.topics["t"].counters
        assert counted.bytes_out == sum(counted_bytes(frame, version) for frame in expected)
    for house in (fast, slow):
        house.hosted.lifecycle.close()


NAMES = st.lists(
    st.tuples(st.sampled_from(["t", "u"]), st.lists(st.integers(0, 2), min_size=1, max_size=3)), max_size=3
)
ROUND = st.tuples(st.sampled_from([-1, -1, -1, 0]), st.integers(0, 3), st.sampled_from(["t", "u", ""]))


@given(version=st.sampled_from([6, 7, 12, 13, 17]), names=NAMES, rounds=st.lists(ROUND, min_size=5, max_size=12))
def test_whatever_a_fetch_names_its_answers_are_those_of_a_broker_that_decodes_everything(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    names: list[tuple[str, list[int]]],
    rounds: list[tuple[int, int, str]],
) -> None:
    """Partitions named twice, or not there, or deleted and made anew on the way; with and without a session."""
    fast, slow = (House(tmp_path_factory.mktemp("house")) for _ in range(2))
    slow.router.routes[1].repeats = None
    assert answers_by_names(fast, version, names, rounds) == answers_by_names(slow, version, names, rounds)
    for house in (fast, slow):
        house.hosted.lifecycle.close()


def answers_by_names(
    house: House, version: int, names: list[tuple[str, list[int]]], rounds: list[tuple[int, int, str]]
) -> list[bytes]:
    """Fetch the same names in every round, and make the topic anew that it says; return all frames."""
    ids = {}
    for name in ("t", "u"):
        house.hosted.open(name, 2)
        ids[name] = house.hosted.replicas.get(name, 0).partition.topic_id
    for session_epoch, offset, made_anew in rounds:
        if made_anew:
            run_at_once(house.hosted.lifecycle.delete_topic_in_steps(made_anew, 2))
            house.hosted.open(made_anew, 2)
        else:
            MemoryClient(house.router).ask(produce_request((0, batch(b"x" * offset)), topic="u"), 9)
        topics = [
            FetchTopic(
                topic=name,
                topic_id=ids[name],
                partitions=[
                    FetchPartition(partition=number, fetch_offset=offset * place, partition_max_bytes=1 << 20)
                    for place, number in enumerate(numbers)
                ],
            )
            for name, numbers in names
        ]
        request = FetchRequest(max_wait_ms=0, topics=topics)
        if version >= 7:
            request.session_epoch = session_epoch
        house.client.send(request, version)
        house.client.turn()
    return house.client.frames()


def test_what_is_answered_outside_of_a_session_is_kept_for_the_next(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hosted.open("t")
    for offset in range(4):
        house.client.ask(goes_on(house, offset % 2, 0), 11)
    kept = house.client.connection.remembered.session
    assert [target.fetch_offset for target in kept.targets] == [1]

    house.client.ask(goes_on(house, 0, 0), 11)
    assert house.client.connection.remembered.session is kept
    assert [target.fetch_offset for target in kept.targets] == [0]


def test_a_connection_that_asks_for_something_else_gets_that(tmp_path: Path) -> None:
    house = House(tmp_path)
    for topic in ("t", "u"):
        house.hosted.open(topic)
    for topic in ("t", "u", "t"):
        for offset in range(5):
            answer = house.client.ask(a_fetch(topic, offset % 2), 11)
            assert [found.topic for found in cast("FetchResponse", answer).responses] == [topic]


def counted_bytes(frame: bytes, version: int) -> int:
    """Return how many bytes of records an answer holds."""
    _, position = decode_response_header(frame, 1, version)
    answer = decode(FetchResponse, memoryview(frame), version, position=position)
    return sum(records_size(part.records or b"") for topic in answer.responses for part in topic.partitions)


def test_a_connection_that_changes_what_it_wants_to_see_does(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"x" * 100))), 9)
    house.client.ask(produce_request((0, batch(b"y" * 100))), 9)
    for isolation_level, max_bytes in [(0, 1 << 20), (1, 250)] * 2:
        for _ in range(5):
            request = goes_on(house, 0, 0)
            request.isolation_level, request.max_bytes = isolation_level, max_bytes
            part = cast("FetchResponse", house.client.ask(request, 11)).responses[0].partitions[0]
            assert part.aborted_transactions == ([] if isolation_level else None)
            assert (b"y" in bytes(cast("bytes", part.records))) == (max_bytes > 250)


def answers(
    house: House, version: int, in_session: bool, isolation_level: int, steps: list[tuple[str, int]]
) -> list[bytes]:
    """Go through the steps with one client; return all frames that it gets."""
    house.hosted.open("t")
    frames: list[bytes] = []
    session_id = epoch = 0
    is_waiting = False
    for step, offset in steps:
        if step == "produce":
            other = MemoryClient(house.router)
            other.send(produce_request((0, batch(b"x" * offset))), 9)
            other.turn()
        elif not is_waiting:
            wait_ms = 500 if step == "wait" else 0
            request = goes_on(house, offset, wait_ms)
            request.isolation_level = isolation_level
            if in_session and version >= 7:
                request.session_id, request.session_epoch = session_id, epoch
                epoch += step != "again"  # a session that is asked the same twice says so
            house.client.send(request, version)
            house.client.turn()
        frames += house.client.frames()
        is_waiting = bool(house.client.connection.slots)
        if in_session and version >= 7 and not session_id and frames:
            session_id = int.from_bytes(frames[0][11:15] if version >= FLEXIBLE else frames[0][10:14], "big")
    house.pass_time(1000)
    return frames + house.client.frames()


def goes_on(house: House, offset: int, wait_ms: int) -> FetchRequest:
    topic_id = house.hosted.replicas.get("t", 0).partition.topic_id
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", topic_id=topic_id, partitions=[part])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[topic])


def test_a_fetch_that_waits_is_not_mistaken_for_the_one_that_came_with_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"first"))), 9)
    for _ in range(4):
        house.client.ask(goes_on(house, 0, 0), 11)
    frames = [
        encode_request(goes_on(house, offset, 500), 11, number, "test").join() for number, offset in enumerate((1, 0))
    ]
    # The last ones had no wait, so these are learned anew first.
    for frame in frames * 2:
        house.client.send_bytes(frame)
        house.pass_time(1000)
        house.client.frames()

    house.client.send_bytes(b"".join(frames))
    house.client.turn()
    assert house.client.frames() == []
    other = MemoryClient(house.router)
    other.ask(produce_request((0, batch(b"second"))), 9)
    (first,) = house.client.frames()
    house.client.connection.process(house.router)

    answers = [decode(FetchResponse, memoryview(frame), 11, position=4) for frame in [first, *house.client.frames()]]
    parts = [answer.responses[0].partitions[0] for answer in answers]
    assert [bytes(cast("bytes", part.records)).count(b"first") for part in parts] == [0, 1]
    assert [bytes(cast("bytes", part.records)).count(b"second") for part in parts] == [1, 1]


def test_what_is_repeated_is_answered_by_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path)
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"a" * 600))), 9)
    expected = [house.client.ask(goes_on(house, offset, 0), 11) for offset in (0, 1, 0, 0)]

    def fail(*given: object) -> None:
        raise AssertionError("it is encoded")

    monkeypatch.setattr(house.router.routes[1], "_encoders", {11: (fail, False)})
    again = [house.client.ask(goes_on(house, offset, 0), 11) for offset in (0, 1)]
    assert [encode_bytes(answer, 11) for answer in again] == [encode_bytes(answer, 11) for answer in expected[:2]]


def test_what_was_learned_is_not_decoded_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path)
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"a", b"b"))), 9)
    expected = [house.client.ask(goes_on(house, offset, 0), 11) for offset in (0, 1, 2)]

    def fail(*given: object) -> None:
        raise AssertionError("it is decoded")

    monkeypatch.setattr(house.router.routes[1], "_decoders", {11: fail})
    again = [house.client.ask(goes_on(house, offset, 0), 11) for offset in (0, 1, 2)]
    assert [encode_bytes(answer, 11) for answer in again] == [encode_bytes(answer, 11) for answer in expected]
