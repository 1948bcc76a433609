"""Shell: what the election of the metadata log must never forget, in the file `quorum-state` beside the log, as Kafka.

What it says is the election's: here it is bytes that are replaced as a whole, and are durable before anything follows
from them. Without a disk they are kept as long as the log is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..machine.files import disk_error, replace_file
from .small_files import read_if_there

if TYPE_CHECKING:
    from pathlib import Path

    from ..contracts.disk_work import DiskWork
    from ..machine.files import Files

FILE_NAME: Final = "quorum-state"


class QuorumState:
    """The file of one log. Owned by the task that opens the log."""

    def __init__(self, directory: Path | None, files: Files) -> None:
        """Take the log's directory, None for a log without a disk."""
        self._path = None if directory is None else directory / FILE_NAME
        self._files = files
        self._in_memory: bytes | None = None

    def __repr__(self) -> str:
        return f"QuorumState({self._path})"

    def __str__(self) -> str:
        return str(self._path or "the quorum-state")

    def read(self) -> bytes | None:
        """Return what was kept last, None for nothing. Blocks.

        Raises:
            StorageError: The disk is failing.
        """
        if self._path is None:
            return self._in_memory
        return read_if_there(self._files, self._path)

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        """Begin to keep this from now on; it is durable when the work is finished. One at a time.

        The work's `finish` raises `StorageError` where the disk is full or failing: what was kept before is still there
        then, or this.
        """
        return _Keeping(self, hard_state)

    def write(self, hard_state: bytes) -> None:
        """Write the file; for the work. Blocks.

        Raises:
            OSError: The disk refused.
        """
        if self._path is None:
            self._in_memory = hard_state
        else:
            replace_file(self._files, self._path, hard_state, is_durable=True)

    def written(self, error: Exception | None) -> None:
        """Take the outcome of a write.

        Raises:
            StorageError: It failed.
        """
        if isinstance(error, OSError) and self._path is not None:
            raise disk_error(error, "write", self._path) from error
        if error is not None:
            raise error


@frozen
class _Keeping:
    """See `DiskWork`."""

    state: QuorumState
    hard_state: bytes

    def run(self) -> None:
        """See `DiskWork.run`."""
        self.state.write(self.hard_state)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.state.written(error)
