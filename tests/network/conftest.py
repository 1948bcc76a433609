"""A server on a free port with a receiver that tests can tell what to do."""

import os
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from odradek.kernel.errors import MalformedRequestError
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.network import reactor
from odradek.kernel.network.connection import Connection, ReplySlot
from odradek.kernel.network.server import NetworkServer
from odradek.kernel.network.settings import ListenerSettings, LoopKind, NetworkSettings, TlsSettings
from tests.machines import machine_with
from tests.waiting import PATIENCE_S


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Service:
    """Answers by the first byte of a request; keeps what happened.

    e: echo; n: no answer; p: park until told; h: the same and hold; m: malformed; b: a bug; s: what `slices` holds;
    z: as many zeros as the request says; t: echo when the turn ends.
    """

    def __init__(self) -> None:
        self.opened: list[Connection] = []
        self.closed: list[Connection] = []
        self.frames: list[bytes] = []
        self.parked: list[ReplySlot] = []
        self.slices: list[Any] = []
        self.turns = 0
        self.fails_at_turns_end = False
        self._at_turns_end: list[tuple[ReplySlot, bytes]] = []

    def connection_opened(self, connection: Connection) -> None:
        self.opened.append(connection)

    def connection_closed(self, connection: Connection) -> None:
        self.closed.append(connection)

    def turn_ended(self) -> None:
        self.turns += 1
        if self.fails_at_turns_end:
            self.fails_at_turns_end = False
            raise RuntimeError("a bug at the turn's end")
        for slot, body in self._at_turns_end:
            slot.complete([framed(body)])
        self._at_turns_end.clear()

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        body = bytes(frame)
        self.frames.append(body)
        kind = body[:1]
        if kind == b"m":
            raise MalformedRequestError("not a request")
        if kind == b"b":
            raise RuntimeError("a bug")
        slot = ReplySlot(connection)
        if kind == b"n":
            slot.complete(None)
        elif kind in (b"p", b"h"):
            self.parked.append(slot)
            if kind == b"h":
                slot.hold()
        elif kind == b"s":
            size = sum(each.size_bytes for each in self.slices)
            slot.complete([struct.pack(">i", size + 2), b"<", *self.slices, b">"])
        elif kind == b"z":
            size = int(body[1:])
            slot.complete([struct.pack(">i", size), bytes(size)])
        elif kind == b"t":
            self._at_turns_end.append((slot, body))
        else:
            slot.complete([framed(body)])


@attrs.define
class Piece:
    """A piece of a file; who inherits says whether it is in memory."""

    file: Any
    position: int
    size_bytes: int

    def fileno(self) -> int:
        number: int = self.file.fileno()
        return number

    def read(self) -> bytes:
        return os.pread(self.fileno(), self.size_bytes, self.position)

    def read_part(self, position: int, size_bytes: int) -> bytes:
        return os.pread(self.fileno(), size_bytes, position)


@attrs.define
class Slice(Piece):
    """A piece of a file; says it is cold as often as told."""

    is_cached: bool = True


@attrs.define
class Serving:
    """What a test gets: the server, its receiver, and a way in."""

    server: NetworkServer
    service: Service
    addresses: dict[str, tuple[str, int]]

    async def connect(self, listener: str = "PLAINTEXT") -> trio.SocketStream:
        return await trio.open_tcp_stream(*self.addresses[listener])

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the others run until it is so."""
        while not condition():
            await trio.lowlevel.checkpoint()

    async def ask(self, stream: trio.abc.Stream, body: bytes) -> bytes:
        await stream.send_all(framed(body))
        return await self.answer(stream)

    async def answer(self, stream: trio.abc.Stream) -> bytes:
        (size,) = struct.unpack(">i", await receive_exactly(stream, 4))
        return await receive_exactly(stream, size)


async def receive_exactly(stream: trio.abc.Stream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = await stream.receive_some(size - len(data))
        if not piece:
            raise EOFError(f"{len(data)} of {size} bytes came")
        data += piece
    return bytes(data)


Serve = Callable[..., AbstractAsyncContextManager[Serving]]


@pytest.fixture
def serve() -> Serve:
    """Return `async with serve(loop_kind, **settings) as serving`."""

    @asynccontextmanager
    async def serving(
        loop: LoopKind,
        *,
        listeners: tuple[ListenerSettings, ...] = (),
        admits_clients: bool = True,
        **settings: Any,
    ) -> AsyncIterator[Serving]:
        service = Service()
        chosen = listeners or (ListenerSettings("PLAINTEXT", "127.0.0.1", 0),)
        server = NetworkServer(
            service, NetworkSettings(chosen, loop=loop, **settings), machine_with(clock=SystemClock()), admits_clients
        )
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                addresses = await nursery.start(server.run)
                yield Serving(server, service, dict(addresses))
                nursery.cancel_scope.cancel()

    return serving


needs_pump = pytest.mark.skipif(reactor.PUMP is None, reason="the reactor's pump was not compiled")


@pytest.fixture(params=[pytest.param("epoll-pump", marks=needs_pump), "epoll", "epoll-sleeper", "portable"])
def loop_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LoopKind:
    """Both loops; the reactor with and without its compiled twin, and sleeping in trio's stead."""
    kind, _, variant = request.param.partition("-")
    if variant != "pump":
        monkeypatch.setattr(reactor, "PUMP", None)
    if variant == "sleeper":
        monkeypatch.setattr(reactor, "may_take_over_sleep", lambda: True)
    return LoopKind(kind)


@attrs.frozen
class Certificates:
    """An authority, a server and a client that it signed."""

    authority: trustme.CA
    server: TlsSettings
    server_pem: Path

    def client_context(self, *, shows_certificate: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if shows_certificate:
            self.authority.issue_cert("client@example.org").configure_cert(context)
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    return Certificates(authority, TlsSettings(keystore_type="PEM", keystore_location=str(path)), path)
