"""Shell: sockets: listening, connecting, waiting for them.

Sockets have the names of `socket.socket`, and the system's are nothing else: who uses them pays no other call. A
simulator brings its own objects with these names (`lab/simulator`); what only works on the system's asks
`Network.is_system`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import trio

from .poller import system_poller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from ..types import Buffer
    from .poller import Poller


class Socket(Protocol):
    """A connected, non-blocking socket, as a broker uses it; errors are those of `socket.socket`."""

    def fileno(self) -> int:
        """Return its descriptor, by which a `Poller` knows it."""
        ...

    def recv_into(self, buffer: Buffer, /) -> int:
        """Receive into memory; return how much, 0 at the end."""
        ...

    def recv(self, size_bytes: int, flags: int = 0, /) -> bytes:
        """Return what came; with `socket.MSG_PEEK` it stays there."""
        ...

    def send(self, data: Buffer, /) -> int:
        """Send what there is room for; return how much."""
        ...

    def sendmsg(self, buffers: Iterable[Buffer], ancillary: Iterable[Any], flags: int, /) -> int:
        """Send what there is room for of several pieces; return how much."""
        ...

    def setblocking(self, flag: bool, /) -> None:
        """Have it block, or not."""
        ...

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        """Set an option; unknown ones are ignored by a simulated socket."""
        ...

    def getsockopt(self, level: int, option: int, /) -> int:
        """Return an option."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class ListeningSocket(Protocol):
    """A listening, non-blocking socket; errors are those of `socket.socket`."""

    def fileno(self) -> int:
        """Return its descriptor, by which a `Poller` knows it."""
        ...

    def accept(self) -> tuple[Socket, Any]:
        """Return a client and its address, whose first two items are host and port."""
        ...

    def getsockname(self) -> Any:
        """Return the bound address, whose first two items are host and port."""
        ...

    def close(self) -> None:
        """Close it; who waits to be accepted is refused."""
        ...


class StreamListeners(Protocol):
    """Listeners whose clients get a task each; for what is asked now and then."""

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that are bound; the port is never 0."""
        ...

    async def serve(self, handler: Callable[[trio.abc.Stream], Awaitable[object]]) -> NoReturn:
        """Give each client to a task of its own until cancelled; they are cancelled, too."""
        ...

    def close(self) -> None:
        """Give the port back."""
        ...


class Address(NamedTuple):
    """One address of a host; `where` is as the system has it, host and port first."""

    family: int
    where: tuple[Any, ...]

    @property
    def host(self) -> str:
        """The host, as a number."""
        return str(self.where[0])


class Network(Protocol):
    """How a machine listens, connects and waits."""

    @property
    def is_system(self) -> bool:
        """Whether sockets, and files, are the system's: only those go to the C pump, `sendfile` and `Sleeper`."""
        ...

    def host_name(self) -> str:
        """Return this machine's name."""
        ...

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> ListeningSocket:
        """Return a listening, non-blocking socket.

        Args:
            host: A name or an address of this machine; empty for all of them.
            port: 0 for a free one.
            backlog: How many clients may wait to be accepted.
            receive_buffer_bytes: The system's choice if not above 0.

        Raises:
            socket.gaierror: The host is unknown.
            OSError: The address cannot be bound.
        """
        ...

    async def listen_streams(self, host: str, port: int) -> StreamListeners:
        """Listen, for `StreamListeners.serve`; arguments and errors are those of `listen`."""
        ...

    def new_poller(self) -> Poller | None:
        """Return what waits for many sockets; None where there is none."""
        ...

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of a host, best first.

        Raises:
            OSError: It has none.
        """
        ...

    async def connect(
        self, address: Address, *, send_buffer_bytes: int, receive_buffer_bytes: int
    ) -> trio.abc.HalfCloseableStream:
        """Connect to an address that `resolve` gave.

        Args:
            address: Where to.
            send_buffer_bytes: The system's choice if negative.
            receive_buffer_bytes: The system's choice if negative.

        Raises:
            OSError: Nobody listens there, or it cannot be reached.

        Cancelled, nothing is left open.
        """
        ...


class SystemNetwork:
    """This system's network."""

    is_system = True
    host_name = staticmethod(socket.gethostname)
    new_poller = staticmethod(system_poller)

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
        """See `Network.listen`."""
        family, address = _resolve_own(host, port)
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                # On Windows the option means something else: it would let two brokers share the port.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not host else 1)
            if receive_buffer_bytes > 0:
                # Before listening: the window is agreed upon when a client connects.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            if is_loopback(address[0]):
                # Its clients' sockets are made so: one that was paced once, if only by its handshake, keeps the timer.
                do_not_pace(listening)
            listening.bind(address)
            listening.listen(backlog)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening

    async def listen_streams(self, host: str, port: int) -> _SystemStreamListeners:
        """See `Network.listen_streams`."""
        return _SystemStreamListeners(await trio.open_tcp_listeners(port, host=host or None))

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """See `Network.resolve`."""
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [Address(family, where) for family, _, _, _, where in found]

    async def connect(
        self, address: Address, *, send_buffer_bytes: int, receive_buffer_bytes: int
    ) -> trio.SocketStream:
        """See `Network.connect`."""
        connecting = trio.socket.socket(address.family, socket.SOCK_STREAM)
        try:
            # Before connecting: the window of TCP is agreed upon then.
            if send_buffer_bytes >= 0:
                connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
            if receive_buffer_bytes >= 0:
                connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            await connecting.connect(address.where)
        except BaseException:
            connecting.close()
            raise
        return trio.SocketStream(connecting)


class _SystemStreamListeners:
    """trio's own listeners."""

    def __init__(self, listeners: list[trio.SocketListener]) -> None:
        self._listeners = listeners

    @property
    def address(self) -> tuple[str, int]:
        """See `StreamListeners.address`."""
        host, port = self._listeners[0].socket.getsockname()[:2]
        return host, port

    async def serve(self, handler: Callable[[trio.abc.Stream], Awaitable[object]]) -> NoReturn:
        """See `StreamListeners.serve`."""
        await trio.serve_listeners(handler, self._listeners)

    def close(self) -> None:
        """See `StreamListeners.close`."""
        for listener in self._listeners:
            listener.socket.close()


def _resolve_own(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    if not host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", port, 0, 0)
        return socket.AF_INET, ("0.0.0.0", port)  # an empty host means all addresses, as in Kafka
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name that has both gets IPv4 first, as in Java: that is where clients try first.
    family, _, _, _, address = min(found, key=lambda item: item[0] != socket.AF_INET)
    return family, address


def is_loopback(host: str) -> bool:
    """Say whether an address is one by which a machine speaks with itself."""
    return host == "::1" or host.startswith("127.")


def do_not_pace(of_this_machine: Socket) -> None:
    """Choose a congestion control that does not pace what is sent: reno, which every Linux has.

    One that does, as bbr, the default of some systems, holds back to a third what never meets a network: fetches by a
    client on this machine.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the operator may have forbidden it
            of_this_machine.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
