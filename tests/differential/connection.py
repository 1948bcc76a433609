"""Shell: one blocking client connection that sends frames as told, right or wrong, and bounds every wait."""

from __future__ import annotations

import socket
import struct
from enum import Enum
from typing import Final

_INT32: Final = struct.Struct(">i")
_REQUEST_START: Final = struct.Struct(">hhi")
ANSWER_LIMIT_S: Final = 20.0


class NoAnswer(Enum):
    """What can come instead of an answer."""

    CLOSED = "connection closed"
    SILENT = "no answer"


def request_frame(
    api_key: int,
    api_version: int,
    correlation_id: int,
    body: bytes,
    *,
    flexible: bool,
    client_id: bytes | None = b"diff",
) -> bytes:
    """Return a whole frame: size, request header (v2 if `flexible`, else v1), body."""
    client = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id)) + client_id
    header = _REQUEST_START.pack(api_key, api_version, correlation_id) + client + (b"\0" if flexible else b"")
    return _INT32.pack(len(header) + len(body)) + header + body


class Connection:
    """A client's connection; not usable any more once `is_open` is False."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_LIMIT_S)
        self.is_open = True
        self.next_correlation_id = 1

    def close(self) -> None:
        """Close at once; closing twice is fine."""
        self.is_open = False
        self._socket.close()

    def send(self, frame: bytes) -> None:
        """Send bytes as they are; a peer that hung up shows at the next `receive`."""
        try:
            self._socket.sendall(frame)
        except OSError:
            self.is_open = False

    def end_sending(self) -> None:
        """Say that nothing more will be sent."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self, limit_s: float = ANSWER_LIMIT_S) -> bytes | NoAnswer:
        """Return the next frame without its size, or what came instead within `limit_s` seconds."""
        self._socket.settimeout(limit_s)
        try:
            size = self._receive_exactly(4)
            self._socket.settimeout(ANSWER_LIMIT_S)
            return self._receive_exactly(_INT32.unpack(size)[0])
        except TimeoutError:
            return NoAnswer.SILENT
        except OSError:
            self.close()
            return NoAnswer.CLOSED

    def _receive_exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                raise ConnectionResetError
            parts += part
        return bytes(parts)
