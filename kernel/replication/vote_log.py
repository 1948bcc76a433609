"""Shell: what the elections of a broker's partitions must never forget, all in one file: one fsync keeps it of many.

A broker has thousands of partitions, and those that lose one leader vote at once. So what they keep is appended to one
file of the log directory in which their logs lie, a block for all that is kept together; of a partition the last entry
counts::

    file     MAGIC, block, block, ...
    block    length of the entries (4), CRC of the entries (4), entries
    entry    topic id (16), partition (4), boot (16), length of its state (4), state; an empty one: it is forgotten

Votes and log have one fate so: a disk that was replaced has neither, and whose replica it was is seen to be another.
The boot is that of the machine's kernel as the state was kept: in the same one nothing of the log is lost, however the
process ended, for what it wrote is in the page cache or on the disk. After another one `closing_marks` tells.

A block is durable before the next one is begun, so only the last may be torn: nothing followed from it, and it is cut
off. Any other damage is refused, and with it whoever votes here: a vote that is forgotten may be given twice. When most
of the file is of no use any more it is written anew, beside it, and takes its place. So it is after a disk refused a
block, for nobody knows what of it is there; until that has worked nothing more is kept, so a full disk is over once it
has room.

What the bytes say is the elections' own.
"""

from __future__ import annotations

import logging
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from ..classes import frozen
from ..contracts.disk_work import do_now
from ..errors import CorruptionError, StorageError
from ..machine.files import READ_WRITE, disk_error, read_file, replace_file, write_all
from ..types import ZERO_ID
from .closing_marks import leave_mark, take_mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    from ..contracts.disk_work import DiskWork
    from ..machine.files import Files

    VoteKey: TypeAlias = "tuple[UUID, int]"

log = logging.getLogger(__name__)

FILE_NAME: Final = "partition-votes"
MAGIC: Final = b"odradek partition votes 1\n"
REWRITE_BYTES_MIN: Final = 64 * 1024
"""A smaller file is not written anew, however little of it is of use."""

_BLOCK: Final = struct.Struct(">II")
_ENTRY: Final = struct.Struct(">16si16sI")


class KeptVote(NamedTuple):
    """What was kept last of a partition.

    Attributes:
        state: Its election's.
        boot_id: Of the machine's kernel then.
    """

    state: bytes
    boot_id: UUID


class VoteLogs:
    """The files of a broker's log directories. Life: made, `of` as replicas are opened. Owned by one task."""

    def __init__(self, files: Files, boot_id: UUID) -> None:
        """Make it; nothing is read yet.

        Args:
            files: Where they are.
            boot_id: See `Machine.boot_id`; where that is not known, one of this process alone.
        """
        self._files, self._boot_id = files, boot_id
        self._logs: dict[str, VoteLog] = {}
        self._ended_in: dict[str, UUID | None] = {}

    def __repr__(self) -> str:
        return f"<VoteLogs of {sorted(self._logs)}>"

    def of(self, log_dir: str) -> VoteLog:
        """Return the file of a log directory; opened, and read, when it is asked for first.

        Raises:
            CorruptionError: See `VoteLog.open`.
            StorageError: The disk is failing.
        """
        found = self._logs.get(log_dir)
        if found is None:
            found = VoteLog(Path(log_dir) / FILE_NAME, self._files, self._boot_id)
            found.open()
            self._logs[log_dir] = found
        return found

    def begin(self, log_dir: str) -> None:
        """Take note of how the voters of a log directory ended, before the first log of one is opened.

        Raises:
            StorageError: The disk is failing.
        """
        if log_dir not in self._ended_in:
            self._ended_in[log_dir] = take_mark(self._files, log_dir)

    def is_of_this_boot(self, kept: KeptVote) -> bool:
        """Return whether the machine's kernel runs still that ran as something was kept."""
        return kept.boot_id == self._boot_id

    def has_ended_well(self, log_dir: str, kept: KeptVote) -> bool:
        """Return whether the voters of a log directory ended in good order in the boot in which one had this kept."""
        return self._ended_in[log_dir] == kept.boot_id

    def end(self, later: Mapping[str, Mapping[VoteKey, bytes | None]]) -> None:
        """Have the next start know that voters end in good order, just before their logs are closed. Blocks.

        Whose votes were not kept in this boot, or where the disk refuses, is in doubt then. Does not raise.

        Args:
            later: What is to be kept before that, by log directory.
        """
        for log_dir in [each for each in self._logs if each in self._ended_in]:
            try:
                if states := later.get(log_dir):
                    do_now(self.of(log_dir).begin_keep(states))
                leave_mark(self._files, log_dir, self._boot_id)
            except StorageError as error:
                log.error("voters may not trust the end of their logs at the next start: %s", error)


