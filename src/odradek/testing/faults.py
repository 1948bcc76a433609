"""Shell: files that fail: the n-th operation refused, or the power lost after it.

`FaultyFiles` works on a real directory and remembers what a disk would: of each file the bytes at its last fsync, of
each directory the entries at its last fsync and every change since. `after_power_loss` writes what may be left into
another directory:

| style | directories | files |
| --- | --- | --- |
| `LOST` | as last synced | as last synced |
| `KEPT` | as they were | as last synced: a new file is empty |
| `TORN` | some changes since the sync, the first ones | some bytes since the sync, then maybe zeros |

Changes of one directory reach the disk in order, as a journal does it; those of different ones do not.

A fault loop runs a scenario for n = 1, 2, ... until nothing fails any more::

    for n in itertools.count(1):
        files = FaultyFiles(directory, fail_at=n)
        scenario(files)
        if files.operations < n:
            break

.. versionadded:: 0.1
"""

from __future__ import annotations

import errno
import os
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.machine.files import OsFiles

if TYPE_CHECKING:
    import mmap
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from odradek.kernel.machine.files import FileLock, FileStat
    from odradek.kernel.types import Buffer


class PowerLoss(Enum):
    """What is left of what was not synced."""

    LOST = "lost"
    KEPT = "kept"
    TORN = "torn"


@attrs.define(eq=False)
class _File:
    """A file. `removed` holds its bytes once no name leads to it."""

    durable: bytes = b""
    removed: bytes | None = None


@attrs.define(eq=False)
class _Directory:
    """A directory: its entries, and each state of them since the last sync, oldest first."""

    entries: dict[str, _File | _Directory] = attrs.field(factory=dict)
    history: list[dict[str, _File | _Directory]] = attrs.field(factory=lambda: [{}])

    def changed(self) -> None:
        """Take note of a change."""
        self.history.append(dict(self.entries))

    def synced(self) -> None:
        """Forget all states but the present one."""
        self.history = [dict(self.entries)]


class _NoLock:
    """A lock that holds nothing: a simulated crash leaves none behind."""

    def release(self) -> None:
        """See `FileLock.release`."""


