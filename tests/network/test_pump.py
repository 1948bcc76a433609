"""The compiled pump by itself: what it takes, what it leaves alone, and that it loses neither bytes nor memory."""

import errno
import gc
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

import attrs
import pytest

from odradek.kernel.network.connection import LARGE_FRAME_BYTES, ReplySlot
from odradek.kernel.network.endpoint import (
    COPIED_BYTES_MAX,
    READ,
    SEND_BYTES_PER_TURN,
    WRITE,
    Endpoint,
    SliceProgress,
)
from odradek.kernel.network.reactor import PUMP
from odradek.kernel.network.receive_memory import ARENA_BYTES, WINDOW_BYTES, WINDOW_BYTES_MIN, ReceiveMemory
from tests.connections import new_connection

from .conftest import Piece, Slice, framed

SIZE_BYTES = 4
FILE = bytes(range(256)) * (SEND_BYTES_PER_TURN // 256 + 1)

pytestmark = pytest.mark.skipif(PUMP is None, reason="the reactor's pump was not compiled")


class Wire:
    """An endpoint that no loop drives, and the client at the other end."""

    def __init__(self, frame_limit_bytes: int = 1 << 20) -> None:
        ours, self.client = socket.socketpair()
        ours.setblocking(False)
        self.connection = new_connection(ReceiveMemory(1 << 20), frame_limit_bytes=frame_limit_bytes)
        loop: Any = SimpleNamespace(has_sendfile=True, now_ms=7)  # the pump itself asks for neither
        self.endpoint = Endpoint(self.connection, loop, ours, 0)
        self.connection.driver = self.endpoint
        self.descriptor = ours.fileno()

    def close(self) -> None:
        self.endpoint.socket.close()
        self.client.close()


@pytest.fixture
def pump() -> ModuleType:
    assert PUMP is not None
    return PUMP


@pytest.fixture
def wires() -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(frame_limit_bytes: int = 1 << 20) -> Wire:
        made.append(Wire(frame_limit_bytes))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


def receive(pump: ModuleType, *wires: Wire, mask: int = READ, position: int = 0, arena: Any = None) -> Any:
    endpoints = {wire.descriptor: wire.endpoint for wire in wires}
    events = [(wire.descriptor, mask) for wire in wires]
    arena = memoryview(bytearray(ARENA_BYTES)) if arena is None else arena
    return pump.receive(events, endpoints, arena, position, WINDOW_BYTES, WINDOW_BYTES_MIN, LARGE_FRAME_BYTES)


def test_whole_small_requests_of_several_clients_are_taken_without_their_sizes(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    first, second = wires(), wires()
    first.client.send(framed(b"one"))
    second.client.send(framed(b""))
    taken, rest, failures, position, size_bytes = receive(pump, first, second)

    assert [(endpoint, bytes(view), is_whole) for endpoint, view, is_whole in taken] == [
        (first.endpoint, b"one", True),
        (second.endpoint, b"", True),
    ]
    assert (rest, failures, position, size_bytes) == ([], [], 128, 11)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0",
        framed(b"one")[:-1],
        framed(b"one") + framed(b"two"),
        framed(b"one") + b"\0",
        struct.pack(">i", -1),
        struct.pack(">i", -4) + bytes(8),
        framed(bytes(LARGE_FRAME_BYTES)),
    ],
)
def test_what_is_no_single_small_request_is_given_as_it_came(
    pump: ModuleType, wires: Callable[..., Wire], data: bytes
) -> None:
    wire = wires()
    wire.client.send(data)
    taken, _rest, _failures, _position, _size = receive(pump, wire)
    ((endpoint, view, is_whole),) = taken

    assert (endpoint, bytes(view), is_whole) == (wire.endpoint, data, False)


