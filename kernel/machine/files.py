"""Shell: the file interface that everything durable goes through, injected so that tests can make disks fail.

`Files` is a handful of system calls, no more: descriptors are plain ints, so the hot path may keep a bound method and
pay one call. `OsFiles` is the real one. Every method raises `OSError` as it comes; `disk_error` is the one table that
turns an `OSError` into a `StorageError` that says what to do.

| needed | Linux | elsewhere |
| --- | --- | --- |
| gathered write at a position | `pwritev` | seek, then join and write |
| read without waiting | `preadv2(RWF_NOWAIT)` | every byte counts as cached |
| lock of a directory | `fcntl.lockf`, as Java's `FileLock` | `msvcrt.locking` on Windows |
| sync of a directory | `fsync` of its descriptor | nothing, where directories cannot be opened |
| allocation | `posix_fallocate` | `ftruncate` |

.. versionadded:: 0.1
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat as stat_bits
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..errors import StorageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..types import Buffer

READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `Files.open`: for reading."""

READ_WRITE: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `Files.open`: for reading and writing a file that is there."""

CREATE: Final = READ_WRITE | os.O_CREAT
"""Flags of `Files.open`: for reading and writing, made when it is not there."""

IOV_MAX: Final = 1024
"""Buffers that one gathered write may take; POSIX systems allow at least this many today."""

_RWF_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_PROBE_STEP: Final = 256 << 10

_ADVICE: Final[Mapping[int, str]] = {
    errno.ENOSPC: "the disk is full: free space or lower the retention; what waits for room goes on by itself",
    errno.EDQUOT: "the disk quota is used up: raise it or lower the retention; what waits for room goes on by itself",
    errno.EIO: "the disk is failing: replace it; other replicas and log directories go on",
    errno.EROFS: "the file system is mounted read-only: look at the system log for why, and mount it for writing",
    errno.EACCES: "permission denied: give the broker's user read and write access",
    errno.EPERM: "permission denied: give the broker's user read and write access",
    errno.EMFILE: "too many open files in this process: raise `ulimit -n`",
    errno.ENFILE: "too many open files on this machine: raise fs.file-max",
    errno.ENOENT: "it is gone: was it removed by hand, or is a disk not mounted?",
    errno.ENOTDIR: "a file stands where a directory should be: move it away or choose another log.dirs",
    errno.ENAMETOOLONG: "the name is too long for this file system: choose a shorter topic name or path",
    errno.ENXIO: "the device is gone: is the disk still attached?",
    errno.ENODEV: "the device is gone: is the disk still attached?",
    errno.ESTALE: "the network file system lost the file: mount it again",
    errno.EFBIG: "the file system does not take files of this size: lower segment.bytes",
    errno.ENOMEM: "the machine is out of memory",
}
_FAILING_DEVICE: Final = frozenset({errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE})
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The numbers of errors that pass when somebody frees space."""


class DiskError(StorageError):
    """The system refused to do something with a file.

    Attributes:
        errno: The system's number, 0 when unknown.
    """

    def __init__(self, message: str, errno: int) -> None:
        super().__init__(message)
        self.errno = errno

    @property
    def is_device_failing(self) -> bool:
        """Whether the whole log directory should go offline and not only this log."""
        return self.errno in _FAILING_DEVICE

    @property
    def is_disk_full(self) -> bool:
        """Whether it passes when the disk has room again."""
        return self.errno in NO_ROOM


def disk_error(exc: OSError, what: str, path: object) -> DiskError:
    """Return the error to raise for `exc`.

    Args:
        exc: What the system said.
        what: What was tried: "write", "open".
        path: With which file or directory.
    """
    number = exc.errno or 0
    name = errno.errorcode.get(number, type(exc).__name__)
    advice = _ADVICE.get(number, "see the system log")
    return DiskError(f"cannot {what} {path}: {exc.strerror or exc} ({name}): {advice}", number)


class FileStat(NamedTuple):
    """A directory entry. `modified_ms` is the modification time in milliseconds since the Unix epoch."""

    name: str
    size_bytes: int
    modified_ms: int
    is_directory: bool


class FileLock(Protocol):
    """A lock held; dropped by `release` and by the death of the process."""

    def release(self) -> None:
        """Give it up."""
        ...


