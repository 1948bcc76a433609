"""Shell: the log lines of a run: kept with virtual time, told apart by process, and looked at for bugs.

A traceback in the log of a process that lives is a bug, whoever wrote it; one of a process that was killed says
nothing.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .machine import Process
    from .world import World

LOGGER: Final = "odradek"
LAST_LINES: Final = 40

living: Final[ContextVar[Process | None]] = ContextVar("simulated process", default=None)
"""Whose task runs."""


class LogLines(logging.Handler):
    """Takes what is logged.

    Attributes:
        lines: The last ones.
        tracebacks: Those with which something unexpected was told.
    """

    def __init__(self, world: World, on_line: Callable[[str], None] | None) -> None:
        """Make one.

        Args:
            world: Whose time it is.
            on_line: Given each line.
        """
        super().__init__(logging.INFO)
        self._thread = logging.makeLogRecord({}).thread
        self._world = world
        self._on_line = on_line
        self.lines: deque[str] = deque(maxlen=LAST_LINES)
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        if record.thread != self._thread:
            return  # another broker of this Python process, which does not live in the world
        process = living.get()
        if process is not None and process.is_dead:
            return
        if process is None and self._world.killed_ns == self._world.now_ns:
            return  # trio's own task does what others have asked it for: the dead one, here
        name = process.name if process is not None else "-"
        line = f"{self._world.elapsed_ns / 1e9:14.6f}s  {name} {record.levelname} {record.name}: {record.getMessage()}"
        self.lines.append(line)
        if self._on_line is not None:
            self._on_line(line)
        if record.levelno >= logging.ERROR and record.exc_info and record.exc_info[0] is not None:
            self.tracebacks.append(line + "\n" + "".join(traceback.format_exception(*record.exc_info)))


@contextmanager
def logs_of(world: World, on_line: Callable[[str], None] | None = None) -> Iterator[LogLines]:
    """Take all that is logged in the block, and let nobody else have it."""
    logger = logging.getLogger(LOGGER)
    before = logger.handlers, logger.level, logger.propagate
    taken = LogLines(world, on_line)
    logger.handlers, logger.propagate = [taken], False
    logger.setLevel(logging.INFO)
    try:
        yield taken
    finally:
        logger.handlers, _, logger.propagate = before
        logger.setLevel(before[1])
