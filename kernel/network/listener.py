"""Shell: listeners: bind, accept, and refuse what goes beyond the limits.

.. versionadded:: 0.1
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

import attrs

from ..errors import ConfigError
from .endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop import EndpointMaker, Loop
    from .settings import ListenerSettings, NetworkSettings

_log = logging.getLogger(__name__)

ACCEPTS_PER_TURN_MAX: Final = 32
ACCEPT_PAUSE_MS: Final = 100
"""How long a listener rests after an accept failed for want of descriptors or memory: trying at once would spin."""

_GONE: Final = frozenset(
    {errno.ECONNABORTED, errno.EPROTO, errno.EINTR, errno.EPERM, errno.ENETDOWN, errno.EHOSTUNREACH}
)
"""Accept failures that concern one client alone: the next accept may succeed."""

_BIND_HINTS: Final = {
    errno.EADDRINUSE: "another program listens there, perhaps another broker; stop it, or choose another port",
    errno.EACCES: "ports below 1024 need rights that this process does not have; choose another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose one of its own",
}


def bind(listener: ListenerSettings, settings: NetworkSettings) -> socket.socket:
    """Return a listening, non-blocking socket.

    Raises:
        ConfigError: The host is unknown, or the address cannot be bound; says what to do.
    """
    family, address = _resolve(listener)
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # On Windows the option means something else: it would let two brokers share the port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not listener.host else 1)
        if settings.receive_buffer_bytes > 0:
            # Before listening: the window is agreed upon when a client connects.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        if _is_loopback(address[0]):
            # Its clients' sockets are made so: one that was paced once, if only by its handshake, keeps the timer.
            _do_not_pace(listening)
        listening.bind(address)
        listening.listen(settings.backlog)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        place = f"{listener.host or '*'}:{listener.port}"
        raise ConfigError(
            f"listener {listener.name} cannot listen on {place}: {error.strerror or error}",
            where="listeners",
            hint=_BIND_HINTS.get(error.errno or 0, ""),
        ) from error
    return listening


def _resolve(listener: ListenerSettings) -> tuple[int, tuple[str, int] | tuple[str, int, int, int]]:
    if not listener.host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", listener.port, 0, 0)
        return socket.AF_INET, ("0.0.0.0", listener.port)  # an empty host means all addresses, as in Kafka
    try:
        found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(
            f"listener {listener.name}: the host {listener.host!r} is unknown: {error.strerror or error}",
            where="listeners",
            hint="give an address of this machine, or nothing for all of them",
        ) from error
    # A name that has both gets IPv4 first, as in Java: that is where clients try first.
    family, _, _, _, address = min(found, key=lambda item: item[0] != socket.AF_INET)
    return family, address  # type: ignore[return-value]  # a stream socket's address has one of these forms


@attrs.define(eq=False)
class Acceptor:
    """Takes the clients of one listener into the loop. Owned by the loop's task.

    Attributes:
        listener: What it listens for.
        listening: The listening socket, closed by `close`.
    """

    listener: ListenerSettings
    listening: socket.socket
    _loop: Loop
    _make_endpoint: EndpointMaker = Endpoint
    _on_rest: Callable[[], None] = lambda: None
    _is_paused: bool = attrs.field(init=False, default=False)
    _rests_until_ms: int = attrs.field(init=False, default=0)

    def start(self) -> None:
        """Begin to accept."""
        self._loop.watch_listener(self.listening, self.accept)
        self._loop.on_room.append(self.go_on)

    def close(self) -> None:
        """Stop listening; connections taken go on."""
        if self.go_on in self._loop.on_room:
            self._loop.on_room.remove(self.go_on)
            self._loop.unwatch_listener(self.listening)
        self.listening.close()

    @property
    def bound_address(self) -> tuple[str, int]:
        """Host and port that are really bound: the port is never 0."""
        host, port = self.listening.getsockname()[:2]
        return host, port

    def accept(self) -> None:
        """Take the clients that wait; pause while there is no room for them."""
        for _ in range(ACCEPTS_PER_TURN_MAX):
            if not self._loop.has_room:
                _log.warning("listener %s waits: max.connections is reached", self.listener.name)
                self._pause(0)
                return
            try:
                client, address = self.listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._loop.accept_failures_count += 1
                if error.errno in _GONE:
                    continue
                _log.error("listener %s cannot accept, pausing: %s", self.listener.name, error.strerror or error)
                self._pause(ACCEPT_PAUSE_MS)
                return
            self._take(client, address)

    def _take(self, client: socket.socket, address: tuple[str, int]) -> None:
        loop = self._loop
        settings = loop.settings
        host, port = plain_host(address[0]), address[1]
        if loop.is_address_full(host):
            loop.refused_count += 1
            _log.info("refusing a connection from %s: max.connections.per.ip is reached", host)
            client.close()
            return
        try:
            client.setblocking(False)
            set_options(client, host, settings)
            frame_limit_bytes = self.listener.frame_limit_bytes or settings.request_limit_bytes
            loop.adopt(
                client,
                listener_name=self.listener.name,
                client_host=host,
                client_port=port,
                frame_limit_bytes=frame_limit_bytes,
                make_endpoint=self._make_endpoint,
            )
        except OSError as error:
            # It left again before it was served.
            loop.accept_failures_count += 1
            _log.debug("a connection from %s is gone: %s", host, error)
            client.close()

    def _pause(self, rest_ms: int) -> None:
        self._is_paused = True
        self._rests_until_ms = self._loop.now_ms + rest_ms if rest_ms else 0
        self._loop.pause_listener(self.listening, True)
        if rest_ms:
            self._on_rest()

    @property
    def is_resting(self) -> bool:
        """Whether it pauses until some time is over, and not until a client leaves."""
        return self._is_paused and self._rests_until_ms > 0

    def go_on(self) -> None:
        """Accept again after a pause, if there is room and the rest is over: a client left, or time passed."""
        if self._is_paused and self._loop.has_room and self._loop.clock.monotonic_ms() >= self._rests_until_ms:
            self._is_paused = False
            self._loop.pause_listener(self.listening, False)


def set_options(client: socket.socket, host: str, settings: NetworkSettings) -> None:
    """Have the system treat a client's socket as a broker needs it."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if settings.send_buffer_bytes > 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if _is_loopback(host):
        _do_not_pace(client)


def _is_loopback(host: str) -> bool:
    return host == "::1" or host.startswith("127.")


def _do_not_pace(of_this_machine: socket.socket) -> None:
    """Choose a congestion control that does not pace what is sent: reno, which every Linux has.

    One that does, as bbr, the default of some systems, holds back to a third what never meets a network: fetches by a
    client on this machine.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the operator may have forbidden it
            of_this_machine.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def plain_host(host: str) -> str:
    """Return an IPv4 address in its own form where a dual-stack socket wraps it in IPv6."""
    return host.removeprefix("::ffff:") if "." in host else host
