"""Shell: the system's network, from which a broker can be cut off: until it is healed nothing leaves and nothing comes.

Cut is what a pulled cable is: nobody is refused and no connection ends. Who connects waits, for the system takes him
into the backlog; what was sent lies in the system's buffers, and arrives when the cable is back. A connection that is
closed meanwhile is kept until then, so that the other side hears nothing of it either.

The broker sees sockets that are none of the system's (`Network.is_system`), so that all it receives and sends goes
through these. Linux only: the system's poller is epoll.
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Any

import trio

from odradek.kernel.machine.poller import READABLE
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.machine.system.poller import system_poller

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.kernel.machine.network import Address, ListeningSocket, StreamListeners
    from odradek.kernel.machine.poller import Poller
    from odradek.kernel.types import Buffer


def can_be_cut() -> bool:
    """Say whether this system has what `CutNetwork` needs."""
    return hasattr(select, "epoll")


class CutNetwork:
    """The network of one broker, over all its lives. `cut` and `heal` are called on its thread, while it has one.

    Attributes:
        is_cut: Whether nothing gets through.
    """

    is_system = False

    def __init__(self) -> None:
        self._system = SystemNetwork()
        self._is_whole = trio.Event()
        self._pollers: list[CutPoller] = []
        self._kept: list[socket.socket] = []
        self.is_cut = False

    def __repr__(self) -> str:
        return f"<CutNetwork, {'cut' if self.is_cut else 'whole'}>"

    def cut(self) -> None:
        """Let nothing through from now on."""
        if not self.is_cut:
            self.is_cut = True
            self._is_whole = trio.Event()
            self._look_again()

    def heal(self) -> None:
        """Let everything through again, what was sent meanwhile first, the ends of connections last."""
        self.is_cut = False
        kept, self._kept = self._kept, []
        for each in kept:
            each.close()
        self._is_whole.set()
        self._look_again()

    def _look_again(self) -> None:
        self._pollers = [poller for poller in self._pollers if not poller.closed]
        for poller in self._pollers:
            poller.wake()

    def keep(self, closed: socket.socket) -> None:
        """Close a connection, but not before the other side may hear of it."""
        if self.is_cut and closed.fileno() >= 0:
            self._kept.append(socket.socket(fileno=closed.detach()))
        else:
            closed.close()

    async def wait_until_whole(self) -> None:
        """Wait while it is cut."""
        while self.is_cut:
            await self._is_whole.wait()

    # ------------------------------------------------------------------------------------------------ as the machine's

    def host_name(self) -> str:
        """See `Network.host_name`."""
        return self._system.host_name()

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> ListeningSocket:
        """See `Network.listen`."""
        listening = self._system.listen(host, port, backlog=backlog, receive_buffer_bytes=receive_buffer_bytes)
        return _CutListeningSocket(self, listening)

    async def listen_streams(self, host: str, port: int) -> StreamListeners:
        """See `Network.listen_streams`: what people and probes look at stays where it is."""
        return await self._system.listen_streams(host, port)

    def new_poller(self) -> Poller | None:
        """See `Network.new_poller`."""
        inner = system_poller()
        if inner is None:
            return None
        poller = CutPoller(self, inner)
        self._pollers.append(poller)
        return poller

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """See `Network.resolve`."""
        return await self._system.resolve(host, port)

    async def connect(
        self, address: Address, *, send_buffer_bytes: int, receive_buffer_bytes: int
    ) -> trio.abc.HalfCloseableStream:
        """See `Network.connect`."""
        await self.wait_until_whole()
        stream = await self._system.connect(
            address, send_buffer_bytes=send_buffer_bytes, receive_buffer_bytes=receive_buffer_bytes
        )
        return _CutStream(self, stream)


class CutPoller:
    """The system's poller; while the network is cut it knows of nothing but `wake`. Owned by the broker's loop."""

    def __init__(self, network: CutNetwork, inner: Poller) -> None:
        self._network = network
        self._inner = inner
        self._bell = select.poll()
        self._bell.register(inner.wake_descriptor, select.POLLIN)
        self.wake_descriptor = inner.wake_descriptor
        self.register = inner.register
        self.modify = inner.modify
        self.unregister = inner.unregister
        self.wake = inner.wake
        self.woken = inner.woken
        self.close = inner.close

    @property
    def closed(self) -> bool:
        """See `Poller.closed`."""
        return self._inner.closed

    def poll(self, seconds: float, events_max: int, /) -> list[tuple[int, int]]:
        """See `Poller.poll`."""
        if self._network.is_cut:
            return [(self.wake_descriptor, READABLE)] if self._bell.poll(0) else []
        return self._inner.poll(seconds, events_max)

    async def wait(self) -> None:
        """See `Poller.wait`."""
        if self._network.is_cut:
            await trio.lowlevel.wait_readable(self.wake_descriptor)
        else:
            await self._inner.wait()


class _CutListeningSocket:
    """A listening socket whose clients cannot be heard while the network is cut."""

    def __init__(self, network: CutNetwork, listening: socket.socket) -> None:
        self._network = network
        self._listening = listening
        self.fileno = listening.fileno
        self.getsockname = listening.getsockname
        self.close = listening.close

    def accept(self) -> tuple[_CutSocket, Any]:
        """See `ListeningSocket.accept`."""
        if self._network.is_cut:
            raise BlockingIOError
        client, address = self._listening.accept()
        return _CutSocket(self._network, client), address


class _CutSocket:
    """A client's socket by which nothing comes or goes while the network is cut."""

    def __init__(self, network: CutNetwork, inner: socket.socket) -> None:
        self._network = network
        self._inner = inner
        self.fileno = inner.fileno
        self.setblocking = inner.setblocking
        self.setsockopt = inner.setsockopt
        self.getsockopt = inner.getsockopt

    def _while_whole(self) -> socket.socket:
        if self._network.is_cut:
            raise BlockingIOError
        return self._inner

    def recv_into(self, buffer: Buffer, /) -> int:
        """See `Socket.recv_into`."""
        return self._while_whole().recv_into(buffer)

    def recv(self, size_bytes: int, flags: int = 0, /) -> bytes:
        """See `Socket.recv`."""
        return self._while_whole().recv(size_bytes, flags)

    def send(self, data: Buffer, /) -> int:
        """See `Socket.send`."""
        return self._while_whole().send(data)

    def sendmsg(self, buffers: Iterable[Buffer], ancillary: Iterable[Any], flags: int, /) -> int:
        """See `Socket.sendmsg`."""
        return self._while_whole().sendmsg(buffers, ancillary, flags)

    def close(self) -> None:
        """See `Socket.close`."""
        self._network.keep(self._inner)


class _CutStream(trio.abc.HalfCloseableStream):
    """A connection that the broker has made; who waits for it while the network is cut waits until that is over."""

    def __init__(self, network: CutNetwork, inner: trio.SocketStream) -> None:
        self._network = network
        self._inner = inner
        self._arrived: bytes | bytearray | None = None

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream.send_all`."""
        await self._network.wait_until_whole()
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream.wait_send_all_might_not_block`."""
        await self._network.wait_until_whole()
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """See `trio.abc.ReceiveStream.receive_some`; what came in the moment of the cut is kept, also if cancelled."""
        if self._arrived is None:
            self._arrived = await self._inner.receive_some(max_bytes)
        await self._network.wait_until_whole()
        arrived, self._arrived = self._arrived, None
        return arrived

    async def send_eof(self) -> None:
        """See `trio.abc.HalfCloseableStream.send_eof`."""
        await self._network.wait_until_whole()
        await self._inner.send_eof()

    async def aclose(self) -> None:
        """See `trio.abc.AsyncResource.aclose`."""
        if self._network.is_cut and self._inner.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._inner.socket)
            self._network.keep(socket.socket(fileno=self._inner.socket.detach()))
            await trio.lowlevel.checkpoint()
        else:
            await self._inner.aclose()
