"""Shell: moves a log to another log directory while it goes on growing, and swaps the two at the end.

::

    Copies.begin      the log serves     makes `<log>.<id>-future`
    MoveWork.run      the log serves     copies what was written when it, or `begin_copy`, began, there; many times
    SwapWork.run      the log is closed  copies what came since, and writes the checkpoints there with the log's lines,
                                         then two renames, each durable:
                                         `-future` gets the log's name there, the original here is marked deleted

What is copied first never changes under the copy: `.log` files only grow, indexes of closed segments stand still. A
truncation or a replacement of segments is the exception; then everything is copied once more: while the log serves, if
`begin_copy` comes to see it. A crash between the two
renames leaves two whole logs, of which the next start takes one. One before leaves `-future`, and the next start tells
that the move is not over; a copy that was given up is called `-delete` first. A topic that is deleted and created again
during the swap waits for its end. *Source:* KIP-113.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

import attrs

from odradek.kernel.api import StorageError, define, disk_error, frozen

from .copying import copy_file, remove_directory
from .formats import (
    DELETE_DIRECTORY,
    DELETED,
    FUTURE_DIRECTORY,
    LOG,
    marked_directory_name,
    parse_directory_mark,
    parse_marked_directory,
    parse_segment_file,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.api import Files, TopicPartition

    from .log import SegmentLog
    from .log_dir import CheckpointCopy, LogDir


class GrowingFile(NamedTuple):
    """A file that may be copied while the log is in use.

    Attributes:
        name: In the log's directory.
        size_bytes: How much of it was written; OFFSETS_MAX for an index, which is copied once, and whole.
        end_offset: Up to where the log is copied with it; -1 for an index.
    """

    name: str
    size_bytes: int
    end_offset: int


class CopyPlan(NamedTuple):
    """What of an open log may be copied, and in which state it was: see `SegmentLog.copy_plan`."""

    files: Sequence[GrowingFile]
    version: tuple[int, int]


class Copies:
    """The directories that moves copy into; owned by the engine, on the reactor's task.

    Attributes:
        unfinished: Those that the last run left, by whose log: where, and the directory.
        swapping: Whose copy takes its log's place at this moment: a thread renames what has the log's name.
    """

    def __init__(self, files: Files, new_id: Callable[[], uuid.UUID], discard: Callable[[Path, int], None]) -> None:
        """Make it.

        Args:
            files: Where.
            new_id: For names that nobody else uses.
            discard: Has a directory removed after so many milliseconds.
        """
        self._files = files
        self._new_id = new_id
        self._discard = discard
        self.unfinished: dict[TopicPartition, tuple[LogDir, Path]] = {}
        self.swapping: set[TopicPartition] = set()

    def check_free(self, key: TopicPartition) -> None:
        """Refuse to begin a log whose name a thread may be renaming, in this directory or that: the wrong one would go.

        Raises:
            StorageError: One of that name, which was deleted, is still being swapped.
        """
        if key in self.swapping:
            raise StorageError(f"{key} is still being moved for a topic that is gone: its name is free soon")

    def find(self, log_dirs: Iterable[LogDir], homes: Mapping[TopicPartition, LogDir]) -> None:
        """Look at what the last run left: `-future` of a log that lies elsewhere is unfinished, others are removed."""
        for log_dir in log_dirs:
            for path in log_dir.leftovers:
                if parse_directory_mark(path.name) == FUTURE_DIRECTORY:
                    key = parse_marked_directory(path.name, FUTURE_DIRECTORY)
                    if key is None or homes.get(key, log_dir) is log_dir or key in self.unfinished:
                        self._discard(path, 0)
                    else:
                        self.unfinished[key] = log_dir, path

    def target(self, key: TopicPartition) -> str:
        """Return where an unfinished move was to take a log; empty for none."""
        left = self.unfinished.get(key)
        return left[0].name if left is not None else ""

    def path_of(self, key: TopicPartition, target: LogDir, mark: str = FUTURE_DIRECTORY) -> Path:
        """Return a new name for a log's directory."""
        return target.path / marked_directory_name(key, self._new_id(), mark)

    def begin(self, key: TopicPartition, target: LogDir) -> Path:
        """Make the directory of a move, in the place of one that the last run left.

        Raises:
            StorageError: The disk failed.
        """
        path = self.path_of(key, target)
        try:
            self._files.mkdir(path)
        except OSError as exc:
            raise disk_error(exc, "make", path) from exc
        self.forget(key)
        return path

    def forget(self, key: TopicPartition) -> None:
        """Give up what the last run left of a log's move."""
        left = self.unfinished.pop(key, None)
        if left is not None:
            self.give_up(key, *left)

    def give_up(self, key: TopicPartition, log_dir: LogDir, path: Path) -> None:
        """Remove a copy, unless it has taken the log's place; renamed first, so that no start goes on with it."""
        deleted = self.path_of(key, log_dir, DELETE_DIRECTORY)
        try:
            self._files.rename(path, deleted)
        except FileNotFoundError:
            return
        except OSError:
            deleted = path  # a disk that fails: it is tried again
        self._discard(deleted, 0)


