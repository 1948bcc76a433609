"""Shell: what the elections of a broker's partitions must never forget, all in one file: one fsync keeps it of many.

A broker has thousands of partitions, and those that lose one leader vote at once. So what they keep is appended to one
file, a block for all that is kept together; of a partition the last entry counts::

    file     MAGIC, block, block, ...
    block    length of the entries (4), CRC of the entries (4), entries
    entry    topic id (16), partition (4), length of its state (4), state; an empty one: the partition is forgotten

A block is durable before the next one is begun, so only the last may be torn: nothing followed from it, and it is cut
off. Any other damage is refused, and with it whoever votes here: a vote that is forgotten may be given twice. When most
of the file is of no use any more it is written anew, beside it, and takes its place.

What the bytes say is the elections' own. Without a disk they are kept in memory, as logs are there.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ..classes import frozen
from ..errors import CorruptionError, StorageError
from ..machine.files import READ_WRITE, disk_error, read_file, replace_file, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from ..contracts.disk_work import DiskWork
    from ..machine.files import Files

    VoteKey: TypeAlias = "tuple[UUID, int]"

FILE_NAME: Final = "partition-votes"
MAGIC: Final = b"odradek partition votes 1\n"
REWRITE_BYTES_MIN: Final = 64 * 1024
"""A smaller file is not written anew, however little of it is of use."""

_BLOCK: Final = struct.Struct(">II")
_ENTRY: Final = struct.Struct(">16siI")


class VoteLog:
    """Life: made, `open` before the partitions are, `begin_keep` as elections want it. Owned by one task.

    Invariant: what `state_of` returns is durable.
    """

    def __init__(self, directories: Callable[[], Sequence[Path]], files: Files) -> None:
        """Make it, not open.

        Args:
            directories: Returns the log directories that work, in order; none of a broker without a disk.
            files: Where they are.
        """
        self._directories, self._files = directories, files
        self._path: Path | None = None
        self._states: dict[VoteKey, bytes] = {}
        self._size_bytes = 0
        self._failure: str | None = None

    def __repr__(self) -> str:
        return f"<VoteLog {self._path or 'in memory'}: {len(self._states)} partitions, {self._size_bytes} bytes>"

    def open(self) -> None:
        """Read what was kept, in whatever log directory; a torn end is cut off. Blocks.

        Raises:
            CorruptionError: The file is damaged elsewhere, or is none of these; or there are two.
            StorageError: The disk is failing.
        """
        directories = self._directories()
        found = {path: data for path in (each / FILE_NAME for each in directories) if (data := self._read(path))}
        if len(found) > 1:
            raise CorruptionError(
                f"votes are kept in {' and '.join(map(str, found))}: remove the older file, which another run left"
            )
        self._path, data = next(iter(found.items()), (directories[0] / FILE_NAME if directories else None, b""))
        if data:
            self._take(data)

    def _read(self, path: Path) -> bytes:
        try:
            return read_file(self._files, path)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise disk_error(error, "read", path) from error

    def _take(self, data: bytes) -> None:
        try:
            self._states, self._size_bytes = _read(data)
        except CorruptionError as error:
            raise CorruptionError(
                f"{self._path}: {error}; votes that are forgotten may be given twice, so no partition of this broker "
                "votes: restore the file, or move the broker's partitions that vote to others"
            ) from None
        if self._size_bytes < len(data):
            self._cut()

    def _cut(self) -> None:
        assert self._path is not None, "what is cut was read"
        try:
            fd = self._files.open(self._path, READ_WRITE)
            try:
                self._files.truncate(fd, self._size_bytes)
                self._files.fsync(fd)
            finally:
                self._files.close(fd)
        except OSError as error:
            raise disk_error(error, "write", self._path) from error

    def state_of(self, topic_id: UUID, partition: int) -> bytes | None:
        """Return what was kept last of a partition, None for nothing."""
        return self._states.get((topic_id, partition))

    def begin_keep(self, states: Mapping[VoteKey, bytes | None]) -> DiskWork:
        """Begin to keep states of partitions, None forgets one; all are durable when the work is finished.

        One work at a time. Its `finish` raises `StorageError` where the disk is full or failing: what is in the file
        then nobody knows, so nothing is kept any more until the next start.

        Args:
            states: By topic id and partition.
        """
        return _Keeping(self, dict(states), self._plan(states))

    def _plan(self, states: Mapping[VoteKey, bytes | None]) -> _Plan:
        if not self._size_bytes:
            return _Plan(self._size_bytes, MAGIC + _block(states), is_whole=True)
        block = _block(states)
        size_bytes = self._size_bytes + len(block)
        if size_bytes >= REWRITE_BYTES_MIN:
            whole = MAGIC + _block({**self._states, **states})
            if 2 * len(whole) <= size_bytes:
                return _Plan(0, whole, is_whole=True)
        return _Plan(self._size_bytes, block, is_whole=False)

    def check_working(self) -> None:
        """See that what is kept would be found again.

        Raises:
            StorageError: A disk refused something before.
        """
        if self._failure is not None:
            raise StorageError(f"{self._failure}; no partition of this broker votes until it is started again")

    def write(self, plan: _Plan) -> None:
        """Write a block; for the work. Blocks.

        Raises:
            OSError: The disk refused.
        """
        if self._path is None:
            return
        if plan.is_whole:
            replace_file(self._files, self._path, plan.data, is_durable=True)
            return
        fd = self._files.open(self._path, READ_WRITE)
        try:
            write_all(self._files, fd, [plan.data], plan.position)
            self._files.fsync(fd)
        finally:
            self._files.close(fd)

    def written(self, states: Mapping[VoteKey, bytes | None], plan: _Plan, error: Exception | None) -> None:
        """Take the outcome of a write.

        Raises:
            StorageError: It failed.
        """
        if isinstance(error, OSError):
            error = disk_error(error, "write", self._path)
        if error is not None:
            self._failure = self._failure or str(error)
            raise error
        for key, state in states.items():
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
        self._size_bytes = len(plan.data) + (0 if plan.is_whole else plan.position)


@frozen
class _Plan:
    """What is written, and where.

    Attributes:
        position: Where in the file.
        data: The block, or the file.
        is_whole: Whether it takes the file's place.
    """

    position: int
    data: bytes
    is_whole: bool


@frozen
class _Keeping:
    """See `DiskWork`."""

    log: VoteLog
    states: Mapping[VoteKey, bytes | None]
    plan: _Plan

    def run(self) -> None:
        """See `DiskWork.run`."""
        self.log.check_working()
        self.log.write(self.plan)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.log.written(self.states, self.plan, error)


def _block(states: Mapping[VoteKey, bytes | None]) -> bytes:
    entries = b"".join(
        _ENTRY.pack(topic_id.bytes, partition, len(state or b"")) + (state or b"")
        for (topic_id, partition), state in states.items()
    )
    return _BLOCK.pack(len(entries), zlib.crc32(entries)) + entries


def _read(data: bytes) -> tuple[dict[VoteKey, bytes], int]:
    """Return the states of a file, and where its last whole block ends.

    Raises:
        CorruptionError: It is damaged otherwise than by a torn end.
    """
    if not data.startswith(MAGIC):
        raise CorruptionError("this is no file of votes that this release knows")
    states: dict[VoteKey, bytes] = {}
    position = len(MAGIC)
    while position < len(data):
        entries = _entries_at(data, position)
        if entries is None:
            if _is_followed(data, position):
                raise CorruptionError(f"the block at {position} is damaged")
            break
        for key, state in _split(entries):
            states.pop(key, None)
            if state:
                states[key] = state
        position += _BLOCK.size + len(entries)
    return states, position


def _entries_at(data: bytes, position: int) -> bytes | None:
    """Return the entries of the block at a position, None where there is no whole one."""
    if len(data) < position + _BLOCK.size:
        return None
    length, crc = _BLOCK.unpack_from(data, position)
    entries = data[position + _BLOCK.size : position + _BLOCK.size + length]
    return entries if length and len(entries) == length and zlib.crc32(entries) == crc else None


def _is_followed(data: bytes, position: int) -> bool:
    """Return whether a whole block stands behind one that is not: then it was durable, and is damaged."""
    if len(data) < position + _BLOCK.size:
        return False
    length, _crc = _BLOCK.unpack_from(data, position)
    return _entries_at(data, position + _BLOCK.size + length) is not None


def _split(entries: bytes) -> Iterator[tuple[VoteKey, bytes]]:
    position = 0
    while position < len(entries):
        topic_id, partition, length = _ENTRY.unpack_from(entries, position)
        position += _ENTRY.size
        yield (UUID(bytes=topic_id), partition), entries[position : position + length]
        position += length
