"""Requests of any sizes in any pieces on real sockets: every one is served, in order, and nobody is left waiting."""

import itertools
import socket
import ssl
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.clock import SystemClock
from odradek.kernel.network import reactor
from odradek.kernel.network.endpoint import Endpoint
from odradek.kernel.network.loop import EndpointMaker
from odradek.kernel.network.settings import ListenerSettings, NetworkSettings
from odradek.kernel.network.tls import server_context, tls_endpoint_maker

from .conftest import Certificates, Service, framed, needs_pump

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the reactor needs epoll")

SIZES = [0, 5, 3_000, 33_000, 40_000, 70_000, 131_060, 131_068, 131_069, 200_000, 700_000]
"""Of frames: small ones, and those on both sides of what is received in one piece."""
TURNS_MAX = 400
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection over loopback: only TCP puts off wake-ups as the system's mark says."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
    for each in (client, server):
        each.setblocking(False)
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, server


class Client:
    """Sends what it has in pieces of given sizes, and keeps the answers; over TLS where there is a context for it."""

    def __init__(self, stream: bytes, pieces: list[int], context: ssl.SSLContext | None) -> None:
        self.socket, self.served = tcp_pair()
        if context is not None:
            self.socket = context.wrap_socket(
                self.socket, server_hostname="localhost", do_handshake_on_connect=False, suppress_ragged_eofs=False
            )
        self.stream = memoryview(stream)
        self.pieces = pieces[::-1]
        self.answers = b""

    def go_on(self) -> None:
        """Send the next piece, or what the socket takes of it; receive what is there."""
        try:
            if self.pieces:
                sent = self.socket.send(self.stream[: self.pieces[-1]])
                self.stream = self.stream[sent:]
                self.pieces[-1] -= sent
                if not self.pieces[-1]:
                    self.pieces.pop()
        except NOT_NOW:
            pass
        try:
            while data := self.socket.recv(1 << 20):
                self.answers += data
        except NOT_NOW:
            pass


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[list[bytes], list[int]]]:
    """Draw what each client asks (echoes, now or at the turn's end, and what wants no answer), and in which pieces."""
    body = st.builds(lambda kind, size: kind + bytes(size), st.sampled_from([b"e", b"n", b"t"]), st.sampled_from(SIZES))
    talks = []
    for _ in range(draw(st.integers(1, 3))):
        bodies = draw(st.lists(body, min_size=1, max_size=6))
        stream_bytes = sum(4 + len(each) for each in bodies)
        ends = list(itertools.accumulate(4 + len(each) for each in bodies))
        # Many a cut is a frame's end: who looks further then finds nothing.
        cut = st.sampled_from(ends) | st.integers(1, stream_bytes)
        cuts = sorted({*draw(st.lists(cut, max_size=10)), stream_bytes})
        talks.append((bodies, [end - start for start, end in itertools.pairwise([0, *cuts])]))
    return talks


@pytest.mark.parametrize("driver", [pytest.param("pump", marks=needs_pump), "python", "tls"])
@given(talks=conversations())
def test_whatever_pieces_requests_come_in_every_one_is_served(
    driver: str, certificates: Certificates, talks: list[tuple[list[bytes], list[int]]]
) -> None:
    context = certificates.client_context() if driver == "tls" else None
    make_endpoint: EndpointMaker = Endpoint
    if context is not None:
        make_endpoint = tls_endpoint_maker(server_context(certificates.server), 60_000)
    service: Any = Service()
    settings = NetworkSettings((ListenerSettings("PLAINTEXT", "127.0.0.1", 0),))
    loop = reactor.Reactor(receiver=service, settings=settings, clock=SystemClock())
    loop.pump = reactor.PUMP if driver == "pump" else None
    clients = [Client(b"".join(map(framed, bodies)), pieces, context) for bodies, pieces in talks]
    wanted = [b"".join(framed(body) for body in bodies if body[:1] != b"n") for bodies, _ in talks]
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
            served = len(service.frames) == sum(len(bodies) for bodies, _ in talks)
            if served and wanted == [client.answers for client in clients]:
                break
            # As the reactor's own task: a turn only when a socket is announced, or somebody asked for one.
            events = loop._epoll.poll(0.001, 64)
            if events or loop.resumed:
                loop.turn(events)

        assert wanted == [client.answers for client in clients]
        assert sorted(body for bodies, _ in talks for body in bodies) == sorted(service.frames)
    finally:
        for endpoint in list(loop.endpoints.values()):
            loop.close(endpoint, "the test is over")
        for client in clients:
            client.socket.close()
        loop._epoll.close()