class MoveOwner(Protocol):
    """The engine that began a move."""

    def give_up_move(self, move: MoveWork) -> None:
        """Remove the copy."""
        ...

    def begin_swap(self, move: MoveWork) -> None:
        """Keep the log's name from others until `end_move`.

        Raises:
            StorageError: The log was deleted or opened.
        """
        ...

    def end_move(self, move: MoveWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


def _wait_for_nothing(size_bytes: int) -> None:
    """Let a piece be copied at once."""


@define(eq=False)
class MoveWork:
    """A log on its way from one directory to another; see `LogMove`.

    Attributes:
        owner: Who began it.
        files: Where.
        key: Whose log.
        source: From here,
        target: there.
        future: The copy, a name nobody else uses.
        retired: What the original is called once the copy has taken its place.
        log: The log; None when it was not opened since the start.
        plan: What `run` is to copy, as far as it is not there.
        copied_offset: Up to where the log is copied.
        copied_bytes: How much of it, indexes not counted.
        copied_version: In which state the log was that is copied; None before the first copy.
    """

    owner: MoveOwner
    files: Files
    key: TopicPartition
    source: LogDir
    target: LogDir
    future: Path
    retired: Path
    log: SegmentLog | None
    plan: CopyPlan
    copied_offset: int = 0
    copied_bytes: int = 0
    copied_version: tuple[int, int] | None = None
    _copied: dict[str, int] = attrs.field(factory=dict)
    _is_stopped: bool = False

    def begin_copy(self) -> int:
        """See `LogMove.begin_copy`."""
        if self.log is not None:
            self.plan = self.log.copy_plan()
        known = self._copied if self.plan.version == self.copied_version else {}
        return sum(file.size_bytes - known.get(file.name, 0) for file in self.plan.files if file.end_offset >= 0)

    def run(self, wait_for: Callable[[int], object]) -> None:
        """See `LogMove.run`."""
        try:
            if self.plan.version != self.copied_version:
                self._begin_anew()
            for file in self.plan.files:
                start = self._copied.get(file.name, 0)
                if start >= file.size_bytes:
                    continue
                # Gone is what was given up meanwhile: it is not wanted there either.
                with suppress(FileNotFoundError):
                    self.copy(file.name, start=start, limit_bytes=file.size_bytes, wait_for=wait_for)
                self._copied[file.name] = file.size_bytes
                if file.end_offset >= 0:
                    self.copied_offset = max(self.copied_offset, file.end_offset)
                    self.copied_bytes += file.size_bytes - start
        except OSError as exc:
            raise disk_error(exc, "copy", self.source.path / str(self.key)) from exc

    def _begin_anew(self) -> None:
        """Remove what was copied of segments that are others by now."""
        for entry in self.files.listdir(self.future) if self._copied else ():
            self.files.unlink(self.future / entry.name)
        self._copied.clear()
        self.copied_offset = self.copied_bytes = 0
        self.copied_version = self.plan.version

    def copy(
        self,
        name: str,
        *,
        start: int = 0,
        limit_bytes: int | None = None,
        wait_for: Callable[[int], object] = _wait_for_nothing,
    ) -> None:
        """Copy a file's bytes from `start` up to the limit; durable on return. `wait_for`: see `LogMove.run`."""
        source = self.source.path / str(self.key) / name

        def check(size_bytes: int) -> None:
            wait_for(size_bytes)
            if self._is_stopped:
                raise StorageError(f"the move of {self.key} to {self.target.name} was stopped")

        copy_file(self.files, source, self.future / name, check, start=start, limit_bytes=limit_bytes)

    def stop(self) -> None:
        """See `LogMove.stop`."""
        self._is_stopped = True

    def give_up(self) -> None:
        """See `LogMove.give_up`."""
        self.owner.give_up_move(self)

    def begin_swap(self) -> SwapWork:
        """See `LogMove.begin_swap`."""
        log, key = self.log, self.key
        assert log is None or log.is_closed, f"{key} must be closed before its copy takes its place"
        self.owner.begin_swap(self)
        if log is not None:
            self.source.note_offsets(key, log.recovery_point, log.log_start_offset, log.clean_end)
        self.target.take_over(key, self.source)
        may_go_on = log is not None and log.copy_plan().version == self.copied_version
        return SwapWork(self, may_go_on, self.target.copy_checkpoints())


@frozen(eq=False)
class SwapWork:
    """The end of a move: the rest is copied, and the copy takes the original's place.

    Attributes:
        move: What it ends.
        may_go_on: Whether what was copied is still what the log begins with.
        checkpoints: What those of the target are to hold before the log is there: a start that finds it without its
            lines would take the gaps of compaction for holes, and bring back what was deleted.
    """

    move: MoveWork
    may_go_on: bool
    checkpoints: CheckpointCopy

    def run(self) -> None:
        """See `DiskWork.run`."""
        move, files = self.move, self.move.files
        source, target = move.source.path / str(move.key), move.target.path / str(move.key)
        try:
            self._copy_rest(source)
            files.fsync_directory(move.future)
            move.target.write_checkpoints(self.checkpoints)
            move.target.put_checkpoints(self.checkpoints)
            files.rename(move.future, target)
            files.fsync_directory(target.parent)
        except OSError as exc:
            raise disk_error(exc, "move", source) from exc
        try:
            files.rename(source, move.retired)
            files.fsync_directory(source.parent)
        except OSError as exc:
            # The original stays the log; of two directories of one log a start could take the wrong one.
            with suppress(OSError):
                files.rename(target, move.future)
                files.fsync_directory(target.parent)
            raise disk_error(exc, "move", source) from exc

    def _copy_rest(self, source: Path) -> None:
        move, files = self.move, self.move.files
        if not self.may_go_on:
            remove_directory(files, move.future)
            files.mkdir(move.future)
        there = {entry.name: entry.size_bytes for entry in files.listdir(move.future)}
        indexes = {file.name for file in move.plan.files if file.end_offset < 0} & there.keys()
        names = [entry.name for entry in files.listdir(source) if not entry.is_directory and _belongs(entry.name)]
        for name in names:
            if name not in indexes:
                move.copy(name, start=there.get(name, 0) if name.endswith(LOG) else 0)
        for name in there.keys() - set(names):
            files.unlink(move.future / name)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.move.owner.end_move(self.move, error)


def _belongs(name: str) -> bool:
    """Say whether a file is the log's own, and no leftover."""
    parsed = parse_segment_file(name)
    return not name.endswith(".tmp") and (parsed is None or parsed.mark != DELETED)
