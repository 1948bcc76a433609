"""Pure core: keeps clients from filling the log: of lines that are alike only some are written, the others counted.

Lines are alike when the same place in the code says the same of something: logger and text before its arguments are
put in. A client can cause a line of its own for each request it sends; the first ones tell all there is to tell.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.kernel.classes import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINES_MAX: Final = 20
"""How many lines that are alike are written in one window."""
WINDOW_SECONDS: Final = 10.0
_KINDS_MAX: Final = 1000

CLIENTS_LOGGERS: Final = ("odradek.kernel.network.", "odradek.kernel.dispatch.")
"""Who tells of clients: there also what is only information is limited."""


@define
class _Window:
    ends_s: float
    record: logging.LogRecord
    count: int = 0


class LogLimit:
    """The one limiter of a process's log. Its handler asks it of every record."""

    def __init__(self, timer: Callable[[], float]) -> None:
        """Limit from now on; `timer` is a monotonic clock in seconds."""
        self._timer = timer
        self._windows: dict[tuple[str, object], _Window] = {}

    def admits(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written; one that is not is counted."""
        if record.levelno < logging.WARNING and not record.name.startswith(CLIENTS_LOGGERS):
            return True
        now_s = self._timer()
        key = (record.name, record.msg)
        window = self._windows.get(key)
        if window is None or window.ends_s <= now_s:
            # `left_out` was asked before: what has ended is told.
            if len(self._windows) >= _KINDS_MAX:
                self._windows.clear()
            window = self._windows[key] = _Window(now_s + WINDOW_SECONDS, record)
        window.count += 1
        return window.count <= LINES_MAX

    def left_out(self, *, is_end: bool = False) -> Iterator[logging.LogRecord]:
        """Iterate over records that tell how many lines the windows that have ended left out; once each.

        Args:
            is_end: Nothing will be logged any more: all windows end now.
        """
        now_s = self._timer()
        for key, window in list(self._windows.items()):
            if not is_end and window.ends_s > now_s:
                continue
            del self._windows[key]
            if window.count > LINES_MAX:
                like = window.record
                told = logging.makeLogRecord({**vars(like), "exc_info": None, "args": ()})
                told.msg = f"{window.count - LINES_MAX} more lines like this one were left out: {like.getMessage()}"
                yield told