def test_a_request_beyond_the_limit_of_its_connection_is_not_taken_for_whole(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    wire = wires(2)
    wire.client.send(framed(b"one"))
    ((_endpoint, _view, is_whole),) = receive(pump, wire)[0]
    assert not is_whole


def test_received_views_are_of_the_arena_and_lie_behind_one_another(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    wire, other = wires(), wires()
    arena = bytearray(ARENA_BYTES)
    wire.client.send(framed(bytes(70)))
    other.client.send(framed(b"other"))
    taken, _rest, _failures, position, _size = receive(pump, wire, other, position=64, arena=memoryview(arena))
    assert position == 64 + 128 + 64
    assert arena[64 + 128 :].startswith(framed(b"other"))
    taken[1][1][:] = b"OTHER"
    assert b"OTHER" in arena


@pytest.mark.parametrize(
    "state", ["owed", "unsent", "stopped", "begun", "large", "no room for large", "mask", "unknown", "no room"]
)
def test_what_is_not_usual_is_left_in_the_socket(pump: ModuleType, wires: Callable[..., Wire], state: str) -> None:
    wire = wires()
    wire.client.send(framed(b"one"))
    connection = wire.connection
    mask, position, known = READ, 0, {wire.descriptor: wire.endpoint}
    if state == "owed":
        ReplySlot(connection)
    elif state == "unsent":
        connection.outgoing.append(b"x")
    elif state == "stopped":
        connection.is_stopped = True
    elif state == "begun":
        connection._input = memoryview(bytearray(8))
    elif state == "large":
        connection.expected_bytes = SIZE_BYTES
    elif state == "no room for large":
        connection.expected_bytes, position = WINDOW_BYTES, ARENA_BYTES - WINDOW_BYTES + 1
    elif state == "mask":
        mask = READ | WRITE
    elif state == "unknown":
        known = {}
    else:
        position = ARENA_BYTES - WINDOW_BYTES_MIN + 1
    events = [(wire.descriptor, mask)]
    arena = memoryview(bytearray(ARENA_BYTES))
    answer = pump.receive(events, known, arena, position, WINDOW_BYTES, WINDOW_BYTES_MIN, LARGE_FRAME_BYTES)

    assert answer == ([], events, [], position, 0)
    assert wire.endpoint.socket.recv(100) == framed(b"one")


def test_large_requests_as_large_as_expected_are_taken_behind_small_ones(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    large, small = wires(), wires()
    large.connection.expected_bytes = SIZE_BYTES + 40_000
    large.client.send(framed(bytes(40_000)) + framed(b"later"))
    small.client.send(framed(b"one"))
    taken, rest, failures, position, size_bytes = receive(pump, large, small)

    assert [(endpoint, bytes(view), is_whole) for endpoint, view, is_whole in taken] == [
        (small.endpoint, b"one", True),
        (large.endpoint, bytes(40_000), True),
    ]
    assert (rest, failures, position, size_bytes) == ([], [], 64 + 40_064, 7 + 40_004)


@pytest.mark.parametrize("came", [framed(bytes(39_999)), framed(bytes(40_001)), framed(bytes(40_000))[:-1]])
def test_large_requests_that_are_not_as_large_as_expected_are_given_as_they_came(
    pump: ModuleType, wires: Callable[..., Wire], came: bytes
) -> None:
    wire = wires()
    wire.connection.expected_bytes = SIZE_BYTES + 40_000
    wire.client.send(came)
    taken, rest, _failures, _position, size_bytes = receive(pump, wire)

    expected = came[: SIZE_BYTES + 40_000]
    assert [(bytes(view), is_whole) for _, view, is_whole in taken] == [(expected, False)]
    assert (rest, size_bytes) == ([], len(expected))


def test_an_end_is_left_to_be_seen_again_and_an_error_is_told_with_its_number(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    ended, empty, broken = wires(), wires(), wires()
    ended.client.close()
    broken.endpoint.socket.close()
    broken.descriptor = sys.maxsize & 0xFFFF  # surely nobody's
    taken, rest, failures, _position, _size = receive(pump, ended, empty, broken)

    assert (taken, rest) == ([], [(ended.descriptor, READ)])
    assert failures == [(broken.endpoint, errno.EBADF)]


def test_more_events_than_it_has_room_for_are_left(pump: ModuleType, wires: Callable[..., Wire]) -> None:
    wire = wires()
    events = [(wire.descriptor, READ)] * 70
    arena = memoryview(bytearray(ARENA_BYTES))
    rest = pump.receive(events, {wire.descriptor: wire.endpoint}, arena, 0, WINDOW_BYTES, WINDOW_BYTES_MIN, 1)[1]
    assert len(rest) == 6


@pytest.mark.parametrize("answer", [b"answer", bytearray(b"answer")])
def test_an_answer_in_memory_is_sent_and_its_connection_is_done_with(
    pump: ModuleType, wires: Callable[..., Wire], answer: bytes
) -> None:
    wire = wires()
    wire.connection.outgoing.append(answer)
    wire.connection.is_dirty = True
    rest, size_bytes = pump.send([wire.endpoint], Endpoint)

    assert (rest, size_bytes, wire.connection.outgoing, wire.connection.is_dirty) == ([], 6, [], False)
    assert wire.client.recv(100) == b"answer"


def test_several_small_answers_leave_as_one_piece(pump: ModuleType, wires: Callable[..., Wire]) -> None:
    wire = wires()
    wire.connection.outgoing += [b"an", bytearray(b"sw"), b"er"]

    assert (pump.send([wire.endpoint], Endpoint), wire.connection.outgoing) == (([], 6), [])
    assert wire.client.recv(100) == b"answer"


@pytest.mark.parametrize("state", ["nothing", "large pieces", "a view", "stopped", "watched", "another type"])
def test_what_is_not_usual_to_send_is_left_to_its_driver(
    pump: ModuleType, wires: Callable[..., Wire], state: str
) -> None:
    wire = wires()
    pieces: dict[str, list[Any]] = {
        "nothing": [],
        "large pieces": [b"a", bytes(1 << 14)],
        "a view": [b"a", memoryview(b"a")],
    }
    wire.connection.outgoing += pieces.get(state, [b"a"])
    wire.connection.is_stopped = state == "stopped"
    if state == "watched":
        wire.endpoint.interest = WRITE
    before = list(wire.connection.outgoing)
    rest, size_bytes = pump.send([wire.endpoint], str if state == "another type" else Endpoint)

    assert (rest, size_bytes, wire.connection.outgoing) == ([wire.endpoint], 0, before)


def test_what_a_full_socket_does_not_take_stays_and_is_left_to_its_driver(
    pump: ModuleType, wires: Callable[..., Wire]
) -> None:
    wire = wires()
    answer = bytes(range(256)) * 40_000
    wire.connection.outgoing.append(answer)
    rest, size_bytes = pump.send([wire.endpoint], Endpoint)

    assert rest == [wire.endpoint]
    assert 0 < size_bytes < len(answer)
    assert wire.connection.outgoing == [answer[size_bytes:]]
    assert wire.endpoint.last_active_ms == 7, "who takes a large answer slowly is not idle"
    assert pump.send([wire.endpoint], Endpoint) == ([wire.endpoint], 0)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IO[bytes]]:
    path = tmp_path / "segment.log"
    path.write_bytes(FILE)
    with path.open("rb") as file:
        yield file


def received(wire: Wire, size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        data += wire.client.recv(size_bytes - len(data))
    return data


def test_pieces_of_cached_files_leave_with_what_surrounds_them(
    pump: ModuleType, wires: Callable[..., Wire], file: IO[bytes]
) -> None:
    wire, other = wires(), wires()
    size_bytes = COPIED_BYTES_MAX + 1
    wire.connection.outgoing += [b"<", Slice(file, 3, size_bytes), bytearray(b"|"), Slice(file, 0, size_bytes), b">"]
    wire.connection.is_dirty = True
    other.connection.outgoing.append(b"answer")
    rest, sent_bytes = pump.send([wire.endpoint, other.endpoint], Endpoint)

    expected = b"<" + FILE[3 : 3 + size_bytes] + b"|" + FILE[:size_bytes] + b">"
    assert (rest, sent_bytes) == ([], len(expected) + 6)
    assert (wire.connection.outgoing, wire.connection.is_dirty) == ([], False)
    assert received(wire, len(expected)) == expected
    assert received(other, 6) == b"answer"


@attrs.define
class Failing(Piece):
    """One whose file fails, whatever is asked of it."""

    @property
    def is_cached(self) -> bool:
        raise OSError("the disk is gone")


@pytest.mark.parametrize("state", ["cold", "small", "beside a view", "failing", "closed", "too much", "a rest", "many"])
def test_what_is_not_usual_to_send_of_a_file_is_left_to_its_driver(
    pump: ModuleType, wires: Callable[..., Wire], file: IO[bytes], state: str
) -> None:
    wire, size_bytes = wires(), COPIED_BYTES_MAX + 1
    usual = Slice(file, 0, size_bytes)
    pieces: dict[str, list[Any]] = {
        "cold": [b"<", Slice(file, 0, size_bytes, is_cached=False)],
        "small": [b"<", Slice(file, 0, COPIED_BYTES_MAX), usual],
        "beside a view": [b"<", usual, memoryview(b">")],
        "failing": [b"<", usual, Failing(file, 0, size_bytes)],
        "closed": [b"<", usual],
        "too much": [b"<", Slice(file, 0, SEND_BYTES_PER_TURN), usual],
        "many": [*[b"<"] * 128, usual],
    }
    wire.connection.outgoing += pieces.get(state, [b"<", usual])
    if state == "a rest":
        wire.endpoint._slice = SliceProgress(usual, 1, size_bytes, size_bytes)
    if state == "closed":
        file.close()
    before = list(wire.connection.outgoing)

    assert pump.send([wire.endpoint], Endpoint) == ([wire.endpoint], 0)
    assert wire.connection.outgoing == before


def test_what_a_full_socket_does_not_take_of_a_file_goes_on_where_it_ended(
    pump: ModuleType, wires: Callable[..., Wire], file: IO[bytes]
) -> None:
    wire = wires()
    size_bytes = SEND_BYTES_PER_TURN
    wire.connection.outgoing += [b"<", Slice(file, 7, size_bytes), b">"]
    rest, sent_bytes = pump.send([wire.endpoint], Endpoint)

    assert rest == [wire.endpoint]
    assert COPIED_BYTES_MAX < sent_bytes < size_bytes
    assert len(wire.connection.outgoing) == 2
    progress = wire.endpoint._slice
    assert progress is not None
    assert (progress.position, progress.end) == (7 + sent_bytes - 1, 7 + size_bytes)
    assert received(wire, sent_bytes) == b"<" + FILE[7 : progress.position]


def test_a_file_that_is_too_short_is_left_to_its_driver_at_its_end(
    pump: ModuleType, wires: Callable[..., Wire], file: IO[bytes]
) -> None:
    wire = wires()
    wire.connection.outgoing += [b"<", Slice(file, len(FILE) - 5, 2 * COPIED_BYTES_MAX), b">"]

    assert pump.send([wire.endpoint], Endpoint) == ([wire.endpoint], 6)
    assert received(wire, 6) == b"<" + FILE[-5:]
    with pytest.raises(OSError, match="shorter than what was promised"):
        wire.endpoint._send_slice(wire.connection.outgoing, 1)


def test_a_broken_socket_is_left_to_its_driver_with_its_answer(pump: ModuleType, wires: Callable[..., Wire]) -> None:
    wire, other = wires(), wires()
    wire.client.close()
    for each in (wire, other):
        each.connection.outgoing.append(b"answer")
    assert pump.send([wire.endpoint, other.endpoint], Endpoint) == ([wire.endpoint], 6)
    assert wire.connection.outgoing == [b"answer"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ((), {}, bytearray(8), 0, 1, 1, 1),
        ([1], {}, bytearray(8), 0, 1, 1, 1),
        ([], {}, b"read only", 0, 1, 1, 1),
        ([], {}, bytearray(8), -1, 1, 1, 1),
        ([], {}, bytearray(8), "0", 1, 1, 1),
        ([(1, 1)], {1: None}, bytearray(8), 0, 1, 1, 1),
    ],
)
def test_receive_refuses_what_it_is_not_made_for(pump: ModuleType, arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError, BufferError)):
        pump.receive(*arguments)


@pytest.mark.parametrize("arguments", [(), ((), Endpoint), ([None], type(None))])
def test_send_refuses_what_it_is_not_made_for(pump: ModuleType, arguments: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        pump.send(*arguments)


def test_it_keeps_nothing_alive(pump: ModuleType, wires: Callable[..., Wire], file: IO[bytes]) -> None:
    wire, broken = wires(), wires()
    head, piece, cold = b"<" * 20, Slice(file, 0, COPIED_BYTES_MAX + 1), Slice(file, 0, 1 << 15, is_cached=False)
    broken.endpoint.socket.close()
    broken.descriptor = sys.maxsize & 0xFFFF
    arena = bytearray(ARENA_BYTES)

    def once() -> None:
        wire.client.send(framed(b"one"))
        view = memoryview(arena)
        receive(pump, wire, broken, arena=view)
        wire.connection.outgoing.append(b"%d" % sys.maxsize)
        pump.send([wire.endpoint, broken.endpoint], Endpoint)
        wire.client.recv(100)
        for last in (piece, cold):
            wire.connection.outgoing += [head, piece, last]
            pump.send([wire.endpoint], Endpoint)
            if last is piece:
                received(wire, 20 + 2 * piece.size_bytes)
        wire.connection.outgoing.clear()
        with pytest.raises(TypeError):
            pump.receive([(wire.descriptor, READ), 1], {wire.descriptor: wire.endpoint}, view, 0, 1, 1, 1)

    once()
    watched = [wire.endpoint, wire.connection, wire.connection.outgoing, broken.endpoint, Endpoint, None, True, False]
    watched += [head, piece, cold]
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(400):
        once()
    gc.collect()
    after = [sys.getrefcount(each) for each in watched]

    # What is kept once a round is kept 400 times; None has some more or fewer of others in the meantime.
    assert [late - early for early, late in zip(before, after, strict=True) if abs(late - early) >= 200] == []
    arena.append(0)  # no view on it is left
