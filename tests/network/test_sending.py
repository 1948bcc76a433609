"""What an endpoint sends of files, in memory or not, to sockets that take what they like: all of it, in order."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.kernel.network.endpoint import COPIED_BYTES_MAX, WRITE, Endpoint, SliceProgress, read_into_cache

from .conftest import Piece, Slice

FILE = os.urandom(3 * COPIED_BYTES_MAX)
SIZES = [1, 170, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1, 2 * COPIED_BYTES_MAX]


@attrs.define
class Wavering(Piece):
    """One that is in memory one moment, and not the next."""

    answers: Iterator[bool]

    @property
    def is_cached(self) -> bool:
        return next(self.answers)


@attrs.define
class Socket:
    """Takes so many bytes at each call, none where it says 0."""

    room: Iterator[int]
    taken: bytes = b""
    calls: int = 0

    def send(self, data: Any) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: list[Any], _ancillary: object = (), _flags: int = 0) -> int:
        self.calls += 1
        room = next(self.room)
        if not room:
            raise BlockingIOError
        piece = b"".join(map(bytes, buffers))[:room]
        self.taken += piece
        return len(piece)


@attrs.define
class Loop:
    """Keeps what an endpoint asks of its loop."""

    has_sendfile: bool = False
    now_ms: int = 0
    bytes_out: int = 0
    ahead: SliceProgress | None = None
    closed: str = ""

    def watch(self, endpoint: Endpoint, interest: int) -> None:
        endpoint.interest = interest

    def resume(self, _endpoint: Endpoint) -> None:
        pass

    def read_ahead(self, _endpoint: Endpoint, progress: SliceProgress) -> None:
        self.ahead = progress

    def close(self, _endpoint: Endpoint, reason: str) -> None:
        self.closed = reason


@attrs.define
class Connection:
    """The part of a connection that sending looks at."""

    outgoing: list[Any]
    is_dirty: bool = False
    is_stopped: bool = False
    is_open: bool = True
    is_closing: bool = False
    has_frame_to_take: bool = False
    wants_input: bool = True

    def mark_dirty(self) -> None:
        self.is_dirty = True


def send_all(outgoing: list[Any], room: Iterator[int]) -> tuple[Socket, Loop]:
    """Flush until nothing is left, or the endpoint gives up."""
    socket, loop = Socket(room), Loop()
    connection: Any = Connection(outgoing)
    endpoint = Endpoint(connection, loop, socket, 0)  # type: ignore[arg-type]  # fakes
    for _ in range(1_000):
        endpoint.flush()
        if loop.ahead is not None:
            read_into_cache(loop.ahead)
            loop.ahead = None
            endpoint.read_ahead_done(None)
        if loop.closed or not outgoing:
            return socket, loop
        endpoint.is_write_blocked = False
    raise AssertionError("it never ends")


PARTS = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.tuples(st.sampled_from(SIZES), st.integers(0, COPIED_BYTES_MAX), st.lists(st.booleans(), max_size=4)),
)


@example(parts=[b"head", (170, 5, [False]), b"between", (2 * COPIED_BYTES_MAX, 9, [])], room=[1])
@given(parts=st.lists(PARTS, min_size=1, max_size=8), room=st.lists(st.sampled_from([0, 1, 100, 20_000]), max_size=12))
def test_all_is_sent_in_order_whatever_the_socket_takes_and_the_memory_holds(parts: list[Any], room: list[int]) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(FILE)
        file.flush()
        wanted = b""
        outgoing: list[Any] = []
        for part in parts:
            if isinstance(part, bytes):
                outgoing.append(part)
                wanted += part
            else:
                size_bytes, position, answers = part
                size_bytes = min(size_bytes, len(FILE) - position)
                outgoing.append(Wavering(file, position, size_bytes, itertools.chain(answers, itertools.repeat(True))))
                wanted += FILE[position : position + size_bytes]
        socket, loop = send_all(outgoing, itertools.chain(room, itertools.repeat(1 << 20)))

    assert loop.closed == ""
    assert socket.taken == wanted
    assert loop.bytes_out == len(wanted)


@pytest.mark.parametrize(("size_bytes", "calls"), [(1, 1), (COPIED_BYTES_MAX, 1), (COPIED_BYTES_MAX + 1, 3)])
def test_a_small_piece_of_a_file_goes_in_one_call_with_what_surrounds_it(size_bytes: int, calls: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(FILE)
        file.flush()
        outgoing = [b"head", Slice(file, 7, size_bytes), b"tail"]
        socket, _ = send_all(outgoing, itertools.repeat(1 << 20))

    assert socket.taken == b"head" + FILE[7 : 7 + size_bytes] + b"tail"
    assert socket.calls == calls


def test_a_small_piece_of_a_file_that_was_cut_closes_the_connection_before_anything_is_sent() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"short")
        file.flush()
        socket, loop = send_all([b"head", Slice(file, 0, 50)], itertools.repeat(1 << 20))

    assert "shorter than what was promised" in loop.closed
    assert socket.taken == b""


def test_who_takes_an_answer_slowly_is_not_idle_meanwhile() -> None:
    socket, loop = Socket(iter([100, 100, 100, 1_000])), Loop()
    connection: Any = Connection([bytes(1_000)])
    endpoint = Endpoint(connection, loop, socket, 0)  # type: ignore[arg-type]  # fakes
    for now_ms in (1_000, 2_000, 3_000):
        loop.now_ms = now_ms
        endpoint.flush()
        assert endpoint.last_active_ms == now_ms
        endpoint.is_write_blocked = False
    loop.now_ms = 4_000
    endpoint.on_event(WRITE)
    endpoint.flush()

    assert (len(socket.taken), endpoint.last_active_ms) == (1_000, 4_000)


def test_what_the_loop_sends_by_itself_is_activity_too() -> None:
    loop = Loop(now_ms=5_000)
    connection: Any = Connection([bytes(1_000)])
    endpoint = Endpoint(connection, loop, Socket(iter(())), 0)  # type: ignore[arg-type]  # fakes
    endpoint.take_sent(10)

    assert (len(connection.outgoing[0]), endpoint.last_active_ms) == (990, 5_000)


def test_who_waits_for_the_disk_is_not_told_again_and_again_that_there_is_room() -> None:
    """A loop that is level-triggered would spin until the disk has read."""
    with tempfile.TemporaryFile() as file:
        file.write(FILE)
        file.flush()
        socket, loop = Socket(iter([0, 4, 0, 1 << 20])), Loop()
        connection: Any = Connection([b"head", Slice(file, 7, 2 * COPIED_BYTES_MAX, is_cached=False)])
        endpoint = Endpoint(connection, loop, socket, 0)  # type: ignore[arg-type]  # fakes
        endpoint.flush()
        assert endpoint.interest & WRITE
        endpoint.on_event(WRITE)
        endpoint.flush()

        assert loop.ahead is not None
        assert not endpoint.interest & WRITE

        read_into_cache(loop.ahead)
        endpoint.read_ahead_done(None)
        endpoint.flush()
        assert endpoint.interest & WRITE
        endpoint.on_event(WRITE)
        endpoint.flush()

    assert socket.taken == b"head" + FILE[7 : 7 + 2 * COPIED_BYTES_MAX]
