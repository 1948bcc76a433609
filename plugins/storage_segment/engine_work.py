"""Shell: what the engine has under way on worker threads: checkpoints, removals and adoptions of logs.

Each holds copies and paths only. The engine begins them and takes the outcome.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from odradek.kernel.api import ZERO_ID, StorageError, define, disk_error, frozen

from .copying import copy_directory, remove_directory
from .formats import parse_directory_mark
from .log_dir import read_topic_id

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from odradek.kernel.api import DiskError, Files, TopicPartition

    from .log_dir import CheckpointCopy, LogDir

_logger: Final = logging.getLogger(__name__)

_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What the system says of a file in a directory that is not there: its disk was taken away, and the logs with it."""


@frozen(eq=False)
class CheckpointWork:
    """The checkpoints of several directories; one that fails does not keep the others from being written."""

    copies: Sequence[tuple[LogDir, CheckpointCopy]]
    take_offline: Callable[[LogDir, DiskError], None]
    _failed: list[tuple[LogDir, OSError]] = attrs.field(factory=list)

    def run(self) -> None:
        """See `DiskWork.run`."""
        for log_dir, copy in self.copies:
            try:
                log_dir.write_checkpoints(copy)
            except OSError as exc:
                self._failed.append((log_dir, exc))

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            raise error
        failed = {log_dir.path for log_dir, _ in self._failed}
        for log_dir, copy in self.copies:
            if log_dir.path not in failed:
                try:
                    log_dir.put_checkpoints(copy)
                except OSError as exc:
                    self._failed.append((log_dir, exc))
        for log_dir, failure in self._failed:
            log_dir.note_changed()  # what it holds is still to be written
            disk = disk_error(failure, "write the checkpoints of", log_dir.path)
            if not disk.is_device_failing and disk.errno not in _GONE:
                _logger.error("%s", disk)  # a full disk: the last ones hold, and the next ones may be written
            elif not log_dir.error:
                self.take_offline(log_dir, disk)

    @property
    def unwritten(self) -> set[str]:
        """The names of the directories whose checkpoints are older than this work."""
        return {log_dir.name for log_dir, _ in self._failed}


@frozen(eq=False)
class RemovalWork:
    """Files and directories that nobody wants any more, and log directories whose changed names are to last."""

    files: Files
    paths: Sequence[Path]
    renamed_in: Sequence[Path]
    on_failure: Callable[[Path, DiskError], None]
    _failed: list[tuple[Path, DiskError]] = attrs.field(factory=list)

    def run(self) -> None:
        """See `DiskWork.run`. What cannot be removed is left to the next start."""
        for path in self.renamed_in:
            try:
                self.files.fsync_directory(path)
            except OSError as exc:
                self._failed.append((path, disk_error(exc, "sync", path)))
        for path in self.paths:
            try:
                if parse_directory_mark(path.name):
                    remove_directory(self.files, path)
                else:
                    self.files.unlink(path)
            except FileNotFoundError:
                continue  # Gone with its directory.
            except OSError as exc:
                self._failed.append((path, disk_error(exc, "remove", path)))

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            raise error
        for path, failure in self._failed:
            self.on_failure(path, failure)


class CopyOwner(Protocol):
    """The engine that began a copy."""

    def end_adoption(self, adoption: AdoptionWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


@define(eq=False)
class AdoptionWork:
    """A log of another broker on its way into one of our directories."""

    owner: CopyOwner
    files: Files
    key: TopicPartition
    source: Path
    target: LogDir
    future: Path
    topic_id: uuid.UUID = ZERO_ID

    def run(self) -> None:
        """See `DiskWork.run`."""
        copy_directory(self.files, self.source, self.future)
        self.topic_id = read_topic_id(self.files, self.future)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.owner.end_adoption(self, error)


@define(eq=False)
class AdoptionInPlace:
    """A log of another broker that lies in one of our directories already: it is opened as one that was copied is."""

    adopted: set[TopicPartition]
    key: TopicPartition

    def run(self) -> None:
        """See `DiskWork.run`: there is nothing to copy."""

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            raise error
        self.adopted.add(self.key)


def failure_of(action: Callable[[], None]) -> Exception | None:
    """Return what of a disk or a log made an action fail, None when nothing did."""
    try:
        action()
    except (OSError, StorageError) as exc:
        return exc
    return None


def told(error: Exception, what: str, path: Path) -> Exception:
    """Return an error as operators are told of it."""
    return disk_error(error, what, path) if isinstance(error, OSError) else error
