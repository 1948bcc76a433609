"""Shell: the engine of one broker: the logs in its log directories.

A directory whose device fails goes offline with its logs; the others go on. *Source:* LogManager of Kafka 4.3.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    NO_ROOM,
    ZERO_ID,
    FoundLog,
    StorageError,
    TopicIdPartition,
    TopicPartition,
    disk_error,
    id_text,
    replace_file,
)

from .checkpoints import Checkpoints
from .engine_work import AdoptionInPlace, AdoptionWork, RemovalWork, failure_of, told
from .flushing import run_all
from .formats import (
    DELETE_DIRECTORY,
    PARTITION_METADATA,
    STRAY_DIRECTORY,
    encode_partition_metadata,
    parse_directory_mark,
)
from .log import SegmentLog
from .log_dir import OPENING_BYTES, find_logs
from .log_dirs import LogDirs
from .moving import Copies, CopyPlan, MoveWork
from .opening import Openings, open_in_reserve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.api import DiskError, KnownEnd, LogConfig, LogDirInfo, PartitionLog, StorageContext

    from .engine_work import CheckpointWork
    from .flushing import LogFlush
    from .log_dir import LogDir
    from .opening import OpeningWork
    from .recovery import OpenedLog

_logger: Final = logging.getLogger(__name__)

_DELETE_DELAY_MS: Final = 60_000
"""file.delete.delay.ms for directories of deleted logs whose settings nobody knows any more."""


class SegmentEngine:
    """The storage engine of one broker over Kafka's segment files.

    Life: made, `start`, any of the others, `close`. Owned by the reactor's task; `engine_work.py` has what threads do.
    """

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._files = context.files
        self._dirs = LogDirs(self._files, context, self._dir_went_offline)
        self._logs: dict[TopicPartition, SegmentLog] = {}
        self._homes: dict[TopicPartition, LogDir] = {}
        self._unmade: set[TopicPartition] = set()
        self._checkpoints = Checkpoints(self._dirs, self._logs, self._homes, self._unmade)
        self._expiring: list[tuple[int, Path]] = []
        self._renamed_in: set[Path] = set()
        self._spared: set[TopicPartition] = set()
        self._copies = Copies(self._files, context.new_id, self._discard)
        self._openings = Openings(self._files, self._discard, self._dirs.note_failure)

    @property
    def cluster_id(self) -> str:
        """See `StorageEngine.cluster_id`."""
        return self._dirs.cluster_id

    @property
    def unmade_logs_count(self) -> int:
        """See `StorageEngine.open_log`."""
        return len(self._unmade)

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch with which all directories were cleanly shut down, -1 when one was not, or is not there."""
        epochs = {-1 if log_dir.error else log_dir.previous_broker_epoch for log_dir in self._dirs}
        return epochs.pop() if len(epochs) == 1 else -1

    def failed_log_dirs(self) -> Sequence[UUID]:
        """Return the ids of the directories that are offline, as far as they were read once; asks no disk."""
        return [
            log_dir.directory_id
            for log_dir in self._dirs
            if log_dir.error and log_dir.directory_id != ZERO_ID and not log_dir.is_reserved
        ]

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Sequence[FoundLog]:
        """See `StorageEngine.start`."""
        self._dirs.take()
        now_ms = self._context.monotonic_ms()
        delays = {DELETE_DIRECTORY: _DELETE_DELAY_MS, "": 0}
        for log_dir in self._dirs:
            for path in log_dir.leftovers:
                if (mark := parse_directory_mark(path.name)) in delays:
                    self._expiring.append((now_ms + delays[mark], path))
            self._homes.update(dict.fromkeys(log_dir.topic_ids, log_dir))
        self._openings.find(self._dirs)
        self._copies.find(self._dirs, self._homes)
        return [
            FoundLog(TopicIdPartition(home.topic_ids[p], *p), home.name, self._copies.target(p))
            for p, home in sorted(self._homes.items(), key=itemgetter(0))
        ]

    def _dir_went_offline(self, log_dir: LogDir, error: DiskError) -> None:
        if self._logs or not all(other.error for other in self._dirs):  # else it stops the start, which tells it
            _logger.error("log directory %s goes offline: %s", log_dir.path, error)
        for partition, log in self._logs.items():
            if self._homes[partition] is log_dir and not log.is_offline:
                log.set_offline(log_dir.error)

    def close(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.close`. A log that is not checked and closed keeps its directory from being marked."""
        self._openings.forget_all()
        unclean = self._close_logs() | self._openings.unchecked_dirs(self._homes)
        unclean |= self._checkpoints.write(high_watermarks)
        for log_dir in self._dirs:
            if not log_dir.error and log_dir.name not in unclean:
                self._dirs.guard(log_dir, partial(log_dir.mark_clean, self._context.broker_epoch()), "write")
            log_dir.release()

    def _close_logs(self) -> set[str]:
        """Close all logs; return the directories of those that could not be. Their names last with the checkpoints."""
        unclean: set[str] = set()
        begun: list[tuple[TopicPartition, LogFlush]] = []
        errors = run_all(self._begin_closing(begun, unclean), self._context.threads)
        for (partition, work), error in zip(begun, errors, strict=True):
            try:
                work.finish(error)
            except StorageError as exc:
                _logger.error("%s", exc)
                unclean.add(self._homes[partition].name)
        return unclean

    def _begin_closing(self, begun: list[tuple[TopicPartition, LogFlush]], unclean: set[str]) -> Iterator[LogFlush]:
        """Begin to close one log after the other, and note which; note the directories of those that cannot be."""
        for partition, log in self._logs.items():
            try:
                if not log.is_offline:
                    begun.append((partition, log.begin_close(syncs_parent=False)))
                    yield begun[-1][1]
                elif not log.is_closed:
                    unclean.add(self._homes[partition].name)
            except StorageError as exc:
                _logger.error("%s", exc)  # an operator's error, told by its text
                unclean.add(self._homes[partition].name)

    def abandon(self) -> None:
        """Let go of everything as a crash of the process would: nothing is flushed, closed or marked; for tests."""
        self._openings.forget_all()
        for log in self._logs.values():
            log.set_offline("the engine was abandoned")
            log.release()
        for log_dir in self._dirs:
            log_dir.release()

    # -- logs ----------------------------------------------------------------------------------------------------

    def open_log(
        self,
        partition: TopicIdPartition,
        config: LogConfig,
        *,
        log_dir: str | None = None,
        known_end: KnownEnd | None = None,
    ) -> PartitionLog:
        """See `StorageEngine.open_log`."""
        key = partition.topic_partition
        home = self._homes.get(key) or self._dirs.choose(log_dir)
        if home.error:
            raise StorageError(home.error)
        previous = self._logs.get(key)
        assert previous is None or previous.is_offline, f"{partition} is open already"
        if key not in self._homes:
            self._copies.check_free(key)
            self._homes[key], home.topic_ids[key] = home, partition.topic_id
            self._unmade.add(key)
        try:
            self._check_topic_id(home, partition)
            if previous is not None:
                previous.release()
            if (found := self._openings.take(key, home, previous)) is not None:
                opened = found
            elif key in self._unmade and known_end is None:
                opened = self._openings.begin_new(key, home, self._context.now_ms())
            else:
                opened = self._opened(home, partition, config, previous, known_end)
            log = SegmentLog(partition, opened, config, self._context, owner=self)
            if home.clean_ends.get(key, 0) > log.log_end_offset:
                del home.clean_ends[key]  # another log's: all of this one is dirty, as Kafka takes it
            log.note_clean_end(home.clean_ends.get(key, 0))
        except OSError as exc:
            raise self._dirs.failure(home, exc, "open", home.path / str(key)) from exc
        is_kept, is_needed = not self._openings.has_better_end(key, log), key in self._openings.adopted
        is_kept = is_kept or self._checkpoints.keep_found(key, log, is_needed=is_needed)
        self._openings.note_opened(key, is_kept=is_kept)
        self._logs[key] = log
        self._checkpoints.note(key)
        return log

    def _opened(
        self,
        home: LogDir,
        partition: TopicIdPartition,
        config: LogConfig,
        previous: SegmentLog | None,
        known_end: KnownEnd | None,
    ) -> OpenedLog:
        key = partition.topic_partition
        is_new = key in self._unmade
        if is_new:
            self.make_directory(partition)
        if known_end is not None:
            self._spared.add(key)
        path = home.path / str(key)
        known = self._openings.known_state(home, key, previous)
        if is_new:
            known = attrs.evolve(known, is_clean=True, recovery_point=0)
        elif known_end is not None:
            known = attrs.evolve(known, known_end=known_end(path))
        left_bytes = 0 if key in self._spared else OPENING_BYTES
        return open_in_reserve(self._files, home, path, config, self._discard, known, left_bytes=left_bytes)

    def begin_opening(self, partition: TopicIdPartition, config: LogConfig) -> OpeningWork | None:
        """See `StorageEngine.open_log`; None for a log that is not on the disk, or cannot be opened."""
        key = partition.topic_partition
        home, previous = self._homes.get(key), self._logs.get(key)
        if (
            home is None
            or home.error
            or key in self._unmade
            or home.topic_ids[key] not in (ZERO_ID, partition.topic_id)
        ):
            return None
        if previous is not None and not previous.is_offline:
            return None
        if previous is not None:
            previous.release()
        known = self._openings.known_state(home, key, previous)
        return self._openings.begin(key, home, previous, config, known)

    def make_room(self, partition: TopicIdPartition, error: OSError) -> bool:
        """See `LogOwner.make_room`: only a log that must not lose a record may have the reserve."""
        key = partition.topic_partition
        return error.errno in NO_ROOM and key in self._spared and self._homes[key].spend_reserve(0)

    def _check_topic_id(self, home: LogDir, partition: TopicIdPartition) -> None:
        key = partition.topic_partition
        known = home.topic_ids[key]
        if known == ZERO_ID and partition.topic_id != ZERO_ID:
            if key not in self._unmade:
                data = encode_partition_metadata(partition.topic_id)
                replace_file(self._files, home.path / str(key) / PARTITION_METADATA, data, is_durable=False)
            home.topic_ids[key] = partition.topic_id
        elif known != partition.topic_id:
            raise StorageError(
                f"{home.path / str(key)} belongs to topic id {id_text(known)}, not {id_text(partition.topic_id)}: "
                "it is the log of a deleted topic of the same name; delete or move it"
            )

    def make_directory(self, partition: TopicIdPartition) -> None:
        """See `LogOwner.make_directory`."""
        key = partition.topic_partition
        home = self._homes[key]
        home.make_log_directory(key)
        self._unmade.discard(key)
        self._checkpoints.note(key)
        home.topic_ids[key] = ZERO_ID  # until the disk has it
        self._check_topic_id(home, partition)

    def offsets_changed(self, partition: TopicIdPartition) -> None:
        """See `LogOwner.offsets_changed`."""
        self._checkpoints.note(partition.topic_partition)

    def log_failed(self, partition: TopicIdPartition, error: DiskError) -> None:
        """See `LogOwner.log_failed`."""
        self._dirs.note_failure(self._homes[partition.topic_partition], error)

    def named_recovery_point(self, partition: TopicIdPartition) -> int:
        """See `LogOwner.named_recovery_point`."""
        key = partition.topic_partition
        return self._homes[key].named_recovery_points.get(key, 0)

    def keep_offsets(self, partition: TopicIdPartition, recovery_point: int, log_start_offset: int) -> None:
        """See `LogOwner.keep_offsets`."""
        key = partition.topic_partition
        home = self._homes[key]
        self._checkpoints.note(key)
        clean_end = min(home.clean_ends.get(key, 0), recovery_point)  # what comes behind that is not what was compacted
        home.note_offsets(key, recovery_point, log_start_offset, clean_end)
        home.keep()
        home.sync()

    def _discard(self, path: Path, delay_ms: int) -> None:
        self._expiring.append((self._context.monotonic_ms() + delay_ms, path))

    def delete_log(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.delete_log`."""
        key = partition.topic_partition
        home = self._homes.get(key)
        if home is None or home.topic_ids[key] not in (ZERO_ID, partition.topic_id):
            return
        log = self._logs.pop(key, None)
        self._openings.forget(key)
        delay_ms = _DELETE_DELAY_MS
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            log.set_offline(f"{partition} is deleted")
            log.release()
        if key not in self._unmade:
            try:
                self._discard(self._dirs.rename_away(home, key, DELETE_DIRECTORY), delay_ms)
            except FileNotFoundError:
                pass  # a move has just taken it elsewhere, and gives it up when it ends
            except OSError as exc:
                raise self._dirs.failure(home, exc, "delete", home.path / str(key)) from exc
            self._renamed_in.add(home.path)
        self._forget(home, key)

    def _forget(self, home: LogDir, key: TopicPartition) -> None:
        del self._homes[key]
        self._unmade.discard(key)
        home.forget(key)
        self._openings.forget_log(key)
        self._copies.forget(key)

    def set_aside(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.set_aside`: the directory gets the suffix `-stray`, as in Kafka."""
        key = partition.topic_partition
        home = self._homes.get(key)
        if home is None or key in self._logs:
            return
        try:
            path = self._dirs.mark(home, key, STRAY_DIRECTORY)
        except OSError as exc:
            raise self._dirs.failure(home, exc, "set aside", home.path / str(key)) from exc
        _logger.warning("the metadata does not know %s: its log is set aside as %s", partition, path)
        self._forget(home, key)

    def begin_move(self, partition: TopicIdPartition, log_dir: str) -> MoveWork:
        """See `StorageEngine.begin_move`."""
        key = partition.topic_partition
        source, target = self._homes.get(key), self._dirs.choose(log_dir)
        if source is None or source.topic_ids[key] not in (ZERO_ID, partition.topic_id):
            raise StorageError(f"{partition} is not here")
        if source is target:
            raise StorageError(f"{partition} is in {log_dir} already")
        log = self._logs.get(key)
        if log is not None and key in self._unmade:
            log.make()
        return MoveWork(
            owner=self,
            files=self._files,
            key=key,
            source=source,
            target=target,
            future=self._copies.begin(key, target),
            retired=self._copies.path_of(key, source, DELETE_DIRECTORY),
            log=log,
            plan=CopyPlan((), (0, 0)) if log is None else log.copy_plan(),
        )

    def give_up_move(self, move: MoveWork) -> None:
        """See `LogMove.give_up`."""
        self._copies.give_up(move.key, move.target, move.future)

    def begin_swap(self, move: MoveWork) -> None:
        """See `MoveOwner.begin_swap`."""
        self._check_there(move)
        self._copies.swapping.add(move.key)

    def _check_there(self, move: MoveWork) -> None:
        key, log = move.key, move.log
        is_other = self._homes.get(key) is not move.source or self._logs.get(key) is not log or key in self._unmade
        if is_other or (log is not None and not log.is_closed):
            raise StorageError(f"{key} was deleted or opened while it moved")

    def end_move(self, move: MoveWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        key, source, target, log = move.key, move.source, move.target, move.log
        self._copies.swapping.discard(key)
        if error is None:
            self._discard(move.retired, log.config.file_delete_delay_ms if log is not None else _DELETE_DELAY_MS)
            if (error := failure_of(partial(self._check_there, move))) is not None:
                with suppress(OSError):
                    self._discard(self._dirs.rename_away(target, key, DELETE_DIRECTORY), 0)
        if error is not None:
            target.forget(key)
            self.give_up_move(move)
            raise told(error, "move", source.path / str(key))
        target.topic_ids[key] = source.topic_ids[key]
        target.take_over(key, source)
        source.forget(key)
        self._homes[key] = target

    def _take_in(self, future: Path, target: LogDir, key: TopicPartition) -> None:
        target.begin_anew(key)
        self._files.rename(future, target.path / str(key))
        self._files.fsync_directory(target.path)

    def begin_adoption(self, partition: TopicIdPartition, directory: str) -> AdoptionWork | AdoptionInPlace:
        """See `StorageEngine.begin_adoption`."""
        key = partition.topic_partition
        if key in self._homes and self._homes[key].name == str(Path(directory)) and key not in self._logs:
            return AdoptionInPlace(self._openings.adopted, key)
        self._check_absent(key)
        home = self._dirs.choose(None)
        return AdoptionWork(self, self._files, key, Path(directory) / str(key), home, self._copies.path_of(key, home))

    def _check_absent(self, key: TopicPartition) -> None:
        if key in self._homes:
            raise StorageError(f"{key} is here already, in {self._homes[key].name}")
        self._copies.check_free(key)

    def end_adoption(self, adoption: AdoptionWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is None:
            error = failure_of(partial(self._place_adopted, adoption))
        if error is not None:
            self._discard(adoption.future, 0)
            raise told(error, "copy", adoption.source)

    def _place_adopted(self, adoption: AdoptionWork) -> None:
        key, home = adoption.key, adoption.target
        self._check_absent(key)
        self._take_in(adoption.future, home, key)
        home.topic_ids[key] = adoption.topic_id
        self._homes[key] = home
        self._openings.adopted.add(key)

    def find_logs(self, directory: str) -> Sequence[FoundLog]:
        """See `StorageEngine.find_logs`."""
        try:
            return find_logs(self._files, Path(directory))
        except OSError as exc:
            raise disk_error(exc, "read", directory) from exc

    # -- upkeep --------------------------------------------------------------------------------------------------

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> CheckpointWork | None:
        """See `StorageEngine.begin_checkpoint`: only directories in which something changed are written."""
        return self._checkpoints.begin(high_watermarks)

    def checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.checkpoint`."""
        self._checkpoints.write(high_watermarks)

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return {
            TopicIdPartition(home.topic_ids[partition], *partition): home.high_watermarks[partition]
            for partition, home in self._homes.items()
            if partition in home.high_watermarks
        }

    def begin_removal(self, now_ms: int) -> RemovalWork | None:
        """See `StorageEngine.begin_removal`."""
        expired = [path for due_ms, path in self._expiring if due_ms <= now_ms]
        if not expired and not self._renamed_in:
            return None
        self._expiring = [entry for entry in self._expiring if entry[0] > now_ms]
        renamed_in, self._renamed_in = sorted(self._renamed_in), set()
        return RemovalWork(self._files, expired, renamed_in, self._removal_failed)

    def _removal_failed(self, path: Path, error: DiskError) -> None:
        _logger.warning("%s", error)
        self._dirs.note_failure(self._dirs.holder(path), error)

    def log_dirs(self) -> Sequence[LogDirInfo]:
        """See `StorageEngine.log_dirs`."""
        return [log_dir.info() for log_dir in self._dirs if not log_dir.is_reserved]

    def __repr__(self) -> str:
        return f"<SegmentEngine of {len(self._logs)} open logs in {self._dirs}>"
