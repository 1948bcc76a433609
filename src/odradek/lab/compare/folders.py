"""Shell: what is in a folder, and how to have the system forget what it keeps of its files in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_BYTES: Final = 512
"""The unit of `st_blocks`, whatever the file system's own blocks are."""


def size_bytes(folder: Path) -> int:
    """Return what the files below a folder take on disk; 0 where there is no such folder.

    Files that are larger than what was written to them (indexes are made so) count as what they take. Where the system
    does not tell, as what they are said to be.
    """
    blocks_told = hasattr(os.stat_result, "st_blocks")
    return sum(stat.st_blocks * _BLOCK_BYTES if blocks_told else stat.st_size for _path, stat in _files(folder))


def forget_pages(folder: Path) -> bool:
    """Have everything below a folder written to disk and dropped from the page cache. Blocks: for a thread.

    Returns:
        Whether the system can; files that somebody has mapped stay all the same.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for path, _stat in _files(folder):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue  # gone meanwhile
        try:
            os.fsync(descriptor)  # what is dirty cannot be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return True


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a folder; those that vanish meanwhile are left out."""
    for root, _folders, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            try:
                yield path, path.lstat()
            except OSError:
                continue
