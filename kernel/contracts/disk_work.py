"""Pure core: work with files in two halves, so that a worker thread never touches what the reactor's task owns.

::

    reactor's task    begin_...()        takes handles, paths and plain copies; they are the work's own
    any thread              run()        touches files and nothing else; may block
    reactor's task    finish(error)      takes the outcome; whatever happened meanwhile is known here

Between `begin_...` and `finish` the owner may do whatever he likes with what the work was begun for: append, truncate,
close, delete. `finish` sees that and applies only what still holds.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import Protocol


class DiskWork(Protocol):
    """Work that its maker has begun. Life: `run` once, `finish` once; a work that never ran needs no `finish`."""

    def run(self) -> None:
        """Do it. Blocks; the only method for a worker thread; never called by two threads.

        Raises:
            OSError: The disk refused; also `StorageError`. Nothing was applied: the error is for `finish`.
        """
        ...

    def finish(self, error: Exception | None) -> None:
        """Take the outcome, on the task that owns the maker.

        Args:
            error: What `run` raised.

        Raises:
            StorageError: The work failed, or its maker is offline or closed by now. What it was begun for is offline
                where the contract says so; its owner is to act on it.
        """
        ...


class LogMove(DiskWork, Protocol):
    """A move under way."""

    def stop(self) -> None:
        """Have `run` stop soon and raise, from any thread; at most one chunk of a file is copied after that."""
        ...


def do_now(work: DiskWork) -> None:
    """Run and finish a work at once: for starts, ends, tests, and where nothing else waits. Blocks.

    Raises:
        StorageError: See `DiskWork.finish`.
    """
    error: Exception | None = None
    try:
        work.run()
    except Exception as exc:  # `finish` tells it, with what it means
        error = exc
    work.finish(error)
