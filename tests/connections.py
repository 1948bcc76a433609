"""Connections that no socket is behind: what a test hands over is received, what is sent stays in `outgoing`."""

from __future__ import annotations

from collections.abc import Callable

from odradek.kernel.network.connection import Connection, Turn
from odradek.kernel.network.receive_memory import ReceiveMemory

FRAME_LIMIT_BYTES = 1 << 24


def new_connection(
    memory: ReceiveMemory | None = None,
    *,
    frame_limit_bytes: int = FRAME_LIMIT_BYTES,
    wake: Callable[[], None] = lambda: None,
) -> Connection:
    """Return a client's connection, without a driver; with as much memory as one frame may need if none is given."""
    return Connection(
        connection_id=1,
        listener_name="PLAINTEXT",
        client_host="127.0.0.1",
        client_port=5,
        frame_limit_bytes=frame_limit_bytes,
        turn=Turn(wake),
        memory=ReceiveMemory(frame_limit_bytes) if memory is None else memory,
    )
