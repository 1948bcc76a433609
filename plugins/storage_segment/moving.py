"""Shell: moves a log to another log directory while it goes on growing, and swaps the two at the end.

::

    MoveWork.run      the log serves     copies what was written when the move began, to `<log>.<id>-future`
    SwapWork.run      the log is closed  copies what came since, then two renames, each durable:
                                         `-future` gets the log's name there, the original here is marked deleted

What is copied first never changes under the copy: `.log` files only grow, indexes of closed segments stand still. A
truncation or a replacement of segments is the exception; then everything is copied once more. A crash between the two
renames leaves two whole logs, of which the next start takes one. *Source:* KIP-113.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

import attrs

from odradek.kernel.api import StorageError, disk_error

from .copying import copy_file, remove_directory
from .formats import DELETED, LOG, parse_segment_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.kernel.api import Files, TopicPartition

    from .log import SegmentLog
    from .log_dir import LogDir


class GrowingFile(NamedTuple):
    """A file that may be copied while the log is in use.

    Attributes:
        name: In the log's directory.
        size_bytes: How much of it was written.
        end_offset: Up to where the log is copied with it; -1 for an index.
    """

    name: str
    size_bytes: int
    end_offset: int


class CopyPlan(NamedTuple):
    """What of an open log may be copied, and in which state it was: see `SegmentLog.copy_plan`."""

    files: Sequence[GrowingFile]
    version: tuple[int, int]


class MoveOwner(Protocol):
    """The engine that began a move."""

    def give_up_move(self, move: MoveWork) -> None:
        """Remove the copy."""
        ...

    def end_move(self, move: MoveWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


@attrs.define(eq=False)
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
        plan: What is copied first.
        copied_offset: Up to where the log is copied.
        copied_bytes: How much is copied.
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
    _is_stopped: bool = False

    def run(self) -> None:
        """See `LogMove.run`."""
        try:
            self.files.mkdir(self.future)
            for file in self.plan.files:
                # Gone is what was given up meanwhile: it is not wanted there either.
                with suppress(FileNotFoundError):
                    self.copy(file.name, limit_bytes=file.size_bytes)
                self.copied_offset = max(self.copied_offset, file.end_offset)
                self.copied_bytes += file.size_bytes
        except OSError as exc:
            raise disk_error(exc, "copy", self.source.path / str(self.key)) from exc

    def copy(self, name: str, *, start: int = 0, limit_bytes: int | None = None) -> None:
        """Copy a file's bytes from `start` up to the limit; durable on return."""
        source = self.source.path / str(self.key) / name
        copy_file(self.files, source, self.future / name, self._check, start=start, limit_bytes=limit_bytes)

    def _check(self) -> None:
        if self._is_stopped:
            raise StorageError(f"the move of {self.key} to {self.target.name} was stopped")

    def stop(self) -> None:
        """See `LogMove.stop`."""
        self._is_stopped = True

    def give_up(self) -> None:
        """See `LogMove.give_up`."""
        self.owner.give_up_move(self)

    def begin_swap(self) -> SwapWork:
        """See `LogMove.begin_swap`."""
        assert self.log is None or self.log.is_closed, f"{self.key} must be closed before its copy takes its place"
        return SwapWork(self, self.log is not None and self.log.copy_plan().version == self.plan.version)


@attrs.frozen(eq=False)
class SwapWork:
    """The end of a move: the rest is copied, and the copy takes the original's place.

    Attributes:
        move: What it ends.
        may_go_on: Whether what was copied is still what the log begins with.
    """

    move: MoveWork
    may_go_on: bool

    def run(self) -> None:
        """See `DiskWork.run`."""
        move, files = self.move, self.move.files
        source, target = move.source.path / str(move.key), move.target.path / str(move.key)
        try:
            self._copy_rest(source)
            files.fsync_directory(move.future)
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
