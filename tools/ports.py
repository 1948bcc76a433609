"""Ports for servers of tests that cannot choose one by themselves."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

OURS: Final = (10_000, 20_000)
"""None of those that a system gives out by itself, as to the connections of the tests beside."""


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody has now."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            port = random.randrange(*OURS)
            with contextlib.suppress(OSError):  # taken
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found
