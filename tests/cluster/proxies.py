"""Proxies before three brokers, which can be cut: for machines where nobody may make a namespace of the network.

A broker is reached by its proxy, and reaches the controller by another one. Cut, neither takes or gives a byte; what
the broker itself asks of the other brokers still gets through: a cut in one direction.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from odradek.cli.serve_many import free_port

COUNT = 3
CHUNK = 1 << 16


class Proxy:
    """Passes on what comes to its port, and back, until it is closed; each connection on a thread."""

    def __init__(self, port: int, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", port))
        self._is_whole = threading.Event()
        self._is_whole.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._is_whole.clear()

    def heal(self) -> None:
        self._is_whole.set()

    def close(self) -> None:
        self.heal()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._is_whole.wait()
        with (
            client,
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self._target)) as server,
            selectors.DefaultSelector() as selector,
        ):
            for source, sink in ((client, server), (server, client)):
                selector.register(source, selectors.EVENT_READ, (source, sink))
            while True:
                for key, _ in selector.select():
                    source, sink = key.data
                    data = source.recv(CHUNK)
                    self._is_whole.wait()
                    if not data:
                        return
                    sink.sendall(data)


class Machine:
    """What stands for one machine.

    Attributes:
        where: Nothing: its broker runs here.
        ports: Of its proxies, with those that they pass on to.
        options: Where its broker listens, is reached, and finds the controller, which is on the first.
    """

    where: Sequence[str] = ()

    def __init__(self, number: int, port: int, controller: int, held: ExitStack, undo: ExitStack) -> None:
        front, back = free_port("127.0.0.1", held), free_port("127.0.0.1", held)
        self.ports = {front: port, back: controller}
        self._proxies: list[Proxy] = []
        self._undo = undo
        controllers = f",CONTROLLER://127.0.0.1:{controller}" if number == 1 else ""
        self.options = [
            f"listeners=PLAINTEXT://127.0.0.1:{port}{controllers}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{front}",
            f"controller.quorum.voters=1@127.0.0.1:{controller if number == 1 else back}",
        ]

    def open(self) -> None:
        """Take the ports, which were held until now."""
        for port, target in self.ports.items():
            proxy = Proxy(port, target)
            self._undo.callback(proxy.close)
            self._proxies.append(proxy)

    def cut(self) -> None:
        """Let nothing through."""
        for proxy in self._proxies:
            proxy.cut()

    def heal(self) -> None:
        """Let everything through again."""
        for proxy in self._proxies:
            proxy.heal()


@contextmanager
def machines() -> Iterator[Mapping[int, Machine]]:
    """What stands for three machines, by their numbers."""
    with ExitStack() as undo:
        with ExitStack() as held:
            controller = free_port("127.0.0.1", undo)  # brokers begin to listen when they start, and again later
            found = {
                number: Machine(number, free_port("127.0.0.1", undo), controller, held, undo)
                for number in range(1, COUNT + 1)
            }
        for machine in found.values():
            machine.open()
        yield found