class FaultyFiles:
    """`Files` over a real directory, with faults. Outside `root` directories may be synced, all else is refused.

    Attributes:
        operations: How many were asked for so far.
        before_each: Called before each operation, on the thread that asks for it: a test that wants to do something
            in the middle of what a worker thread does holds that thread here.
    """

    def __init__(
        self,
        root: Path,
        *,
        fail_at: int = 0,
        error: int = errno.EIO,
        power_lost_at: int = 0,
        is_full_after: bool = False,
    ) -> None:
        """Take a directory; what lies in it counts as durable.

        Args:
            root: The directory.
            fail_at: The number of the operation that fails, 0 for none. A write that fails writes its first half.
            error: The `errno` of the failure.
            power_lost_at: The number of the operation before which the power goes: it and all later ones fail.
            is_full_after: Every write and allocation from `fail_at` on fails too, as on a full disk.
        """
        self._os = OsFiles()
        self._root = root
        self._fail_at = fail_at
        self._error = error
        self._power_lost_at = power_lost_at
        self._is_full_after = is_full_after
        self._fds: dict[int, _File] = {}
        self._tree = self._load(root)
        self.operations = 0
        self.before_each: Callable[[], None] = lambda: None

    def _load(self, path: Path) -> _Directory:
        found = _Directory()
        for entry in path.iterdir():
            found.entries[entry.name] = self._load(entry) if entry.is_dir() else _File(entry.read_bytes())
        found.synced()
        return found

    @property
    def is_power_lost(self) -> bool:
        """Whether the power is gone."""
        return bool(self._power_lost_at) and self.operations >= self._power_lost_at

    def _step(self, *, takes_space: bool = False) -> None:
        self.before_each()
        self.operations += 1
        if self.is_power_lost:
            raise OSError(errno.EIO, "power lost")
        is_full = self._is_full_after and takes_space and self._fail_at and self.operations > self._fail_at
        if self.operations == self._fail_at or is_full:
            raise OSError(self._error, os.strerror(self._error))

    def _find(self, path: Path) -> tuple[_Directory, str]:
        *folders, name = path.relative_to(self._root).parts
        directory = self._tree
        for folder in folders:
            found = directory.entries.get(folder)
            if not isinstance(found, _Directory):
                raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))
            directory = found
        return directory, name

    # -- files ---------------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        """See `Files.open`."""
        self._step()
        directory, name = self._find(path)
        fd = self._os.open(path, flags)
        node = directory.entries.get(name)
        if node is None:
            node = directory.entries[name] = _File()
            directory.changed()
        assert isinstance(node, _File), f"{path} is a directory"
        self._fds[fd] = node
        return fd

    def close(self, fd: int) -> None:
        """See `Files.close`; descriptors from before a crash are gone already."""
        if self._fds.pop(fd, None) is not None:
            self._os.close(fd)

    def pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        """See `Files.pread`."""
        self._step()
        return self._os.pread(fd, size_bytes, position)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
        """See `Files.pwritev`."""
        try:
            self._step(takes_space=True)
        except OSError:
            if not self.is_power_lost:
                data = b"".join(buffers)
                self._os.pwritev(fd, [data[: len(data) // 2]], position)
            raise
        return self._os.pwritev(fd, buffers, position)

    def size(self, fd: int) -> int:
        """See `Files.size`."""
        return self._os.size(fd)

    def truncate(self, fd: int, size_bytes: int, /) -> None:
        """See `Files.truncate`."""
        self._step()
        self._os.truncate(fd, size_bytes)

    def preallocate(self, fd: int, size_bytes: int) -> None:
        """See `Files.preallocate`."""
        self._step(takes_space=True)
        self._os.truncate(fd, size_bytes)

    def fsync(self, fd: int, /) -> None:
        """See `Files.fsync`."""
        self._step()
        self._fds[fd].durable = self._os.pread(fd, self._os.size(fd), 0)

    def mmap(self, fd: int, size_bytes: int, *, is_writable: bool) -> mmap.mmap:
        """See `Files.mmap`."""
        self._step()
        return self._os.mmap(fd, size_bytes, is_writable=is_writable)

    def is_cached(self, fd: int, position: int, size_bytes: int) -> bool:
        """See `Files.is_cached`."""
        return True

    def lock(self, path: Path) -> FileLock:
        """See `Files.lock`: always free."""
        self._step()
        return _NoLock()

    # -- directories ---------------------------------------------------------------------------------------------

    def fsync_directory(self, path: Path) -> None:
        """See `Files.fsync_directory`; directories above the root are taken for durable."""
        if path in self._root.parents:
            return
        self._step()
        directory, name = self._find(path) if path != self._root else (self._tree, "")
        node = directory.entries[name] if name else directory
        assert isinstance(node, _Directory), f"{path} is a file"
        node.synced()

    def rename(self, source: Path, target: Path) -> None:
        """See `Files.rename`."""
        self._step()
        (old, old_name), (new, new_name) = self._find(source), self._find(target)
        self._remember(target, new.entries.get(new_name))
        self._os.rename(source, target)
        new.entries[new_name] = old.entries.pop(old_name)
        for directory in {id(old): old, id(new): new}.values():
            directory.changed()

    def unlink(self, path: Path) -> None:
        """See `Files.unlink`."""
        self._step()
        directory, name = self._find(path)
        self._remember(path, directory.entries.get(name))
        self._os.unlink(path)
        del directory.entries[name]
        directory.changed()

    def _remember(self, path: Path, node: _File | _Directory | None) -> None:
        if isinstance(node, _File):
            node.removed = path.read_bytes()

    def mkdir(self, path: Path) -> None:
        """See `Files.mkdir`."""
        self._step()
        directory, name = self._find(path)
        self._os.mkdir(path)
        directory.entries[name] = _Directory()
        directory.changed()

    def rmdir(self, path: Path) -> None:
        """See `Files.rmdir`."""
        self._step()
        directory, name = self._find(path)
        self._os.rmdir(path)
        del directory.entries[name]
        directory.changed()

    def listdir(self, path: Path) -> list[FileStat]:
        """See `Files.listdir`."""
        self._step()
        return self._os.listdir(path)

    def stat(self, path: Path) -> FileStat:
        """See `Files.stat`."""
        self._step()
        return self._os.stat(path)

    def disk_space(self, path: Path) -> tuple[int, int]:
        """See `Files.disk_space`."""
        return self._os.disk_space(path)

    # -- afterwards ----------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """Close every descriptor, as the end of the process does."""
        for fd in list(self._fds):
            self.close(fd)

    def after_power_loss(self, target: Path, style: PowerLoss, random_source: random.Random) -> None:
        """Write what a loss of power now may leave into the empty directory `target`.

        Args:
            target: Where; it is there and empty.
            style: What happens to what was not synced.
            random_source: Chooses, for `PowerLoss.TORN`.
        """
        present: dict[int, bytes] = {}
        self._gather(self._tree, self._root, present)
        self._leave(self._tree, target, style, random_source, present)

    def _gather(self, directory: _Directory, path: Path, present: dict[int, bytes]) -> None:
        for name, node in directory.entries.items():
            if isinstance(node, _Directory):
                self._gather(node, path / name, present)
            else:
                present[id(node)] = (path / name).read_bytes()

    def _leave(
        self,
        directory: _Directory,
        target: Path,
        style: PowerLoss,
        random_source: random.Random,
        present: dict[int, bytes],
    ) -> None:
        states = directory.history
        if style is PowerLoss.TORN:
            entries = states[random_source.randrange(len(states))]
        else:
            entries = states[0 if style is PowerLoss.LOST else -1]
        for name, node in entries.items():
            if isinstance(node, _Directory):
                (target / name).mkdir()
                self._leave(node, target / name, style, random_source, present)
                continue
            data = node.durable
            if style is PowerLoss.TORN:
                removed = node.removed if node.removed is not None else b""
                data = _torn(data, present.get(id(node), removed), random_source)
            (target / name).write_bytes(data)


def _torn(durable: bytes, present: bytes, random_source: random.Random) -> bytes:
    """Return bytes between the two: a part of what was added since the sync, then maybe zeros."""
    if random_source.randrange(3) == 0 or durable == present:
        return random_source.choice((durable, present))
    start = min(len(durable), len(present))
    cut = random_source.randrange(start, max(len(durable), len(present)) + 1)
    longer = present if len(present) >= len(durable) else durable
    head = (present if len(present) >= start else durable)[:start] + longer[start:cut]
    return head + bytes(random_source.randrange(0, len(longer) - cut + 1))
