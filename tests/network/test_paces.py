"""Who fills the memory that was lent to its frame too slowly, while others wait for it."""

from __future__ import annotations

import struct

import pytest

from odradek.kernel.network.connection import Connection
from odradek.kernel.network.paces import FILL_MS_MAX, PACE_WINDOW_MS, Paces
from tests.connections import new_connection

FRAME_BYTES = 1_000_000
FIRST_BYTES = 200_000


class Frames:
    """Takes frames, and answers none."""

    def __init__(self) -> None:
        self.count = 0

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to do."""

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        self.count += 1

    def turn_ended(self) -> None:
        """Nothing to do."""

    def connection_closed(self, connection: Connection) -> None:
        """Nothing to do."""


class Client:
    """A client in the middle of a large frame."""

    def __init__(self) -> None:
        self.connection = new_connection()
        self.frames = Frames()
        self.send(struct.pack(">i", FRAME_BYTES) + bytes(FIRST_BYTES))

    @property
    def room_bytes(self) -> int:
        return len(self.connection.writable())

    def send(self, data: bytes) -> None:
        self.connection.receive_data(data, self.frames)


def looks(client: Client, bytes_a_second: int, *, seconds: int) -> list[bool]:
    """Look once a second at a client that sends so much in each; return what was seen."""
    paces, seen = Paces(), []
    for second in range(seconds):
        paces.begin_look()
        seen.append(paces.is_too_slow(client.connection, second * 1000))
        client.send(bytes(bytes_a_second))
    return seen


def test_who_sends_a_byte_now_and_then_is_too_slow_once_that_has_been_seen_for_a_while() -> None:
    window = PACE_WINDOW_MS // 1000

    assert looks(Client(), 1, seconds=2 * window + 1) == [False] * window + [True] + [False] * (window - 1) + [True]


@pytest.mark.parametrize(("share", "is_too_slow"), [(1.2, False), (0.8, True)])
def test_the_pace_is_measured_against_the_room_that_is_held(share: float, is_too_slow: bool) -> None:
    client = Client()
    bytes_a_second = int(client.room_bytes * 1000 / FILL_MS_MAX * share)

    assert client.room_bytes > 100_000
    assert any(looks(client, bytes_a_second, seconds=5)) is is_too_slow


def test_who_stands_still_is_not_slow() -> None:
    assert not any(looks(Client(), 0, seconds=9))


def test_who_is_lent_nothing_is_not_slow() -> None:
    client = Client()
    client.send(bytes(FRAME_BYTES - FIRST_BYTES))

    assert client.frames.count == 1
    assert not any(looks(client, 1, seconds=3))


def test_who_waits_for_memory_is_not_slow() -> None:
    client = Client()

    assert client.connection.give_room_back()
    assert not any(looks(client, 0, seconds=9))


def test_the_next_frame_begins_anew_and_what_nobody_waited_for_is_forgotten() -> None:
    client, paces = Client(), Paces()
    paces.begin_look()

    assert not paces.is_too_slow(client.connection, 0)

    client.send(bytes(FRAME_BYTES - FIRST_BYTES) + struct.pack(">i", FRAME_BYTES) + bytes(FIRST_BYTES - 1))
    paces.begin_look()

    assert not paces.is_too_slow(client.connection, PACE_WINDOW_MS)

    paces.forget()
    paces.begin_look()

    assert not paces.is_too_slow(client.connection, 2 * PACE_WINDOW_MS)