class Files(Protocol):
    """What a storage does with a file system. Every method may raise `OSError`; only those that say so may block."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file (`READ`, `READ_WRITE`, `CREATE`) and return its descriptor."""
        ...

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        ...

    def pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        """Read up to `size_bytes` at `position`; shorter at the end of the file."""
        ...

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
        """Write at most `IOV_MAX` buffers one after the other at `position`; return the bytes written, maybe fewer."""
        ...

    def size(self, fd: int) -> int:
        """Return the file's length in bytes."""
        ...

    def truncate(self, fd: int, size_bytes: int, /) -> None:
        """Set the file's length; a hole is made when it grows."""
        ...

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """Make the file `size_bytes` long, with its blocks on disk where the system can."""
        ...

    def fsync(self, fd: int, /) -> None:
        """Make the file's bytes and length durable. Blocks."""
        ...

    def fsync_directory(self, path: Path) -> None:
        """Make the directory's entries durable. Blocks."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically, over `target` when it is a file that is there."""
        ...

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        ...

    def mkdir(self, path: Path) -> None:
        """Make one directory."""
        ...

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""
        ...

    def listdir(self, path: Path) -> list[FileStat]:
        """Return a directory's entries, in no order."""
        ...

    def stat(self, path: Path) -> FileStat:
        """Return one entry."""
        ...

    def disk_space(self, path: Path) -> tuple[int, int]:
        """Return (total bytes, bytes usable by us) of the file system that holds `path`."""
        ...

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        """Map the first `size_bytes` > 0 of a file; the descriptor may be closed afterwards."""
        ...

    def is_cached(self, fd: int, position: int, size_bytes: int) -> bool:
        """Say whether the bytes can be read without waiting for a disk, by samples; True where nobody can tell."""
        ...

    def lock(self, path: Path) -> FileLock:
        """Lock a file, made when it is not there.

        Raises:
            BlockingIOError: Somebody, maybe this process, holds it.
        """
        ...


