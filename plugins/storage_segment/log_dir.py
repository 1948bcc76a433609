"""Shell: one log directory of a broker: its identity, lock, checkpoints, and the names of the logs in it."""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import (
    CREATE,
    META_PROPERTIES,
    NO_ROOM,
    READ_WRITE,
    ZERO_ID,
    CorruptionError,
    FoundLog,
    Lock,
    LogDirInfo,
    MetaProperties,
    StorageError,
    TopicIdPartition,
    TopicPartition,
    decode_meta_properties,
    disk_error,
    encode_meta_properties,
    read_file,
    replace_file,
    write_all,
)

from .formats import (
    CLEAN_ENDS,
    CLEAN_SHUTDOWN,
    DELETE_DIRECTORY,
    HIGH_WATERMARKS,
    LOCK,
    LOG,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    RESERVE,
    decode_clean_shutdown,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_offsets,
    parse_directory_mark,
    parse_marked_directory,
    parse_partition_directory,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Container, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.api import FileLock, Files

_NOT_OURS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL})
"""The numbers of errors with which a system refuses to sync a directory that is somebody else's."""
_logger: Final = logging.getLogger(__name__)

_BESIDE_RECOVERY_POINTS: Final = frozenset({RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEAN_SHUTDOWN})
"""Where one of these is, there were recovery points: they are written before the others."""

RESERVE_BYTES: Final = 1 << 20
"""What a directory keeps for the metadata log, and for opening logs, when its disk is full."""
RESERVE_STEP_BYTES: Final = 64 << 10
OPENING_BYTES: Final = RESERVE_BYTES // 2
"""Of the reserve the part that opening any log may take; the other one is the metadata log's."""


class CheckpointCopy(NamedTuple):
    """What the checkpoints of a directory were to hold at some moment; copies are numbered from 1."""

    number: int
    offsets: Mapping[str, Mapping[TopicPartition, int]]


