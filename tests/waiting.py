"""How tests wait for what services, worker threads and other processes bring about: they look until it holds.

Nobody sleeps for a time that should be enough. The limit is for a test that hangs: a slow machine does not reach it.
"""

from __future__ import annotations

import os
import selectors
import time
from typing import IO, TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.02
_SHORT_PAUSE_S: Final = 0.001


def until(
    condition: Callable[[], bool], check: Callable[[], object] | None = None, *, pause_s: float = _PAUSE_S
) -> None:
    """Wait until something holds.

    Args:
        condition: What.
        check: Called before each look; raises when it cannot come about any more, as `RunningBroker.check`.
        pause_s: Between two looks, in seconds.
    """
    deadline = time.perf_counter() + PATIENCE_S
    while True:
        if check is not None:
            check()
        if condition():
            return
        assert time.perf_counter() < deadline, "it never came about"
        time.sleep(pause_s)


async def until_async(condition: Callable[[], bool]) -> None:
    """Wait in a trio task until something holds; the other tasks run meanwhile."""
    with trio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what a thread or a service did is told by no event
            await trio.sleep(_SHORT_PAUSE_S)


def is_readable(pipe: IO[Any] | socket.socket, limit_s: float) -> bool:
    """Return whether it can be read before so many seconds are over; `select.select` knows no file above 1,023."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(max(limit_s, 0)))


def names_below(folder: Path) -> list[str]:
    """Return the names of the files below a folder that others change: a folder that goes meanwhile holds none.

    `Path.rglob` fails on such a folder before Python 3.13.
    """
    return [name for _folder, _folders, names in os.walk(folder) for name in names]
