"""Shell: bytes to and from one address: a socket, with TLS or not, where every wait has an end.

.. versionadded:: 0.1
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final, Protocol

from .errors import AuthenticationFailedError, ConnectionFailedError, RequestTimeoutError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from odradek.kernel.types import Buffer

    from .errors import ClientError

_JOIN_BYTES_MAX: Final = 64 * 1024
_PARTS_MAX: Final = 256
"""How many buffers go into one gathered write: far below IOV_MAX."""
_SLACK_S: Final = 1.0
_TLS_REFUSALS: Final = frozenset({"SSLError", "SSLCertVerificationError", "CertificateError"})
"""By name, so that `ssl` is loaded only where it is used; its other errors are broken connections."""


class Transport(Protocol):
    """A stream of bytes; one owner."""

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """Write all parts in their order.

        Raises:
            ConnectionFailedError: The stream is of no more use; how much was written is unknown.
        """
        ...

    def receive_into(self, space: memoryview, timeout_ms: int) -> int:
        """Read at least one byte into `space`, which is not empty; return how many, 0 at the stream's end.

        Raises:
            RequestTimeoutError: Nothing came in time.
            ConnectionFailedError: The stream is of no more use.
        """
        ...

    def is_quiet(self) -> bool:
        """Say whether nothing waits to be read: neither bytes nor the stream's end."""
        ...

    def close(self) -> None:
        """Give the stream up; may be repeated."""
        ...


class Connector(Protocol):
    """Opens transports."""

    def __call__(self, host: str, port: int, *, timeout_ms: int) -> Transport:
        """Return a transport to an address.

        Raises:
            ConnectionFailedError: There is none within the time.
        """
        ...


class SocketTransport:
    """A connected socket; its errors come as the client's own."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self._socket = sock
        self._address = address
        self._timeout_s = -1.0

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """Write all parts; small ones are joined, records go out by a gathered write."""
        self._limit(timeout_ms)
        try:
            if len(parts) == 1:
                self._socket.sendall(parts[0])
            elif sum(map(len, parts)) <= _JOIN_BYTES_MAX or _is_tls(self._socket):
                self._socket.sendall(b"".join(parts))
            else:
                self._send_gathered([memoryview(part) for part in parts])
        except TimeoutError:
            raise RequestTimeoutError(f"{self._address} took no request within {timeout_ms} ms") from None
        except OSError as error:
            raise _failure(f"sending to {self._address} failed", error) from None

    def _send_gathered(self, parts: list[memoryview]) -> None:
        first = 0
        while first < len(parts):
            sent = self._socket.sendmsg(parts[first : first + _PARTS_MAX])
            while first < len(parts) and sent >= len(parts[first]):
                sent -= len(parts[first])
                first += 1
            if sent:
                parts[first] = parts[first][sent:]

    def receive_into(self, space: memoryview, timeout_ms: int) -> int:
        """Read what is there, into `space`."""
        self._limit(timeout_ms)
        try:
            return self._socket.recv_into(space)
        except TimeoutError:
            raise RequestTimeoutError(f"{self._address} sent nothing within {timeout_ms} ms") from None
        except OSError as error:
            raise _failure(f"reading from {self._address} failed", error) from None

    def _limit(self, timeout_ms: int) -> None:
        """Set the socket's time-out unless it is nearly that: each setting is a system call."""
        wanted_s = max(timeout_ms, 1) / 1_000
        if not wanted_s <= self._timeout_s <= wanted_s + _SLACK_S:
            self._timeout_s = wanted_s
            self._socket.settimeout(wanted_s)

    def is_quiet(self) -> bool:
        """Say whether the socket has nothing to read."""
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close the socket without a word to the peer."""
        self._socket.close()


def _failure(what: str, error: OSError) -> ClientError:
    """Return what to raise: a handshake that was refused will be refused again, a broken connection may not."""
    if type(error).__name__ in _TLS_REFUSALS:
        return AuthenticationFailedError(
            f"{what}: TLS: {error}: the broker's certificate is not trusted (ssl.truststore.*), it does not accept "
            "the client's (ssl.keystore.*), or the port is not a TLS port (security.protocol)"
        )
    return ConnectionFailedError(f"{what}: {error}")


def _is_tls(sock: socket.socket) -> bool:
    return hasattr(sock, "unwrap")  # `ssl` may not be loaded


class SocketConnector:
    """Opens sockets as the settings say.

    Args:
        context: For TLS; None speaks in plain text.
        send_buffer_bytes: SO_SNDBUF; -1 leaves it to the system.
        receive_buffer_bytes: SO_RCVBUF; -1 leaves it to the system, whose own tuning serves large fetches best.
    """

    def __init__(self, context: ssl.SSLContext | None, send_buffer_bytes: int, receive_buffer_bytes: int) -> None:
        self._context = context
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes

    def __call__(self, host: str, port: int, *, timeout_ms: int) -> SocketTransport:
        """Try the host's addresses in turn; the name's resolution has the system resolver's own limits."""
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConnectionFailedError(f"{host}:{port}: the name cannot be resolved: {error}") from None
        failures = []
        for family, kind, protocol, _, address in addresses:
            sock = socket.socket(family, kind, protocol)
            try:
                return SocketTransport(self._connect(sock, address, host, timeout_ms), f"{host}:{port}")
            except OSError as error:
                sock.close()
                failure = _failure(f"{host}:{port} ({address[0]})", error)
                if not isinstance(failure, ConnectionFailedError):
                    raise failure from None
                failures.append(f"{address[0]}: {error}")
        raise ConnectionFailedError(f"{host}:{port}: {'; '.join(failures) or 'no address'}")

    def _connect(self, sock: socket.socket, address: tuple[object, ...], host: str, timeout_ms: int) -> socket.socket:
        # Before connecting: the window of TCP is agreed upon then.
        if self._send_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.settimeout(timeout_ms / 1_000)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_hostname=host)
