"""Shell: listeners: bind, accept, and refuse what goes beyond the limits.

.. versionadded:: 0.1
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Final

import attrs

from ..classes import define
from ..errors import ConfigError
from ..machine.system.network import do_not_pace, is_loopback
from .endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.network import ListeningSocket, Network, Socket
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


def bind(listener: ListenerSettings, settings: NetworkSettings, network: Network) -> ListeningSocket:
    """Return a listening, non-blocking socket.

    Raises:
        ConfigError: The host is unknown, or the address cannot be bound; says what to do.
    """
    try:
        return network.listen(
            listener.host,
            listener.port,
            backlog=settings.backlog,
            receive_buffer_bytes=settings.receive_buffer_bytes,
        )
    except socket.gaierror as error:
        raise ConfigError(
            f"listener {listener.name}: the host {listener.host!r} is unknown: {error.strerror or error}",
            where="listeners",
            hint="give an address of this machine, or nothing for all of them",
        ) from error
    except OSError as error:
        place = f"{listener.host or '*'}:{listener.port}"
        raise ConfigError(
            f"listener {listener.name} cannot listen on {place}: {error.strerror or error}",
            where="listeners",
            hint=_BIND_HINTS.get(error.errno or 0, ""),
        ) from error


@define(eq=False)
class Acceptor:
    """Takes the clients of one listener into the loop. Owned by the loop's task.

    Attributes:
        listener: What it listens for.
        listening: The listening socket, closed by `close`.
    """

    listener: ListenerSettings
    listening: ListeningSocket
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
            if not self._loop.has_room(self.listener):
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
            if self.listener.is_protected and self._loop.is_beyond_limit:
                self._loop.close_a_client()
                return  # looking for it takes time: one a turn

    def _take(self, client: Socket, address: tuple[str, int]) -> None:
        loop = self._loop
        settings = loop.settings
        host, port = plain_host(address[0]), address[1]
        if loop.is_address_full(self.listener, host):
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
        if not self._is_paused or not self._loop.has_room(self.listener):
            return
        if self._loop.clock.monotonic_ms() >= self._rests_until_ms:
            self._is_paused = False
            self._loop.pause_listener(self.listening, False)


def set_options(client: Socket, host: str, settings: NetworkSettings) -> None:
    """Have the system treat a client's socket as a broker needs it."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if settings.send_buffer_bytes > 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if is_loopback(host):
        do_not_pace(client)


def plain_host(host: str) -> str:
    """Return an IPv4 address in its own form where a dual-stack socket wraps it in IPv6."""
    return host.removeprefix("::ffff:") if "." in host else host
