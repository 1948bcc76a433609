"""Shell: what one process sees of a simulated disk: `kernel.machine.files.Files`, until the process dies.

A process that has died may still run to its next checkpoint in this thread. Nothing that it does has an effect any
more, and it is told that all went well: so it ends quickly and without complaint.
"""

from __future__ import annotations

import errno
import mmap
import os
from typing import TYPE_CHECKING, Final

from odradek.kernel.machine.files import FileStat

from .disk import CACHE_BLOCK_BYTES, Directory, File
from .seeds import is_chosen
from .world import SimulationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.kernel.machine.files import FileLock
    from odradek.kernel.types import Buffer

    from .disk import Disk

FIRST_DESCRIPTOR: Final = 1_000_000
"""Descriptors are never the system's own, so that nobody closes what is not simulated."""
_COMPARED_BYTES: Final = 64 * 1024
_HOLE_BYTES: Final = 4096
"""So much of a mapped file's hole is looked at: whoever fills a file stores behind what is there already."""


class _Map(mmap.mmap):
    """Memory that stands for a mapped file. `owner` is told when it is closed; None once nobody needs to be."""

    owner: Files | None = None
    file: File

    def close(self) -> None:
        """See `mmap.mmap.close`."""
        if self.owner is not None:
            self.owner.unmap(self)
        super().close()


