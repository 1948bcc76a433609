"""TLS records that bring no data, or hardly any: what one client sends holds up nobody else, and costs no memory."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.kernel.network.endpoint import READ, WRITE
from odradek.kernel.network.receive_memory import ReceiveMemory
from odradek.kernel.network.settings import ListenerSettings, LoopKind, SecurityProtocol
from odradek.kernel.network.tls import (
    RECORDS_PER_TURN_MAX,
    SILENT_PER_TURN_MAX,
    SILENT_RECORDS_MAX,
    server_context,
    tls_endpoint_maker,
)
from odradek.kernel.network.tls_records import RecordWalk
from tests.connections import new_connection

from .conftest import Certificates, Service, framed
from .record_client import RecordClient


class Wire:
    """A socket in memory: what is to be received, what was sent."""

    def __init__(self) -> None:
        self.incoming = bytearray()
        self.sent = bytearray()
        self.is_full = False

    def recv(self, size_bytes: int, flags: int = 0) -> bytes:
        if not self.incoming:
            raise BlockingIOError
        data = bytes(self.incoming[:size_bytes])
        del self.incoming[: 0 if flags else size_bytes]
        return data

    def send(self, data: bytes) -> int:
        if self.is_full:
            raise BlockingIOError
        self.sent += data
        return len(data)


class OneLoop:
    """As much of a loop as one endpoint needs."""

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = self.frames_count = self.malformed_count = self.now_ms = 0
        self.receiver = Service()
        self.resumed: list[Any] = []

    def watch(self, endpoint: Any, interest: int) -> None:
        endpoint.interest = interest

    def resume(self, endpoint: Any) -> None:
        self.resumed.append(endpoint)

    def want_turn(self) -> None:
        pass


class Served:
    """One TLS client whose hands were shaken, and the endpoint that serves it."""

    def __init__(self, certificates: Certificates, directory: Path) -> None:
        self.loop: Any = OneLoop()
        self.wire = Wire()
        self.connection = new_connection(ReceiveMemory(1 << 28), frame_limit_bytes=1 << 20)
        make = tls_endpoint_maker(server_context(certificates.server), 10_000)
        self.endpoint: Any = make(self.connection, self.loop, self.wire, 0)  # type: ignore[arg-type]
        self.connection.driver = self.endpoint
        self.client = RecordClient(certificates.client_context(), directory)
        while not self.client.is_handshaken:
            self.wire.incoming += self.client.shake_hands(bytes(self.wire.sent))
            self.wire.sent.clear()
            self.endpoint.on_event(READ)
        assert not self.wire.incoming

    @property
    def left_bytes(self) -> int:
        """How much the endpoint has not decrypted yet."""
        held: bytes = self.endpoint._held
        pending_bytes: int = self.endpoint._incoming.pending
        return len(self.wire.incoming) + len(held) + pending_bytes


@pytest.fixture
def served(certificates: Certificates, tmp_path: Path) -> Served:
    return Served(certificates, tmp_path)


def test_key_updates_are_taken_few_at_a_time(served: Served) -> None:
    update = served.client.key_updates(1)
    served.wire.incoming += update + served.client.key_updates(5_000)

    served.endpoint.on_event(READ)

    assert len(update) * 5_001 - served.left_bytes <= len(update) * RECORDS_PER_TURN_MAX
    assert served.endpoint in served.loop.resumed


def test_who_sends_records_without_data_again_and_again_is_closed(served: Served) -> None:
    served.wire.incoming += served.client.key_updates(5_000)
    events = 0
    while served.connection.wants_input:
        served.endpoint.on_event(READ)
        events += 1

    assert served.connection.is_closing
    assert "without data" in served.connection.close_reason
    assert events <= SILENT_RECORDS_MAX // RECORDS_PER_TURN_MAX + 2


def test_nothing_is_received_of_who_does_not_take_the_answers_to_its_key_updates(served: Served) -> None:
    served.wire.is_full = True
    served.wire.incoming += served.client.key_updates(5_000, asks_for_one=True)

    served.endpoint.on_event(READ)
    after_one = served.left_bytes
    served.endpoint.on_event(READ)

    assert served.left_bytes == after_one
    assert served.endpoint.interest == WRITE
    assert served.endpoint._encrypted.pending + len(served.endpoint._ciphertext) <= 64 * RECORDS_PER_TURN_MAX


def take_turns(served: Served, turns_max: int) -> int:
    """Give the endpoint the turns that it asks for; return how many it had."""
    turns = 0
    while served.loop.resumed and turns < turns_max:
        served.loop.resumed.clear()
        served.endpoint.take_more()
        turns += 1
    return turns


def test_who_does_not_take_the_answers_to_its_key_updates_has_no_turns_until_it_does(served: Served) -> None:
    served.wire.is_full = True
    request = framed(b"r" * 10)
    for at in range(len(request)):  # so that there is never too much without data
        served.wire.incoming += served.client.record(request[at : at + 1])
        served.wire.incoming += served.client.key_updates(8, asks_for_one=True)

    served.endpoint.on_event(READ)
    turns = take_turns(served, 100)
    frames = [*served.loop.receiver.frames]
    served.wire.is_full = False
    served.endpoint.on_event(WRITE)
    served.endpoint.flush()
    take_turns(served, 100)

    assert turns <= 2
    assert (frames, served.loop.receiver.frames) == ([], [request[4:]])


def test_records_of_one_byte_are_taken_few_at_a_time(served: Served) -> None:
    request = framed(b"e" * 5_000)
    served.wire.incoming += b"".join(served.client.record(request[at : at + 1]) for at in range(len(request)))

    served.endpoint.on_event(READ)
    assert 0 < served.loop.bytes_in <= RECORDS_PER_TURN_MAX
    while not served.loop.receiver.frames:
        assert served.loop.resumed.pop() is served.endpoint
        served.endpoint.take_more()

    assert served.loop.receiver.frames == [request[4:]]


def test_a_key_update_now_and_then_is_nobodys_fault(served: Served) -> None:
    for number in range(SILENT_RECORDS_MAX):
        served.wire.incoming += served.client.key_updates(3) + served.client.record(framed(b"n%03d" % number))
        served.endpoint.on_event(READ)

    assert len(served.loop.receiver.frames) == SILENT_RECORDS_MAX
    assert served.connection.is_open
    assert not served.connection.is_closing


@pytest.mark.parametrize("whole_requests", [0, 500])
def test_a_byte_now_and_then_does_not_make_up_for_key_updates(served: Served, whole_requests: int) -> None:
    """Nor is what was not used of the allowance saved up."""
    for _ in range(whole_requests):
        served.wire.incoming += served.client.record(framed(b"n"))
        served.endpoint.on_event(READ)
    received_bytes, request = served.loop.bytes_in, framed(b"e" * 200)
    for at in range(100):
        served.wire.incoming += served.client.record(request[at : at + 1]) + served.client.key_updates(90)
    while served.connection.wants_input and served.left_bytes:
        served.endpoint.on_event(READ)

    assert served.connection.is_closing
    assert "without data" in served.connection.close_reason
    assert served.loop.bytes_in - received_bytes <= 2


def test_large_data_makes_up_for_a_key_update_now_and_then(served: Served) -> None:
    data = bytes(1 << 14)
    request = framed(b"n" + bytes(54 * len(data)))
    for _ in range(5):
        for at in range(0, len(request), len(data)):
            served.wire.incoming += served.client.key_updates(1) + served.client.record(request[at : at + len(data)])
            served.endpoint.on_event(READ)
            take_turns(served, 100)

    assert served.loop.receiver.frames == [request[4:]] * 5
    assert not served.connection.is_closing


def test_what_brings_no_data_ends_a_turn_early(served: Served) -> None:
    served.wire.incoming += served.client.record(framed(b"e" * 9)[:1])
    update = served.client.key_updates(1)
    served.wire.incoming += update + served.client.key_updates(99)
    before_bytes = served.left_bytes

    served.endpoint.on_event(READ)

    assert before_bytes - served.left_bytes <= len(update) * (SILENT_PER_TURN_MAX + 1)
    assert served.endpoint in served.loop.resumed


def test_hands_are_shaken_once_though_older_libraries_would_do_it_again(certificates: Certificates) -> None:
    assert server_context(certificates.server).options & ssl.OP_NO_RENEGOTIATION


def test_others_are_served_while_a_client_updates_its_keys_and_it_is_closed(
    serve: Callable[..., Any], loop_kind: LoopKind, certificates: Certificates, tmp_path: Path
) -> None:
    listener = ListenerSettings("SSL", "127.0.0.1", 0, SecurityProtocol.SSL, certificates.server)
    plain = ListenerSettings("PLAINTEXT", "127.0.0.1", 0)
    client = RecordClient(certificates.client_context(), tmp_path)

    async def main() -> None:
        async with (
            serve(loop_kind, listeners=(listener, plain)) as serving,
            await serving.connect("SSL") as stream,
            await serving.connect("PLAINTEXT") as other,
        ):
            await stream.send_all(client.shake_hands(b""))
            while not client.is_handshaken:
                await stream.send_all(client.shake_hands(await stream.receive_some()))
            with suppress(trio.BrokenResourceError):
                while serving.server.statistics().connections_by_listener["SSL"]:
                    await stream.send_all(client.key_updates(2_000))
                    assert await serving.ask(other, b"e") == b"e"
            assert serving.server.statistics().malformed_count == 1
            assert await serving.ask(other, b"e") == b"e"

    trio.run(main)


def record(size_bytes: int) -> bytes:
    return b"\x17\x03\x03" + size_bytes.to_bytes(2, "big") + bytes(size_bytes)


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 4, 5, 6, 7, 26, 27, 100, 10_000])
@pytest.mark.parametrize("count_max", [1, 2, 96])
def test_records_are_counted_however_they_are_cut(piece_bytes: int, count_max: int) -> None:
    records = [record(size) for size in (22, 0, 1, 300, 16_640, 22, 22, 0, 0, 5)]
    stream = b"".join(records)
    ends = {sum(map(len, records[:count])) for count in range(1, len(records) + 1)}
    walk = RecordWalk()
    taken_bytes = counted = 0
    while taken_bytes < len(stream):
        piece = stream[taken_bytes : taken_bytes + piece_bytes]
        size_bytes = walk.take(piece, count_max)
        assert walk.count - counted <= count_max
        assert size_bytes == len(piece) or (taken_bytes + size_bytes in ends and walk.count - counted == count_max)
        counted = walk.count
        taken_bytes += size_bytes

    assert counted == len(records)
