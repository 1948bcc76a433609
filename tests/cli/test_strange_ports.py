"""A command that finds something else than a broker says at once what it is."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.test_strangers import server
from tests.tls_broker import secured_broker

if TYPE_CHECKING:
    from pathlib import Path


def answer_lines(connection: socket.socket) -> None:
    """Answer as many HTTP servers do: only once there is a line that ends."""
    text = b""
    while not text.endswith(b"\n"):
        data = connection.recv(65_536)
        if not data:
            return
        text += data
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("line", ["topics list", "produce t -k x", "consume t", "perf produce t -n 1", "groups list"])
def test_an_http_server_that_is_silent_at_first_is_told(command: Any, line: str) -> None:
    with server(answer_lines) as address:
        done = command.run(*line.split(), "-b", address)

    assert done.status == 1
    assert done.err == (
        f"odradek: {address} is no Kafka broker for this client: it speaks HTTP: this is no port of a Kafka broker\n"
    )


def test_a_broker_that_speaks_tls_is_told(command: Any, tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker:
        done = command.run("topics", "list", "-b", broker.bootstrap)

    assert done.status == 1
    assert "it speaks TLS: set security.protocol to SSL or SASL_SSL" in done.err
    assert "is a broker running?" not in done.err


def test_who_is_silent_is_told_while_it_is_waited_for(command: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        done = command.run("topics", "list", "-b", address, "-X", "request.timeout.ms=5000")

    first, _, last = done.err.partition("\n")
    assert first == f"odradek: {address} takes connections and says nothing yet; waiting for it"
    assert "is a broker running?" in last


def test_nobody_at_all_is_told(command: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    done = command.run("topics", "list", "-b", address)

    assert f"cannot connect to {address} (Connection refused); is a broker running?" in done.err
