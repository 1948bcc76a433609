"""Pure core: work with files in two halves, so that a worker thread never touches what the reactor's task owns.

::

    reactor's task    begin_...()        takes handles, paths and plain copies; they are the work's own
    any thread              run()        touches files and nothing else; may block
    reactor's task    finish(error)      takes the outcome; whatever happened meanwhile is known here

Between `begin_...` and `finish` the owner may do whatever it likes with what the work was begun for: append, truncate,
close, delete. `finish` sees that and applies only what still holds.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


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


class LogMove(Protocol):
    """A move under way. Life: `begin_copy`, `run`, again; `begin_swap` of a closed log; `give_up`, unless cut off."""

    @property
    def copied_offset(self) -> int:
        """Up to which offset the log is copied."""
        ...

    @property
    def copied_bytes(self) -> int:
        """How many bytes are copied."""
        ...

    def begin_copy(self) -> int:
        """Have `run` copy what is written by now; return how many bytes that is: all, if segments were replaced."""
        ...

    def run(self, wait_for: Callable[[int], object]) -> None:
        """Copy what was written at the last `begin_copy`; the log may be in use. Blocks; for a worker thread.

        Args:
            wait_for: Called before each piece is copied, with its size in bytes: waits until it may be.

        Raises:
            StorageError: A disk failed, or the move was stopped.
        """
        ...

    def stop(self) -> None:
        """Have `run`, or the swap, stop soon and raise, from any thread; at most one chunk is copied after that."""
        ...

    def begin_swap(self) -> DiskWork:
        """Begin to put the copy in the place of the original, which must be closed; finished, the log is there.

        `run` copies what came since and renames, durably. If the log was deleted or opened meanwhile, or `run` failed,
        `finish` raises and the copy is given up.
        """
        ...

    def give_up(self) -> None:
        """Remove the copy, if it has not taken the original's place; no start takes the move up again."""
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
