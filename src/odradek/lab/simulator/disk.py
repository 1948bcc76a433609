"""Pure core: a simulated file system, which knows what of it has reached the disk.

    File        bytes as the page cache has them; for each sector written since the last sync, what the disk has
    Directory   entries as the page cache has them; each change since the last sync, to be undone

A process that dies changes nothing here: the page cache stays. A loss of power does, `Disk.lose_power`:

| | of a directory | of a file |
| --- | --- | --- |
| `LOST` | all changes since its sync are undone | it is as it was synced |
| `KEPT` | all of them stay | it is as it was synced: a new file is empty |
| `TORN` | the first ones stay | any of the sectors have reached the disk, in any order; any length between the two |

Changes of one directory reach the disk in order, as a journal does it; those of different ones do not.

The tree is what a process sees through `files.py`.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from odradek.testing.faults import PowerLoss

from .seeds import FILES, between, is_chosen
from .world import MICROSECOND, MILLISECOND

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import PurePath

    from .world import World

SECTOR_BYTES: Final = 512
CACHE_BLOCK_BYTES: Final = 64 * 1024
JOURNAL_MAX: Final = 1024
"""How many changes of a directory may be undone; the system writes older ones back by itself."""
CAPACITY_BYTES: Final = 64 << 30
ROT_TRIES: Final = 1000


class File:
    """A file.

    Attributes:
        data: The bytes up to the last that was written, as the page cache has them; behind them there is a hole.
        size_bytes: How long it is, with that hole: indexes are made long and filled slowly, and a hole costs nothing.
        modified_ms: When it was changed, by the wall clock.
        allocated_bytes: How far it takes room on the disk.
        cold_blocks: What of it is not in the page cache, by number of block.
    """

    __slots__ = (
        "_durable_bytes",
        "_overwritten",
        "allocated_bytes",
        "cold_blocks",
        "data",
        "modified_ms",
        "size_bytes",
    )

    def __init__(self) -> None:
        """Make an empty one that the disk knows nothing of."""
        self.data = bytearray()
        self.size_bytes = 0
        self.modified_ms = 0
        self.allocated_bytes = 0
        self.cold_blocks: set[int] = set()
        self._durable_bytes = 0
        self._overwritten: dict[int, bytes] = {}

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return bytes, fewer at its end."""
        found = bytes(self.data[position : position + size_bytes])
        return found.ljust(max(min(size_bytes, self.size_bytes - position), 0), b"\0")

    @property
    def content(self) -> bytes:
        """All of it."""
        return self.read(0, self.size_bytes)

    def write(self, position: int, data: bytes) -> None:
        """Write bytes, behind a hole if need be."""
        end = position + len(data)
        self._remember(position, end)
        if position > len(self.data):
            self.data += bytes(position - len(self.data))
        self.data[position:end] = data
        self.size_bytes = max(self.size_bytes, end)
        self.allocated_bytes = max(self.allocated_bytes, end)

    def resize(self, size_bytes: int) -> None:
        """Cut, or grow by a hole."""
        if size_bytes < self.size_bytes:
            self._remember(size_bytes, len(self.data))  # of a hole nothing changes: the disk has it, too
            del self.data[size_bytes:]
            self.allocated_bytes = min(self.allocated_bytes, size_bytes)
        self.size_bytes = size_bytes

    def sync(self) -> None:
        """Have the disk know all of it."""
        self._durable_bytes = self.size_bytes
        self._overwritten.clear()

    def _remember(self, start: int, end: int) -> None:
        """Keep what the disk has of these bytes, if nobody has yet."""
        for sector in range(start // SECTOR_BYTES, -(-min(end, self._durable_bytes) // SECTOR_BYTES)):
            if sector not in self._overwritten:
                first = sector * SECTOR_BYTES
                size_bytes = min(SECTOR_BYTES, self._durable_bytes - first)
                self._overwritten[sector] = bytes(self.data[first : first + size_bytes]).ljust(size_bytes, b"\0")

    @property
    def durable(self) -> bytes:
        """What the disk has for certain."""
        return bytes(self._durable_data().ljust(self._durable_bytes, b"\0"))

    def _durable_data(self) -> bytearray:
        """Return what the disk has for certain, but for a hole behind it."""
        found = self.data[: self._durable_bytes]
        for sector, old in self._overwritten.items():
            first = sector * SECTOR_BYTES
            if first > len(found):
                found += bytes(first - len(found))
            found[first : first + len(old)] = old
        return found

    def lose_power(self, style: PowerLoss, source: random.Random) -> None:
        """Be what is left of it."""
        durable = self._durable_data()
        is_torn = style is PowerLoss.TORN
        self.data, self.size_bytes = self._torn(durable, source) if is_torn else (durable, self._durable_bytes)
        self.allocated_bytes = min(self.allocated_bytes, self.size_bytes)
        self.cold_blocks = {*range(-(-self.size_bytes // CACHE_BLOCK_BYTES))}
        self.sync()

    def _torn(self, durable: bytearray, source: random.Random) -> tuple[bytearray, int]:
        """Return bytes of which each unsynced sector is old or new, and a length that lies between the two."""
        written = max(len(durable), len(self.data))
        present = self.data.ljust(written, b"\0")
        left = durable.ljust(written, b"\0")
        if left == present and self._durable_bytes == self.size_bytes:
            return self.data, self.size_bytes
        low, high = sorted((self._durable_bytes, self.size_bytes))
        size = source.choice((low, high, source.randrange(low, high + 1)))
        reached = source.choice((0.0, 0.5, 0.9, 1.0))
        del left[size:]
        for start in range(0, len(left), SECTOR_BYTES):
            new = present[start : min(start + SECTOR_BYTES, size)]
            if new != left[start : start + len(new)] and is_chosen(source, reached):
                left[start : start + len(new)] = new
        return left, size


class Directory:
    """A directory.

    Attributes:
        entries: What is in it, as the page cache has it.
    """

    __slots__ = ("_undo", "entries")

    def __init__(self) -> None:
        """Make an empty one."""
        self.entries: dict[str, File | Directory] = {}
        self._undo: list[tuple[str, File | Directory | None]] = []

    def put(self, name: str, entry: File | Directory | None) -> None:
        """Set an entry, or remove it by None."""
        self._undo.append((name, self.entries.get(name)))
        _set(self.entries, name, entry)
        if len(self._undo) > JOURNAL_MAX:
            del self._undo[: JOURNAL_MAX // 2]

    def sync(self) -> None:
        """Have the disk know all of it."""
        self._undo.clear()

    def lose_power(self, style: PowerLoss, source: random.Random) -> None:
        """Be what is left of it; its entries are not looked at."""
        kept = len(self._undo)
        if style is PowerLoss.TORN:
            kept = source.randrange(kept + 1)
        elif style is PowerLoss.LOST:
            kept = 0
        while len(self._undo) > kept:
            _set(self.entries, *self._undo.pop())
        self.sync()


def _set(entries: dict[str, File | Directory], name: str, entry: File | Directory | None) -> None:
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry


@attrs.define
class DiskFaults:
    """What goes wrong with a disk, and how fast it is.

    Attributes:
        errors: By number of operation (`Disk.operations_count`), the `errno` that it fails with; once.
        is_broken: Whether every operation fails with EIO.
        short_write_share: How often a write takes less than it was given, 0 to 1.
        sync_ns_max: How long a sync takes at most; most are much quicker.
        read_ns_max: How long a read takes at most that must wait for the disk.
    """

    errors: dict[int, int] = attrs.field(factory=dict)
    is_broken: bool = False
    short_write_share: float = 0.01
    sync_ns_max: int = 20 * MILLISECOND
    read_ns_max: int = 10 * MILLISECOND


class Rot(NamedTuple):
    """A bit that turned round by itself.

    Attributes:
        path: Of which file.
        position: In which byte of it.
    """

    path: str
    position: int


class Disk:
    """One host's disk. Outlives the processes that use it.

    Attributes:
        name: Whose it is.
        root: The tree.
        capacity_bytes: How much it holds.
        faults: What goes wrong.
        random: Decides about faults, latencies and what a loss of power leaves.
        operations_count: How many were asked for so far.
        busy_ns: How long the operations took in all that waited for the disk.
        before_operation: Called before an operation is done, with the file that it is on: where crashes come in.
    """

    def __init__(self, world: World, name: str) -> None:
        """Make an empty one."""
        self.world = world
        self.name = name
        self.root = Directory()
        self.capacity_bytes = CAPACITY_BYTES
        self.faults = DiskFaults()
        self.random = world.seeds.stream(FILES, name)
        self.operations_count = 0
        self.busy_ns = 0
        self.before_operation: Callable[[PurePath], None] = lambda _path: None

    def replace(self) -> None:
        """Be a new disk, which is empty; no process uses it."""
        self.world.note("replaced", self.name)
        self.root = Directory()

    def begin(self, what: str, path: PurePath, *facts: object) -> None:
        """Count an operation, and let it fail if it is to.

        Raises:
            OSError: It fails.
        """
        self.operations_count += 1
        number = self.operations_count
        self.before_operation(path)
        self.world.note(what, self.name, path.as_posix(), *facts)
        code = self.faults.errors.pop(number, errno.EIO if self.faults.is_broken else 0)
        if code:
            self.world.note("disk error", self.name, number, errno.errorcode[code])
            raise OSError(code, f"simulated: {errno.errorcode[code]}")

    def took(self, most_ns: int) -> None:
        """Let the operation have waited for the disk."""
        self.busy_ns += between(self.random, 50 * MICROSECOND, most_ns)

    # -- the tree ----------------------------------------------------------------------------------------------------

    def directory(self, path: PurePath) -> Directory:
        """Return a directory.

        Raises:
            FileNotFoundError: There is none.
            NotADirectoryError: A file stands in the way.
        """
        found: File | Directory | None = self.root
        for part in path.parts[1:]:
            if not isinstance(found, Directory):
                break
            found = found.entries.get(part)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        if isinstance(found, File):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(path))
        return found

    def entry(self, path: PurePath) -> File | Directory:
        """Return what a path leads to.

        Raises:
            FileNotFoundError: Nothing.
        """
        if len(path.parts) == 1:
            return self.root
        found = self.directory(path.parent).entries.get(path.name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return found

    def walk(self) -> Iterator[tuple[str, File]]:
        """Iterate over all files with their paths, in the order of their names."""
        yield from _walk(self.root, "")

    @property
    def used_bytes(self) -> int:
        """How much is taken."""
        return sum(file.allocated_bytes for _, file in self.walk())

    def take_room(self, file: File, end: int) -> None:
        """Have room for a file up to `end`.

        Raises:
            OSError: The disk is full.
        """
        more = end - file.allocated_bytes
        # Looking at all files is dear: only a disk that was made small is looked at.
        if more > 0 and self.capacity_bytes < CAPACITY_BYTES and self.used_bytes + more > self.capacity_bytes:
            self.world.note("disk full", self.name)
            raise OSError(errno.ENOSPC, "No space left on device")

    # -- faults ------------------------------------------------------------------------------------------------------

    def lose_power(self, style: PowerLoss) -> None:
        """Leave of everything what a loss of power may leave. No process may have files open."""
        self.world.note("power lost", self.name, style.value)
        seen: set[int] = set()
        # First the directories: what no entry leads to any more is gone, and draws nothing.
        directories = [self.root]
        files: list[File] = []
        while directories:
            directory = directories.pop()
            directory.lose_power(style, self.random)
            for _, entry in sorted(directory.entries.items()):
                if id(entry) not in seen:  # it may be found under two names, where a move is half done
                    seen.add(id(entry))
                    directories.append(entry) if isinstance(entry, Directory) else files.append(entry)
        for file in files:
            file.lose_power(style, self.random)

    def rot(self, can_rot: Callable[[str, File, int], bool] = lambda _path, _file, _position: True) -> Rot | None:
        """Turn one bit of one file round, on the disk and in memory.

        Args:
            can_rot: Whether it may be one of this byte of this file, found by its path.

        Returns:
            Which it was; None if no byte was found where it may be.
        """
        files = [(path, file) for path, file in self.walk() if file.size_bytes]
        for _ in range(ROT_TRIES if files else 0):
            path, file = self.random.choice(files)
            position = self.random.randrange(file.size_bytes)
            if can_rot(path, file, position):
                turned = file.read(position, 1)[0] ^ 1 << self.random.randrange(8)
                file.write(position, bytes([turned]))
                file.sync()
                self.world.note("bit rot", self.name, path, position)
                return Rot(path, position)
        return None


def _walk(directory: Directory, prefix: str) -> Iterator[tuple[str, File]]:
    for name, entry in sorted(directory.entries.items()):
        if isinstance(entry, Directory):
            yield from _walk(entry, f"{prefix}/{name}")
        else:
            yield f"{prefix}/{name}", entry
