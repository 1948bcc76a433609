"""A disk that is full for some files."""

from __future__ import annotations

import errno
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.kernel.api import OsFiles

if TYPE_CHECKING:
    from collections.abc import Sequence


class FullDisk(OsFiles):
    """The machine's files; once it is full, nothing is written to files of some names (shell patterns)."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.is_full = False
        self.names = names
        self.pwritev = self._pwritev

    def _pwritev(self, fd: int, buffers: Sequence[Any], position: int, /) -> int:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        if self.is_full and any(fnmatchcase(name, wanted) for wanted in self.names):
            raise OSError(errno.ENOSPC, "no room")
        return OsFiles().pwritev(fd, buffers, position)

    def disk_space(self, path: Path) -> tuple[int, int]:
        """See `Files.disk_space`."""
        total, usable = super().disk_space(path)
        return total, 0 if self.is_full else usable
