"""Shell: sockets: listening, connecting, waiting for them.

Sockets have the names of `socket.socket`, and the system's are nothing else: who uses them pays no other call. A
simulator brings its own objects with these names (`lab/simulator`); what only works on the system's asks
`Network.is_system`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    import trio

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
