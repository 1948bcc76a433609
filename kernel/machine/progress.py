"""Shell: the line that tells a person how far long work has come: on standard error, where that is a terminal."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SHOW_EVERY_S: Final = 0.5

_NEW_LINE: Final = "\r\x1b[K"
_COLUMNS: Final = 80


class ProgressLine:
    """One line that is written again as work goes on; what takes no half second shows none. Owned by the command.

    Attributes:
        is_watched: Whether standard error is a terminal on which a line can be taken away.
    """

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self._timer = timer
        self.is_watched: Final = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = False
        self._shown_s = timer()

    def show(self, tell: Callable[[], str]) -> None:
        """Show what `tell` returns, if somebody watches and the last time is half a second ago."""
        if self.is_watched and self._timer() - self._shown_s >= SHOW_EVERY_S:
            self.show_now(tell())

    def show_now(self, text: str) -> None:
        """Show a text, if somebody watches: what begins now may take long, and tells nothing meanwhile."""
        if self.is_watched:
            self._shown_s = self._timer()
            self._is_shown = True
            _write(f"{_NEW_LINE}{text[: _columns() - 1]}")

    def clear(self) -> None:
        """Take the line away: something else is about to be written, or all is done."""
        if self._is_shown:
            self._is_shown = False
            _write(_NEW_LINE)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns() -> int:
    """Return the terminal's width: a longer line would wrap, and could not be taken away again."""
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    return _COLUMNS


def fills_a_file() -> bool:
    """Return whether standard output is a file: what goes to a terminal shows by itself how far it is."""
    with suppress(OSError, ValueError):
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    return False


def part_text(done: float, total: float | None) -> str:
    """Return ` 25%  ` to begin a line with; nothing when the whole is not known."""
    return f"{min(done / total, 1):4.0%}  " if total else ""
