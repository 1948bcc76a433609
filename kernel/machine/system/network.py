"""Shell: this system's network: sockets that are `socket.socket`, streams that are trio's."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import trio

from ..network import Address
from .poller import system_poller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..network import Socket


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
        try:
            found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError as error:  # an empty label, or one that is too long: the system is not even asked
            raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is no name of a host") from error
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
