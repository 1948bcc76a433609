"""Shell: a simulated connection as a client has it: a stream of trio."""

from __future__ import annotations

import errno
import socket as constants
from typing import TYPE_CHECKING, Final

import trio

from .sockets import READ, WRITE, Socket, system_error, unknown_name

if TYPE_CHECKING:
    from odradek.kernel.types import Buffer

    from .network import Host, Network

RECEIVE_BYTES: Final = 64 * 1024


class Stream(trio.abc.HalfCloseableStream):
    """A connected socket; made by `connect`."""

    def __init__(self, connected: Socket) -> None:
        """Take a socket over."""
        self.socket = connected
        self._is_closed = False

    async def send_all(self, data: Buffer) -> None:
        """See `trio.abc.SendStream`."""
        view = memoryview(data)
        position = 0
        while True:
            await self.socket.wait_ready(WRITE)
            if self._is_closed:
                raise trio.ClosedResourceError("this stream was closed")
            try:
                position += self.socket.send(view[position:]) if view else 0
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError(f"socket connection broken: {error}") from error
            if position == len(view):
                return

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream`."""
        await self.socket.wait_ready(WRITE)
        if self._is_closed:
            raise trio.ClosedResourceError("this stream was closed")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream`."""
        while True:
            await self.socket.wait_ready(READ)
            if self._is_closed:
                raise trio.ClosedResourceError("this stream was closed")
            try:
                return self.socket.recv(max_bytes or RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError(f"socket connection broken: {error}") from error

    async def send_eof(self) -> None:
        """See `trio.abc.HalfCloseableStream`."""
        await trio.lowlevel.checkpoint()
        self.socket.shutdown(constants.SHUT_WR)

    async def aclose(self) -> None:
        """See `trio.abc.AsyncResource`."""
        self._is_closed = True
        self.socket.close()
        await trio.lowlevel.checkpoint()


async def connect(network: Network, host: Host, server_name: str, port: int) -> Stream:
    """Connect a host to another one.

    Raises:
        OSError: The name is unknown, nobody listens, or nobody answers.

    Cancelled, nothing is left open.
    """
    server = network.resolve(server_name, host)
    if server is None:
        await trio.lowlevel.checkpoint()
        raise unknown_name()
    client = Socket(network, host, network.new_connection_name(host, server))
    client.port = host.free_port()
    network.ask(client, server, port)
    try:
        await client.wait_ready(WRITE)
    except BaseException:
        client.close()
        raise
    number = client.getsockopt(constants.SOL_SOCKET, constants.SO_ERROR)
    if number or not client.is_connected:
        client.close()
        raise system_error(number or errno.ECONNABORTED)
    return Stream(client)