class LogDir:
    """One of `log.dirs`. Owned by the engine; only `write_checkpoints` and `put_checkpoints` may run on a thread.

    Life: made, `take`, any of the others, `release`. `error` is empty while the directory works; after the first
    failure of its device it is out of use until the broker starts again. A reserved one takes only logs that name it.
    `named_recovery_points` are those of the last checkpoint that has its name: they last from the next `sync` on.
    `is_kept` says that another checkpoint would change nothing, names that last included: so it is after a clean end.
    `unknown` are the logs whose recovery points were lost with their checkpoint. Until all are flushed none is written:
    by one without their lines the next start would take them for logs too young to have gaps of compaction.
    """

    def __init__(self, files: Files, path: Path, *, is_reserved: bool = False) -> None:
        self._files = files
        self._lock: FileLock | None = None
        self.path = path
        self.is_reserved = is_reserved
        self.directory_id = ZERO_ID
        self.error = ""
        self.is_clean = False
        self.previous_broker_epoch = -1
        self.topic_ids: dict[TopicPartition, uuid.UUID] = {}
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.clean_ends: dict[TopicPartition, int] = {}
        self.named_recovery_points: Mapping[TopicPartition, int] = {}
        self.unknown: set[TopicPartition] = set()
        self.leftovers: list[Path] = []
        self.is_kept = False
        self._has_changed = True
        self._has_clean_ends = False
        self._copies_count = 0
        self._newest_copy = 0
        self._forgotten: dict[TopicPartition, int] = {}
        self._naming = Lock()
        self._reserve_bytes = 0

    @property
    def name(self) -> str:
        """The path as text, as DescribeLogDirs names it."""
        return str(self.path)

    def take(self) -> MetaProperties | None:
        """Make the directory if need be, lock it, and return its `meta.properties`, None when it has none.

        Raises:
            StorageError: Another broker holds it.
            OSError: The disk fails.
        """
        for missing in [p for p in (*reversed(self.path.parents), self.path) if not self._is_there(p)]:
            with suppress(FileExistsError):  # brokers that begin beside each other may have one above theirs in common
                self._files.mkdir(missing)
            self._files.fsync_directory(missing.parent)
        try:
            self._lock = self._files.lock(self.path / LOCK)
        except BlockingIOError as exc:
            raise StorageError(
                f"log directory {self.path} is in use by another broker ({exc.strerror}): "
                "stop it, or give each broker directories of its own in log.dirs"
            ) from exc
        path = self.path / META_PROPERTIES
        try:
            return decode_meta_properties(read_file(self._files, path))
        except FileNotFoundError:
            self._sync_names()
            return None
        except CorruptionError as exc:
            advice = "start the version that wrote it, or give the broker another directory in log.dirs"
            raise CorruptionError(f"{path}: {exc}: {advice}") from exc

    def _is_there(self, path: Path) -> bool:
        try:
            self._files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _sync_names(self) -> None:
        """Make the names of the directory and of those above it durable: who made them may have died before it could.

        Only once, before anything is kept in it. Those above may be other people's, and their names are their matter.
        """
        for parent in self.path.parents:
            try:
                self._files.fsync_directory(parent)
            except OSError as exc:
                if exc.errno not in _NOT_OURS:
                    raise

    def claim(self, meta: MetaProperties) -> None:
        """Write the directory's identity."""
        replace_file(self._files, self.path / META_PROPERTIES, encode_meta_properties(meta), is_durable=True)

    def load(self) -> None:
        """Read the checkpoints and the names of the logs; takes the mark of a clean shutdown away.

        Raises:
            OSError: The disk fails.
        """
        names = {entry.name for entry in self._files.listdir(self.path)}
        self.is_clean = CLEAN_SHUTDOWN in names
        if self.is_clean:
            self.previous_broker_epoch = decode_clean_shutdown(read_file(self._files, self.path / CLEAN_SHUTDOWN))
        recovery_points = self._read_offsets(RECOVERY_POINTS)
        self.recovery_points = recovery_points or {}
        self.log_start_offsets = self._read_offsets(LOG_START_OFFSETS) or {}
        self.high_watermarks = self._read_offsets(HIGH_WATERMARKS) or {}
        self.clean_ends = self._read_offsets(CLEAN_ENDS) or {}
        self._has_clean_ends = CLEAN_ENDS in names
        self.leftovers = [
            self.path / name for name in sorted(names) if parse_directory_mark(name) or _is_unfinished_checkpoint(name)
        ]
        self.topic_ids = {
            found.partition.topic_partition: found.partition.topic_id for found in find_logs(self._files, self.path)
        }
        if recovery_points is None and names & _BESIDE_RECOVERY_POINTS and self.topic_ids:
            _logger.warning("%s: recovery points are lost: its logs are checked from their beginnings", self.path)
            self.unknown.update(self.topic_ids)
        if self.is_clean:
            self._files.unlink(self.path / CLEAN_SHUTDOWN)
            self._files.fsync_directory(self.path)
            # A clean shutdown has made the checkpoints' names durable.
            self.named_recovery_points = dict(self.recovery_points)
            self.is_kept, self._has_changed = True, False
        self._forget_gone({parse_marked_directory(name, DELETE_DIRECTORY) for name in names})
        if RESERVE in names:
            self._reserve_bytes = self._files.stat(self.path / RESERVE).size_bytes
        self.fill_reserve()

    def _forget_gone(self, deleted: Container[TopicPartition | None]) -> None:
        """Know nothing of logs that are not there, but where one whose directory was lost began: it goes on behind."""
        for gone in {key for offsets in self._offsets() for key in offsets} - self.topic_ids.keys():
            start_offset = self.log_start_offsets.get(gone)
            self.forget(gone)
            if start_offset is not None and gone not in deleted:
                self.log_start_offsets[gone] = start_offset

    def fill_reserve(self) -> None:
        """Take up what is missing of the reserve, where the disk has room for it and some more. Any thread; blocks.

        Raises:
            OSError: The disk fails.
        """
        missing = RESERVE_BYTES - self._reserve_bytes
        if not missing or self._files.disk_space(self.path)[1] < missing + RESERVE_BYTES:
            return
        fd = self._files.open(self.path / RESERVE, CREATE)
        try:
            self._files.preallocate(fd, RESERVE_BYTES)
            self._reserve_bytes = RESERVE_BYTES
        except OSError as exc:
            if exc.errno not in NO_ROOM:  # somebody was faster: the next time
                raise
        finally:
            self._files.close(fd)

    def spend_reserve(self, left_bytes: int) -> bool:
        """Give a piece of the reserve back to the disk, unless only `left_bytes` are left; return whether it was.

        Raises:
            OSError: The disk fails.
        """
        if self._reserve_bytes <= left_bytes:
            return False
        self._reserve_bytes = max(self._reserve_bytes - RESERVE_STEP_BYTES, left_bytes)
        fd = self._files.open(self.path / RESERVE, READ_WRITE)
        try:
            self._files.truncate(fd, self._reserve_bytes)
        finally:
            self._files.close(fd)
        return True

    def _read_offsets(self, name: str) -> dict[TopicPartition, int] | None:
        """Return a checkpoint; one that is gone, or unreadable, only costs time, or is caught up by replication."""
        try:
            data = read_file(self._files, self.path / name)
            return decode_offsets(data) if data else None
        except FileNotFoundError:
            return None
        except CorruptionError as exc:
            _logger.warning("%s: %s: ignored", self.path / name, exc)
            return None

    def note_changed(self) -> None:
        """Take note that the checkpoints are behind."""
        self.is_kept, self._has_changed = False, True

    def note_offsets(self, key: TopicPartition, recovery_point: int, log_start_offset: int, clean_end: int) -> None:
        """Take note of a log's offsets, for the next checkpoint; `clean_end` is 0 for none."""
        before = (self.recovery_points.get(key), self.log_start_offsets.get(key), self.clean_ends.get(key, 0))
        if before != (recovery_point, log_start_offset, clean_end):
            self.recovery_points[key], self.log_start_offsets[key] = recovery_point, log_start_offset
            self.clean_ends.pop(key, None)
            if clean_end:
                self.clean_ends[key] = clean_end
            self.note_changed()

    def note_high_watermark(self, key: TopicPartition, offset: int) -> None:
        """Take note of a partition's high watermark, for the next checkpoint."""
        if self.high_watermarks.get(key) != offset:
            self.high_watermarks[key] = offset
            self.note_changed()

    def copy_checkpoints(self) -> CheckpointCopy:
        """Return what the checkpoints are to hold now."""
        self._copies_count += 1
        self.is_kept, self._has_changed = not self._has_changed, False
        self._has_clean_ends |= bool(self.clean_ends)  # no file before the first compaction
        recovery_points = {} if self.unknown else {RECOVERY_POINTS: dict(self.recovery_points)}
        clean_ends = {CLEAN_ENDS: dict(self.clean_ends)} if self._has_clean_ends else {}
        return CheckpointCopy(
            self._copies_count,
            {
                **recovery_points,
                # Where nothing was deleted there is nothing that damage could make an offset of.
                LOG_START_OFFSETS: {key: offset for key, offset in self.log_start_offsets.items() if offset},
                HIGH_WATERMARKS: dict(self.high_watermarks),
                **clean_ends,
            },
        )

    def write_checkpoints(self, copy: CheckpointCopy) -> None:
        """Write a copy's files under names of their own, for `put_checkpoints`. Any thread; blocks.

        Raises:
            OSError: The disk fails.
        """
        for name, offsets in copy.offsets.items():
            fd = self._files.open(self._unfinished(copy, name), CREATE)
            try:
                write_all(self._files, fd, [encode_offsets(offsets)], 0)
                self._files.fsync(fd)
            finally:
                self._files.close(fd)
        self._files.fsync_directory(self.path)
        self.fill_reserve()

    def put_checkpoints(self, copy: CheckpointCopy) -> None:
        """Give what was written its names, unless a later copy has them: a truncation writes at once.

        What is named lasts from the next sync of the directory on; until then the loss of power brings older offsets
        back, which only cost time. Any thread: a log that moves in has its line before it has its name.

        Raises:
            OSError: The disk fails.
        """
        with self._naming:
            self._put_checkpoints(copy)

    def _put_checkpoints(self, copy: CheckpointCopy) -> None:
        is_newest = copy.number > self._newest_copy
        for name in copy.offsets:
            if is_newest:
                self._files.rename(self._unfinished(copy, name), self.path / name)
            else:
                self._files.unlink(self._unfinished(copy, name))
        if is_newest:
            self.named_recovery_points = copy.offsets.get(RECOVERY_POINTS, {})
            self._forgotten = {key: number for key, number in self._forgotten.items() if number >= copy.number}
        self._newest_copy = max(self._newest_copy, copy.number)

    def _unfinished(self, copy: CheckpointCopy, name: str) -> Path:
        return self.path / f"{name}.{copy.number}.tmp"

    def keep(self) -> None:
        """Write the checkpoints, and give them their names, which last from the next sync on. Blocks.

        Raises:
            OSError: The disk fails.
        """
        copy = self.copy_checkpoints()
        try:
            self.write_checkpoints(copy)
            self.put_checkpoints(copy)
        except OSError:
            self.note_changed()
            raise

    def begin_anew(self, key: TopicPartition) -> None:
        """Have no checkpoint tell of a log that was deleted before another one gets its name.

        After a crash its offsets would be taken for the new one's, and hide records, or tell that they were checked.
        Blocks, if so: the first time after one log or many were forgotten, unless a checkpoint came between. That the
        new names last needs no sync here: the flush that makes the new log's own name last makes them last too.

        Raises:
            OSError: The disk fails.
        """
        if key in self._forgotten:
            self.keep()

    def sync(self) -> None:
        """Make the names in the directory durable. Blocks."""
        self._files.fsync_directory(self.path)

    def mark_clean(self, broker_epoch: int) -> None:
        """Note that everything of a registration is flushed and closed; durable on return.

        A broker that ended before it was registered (-1) served nothing: the registration before stays the last.
        """
        epoch = broker_epoch if broker_epoch >= 0 else self.previous_broker_epoch
        replace_file(self._files, self.path / CLEAN_SHUTDOWN, encode_clean_shutdown(epoch), is_durable=True)

    def make_log_directory(self, key: TopicPartition) -> None:
        """Make the directory of a new log.

        Raises:
            StorageError: It is there, with records of nobody.
            OSError: The disk fails.
        """
        self.begin_anew(key)
        path = self.path / str(key)
        try:
            self._files.mkdir(path)
        except FileExistsError:
            # A crash may have left it, without anything that makes it a log.
            if any(entry.name.endswith(LOG) for entry in self._files.listdir(path)):
                raise StorageError(
                    f"{path} holds records, and nobody knows whose: they must not become those of a new log; "
                    "move the directory away"
                ) from None

    def forget(self, partition: TopicPartition) -> None:
        """Know nothing of a log any more; checkpoints may tell of it until the next one: see `begin_anew`."""
        self.note_changed()
        self.topic_ids.pop(partition, None)
        self.unknown.discard(partition)
        told = [offsets.pop(partition, None) for offsets in self._offsets()]
        if any(offset is not None for offset in told):
            with self._naming:
                self._forgotten[partition] = self._copies_count

    def take_over(self, key: TopicPartition, source: LogDir) -> None:
        """Have the next checkpoint hold of a log what another directory knows of it."""
        self.note_changed()
        for ours, theirs in zip(self._offsets(), source._offsets(), strict=True):
            if key in theirs:
                ours[key] = theirs[key]
            else:
                ours.pop(key, None)

    def _offsets(self) -> Sequence[dict[TopicPartition, int]]:
        return self.recovery_points, self.log_start_offsets, self.high_watermarks, self.clean_ends

    def info(self) -> LogDirInfo:
        """Return what DescribeLogDirs shows."""
        total = usable = -1
        if not self.error:
            try:
                total, usable = self._files.disk_space(self.path)
            except OSError as exc:
                self.error = str(disk_error(exc, "ask for the space of", self.path))
        return LogDirInfo(self.name, self.directory_id, self.error, total, usable)

    def release(self) -> None:
        """Give the lock up."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __repr__(self) -> str:
        return f"<LogDir {self.path}, {self.error or f'{len(self.topic_ids)} logs'}>"


def _is_unfinished_checkpoint(name: str) -> bool:
    """Say whether a crash left this of a checkpoint."""
    return name.endswith(".tmp") and name.startswith((RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEAN_ENDS))


def find_logs(files: Files, path: Path) -> list[FoundLog]:
    """Return the logs that lie in a directory, whoever wrote them: Apache Kafka or Odradek.

    The partition is told by the folder's name, the topic's id by `partition.metadata`; without that file, or when it
    is broken, the id is `ZERO_ID`.

    Raises:
        OSError: The directory cannot be read.
    """
    found = []
    for entry in sorted(files.listdir(path)):
        if not entry.is_directory or parse_directory_mark(entry.name):
            continue
        partition = parse_partition_directory(entry.name)
        if partition is None:
            continue
        try:
            topic_id = read_topic_id(files, path / entry.name)
        except FileNotFoundError:
            if not any(inside.name.endswith(LOG) for inside in files.listdir(path / entry.name)):
                continue
            topic_id = ZERO_ID
        found.append(FoundLog(TopicIdPartition(topic_id, *partition), str(path)))
    return found


def read_topic_id(files: Files, directory: Path) -> uuid.UUID:
    """Return the topic's id that a log's directory tells, `ZERO_ID` when the file is broken.

    Raises:
        FileNotFoundError: There is no `partition.metadata`.
    """
    try:
        return decode_partition_metadata(read_file(files, directory / PARTITION_METADATA))
    except CorruptionError as exc:
        _logger.warning("%s: %s", directory, exc)
        return ZERO_ID