class _Lock:
    """A lock that a process holds."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        """See `FileLock.release`."""
        self._files.unlock(self._path)


class Files:
    """A process's view of a disk; see `kernel.machine.files.Files`. Life: made, used, `end`."""

    def __init__(self, disk: Disk, locked: dict[Path, Files]) -> None:
        """Make one.

        Args:
            disk: What it sees.
            locked: The paths that processes of this host have locked.
        """
        self._disk = disk
        self._locked = locked
        self._open: dict[int, tuple[File, Path]] = {}
        self._opened_count = FIRST_DESCRIPTOR
        self._maps: dict[int, _Map] = {}
        self.is_dead = False

    def end(self) -> None:
        """Let nothing that is done through it have an effect from now on; its locks are free."""
        for mapped in list(self._maps.values()):
            self.unmap(mapped)
        self.is_dead = True
        for path in [path for path, holder in self._locked.items() if holder is self]:
            del self._locked[path]

    # -- files -------------------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        """See `Files.open`."""
        disk = self._disk
        try:
            directory = disk.directory(path.parent)
        except FileNotFoundError:
            if not self.is_dead:
                raise
            directory = Directory()
        entry = directory.entries.get(path.name)
        if isinstance(entry, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
        if entry is None and self.is_dead:
            entry = File()
        elif entry is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            disk.begin("create", path)
            entry = File()
            if not self._has_died():
                entry.modified_ms = disk.world.wall_ms()
                directory.put(path.name, entry)
        self._opened_count += 1
        self._open[self._opened_count] = entry, path
        return self._opened_count

    def close(self, fd: int) -> None:
        """See `Files.close`."""
        self._open.pop(fd, None)

    def _file(self, fd: int) -> File:
        found = self._open.get(fd)
        if found is None:
            raise OSError(errno.EBADF, "Bad file descriptor")
        return found[0]

    def pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        """See `Files.pread`."""
        file = self._file(fd)
        self._pull(file)
        if file.cold_blocks:
            blocks = _blocks(position, size_bytes)
            if not file.cold_blocks.isdisjoint(blocks):
                file.cold_blocks.difference_update(blocks)
                self._disk.took(self._disk.faults.read_ns_max)
        return file.read(position, size_bytes)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
        """See `Files.pwritev`."""
        data = b"".join(buffers)
        if self.is_dead:
            return len(data)
        disk = self._disk
        file, path = self._open[fd]
        try:
            disk.begin("write", path, position, len(data))
        except OSError:
            self._write(file, position, data[: len(data) // 2])
            raise
        if self._has_died():
            return len(data)
        disk.take_room(file, position + len(data))
        if len(data) > 1 and is_chosen(disk.random, disk.faults.short_write_share):
            data = data[: disk.random.randrange(1, len(data))]
        self._write(file, position, data)
        return len(data)

    def _has_died(self) -> bool:
        """Say whether the process died of the operation that was just begun."""
        return self.is_dead

    def _write(self, file: File, position: int, data: bytes) -> None:
        self._pull(file)
        file.write(position, data)
        file.modified_ms = self._disk.world.wall_ms()
        mapped = self._maps.get(id(file))
        if mapped is not None and position < len(mapped):
            mapped[position : min(position + len(data), len(mapped))] = data[: len(mapped) - position]

    def size(self, fd: int) -> int:
        """See `Files.size`."""
        return self._file(fd).size_bytes

    def truncate(self, fd: int, size_bytes: int, /) -> None:
        """See `Files.truncate`."""
        if self.is_dead:
            return
        file, path = self._open[fd]
        self._disk.begin("truncate", path, size_bytes)
        if not self.is_dead:
            self._pull(file)
            file.resize(size_bytes)

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """See `Files.preallocate`."""
        if self.is_dead:
            return
        file, path = self._open[fd]
        self._disk.begin("allocate", path, size_bytes)
        if not self.is_dead:
            self._disk.take_room(file, size_bytes)
            file.resize(max(size_bytes, file.size_bytes))
            file.allocated_bytes = max(file.allocated_bytes, size_bytes)

    def fsync(self, fd: int, /) -> None:
        """See `Files.fsync`."""
        if self.is_dead:
            return
        file, path = self._open[fd]
        self._disk.begin("sync", path)
        if not self.is_dead:
            self._pull(file)
            file.sync()
            self._disk.took(self._disk.faults.sync_ns_max)

    def is_cached(self, fd: int, position: int, size_bytes: int) -> bool:
        """See `Files.is_cached`."""
        return self._file(fd).cold_blocks.isdisjoint(_blocks(position, size_bytes))

    # -- mappings ----------------------------------------------------------------------------------------------------

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        """See `Files.mmap`: memory of its own, compared with the file when somebody looks at the file.

        A store into its hole is a mistake: where the disk is full, it ends the process by a signal.
        """
        file = self._file(fd)
        self._pull(file)
        mapped = _Map(-1, size_bytes)
        written = file.data[:size_bytes]
        mapped[: len(written)] = bytes(written)
        if is_writable and not self.is_dead:
            assert id(file) not in self._maps, "two mappings of one file for writing are not simulated"
            mapped.owner, mapped.file = self, file
            self._maps[id(file)] = mapped
        return mapped

    def unmap(self, mapped: _Map) -> None:
        """Take what was stored into a mapping over into its file, for the last time."""
        self._pull(mapped.file)
        mapped.owner = None
        del self._maps[id(mapped.file)]

    def _pull(self, file: File) -> None:
        """Write into a file what was stored into its mapping since somebody looked.

        Raises:
            SimulationError: Something was stored into a hole.
        """
        mapped = self._maps.get(id(file))
        if mapped is None:
            return
        end = min(len(mapped), file.size_bytes)
        filled = min(len(file.data), end)
        for start in range(0, filled, _COMPARED_BYTES):
            stored = mapped[start : min(start + _COMPARED_BYTES, filled)]
            if stored != file.read(start, len(stored)):
                _write_differences(file, start, stored)
        if mapped[filled : min(filled + _HOLE_BYTES, end)].strip(b"\0"):
            what = f"a store behind byte {filled} of a mapped file"
            raise SimulationError(f"{what}: nobody has had the disk give room there")

    # -- directories -------------------------------------------------------------------------------------------------

    def fsync_directory(self, path: Path) -> None:
        """See `Files.fsync_directory`."""
        if self.is_dead:
            return
        directory = self._disk.directory(path)
        self._disk.begin("sync", path)
        if not self.is_dead:
            directory.sync()
            self._disk.took(self._disk.faults.sync_ns_max)

    def rename(self, source: Path, target: Path) -> None:
        """See `Files.rename`."""
        if self.is_dead:
            return
        entry = self._disk.entry(source)
        old, new = self._disk.directory(source.parent), self._disk.directory(target.parent)
        there = new.entries.get(target.name)
        if isinstance(there, Directory) and there.entries:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", str(target))
        self._disk.begin("rename", source, target.as_posix())
        if not self.is_dead:
            new.put(target.name, entry)
            old.put(source.name, None)

    def unlink(self, path: Path) -> None:
        """See `Files.unlink`."""
        if not self.is_dead:
            if isinstance(self._disk.entry(path), Directory):
                raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
            self._remove("unlink", path)

    def mkdir(self, path: Path) -> None:
        """See `Files.mkdir`."""
        if self.is_dead:
            return
        directory = self._disk.directory(path.parent)
        if path.name in directory.entries or len(path.parts) == 1:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        self._disk.begin("mkdir", path)
        if not self.is_dead:
            directory.put(path.name, Directory())

    def rmdir(self, path: Path) -> None:
        """See `Files.rmdir`."""
        if not self.is_dead:
            if self._disk.directory(path).entries:
                raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))
            self._remove("rmdir", path)

    def _remove(self, what: str, path: Path) -> None:
        directory = self._disk.directory(path.parent)
        self._disk.begin(what, path)
        if not self.is_dead:
            directory.put(path.name, None)

    def listdir(self, path: Path) -> list[FileStat]:
        """See `Files.listdir`: the order is any, and another one each time."""
        found = [_stat(name, entry) for name, entry in self._disk.directory(path).entries.items()]
        self._disk.random.shuffle(found)
        return found

    def stat(self, path: Path) -> FileStat:
        """See `Files.stat`."""
        return _stat(path.name, self._disk.entry(path))

    def disk_space(self, path: Path) -> tuple[int, int]:
        """See `Files.disk_space`."""
        capacity_bytes = self._disk.capacity_bytes
        return capacity_bytes, max(capacity_bytes - self._disk.used_bytes, 0)

    def lock(self, path: Path) -> FileLock:
        """See `Files.lock`."""
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another process")
        self.close(self.open(path, os.O_CREAT))
        if not self.is_dead:
            self._locked[path] = self
        return _Lock(self, path)

    def unlock(self, path: Path) -> None:
        """Give a lock up."""
        if self._locked.get(path) is self:
            del self._locked[path]


def _blocks(position: int, size_bytes: int) -> range:
    return range(position // CACHE_BLOCK_BYTES, (position + max(size_bytes, 1) - 1) // CACHE_BLOCK_BYTES + 1)


def _stat(name: str, entry: File | Directory) -> FileStat:
    if isinstance(entry, Directory):
        return FileStat(name, 0, 0, True)
    return FileStat(name, entry.size_bytes, entry.modified_ms, False)


def _write_differences(file: File, start: int, stored: bytes) -> None:
    """Write what differs, by sector: the others were not stored into."""
    for place in range(0, len(stored), 512):
        new = stored[place : place + 512]
        if new != file.read(start + place, len(new)):
            file.write(start + place, new)