class OsFiles:
    """The machine's own files. Stateless but for the locks; one for a process is enough, more do no harm."""

    def __init__(self) -> None:
        self.pread = os.pread if hasattr(os, "pread") else _seek_and_read
        self.pwritev = os.pwritev if hasattr(os, "pwritev") else _seek_and_write
        self.close = os.close
        self.fsync = getattr(os, "fdatasync", os.fsync)
        self.truncate = os.ftruncate

    def open(self, path: Path, flags: int) -> int:
        """See `Files.open`."""
        return os.open(path, flags, 0o644)

    def size(self, fd: int) -> int:
        """See `Files.size`."""
        return os.fstat(fd).st_size

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """See `Files.preallocate`."""
        allocate = getattr(os, "posix_fallocate", None)
        if allocate is not None:
            try:
                allocate(fd, 0, size_bytes)
            except OSError as exc:
                if exc.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
            else:
                return
        os.ftruncate(fd, size_bytes)

    def fsync_directory(self, path: Path) -> None:
        """See `Files.fsync_directory`."""
        if sys.platform == "win32":
            return
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """See `Files.rename`."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """See `Files.unlink`."""
        path.unlink()

    def mkdir(self, path: Path) -> None:
        """See `Files.mkdir`."""
        path.mkdir()

    def rmdir(self, path: Path) -> None:
        """See `Files.rmdir`."""
        path.rmdir()

    def listdir(self, path: Path) -> list[FileStat]:
        """See `Files.listdir`. An entry that vanishes meanwhile is left out."""
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    found.append(_file_stat(entry.name, entry.stat()))
                except FileNotFoundError:
                    continue
        return found

    def stat(self, path: Path) -> FileStat:
        """See `Files.stat`."""
        return _file_stat(path.name, path.stat())

    def disk_space(self, path: Path) -> tuple[int, int]:
        """See `Files.disk_space`."""
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        """See `Files.mmap`."""
        mapped = mmap.mmap(fd, size_bytes, access=mmap.ACCESS_WRITE if is_writable else mmap.ACCESS_READ)
        advice = getattr(mmap, "MADV_RANDOM", None)
        if advice is not None:
            # What is mapped is searched, or grows entry by entry: with read-ahead the first touch of a sparse file
            # would fill the page cache with as much nothing as the device reads ahead (8 MB seen, 3 ms).
            mapped.madvise(advice)
        return mapped

    def is_cached(self, fd: int, position: int, size_bytes: int) -> bool:
        """See `Files.is_cached`: tries the first byte, the last one, and one every 256 KiB between."""
        if not _RWF_NOWAIT:
            return True
        last = position + size_bytes - 1
        byte = [bytearray(1)]
        try:
            for probe in (last, *range(position, last, _PROBE_STEP)):
                os.preadv(fd, byte, probe, _RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as exc:
            # A file system without RWF_NOWAIT: nobody can tell.
            return exc.errno in (errno.EOPNOTSUPP, errno.EINVAL)
        return True

    def lock(self, path: Path) -> FileLock:
        """See `Files.lock`."""
        return _OsLock(path)


class FileHandle:
    """An open descriptor that closes when the last one who holds the handle lets go of it."""

    __slots__ = ("_files", "fd")

    def __init__(self, files: Files, fd: int) -> None:
        self._files = files
        self.fd = fd

    def __del__(self) -> None:
        self._files.close(self.fd)

    def __repr__(self) -> str:
        return f"<FileHandle {self.fd}>"


class OpenSlice:
    """Bytes of an open file. See `FileSlice`. Holding it holds the file open, also when its name is gone meanwhile."""

    __slots__ = ("_files", "_handle", "_is_recent", "position", "size_bytes")

    def __init__(
        self, files: Files, handle: FileHandle, position: int, size_bytes: int, *, is_recent: bool = False
    ) -> None:
        """Make one.

        Args:
            files: Where the file is.
            handle: The file.
            position: Where the bytes begin.
            size_bytes: How many, > 0.
            is_recent: Whether this process wrote them a moment ago: then nobody asks whether they are cached.
        """
        self._files = files
        self._handle = handle
        self._is_recent = is_recent
        self.position = position
        self.size_bytes = size_bytes

    def fileno(self) -> int:
        """See `FileSlice.fileno`."""
        return self._handle.fd

    def read(self) -> bytes:
        """See `FileSlice.read`."""
        return self._files.pread(self._handle.fd, self.size_bytes, self.position)

    def read_part(self, position: int, size_bytes: int) -> bytes:
        """See `FileSlice.read_part`."""
        return self._files.pread(self._handle.fd, size_bytes, position)

    @property
    def is_cached(self) -> bool:
        """See `FileSlice.is_cached`."""
        return self._is_recent or self._files.is_cached(self._handle.fd, self.position, self.size_bytes)

    def __repr__(self) -> str:
        return f"<OpenSlice of {self._handle!r} at {self.position}, {self.size_bytes} bytes>"


class _OsLock:
    """A lock file. POSIX locks do not keep a process from itself, so the paths held are remembered too."""

    _held: Final[set[str]] = set()

    def __init__(self, path: Path) -> None:
        self._name = str(path.parent.resolve() / path.name)
        if self._name in self._held:
            raise BlockingIOError(errno.EAGAIN, "locked by this process")
        self._fd = os.open(path, CREATE, 0o644)
        try:
            if sys.platform == "win32":
                msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._fd)
            raise BlockingIOError(errno.EAGAIN, "locked by another process") from exc
        self._held.add(self._name)

    def release(self) -> None:
        self._held.discard(self._name)
        os.close(self._fd)


def _file_stat(name: str, result: os.stat_result) -> FileStat:
    return FileStat(name, result.st_size, result.st_mtime_ns // 1_000_000, stat_bits.S_ISDIR(result.st_mode))


def _seek_and_read(fd: int, size_bytes: int, position: int, /) -> bytes:
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, size_bytes)


def _seek_and_write(fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
    os.lseek(fd, position, os.SEEK_SET)
    return os.write(fd, b"".join(buffers))


def write_all(files: Files, fd: int, buffers: Sequence[Buffer], position: int) -> None:
    """Write all of `buffers` at `position`, however many they are and however little the system takes at once.

    Raises:
        OSError: Not all could be written; some bytes may be.
    """
    for first in range(0, len(buffers), IOV_MAX):
        chunk = [memoryview(b) for b in buffers[first : first + IOV_MAX]]
        while chunk:
            written = files.pwritev(fd, chunk, position)
            if written == 0 and len(chunk[0]):
                raise OSError(errno.EIO, "the system wrote nothing")
            position += written
            while chunk and written >= len(chunk[0]):
                written -= len(chunk.pop(0))
            if written:
                chunk[0] = chunk[0][written:]


def read_file(files: Files, path: Path) -> bytes:
    """Return all bytes of a small file."""
    fd = files.open(path, READ)
    try:
        size = files.size(fd)
        data = b""
        while len(data) < size and (part := files.pread(fd, size - len(data), len(data))):
            data += part
        return data
    finally:
        files.close(fd)


def replace_file(files: Files, path: Path, data: bytes, *, is_durable: bool) -> None:
    """Put `data` in the place of the file, whole or not at all, by way of `path` + `.tmp`.

    Args:
        files: Where.
        path: The file; need not be there.
        data: All of it.
        is_durable: On return it survives the loss of power. Otherwise only the death of the process; a loss of power
            may leave the old file, the new one, or an empty one.
    """
    temporary = path.with_name(path.name + ".tmp")
    fd = files.open(temporary, CREATE)
    try:
        files.truncate(fd, 0)
        write_all(files, fd, [data], 0)
        if is_durable:
            files.fsync(fd)
    finally:
        files.close(fd)
    files.rename(temporary, path)
    if is_durable:
        files.fsync_directory(path.parent)


def sync_file(files: Files, path: Path) -> None:
    """Make a file durable that nobody holds open; nothing happens when it is not there. Blocks."""
    try:
        fd = files.open(path, READ_WRITE)
    except FileNotFoundError:
        return
    try:
        files.fsync(fd)
    finally:
        files.close(fd)
