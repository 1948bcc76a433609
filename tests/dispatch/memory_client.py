"""A client without a socket: whole messages through a real connection and router, turns made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.kernel.network.connection import Connection
from odradek.kernel.network.receive_memory import ReceiveMemory
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.registry import APIS
from tests.connections import new_connection

if TYPE_CHECKING:
    from odradek.kernel.dispatch.router import Router
    from odradek.kernel.wire.message import Message


class Asked(NamedTuple):
    """What `learn` looks at of a request."""

    connection: Connection
    api_version: int
    client_id: str | None = "c"


class MemoryClient:
    """One connection to a router. `send` only hands over bytes, `turn` ends the turn, `received` reads answers."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._memory = ReceiveMemory(1 << 24)
        self.connection = new_connection(self._memory)
        self.connection.turn.is_active = True
        self.connection.driver = self.connection  # type: ignore[assignment] # nobody moves bytes here
        self._correlation_id = 0
        self._asked: list[tuple[int, int, int]] = []

    def send(self, message: Message, version: int) -> None:
        """Hand over one request."""
        self._correlation_id += 1
        frame = encode_request(message, version, self._correlation_id, "test").join()
        self._asked.append((self._correlation_id, message.__api_key__, version))
        self.send_bytes(frame)

    def send_together(self, *messages: Message, version: int) -> None:
        """Hand over several requests at once."""
        frames = []
        for message in messages:
            self._correlation_id += 1
            frames.append(encode_request(message, version, self._correlation_id, "test").join())
            self._asked.append((self._correlation_id, message.__api_key__, version))
        self.send_bytes(b"".join(frames))

    def send_bytes(self, data: bytes) -> None:
        """Hand over bytes."""
        self.connection.receive_data(data, self._router)

    def turn(self) -> None:
        """End the turn."""
        self._router.turn_ended()

    def received(self) -> list[Message]:
        """Return the answers that have left since the last call, in order; each belongs to the oldest question."""
        answers = []
        for part in self.frames():
            correlation_id, key, version = self._asked.pop(0)
            found, position = decode_response_header(part, key, version)
            assert found == correlation_id, "answers leave in the order of the requests"
            answers.append(decode(APIS[key].response, memoryview(part), version, position=position, exact=True))
        return answers

    def frames(self) -> list[bytes]:
        """Return the frames that have left since the last call, without their sizes."""
        data = b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in self.connection.outgoing
        )
        self.connection.outgoing.clear()
        frames = []
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            frames.append(data[4:end])
            data = data[end:]
        return frames

    def ask(self, message: Message, version: int) -> Message:
        """Send a request, end the turn, return its answer, which must be there."""
        self.send(message, version)
        self.turn()
        (answer,) = self.received()
        return answer

    def leave(self) -> None:
        """Close the connection, as the network does."""
        self.connection.closed()
        self._router.connection_closed(self.connection)
