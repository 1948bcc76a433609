"""Requests in any pieces, answers read as clients like, on real sockets: all are served, nobody is left waiting."""

import itertools
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.kernel.network import reactor
from odradek.kernel.network.endpoint import Endpoint
from odradek.kernel.network.loop import EndpointMaker
from odradek.kernel.network.settings import ListenerSettings, NetworkSettings
from odradek.kernel.network.tls import server_context, tls_endpoint_maker
from tests.machines import make_reactor

from .conftest import Certificates, Service, Slice, framed, needs_pump

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the reactor needs epoll")

SIZES = [0, 5, 3_000, 33_000, 40_000, 70_000, 131_060, 131_068, 131_069, 200_000, 700_000]
"""Of frames: small ones, and those on both sides of what is received in one piece."""
TURNS_MAX = 2_000
FILE = bytes(range(256)) * 1_200
SLICES = ((3, 300_000), (0, 10))
"""Position and length of what answers `s`."""
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection over loopback: only TCP puts off wake-ups as the system's mark says."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
    for each in (client, server):
        each.setblocking(False)
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
    return client, server


@attrs.frozen
class Talk:
    """What a client asks, in which pieces, and how much it reads at a time: in the end, all that is there."""

    bodies: list[bytes]
    pieces: list[int]
    reads: list[int]

    @property
    def answers(self) -> bytes:
        """What it should read in the end."""
        answers = []
        for body in self.bodies:
            if body[:1] == b"s":
                answers.append(framed(b"<" + b"".join(FILE[start : start + size] for start, size in SLICES) + b">"))
            elif body[:1] != b"n":
                answers.append(framed(body))
        return b"".join(answers)


class Client:
    """Has a talk; over TLS where there is a context for it."""

    def __init__(self, talk: Talk, context: ssl.SSLContext | None) -> None:
        self.socket, self.served = tcp_pair()
        if context is not None:
            self.socket = context.wrap_socket(
                self.socket, server_hostname="localhost", do_handshake_on_connect=False, suppress_ragged_eofs=False
            )
        self.stream = memoryview(b"".join(map(framed, talk.bodies)))
        self.pieces = talk.pieces[::-1]
        self.reads = talk.reads[::-1]
        self.answers = b""

    def go_on(self) -> None:
        """Send the next piece, or what the socket takes of it; read."""
        with suppress(*NOT_NOW):
            if self.pieces:
                sent = self.socket.send(self.stream[: self.pieces[-1]])
                self.stream = self.stream[sent:]
                self.pieces[-1] -= sent
                if not self.pieces[-1]:
                    self.pieces.pop()
        with suppress(*NOT_NOW):
            if self.reads:
                limit = self.reads.pop()
                self.answers += self.socket.recv(limit) if limit else b""
            else:
                while data := self.socket.recv(1 << 20):
                    self.answers += data


@st.composite
def conversations(draw: st.DrawFn) -> list[Talk]:
    """Draw what clients ask: echoes, now or at the turn's end, pieces of a file, and what wants no answer."""
    kind = st.sampled_from([b"e", b"n", b"t", b"s"])
    body = st.builds(lambda kind, size: kind + bytes(size), kind, st.sampled_from(SIZES))
    talks = []
    for _ in range(draw(st.integers(1, 3))):
        # Often one as large as the last, for which the room is there already.
        runs = draw(st.lists(st.tuples(body, st.integers(1, 3)), min_size=1, max_size=4))
        bodies = [each for each, count in runs for _ in range(count)]
        stream_bytes = sum(4 + len(each) for each in bodies)
        ends = list(itertools.accumulate(4 + len(each) for each in bodies))
        # Many a cut is a frame's end: who looks further then finds nothing.
        cut = st.sampled_from(ends) | st.integers(1, stream_bytes)
        cuts = sorted({*draw(st.lists(cut, max_size=10)), stream_bytes})
        pieces = [end - start for start, end in itertools.pairwise([0, *cuts])]
        talks.append(Talk(bodies, pieces, draw(st.lists(st.sampled_from([0, 1, 10_000, 100_000]), max_size=20))))
    return talks


@pytest.fixture
def slices(tmp_path: Path) -> Iterator[list[Slice]]:
    path = tmp_path / "segment.log"
    path.write_bytes(FILE)
    with path.open("rb") as file:
        yield [Slice(file, position, size_bytes) for position, size_bytes in SLICES]


@pytest.mark.parametrize("driver", [pytest.param("pump", marks=needs_pump), "python", "tls"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(talks=conversations())
def test_however_clients_send_and_read_every_request_is_served(
    driver: str, certificates: Certificates, slices: list[Slice], talks: list[Talk]
) -> None:
    context = certificates.client_context() if driver == "tls" else None
    make_endpoint: EndpointMaker = Endpoint
    if context is not None:
        make_endpoint = tls_endpoint_maker(server_context(certificates.server), 60_000)
    service: Any = Service()
    service.slices = slices
    listeners = NetworkSettings((ListenerSettings("PLAINTEXT", "127.0.0.1", 0),))
    loop = make_reactor(service, listeners)
    loop.pump = reactor.PUMP if driver == "pump" else None
    clients = [Client(talk, context) for talk in talks]
    wanted = [talk.answers for talk in talks]
    for number, client in enumerate(clients):
        loop.adopt(
            client.served,
            listener_name="PLAINTEXT",
            client_host="here",
            client_port=number,
            frame_limit_bytes=1 << 24,
            make_endpoint=make_endpoint,
        )
    try:
        for _ in range(TURNS_MAX):
            for client in clients:
                client.go_on()
            is_served = len(service.frames) == sum(len(talk.bodies) for talk in talks)
            if is_served and wanted == [client.answers for client in clients]:
                break
            # As the reactor's own task: a turn only when a socket is announced, or somebody asked for one.
            events = loop.poller.poll(0 if loop.resumed else 0.001, 64)
            if events or loop.resumed:
                loop.turn(events)

        assert wanted == [client.answers for client in clients]
        assert sorted(body for talk in talks for body in talk.bodies) == sorted(service.frames)
    finally:
        for endpoint in list(loop.endpoints.values()):
            loop.close(endpoint, "the test is over")
        for client in clients:
            client.socket.close()
        loop.poller.close()
