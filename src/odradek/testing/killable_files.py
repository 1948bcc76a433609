"""Shell: files that can be killed: from then on nothing that is done through them reaches the disk.

A process that is killed leaves what it wrote, and does nothing more: no checkpoint, no flush, no clean mark. A broker
on a thread cannot be killed; but if all that it does after a moment goes nowhere, what lies on the disk is the same.
It is told that everything went well, so that it ends quickly and without complaint.

.. versionadded:: 0.1
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.kernel.machine.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.types import Buffer


class KillableFiles(OsFiles):
    """The machine's own files until `kill`. The call may come from any thread; what is under way elsewhere is done."""

    def __init__(self, *, is_flushed: bool = True) -> None:
        """Begin alive.

        Args:
            is_flushed: Whether a flush is one. What was written outlives a kill without; only the loss of power, which
                no test brings about here, can tell.
        """
        super().__init__()
        self._is_dead = False
        self._is_flushed = is_flushed
        self._write: Any = self.pwritev
        self._sync: Any = self.fsync
        self._cut: Any = self.truncate
        # Storages keep these three as bound methods.
        self.pwritev = self._pwritev
        self.fsync = self._fsync
        self.truncate = self._truncate

    def kill(self) -> None:
        """Let nothing reach the disk from now on."""
        self._is_dead = True

    def open(self, path: Path, flags: int) -> int:
        """See `Files.open`."""
        if self._is_dead:
            flags &= ~os.O_CREAT
            path = path if path.exists() else Path(os.devnull)
        return super().open(path, flags)

    def _pwritev(self, fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
        if self._is_dead:
            return sum(map(len, buffers))
        written: int = self._write(fd, buffers, position)
        return written

    def _fsync(self, fd: int, /) -> None:
        if self._is_flushed and not self._is_dead:
            self._sync(fd)

    def _truncate(self, fd: int, size_bytes: int, /) -> None:
        if not self._is_dead:
            self._cut(fd, size_bytes)

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """See `Files.preallocate`."""
        if not self._is_dead:
            super().preallocate(fd, size_bytes)

    def fsync_directory(self, path: Path) -> None:
        """See `Files.fsync_directory`."""
        if self._is_flushed and not self._is_dead:
            super().fsync_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        """See `Files.rename`."""
        if not self._is_dead:
            super().rename(source, target)

    def unlink(self, path: Path) -> None:
        """See `Files.unlink`."""
        if not self._is_dead:
            super().unlink(path)

    def mkdir(self, path: Path) -> None:
        """See `Files.mkdir`."""
        if not self._is_dead:
            super().mkdir(path)

    def rmdir(self, path: Path) -> None:
        """See `Files.rmdir`."""
        if not self._is_dead:
            super().rmdir(path)

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        """See `Files.mmap`."""
        if self._is_dead and is_writable:
            return mmap.mmap(-1, size_bytes)
        return super().mmap(fd, size_bytes, is_writable=is_writable)
