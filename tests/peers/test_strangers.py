"""What answers on a port that is no Kafka broker's is told at once, by its first bytes."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import Admin, ConnectionFailedError
from odradek.kernel.peers.strangers import HANGS_UP, HANGS_UP_ON_TLS, NO_TLS, SPEAKS_HTTP, SPEAKS_TLS, who_answered
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.testing.running_broker import running_broker
from tests.tls_broker import secured_broker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"HTTP/1.1 400 Bad Request", SPEAKS_HTTP),
        (b"\x15\x03\x03\x00\x02\x02", SPEAKS_TLS),
        (b"\x15\x03\x01\x00", SPEAKS_TLS),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it says 'SSH-2.0-OpenSSH_9.6': this is no port of a Kafka broker"),
        (b"\x00\x00\x00\x10\x00\x00", ""),
        (b"", ""),
    ],
)
def test_first_bytes_tell_who_it_is(first: bytes, told: str) -> None:
    assert told == who_answered(first)


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve every connection by a function on a thread of its own; yield the address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                talk(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def say(text: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(text)
        connection.recv(65_536)

    return talk


def failure(bootstrap: str, **settings: object) -> str:
    """Return what a client says that asks there once."""
    more = {name.replace("_", "."): value for name, value in settings.items()}

    async def run() -> None:
        async with Admin({"bootstrap.servers": bootstrap, **more}) as admin:
            await admin.opened().request_any(MetadataRequest(topics=[]))

    with pytest.raises(ConnectionFailedError) as caught:
        trio.run(run)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", SPEAKS_HTTP),
        (b"SSH-2.0-x\r\n", "it says 'SSH-2.0-x': this is no port of a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x46", SPEAKS_TLS),
    ],
)
def test_a_client_tells_what_answered(text: bytes, told: str) -> None:
    with server(say(text)) as address:
        assert failure(address) == f"{address} is no Kafka broker for this client: {told}"


def test_an_answer_that_is_far_too_large_is_not_waited_for() -> None:
    with server(say(b"\x7f\xff\x00\x00")) as address:
        assert "sent what cannot be read: a frame of 2147418112 bytes" in failure(address)


def test_a_client_tells_that_somebody_hung_up() -> None:
    def hang_up(connection: socket.socket) -> None:
        connection.recv(65_536)

    with server(hang_up) as address:
        assert failure(address) == f"{address} is no Kafka broker for this client: {HANGS_UP}"


def test_plaintext_against_tls_is_told(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker:
        told = failure(broker.bootstrap)

    assert any(text in told for text in (SPEAKS_TLS, HANGS_UP)), told


def test_tls_against_plaintext_is_told() -> None:
    with running_broker() as broker:
        told = failure(broker.bootstrap, security_protocol="SSL")

    assert HANGS_UP_ON_TLS in told


def test_tls_against_http_is_told() -> None:
    with server(say(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert NO_TLS in failure(address, security_protocol="SSL")
