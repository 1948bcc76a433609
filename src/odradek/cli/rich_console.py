"""Shell: rich's console as commands use it; imported only by those that draw with it."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class CommandConsole(Console):
    """A console that leaves a closed pipe to the command, as `print` does: rich itself ends the process with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass on what rich has just caught."""
        raise BrokenPipeError
