"""Shell: simulated sockets, and what watches them: what `socket.socket` and `select.epoll` are to a program.

Sockets never block, whatever they are told. Of `socket` only constants are used.
"""

from __future__ import annotations

import errno
import os
import socket as constants
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from .network import Pipe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.types import Buffer

    from .network import Host, Network

READ: Final = 0x001
WRITE: Final = 0x004
ERROR: Final = 0x008
HANG_UP: Final = 0x010
"""What a socket is ready for; the numbers are epoll's."""

INTERNET: Final = int(constants.AF_INET)
"""The family of every address."""
PEEK: Final = int(constants.MSG_PEEK)
LOW_WATER: Final = getattr(constants, "SO_RCVLOWAT", -1)
BACKLOG: Final = 50


def system_error(number: int) -> OSError:
    """Return the error that the system has for a number: `OSError` picks the class."""
    return OSError(number, os.strerror(number))


def unknown_name() -> OSError:
    """Return the error that the system has for a host that nobody knows."""
    return constants.gaierror(constants.EAI_NONAME, "Name or service not known")


class Socket:
    """One end of a connection.

    Life: made, then `connected` or `broken`; `close` by its owner, or `vanish` and `abandon` by who ends the owner.

    Attributes:
        host: Where it is.
        peer: The other end; None before there is one.
        connection_name: What the trace calls the connection.
        is_known: Whether its host knows it: what arrives for one that is unknown is answered by a reset.
        is_dead: Whether its process has ended: then nothing that the process still does has an effect.
        has_vanished: Whether its host has lost its power.
    """

    def __init__(self, network: Network, host: Host, connection_name: str) -> None:
        """Open one; it is not connected yet."""
        self._network = network
        self._descriptor = network.new_descriptor()
        self._low_water_bytes = 1
        self._error = 0
        self._is_broken = False
        self._has_said_farewell = False
        self._pollers: list[Poller] = []
        self._waiters: list[trio.Event] = []
        self._outgoing: Pipe | None = None
        self._incoming: Pipe | None = None
        self.host = host
        self.port = 0
        self.peer: Socket | None = None
        self.connection_name = connection_name
        self.is_connected = False
        self.is_known = True
        self.is_dead = False
        self.has_vanished = False
        host.sockets[self._descriptor] = self

    def __repr__(self) -> str:
        return f"<Socket {self._descriptor} of {self.host.name}, {self.connection_name}>"

    # -- what the network tells it -----------------------------------------------------------------------------------

    def pair(self, peer: Socket) -> None:
        """Become one end of a connection whose other one is `peer`."""
        self.peer, peer.peer = peer, self
        self._outgoing = peer._incoming = Pipe(self._network, self, peer)
        self._incoming = peer._outgoing = Pipe(self._network, peer, self)

    def connected(self) -> None:
        """Be ready to send: the other end has answered."""
        if self.is_known:
            self.is_connected = True
            self.changed()

    def broken(self, number: int) -> None:
        """Have an error from now on; what has arrived before may still be read."""
        if self.is_known and not self._is_broken:
            self._error = number
            self._is_broken = True
            self.changed()

    def changed(self) -> None:
        """Tell who watches that it may be ready for something."""
        for poller in self._pollers:
            poller.notice(self._descriptor)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.set()

    def vanish(self) -> None:
        """Be gone without a word: the host lost its power."""
        self.is_known = False
        self.is_dead = self.has_vanished = True
        self.host.sockets.pop(self._descriptor, None)

    def abandon(self) -> None:
        """Be closed by the system, since the process has ended."""
        self.close()
        self.is_dead = True

    @property
    def readiness(self) -> int:
        """What it is ready for."""
        incoming, outgoing = self._incoming, self._outgoing
        if self._is_broken:
            return READ | WRITE | HANG_UP | (ERROR if self._error else 0)
        if incoming is None or outgoing is None:
            return 0
        mask = 0
        size_bytes = len(incoming.received)
        if incoming.is_finished or size_bytes >= min(self._low_water_bytes, incoming.capacity_bytes // 2):
            mask |= READ
        if self.is_connected and outgoing.room_bytes * 3 >= outgoing.capacity_bytes:
            mask |= WRITE
        if incoming.is_finished and self._has_said_farewell:
            mask |= HANG_UP
        return mask

    @property
    def sent_until_ns(self) -> int:
        """When the last of what it sent arrives; 0 if it sent nothing."""
        return 0 if self._outgoing is None else self._outgoing.arrives_ns

    # -- what a program does with it ---------------------------------------------------------------------------------

    def fileno(self) -> int:
        """See `socket.socket.fileno`."""
        return self._descriptor if self.is_known or self.is_dead else -1

    def recv_into(self, buffer: Buffer, /) -> int:
        """See `socket.socket.recv_into`."""
        view = memoryview(buffer)
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def recv(self, size_bytes: int, flags: int = 0, /) -> bytes:
        """See `socket.socket.recv`; of the flags it knows `MSG_PEEK`."""
        if self.is_dead:
            raise BlockingIOError(errno.EAGAIN, "the process has ended")
        incoming = self._incoming
        if incoming is not None and incoming.received and size_bytes:
            data = bytes(incoming.received[:size_bytes])
            if not flags & PEEK:
                del incoming.received[: len(data)]
                incoming.was_read(len(data))
            return data
        self._raise_error()
        if self._is_broken or (incoming is not None and incoming.is_finished):
            return b""
        self._check_open()
        raise BlockingIOError(errno.EAGAIN, "nothing has come")

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """See `socket.socket.send`; flags change nothing."""
        view = memoryview(data).cast("B")
        if self.is_dead:
            return len(view)
        self._raise_error()
        self._check_open()
        if self._is_broken or self._has_said_farewell:
            raise system_error(errno.EPIPE)
        outgoing = self._outgoing
        if outgoing is None or not self.is_connected:
            raise BlockingIOError(errno.EAGAIN, "it is not connected yet")
        size_bytes = min(len(view), outgoing.room_bytes)
        if size_bytes < len(view):
            outgoing.wait_for_room()
        if not size_bytes and len(view):
            raise BlockingIOError(errno.EAGAIN, "there is no room")
        if size_bytes:
            outgoing.send(bytes(view[:size_bytes]))
        return size_bytes

    def sendmsg(self, buffers: Iterable[Buffer], ancillary: Iterable[Any] = (), flags: int = 0, /) -> int:
        """See `socket.socket.sendmsg`."""
        return self.send(b"".join(buffers), flags)

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        """See `socket.socket.setsockopt`; only how much must have come for it to be readable changes anything."""
        if level == constants.SOL_SOCKET and option == LOW_WATER:
            assert isinstance(value, int)
            self._low_water_bytes = max(value, 1)
            self.changed()

    def getsockopt(self, level: int, option: int, /) -> int:
        """See `socket.socket.getsockopt`; it knows the pending error, `SO_ERROR`."""
        number, self._error = (self._error, 0) if option == constants.SO_ERROR else (0, self._error)
        return number

    def setblocking(self, is_blocking: bool, /) -> None:
        """See `socket.socket.setblocking`: it never blocks."""

    def getsockname(self) -> tuple[str, int]:
        """See `socket.socket.getsockname`."""
        return self.host.address, self.port

    def getpeername(self) -> tuple[str, int]:
        """See `socket.socket.getpeername`."""
        if self.peer is None:
            raise system_error(errno.ENOTCONN)
        return self.peer.host.address, self.peer.port

    def shutdown(self, how: int) -> None:
        """See `socket.socket.shutdown`; it knows the end of sending, `SHUT_WR`."""
        if self.is_dead or self._has_said_farewell or self._is_broken:
            return
        self._has_said_farewell = True
        if self._outgoing is not None:
            self._outgoing.finish()

    def close(self) -> None:
        """See `socket.socket.close`: who has not read everything breaks the connection, as TCP does."""
        if not self.is_known:
            return
        has_unread = self._incoming is not None and bool(self._incoming.received)
        if not has_unread:
            self.shutdown(constants.SHUT_WR)
        elif self.peer is not None and not self._is_broken:
            self._network.send_reset(self, self.peer)
        self.is_known = False
        self.host.sockets.pop(self._descriptor, None)
        self.changed()

    def _raise_error(self) -> None:
        if self._error:
            number, self._error = self._error, 0
            raise system_error(number)

    def _check_open(self) -> None:
        if not self.is_known:
            raise system_error(errno.EBADF)

    # -- who waits for it --------------------------------------------------------------------------------------------

    def watched_by(self, poller: Poller) -> None:
        """Tell a poller of changes from now on."""
        self._pollers.append(poller)

    def unwatched_by(self, poller: Poller) -> None:
        """Tell it no longer."""
        self._pollers.remove(poller)

    async def wait_ready(self, mask: int) -> None:
        """Wait until it is ready for something of `mask`, or broken, or closed. Cancelled, nothing has happened.

        Once its process has died it waits until it is cancelled: also where that is put off, nothing goes on.
        """
        if self.is_dead:
            await trio.sleep_forever()
        wanted = mask | ERROR | HANG_UP
        if not self.is_known or self.readiness & wanted:
            await trio.lowlevel.checkpoint()
        while self.is_known and not self.readiness & wanted:
            waiter = trio.Event()
            self._waiters.append(waiter)
            await waiter.wait()


class ListeningSocket:
    """Takes connections at a port of its host."""

    def __init__(self, network: Network, host: Host, port: int, backlog: int = BACKLOG) -> None:
        """Take a port, any free one for 0.

        Raises:
            OSError: Somebody has it.
        """
        if port in host.listening:
            raise system_error(errno.EADDRINUSE)
        self._network = network
        self._descriptor = network.new_descriptor()
        self._backlog = max(backlog, 1)
        self._waiting: deque[Socket] = deque()
        self._pollers: list[Poller] = []
        self.host = host
        self.port = port or host.free_port()
        self.is_dead = False
        host.listening[self.port] = self
        host.listening_by_descriptor[self._descriptor] = self

    def take(self, client: Socket) -> bool:
        """Let a client wait for `accept`; return False if too many do."""
        if len(self._waiting) >= self._backlog:
            return False
        served = Socket(self._network, self.host, client.connection_name)
        served.port = self.port
        client.pair(served)
        served.is_connected = True
        self._waiting.append(served)
        self.changed()
        return True

    def changed(self) -> None:
        """Tell who watches that somebody came."""
        for poller in self._pollers:
            poller.notice(self._descriptor)

    @property
    def readiness(self) -> int:
        """Whether somebody waits."""
        return READ if self._waiting else 0

    def fileno(self) -> int:
        """See `socket.socket.fileno`."""
        return self._descriptor

    def accept(self) -> tuple[Socket, tuple[str, int]]:
        """See `socket.socket.accept`."""
        if self.is_dead or not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        served = self._waiting.popleft()
        return served, served.getpeername()

    def getsockname(self) -> tuple[str, int]:
        """See `socket.socket.getsockname`."""
        return self.host.address, self.port

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        """See `socket.socket.setsockopt`: nothing changes."""

    def setblocking(self, is_blocking: bool, /) -> None:
        """See `socket.socket.setblocking`: it never blocks."""

    def abandon(self) -> None:
        """Be closed by the system, since the process has ended."""
        self.close()
        self.is_dead = True

    def close(self) -> None:
        """See `socket.socket.close`: who waits is turned away."""
        if self.host.listening.get(self.port) is self:
            del self.host.listening[self.port]
        self.host.listening_by_descriptor.pop(self._descriptor, None)
        waiting, self._waiting = self._waiting, deque()
        for served in waiting:
            if served.peer is not None:
                self._network.send_reset(served, served.peer)
            served.close()

    def watched_by(self, poller: Poller) -> None:
        """Tell a poller of changes from now on."""
        self._pollers.append(poller)

    def unwatched_by(self, poller: Poller) -> None:
        """Tell it no longer."""
        self._pollers.remove(poller)


class Poller:
    """Watches sockets of a host as epoll does: level-triggered, those first that have waited longest.

    Invariant: every watched socket that is ready for what it is watched for stands in `_noticed`.

    Attributes:
        wake_descriptor: What is readable from `wake` to `woken`.
        closed: Whether it was closed.
    """

    def __init__(self, network: Network, host: Host) -> None:
        """Watch nothing but for wake-ups."""
        self._host = host
        self._watched: dict[int, Watched] = {}
        self._interest: dict[int, int] = {}
        self._noticed: dict[int, None] = {}
        self._waiter: trio.Event | None = None
        self._bell = _Bell()
        self.wake_descriptor = network.new_descriptor()
        self.closed = False
        self._watch(self.wake_descriptor, self._bell, READ)

    def fileno(self) -> int:
        """See `kernel.machine.poller.Poller.fileno`: there is no descriptor that the system knows."""
        return -1

    def register(self, descriptor: int, mask: int, /) -> None:
        """Watch a socket for `READ`, `WRITE`, both or (0) hang-ups only.

        Raises:
            OSError: No open socket has the descriptor, or it is watched already.
        """
        watched = self._host.find(descriptor)
        if watched is None:
            raise system_error(errno.EBADF)
        if descriptor in self._watched:
            raise system_error(errno.EEXIST)
        watched.watched_by(self)
        self._watch(descriptor, watched, mask)

    def _watch(self, descriptor: int, watched: Watched, mask: int) -> None:
        self._watched[descriptor] = watched
        self.modify(descriptor, mask)

    def modify(self, descriptor: int, mask: int, /) -> None:
        """Watch it for something else."""
        if descriptor not in self._watched:
            raise system_error(errno.ENOENT)
        self._interest[descriptor] = mask
        self.notice(descriptor)

    def unregister(self, descriptor: int, /) -> None:
        """Watch it no longer."""
        watched = self._watched.pop(descriptor, None)
        if watched is None:
            raise system_error(errno.ENOENT)
        watched.unwatched_by(self)
        del self._interest[descriptor]
        self._noticed.pop(descriptor, None)

    def notice(self, descriptor: int) -> None:
        """Look at a socket with the next `poll`: it has changed."""
        self._noticed.setdefault(descriptor)
        if self._waiter is not None and self._mask_of(descriptor):
            self._waiter.set()
            self._waiter = None

    def _mask_of(self, descriptor: int) -> int:
        return self._watched[descriptor].readiness & (self._interest[descriptor] | ERROR | HANG_UP)

    def poll(self, seconds: float, events_max: int, /) -> list[tuple[int, int]]:
        """Return descriptors with what they are ready for, without waiting."""
        assert seconds == 0, "a simulated poller waits by `wait` alone"
        events: list[tuple[int, int]] = []
        for descriptor in list(self._noticed):
            if len(events) == events_max:
                break
            del self._noticed[descriptor]
            mask = self._mask_of(descriptor)
            if mask:
                self._noticed[descriptor] = None  # at the end: it may still be ready the next time
                events.append((descriptor, mask))
        return events

    def wake(self) -> None:
        """Have `poll` tell of `wake_descriptor`."""
        self._bell.readiness = READ
        self.notice(self.wake_descriptor)

    def woken(self) -> None:
        """Have it tell no more."""
        self._bell.readiness = 0

    async def wait(self) -> None:
        """Wait until `poll` has something to tell. Cancelled, nothing has happened."""
        if any(map(self._mask_of, self._noticed)):
            await trio.lowlevel.checkpoint()
        else:
            waiter = self._waiter = trio.Event()
            await waiter.wait()

    def close(self) -> None:
        """Watch nothing any more."""
        for watched in self._watched.values():
            watched.unwatched_by(self)
        self._watched.clear()
        self._interest.clear()
        self._noticed.clear()
        self.closed = True


class _Bell:
    """What a poller watches to be woken."""

    def __init__(self) -> None:
        self.readiness = 0

    def watched_by(self, poller: Poller) -> None:
        """Only its own poller rings it."""

    def unwatched_by(self, poller: Poller) -> None:
        """See `watched_by`."""


Watched: TypeAlias = Socket | ListeningSocket | _Bell