class VoteLog:
    """Life: made, `open` before the partitions are, `begin_keep` as elections want it. Owned by one task.

    Invariant: what `state_of` returns is durable.
    """

    def __init__(self, path: Path, files: Files, boot_id: UUID) -> None:
        """Make it, not open.

        Args:
            path: Where it is, or will be.
            files: The file system.
            boot_id: See `VoteLogs`.
        """
        self._path, self._files, self._boot_id = path, files, boot_id
        self._kept: dict[VoteKey, KeptVote] = {}
        self._size_bytes = self._entries_bytes = 0
        self._is_whole = True

    def __repr__(self) -> str:
        return f"<VoteLog {self._path}: {len(self._kept)} partitions, {self._size_bytes} bytes>"

    def open(self) -> None:
        """Read what was kept; a torn end is cut off. Blocks.

        Raises:
            CorruptionError: The file is damaged elsewhere, or is none of these.
            StorageError: The disk is failing.
        """
        try:
            data = read_file(self._files, self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_error(error, "read", self._path) from error
        if data:
            self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            self._kept, self._size_bytes = _read(data)
        except CorruptionError as error:
            raise CorruptionError(
                f"{self._path}: {error}; votes that are forgotten may be given twice, so no partition of this log "
                "directory votes: restore the file, or let the others elect without this broker"
            ) from None
        self._entries_bytes = sum(map(_size_of, self._kept.values()))
        if self._size_bytes < len(data):
            self._cut()

    def _cut(self) -> None:
        try:
            fd = self._files.open(self._path, READ_WRITE)
            try:
                self._files.truncate(fd, self._size_bytes)
                self._files.fsync(fd)
            finally:
                self._files.close(fd)
        except OSError as error:
            raise disk_error(error, "write", self._path) from error

    def kept(self, topic_id: UUID, partition: int) -> KeptVote | None:
        """Return what was kept last of a partition, None for nothing."""
        return self._kept.get((topic_id, partition))

    def begin_keep(self, states: Mapping[VoteKey, bytes | None]) -> DiskWork:
        """Begin to keep states of partitions, None forgets one; all are durable when the work is finished.

        One work at a time. Its `finish` raises `StorageError` where the disk is full or failing: nothing of it is kept
        then, and the next work writes all of the file.

        Args:
            states: By topic id and partition.
        """
        votes = {key: None if state is None else KeptVote(state, self._boot_id) for key, state in states.items()}
        return _Keeping(self, votes, self._plan(votes))

    def _plan(self, votes: Mapping[VoteKey, KeptVote | None]) -> _Plan:
        """Return what is written: no more than these, unless that is the cheaper way, or the only sound one."""
        entries_bytes = self._entries_bytes + sum(
            _size_of(vote) - _size_of(self._kept.get(key)) for key, vote in votes.items()
        )
        whole_bytes = len(MAGIC) + entries_bytes + (_BLOCK.size if entries_bytes else 0)
        size_bytes = self._size_bytes + _BLOCK.size + sum(_ENTRY.size + _state_bytes(vote) for vote in votes.values())
        is_mostly_dead = size_bytes >= REWRITE_BYTES_MIN and 2 * whole_bytes <= size_bytes
        if not self._size_bytes or not self._is_whole or is_mostly_dead:
            live = {key: vote for key, vote in {**self._kept, **votes}.items() if vote is not None}
            return _Plan(live, 0, whole_bytes, entries_bytes)
        return _Plan(votes, self._size_bytes, size_bytes, entries_bytes)

    def write(self, plan: _Plan) -> None:
        """Write what is planned; for the work, on its thread. Blocks.

        Raises:
            OSError: The disk refused.
        """
        block = _block(plan.votes) if plan.votes else b""
        if plan.is_whole:
            replace_file(self._files, self._path, MAGIC + block, is_durable=True)
            return
        fd = self._files.open(self._path, READ_WRITE)
        try:
            write_all(self._files, fd, [block], plan.position)
            self._files.fsync(fd)
        finally:
            self._files.close(fd)

    def written(self, votes: Mapping[VoteKey, KeptVote | None], plan: _Plan, error: Exception | None) -> None:
        """Take the outcome of a write.

        Raises:
            StorageError: It failed.
        """
        if error is not None:
            self._is_whole = False
            raise disk_error(error, "write", self._path) if isinstance(error, OSError) else error
        for key, vote in votes.items():
            if vote is None:
                self._kept.pop(key, None)
            else:
                self._kept[key] = vote
        self._size_bytes, self._entries_bytes = plan.size_bytes, plan.entries_bytes
        self._is_whole = True


@frozen
class _Plan:
    """What is written, and where.

    Attributes:
        votes: The block's.
        position: Where in the file; 0 where it takes the file's place.
        size_bytes: How large the file is then.
        entries_bytes: How large the entries in it are then that count.
    """

    votes: Mapping[VoteKey, KeptVote | None]
    position: int
    size_bytes: int
    entries_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether it takes the file's place."""
        return not self.position


@frozen
class _Keeping:
    """See `DiskWork`."""

    log: VoteLog
    votes: Mapping[VoteKey, KeptVote | None]
    plan: _Plan

    def run(self) -> None:
        """See `DiskWork.run`."""
        self.log.write(self.plan)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.log.written(self.votes, self.plan, error)


def _state_bytes(vote: KeptVote | None) -> int:
    return 0 if vote is None else len(vote.state)


def _size_of(vote: KeptVote | None) -> int:
    """Return how large the entry of what is kept is, 0 where nothing is."""
    return 0 if vote is None else _ENTRY.size + len(vote.state)


def _block(votes: Mapping[VoteKey, KeptVote | None]) -> bytes:
    entries = b"".join(_entry(key, vote or KeptVote(b"", ZERO_ID)) for key, vote in votes.items())
    return _BLOCK.pack(len(entries), zlib.crc32(entries)) + entries


def _entry(key: VoteKey, vote: KeptVote) -> bytes:
    topic_id, partition = key
    return _ENTRY.pack(topic_id.bytes, partition, vote.boot_id.bytes, len(vote.state)) + vote.state


def _read(data: bytes) -> tuple[dict[VoteKey, KeptVote], int]:
    """Return what a file has, and where its last whole block ends.

    Raises:
        CorruptionError: It is damaged otherwise than by a torn end.
    """
    if not data.startswith(MAGIC):
        raise CorruptionError("this is no file of votes that this release knows")
    kept: dict[VoteKey, KeptVote] = {}
    position = len(MAGIC)
    while position < len(data):
        entries = _entries_at(data, position)
        if entries is None:
            if _is_followed(data, position):
                raise CorruptionError(f"the block at {position} is damaged")
            break
        for key, vote in _split(entries):
            kept.pop(key, None)
            if vote.state:
                kept[key] = vote
        position += _BLOCK.size + len(entries)
    return kept, position


def _entries_at(data: bytes, position: int) -> bytes | None:
    """Return the entries of the block at a position, None where there is no whole one."""
    if len(data) < position + _BLOCK.size:
        return None
    length, crc = _BLOCK.unpack_from(data, position)
    entries = data[position + _BLOCK.size : position + _BLOCK.size + length]
    return entries if length and len(entries) == length and zlib.crc32(entries) == crc else None


def _is_followed(data: bytes, position: int) -> bool:
    """Return whether a whole block stands anywhere behind one that is not: then it was durable, and is damaged.

    Where that one ends it says itself, which may be what is damaged.
    """
    return any(
        _has_block_form(data, behind) and _entries_at(data, behind) is not None
        for behind in range(position + 1, len(data) - _BLOCK.size - _ENTRY.size + 1)
    )


def _has_block_form(data: bytes, position: int) -> bool:
    """Return whether what stands somewhere goes on as a block does: asked before its checksum, which takes longer."""
    length, _crc = _BLOCK.unpack_from(data, position)
    position += _BLOCK.size
    end: int = position + length
    while position + _ENTRY.size <= end <= len(data):
        *_key, state_bytes = _ENTRY.unpack_from(data, position)
        position += _ENTRY.size + state_bytes
    return bool(length) and position == end


def _split(entries: bytes) -> Iterator[tuple[VoteKey, KeptVote]]:
    position = 0
    while position < len(entries):
        topic_id, partition, boot_id, length = _ENTRY.unpack_from(entries, position)
        position += _ENTRY.size
        yield (UUID(bytes=topic_id), partition), KeptVote(entries[position : position + length], UUID(bytes=boot_id))
        position += length
