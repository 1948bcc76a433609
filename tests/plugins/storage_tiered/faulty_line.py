"""A line to a server that can be cut, held or answered by somebody else: what a network does to an object store."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
CUT_BYTES = 12_000


class Mode(Enum):
    """What becomes of a connection."""

    THROUGH = "it leads to the server"
    CLOSED = "it is closed at once"
    SILENT = "nobody answers"
    BUSY = "every request is answered with 503"
    CUT = "it breaks after the first bytes, in the middle of a transfer"


class FaultyLine:
    """A port that leads to another one.

    Attributes:
        port: Its own.
        mode: What becomes of connections from now on; those that are open end.
        connections: How many came.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.mode = Mode.THROUGH
        self.connections = 0

    def become(self, mode: Mode) -> None:
        """Change the mode, and end what is open."""
        with self._lock:
            self.mode = mode
            self.connections = 0
            self._end_all()

    def _end_all(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._meet, args=(client,), daemon=True).start()

    def _meet(self, client: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            mode = self.mode
            self._open.append(client)
        with suppress(OSError):
            if mode is Mode.CLOSED:
                client.close()
            elif mode is Mode.BUSY:
                client.recv(65536)
                client.sendall(BUSY)
                client.close()
            elif mode is not Mode.SILENT:
                self._lead_through(client, CUT_BYTES if mode is Mode.CUT else -1)

    def _lead_through(self, client: socket.socket, limit: int) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        with self._lock:
            self._open.append(server)
        threading.Thread(target=_pump, args=(server, client, limit), daemon=True).start()
        _pump(client, server, limit)


def _pump(source: socket.socket, sink: socket.socket, limit: int) -> None:
    """Pass bytes on until one side ends, or so many went."""
    passed = 0
    with suppress(OSError):
        while (limit < 0 or passed < limit) and (data := source.recv(4096)):
            sink.sendall(data)
            passed += len(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def faulty_line(target: int) -> Iterator[FaultyLine]:
    """Make a line to a port of this machine."""
    line = FaultyLine(target)
    threading.Thread(target=line._serve, daemon=True).start()
    try:
        yield line
    finally:
        line._listener.close()
        line.become(Mode.CLOSED)
