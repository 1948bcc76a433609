"""Shell: processes for work that would hold the interpreter's lock on a thread: one module run, pipes to and from it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import IO, Protocol


class Process(Protocol):
    """One process. Life: started, spoken with by its pipes, `kill`. Its methods block: they are for a thread.

    Attributes:
        stdin: The way to it.
        stdout: The way from it.
    """

    @property
    def stdin(self) -> IO[bytes]:
        """The way to it."""
        ...

    @property
    def stdout(self) -> IO[bytes]:
        """The way from it."""
        ...

    def last_words(self) -> tuple[int, str]:
        """Return its exit status, negative for a signal, and the last line that it wrote to its standard error.

        One that says nothing more and does not end is ended.
        """
        ...

    def kill(self) -> None:
        """End it now, wherever it is, and close its pipes."""
        ...


class Processes(Protocol):
    """What starts processes."""

    def start(self, module: str) -> Process:
        """Start a Python process that runs a module, and finds what this one finds.

        Raises:
            OSError: The system starts none.
        """
        ...
