"""Shell: the log directories of one broker: taken together, asked for room, set offline one by one.

A failing disk costs its own directory; only where none is left that works, the start ends.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.kernel.api import ZERO_ID, MetaProperties, StorageError, disk_error, id_text

from .formats import STRAY_DIRECTORY, marked_directory_name
from .log_dir import LogDir

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from odradek.kernel.api import DiskError, Files, StorageContext, TopicPartition

_T = TypeVar("_T")
_logger: Final = logging.getLogger(__name__)


class LogDirs:
    """The directories of `log.dirs`, and reserved ones. Life: made, `take`, any of the others, `release`.

    Attributes:
        cluster_id: Whose they are; may be made up by `take` for those that are nobody's.
    """

    def __init__(self, files: Files, context: StorageContext, on_offline: Callable[[LogDir, DiskError], None]) -> None:
        """Name the directories; no disk is touched.

        Args:
            files: Where they are.
            context: Names them, and says whose they are.
            on_offline: Called when one goes out of use.
        """
        reserved = dict.fromkeys(context.reserved_dirs)
        self._dirs = [
            LogDir(files, Path(path), is_reserved=path in reserved)
            for path in dict.fromkeys([*context.log_dirs, *reserved])
        ]
        self._files = files
        self._context = context
        self._on_offline = on_offline
        self.cluster_id = context.cluster_id

    def __iter__(self) -> Iterator[LogDir]:
        return iter(self._dirs)

    def __repr__(self) -> str:
        return repr(self._dirs)

    def take(self) -> None:
        """Lock, identify and read all directories; those whose disk fails are set offline.

        Raises:
            StorageError: None works, another broker holds one, or they are of different clusters or brokers. Nothing
                is held then.
        """
        try:
            self._take()
        except StorageError:
            self.release()
            raise

    def _take(self) -> None:
        if not self._context.log_dirs:
            raise StorageError("log.dirs names no directory")
        self._identify()
        for log_dir in self._dirs:
            if not log_dir.error:
                self.guard(log_dir, log_dir.load, "read")
        if all(log_dir.error for log_dir in self._dirs if not log_dir.is_reserved):
            raise StorageError("; ".join(log_dir.error for log_dir in self._dirs))
        self._settle_doubles()

    def _identify(self) -> None:
        metas = {}
        for log_dir in self._dirs:
            metas[log_dir.name] = self.guard(log_dir, log_dir.take, "use")
        known = {path: meta for path, meta in metas.items() if meta is not None}
        self.cluster_id = _common_identity(known, self._context.cluster_id, self._context.node_id)
        if not self.cluster_id:
            self.cluster_id = id_text(self._context.new_id())
        for log_dir in self._dirs:
            if log_dir.error:
                continue
            meta = known.get(log_dir.name)
            identity = meta.directory_id if meta is not None else ZERO_ID
            log_dir.directory_id = identity if identity != ZERO_ID else self._context.new_id()
            mine = MetaProperties(self.cluster_id, self._context.node_id, log_dir.directory_id)
            if meta != mine:
                self.guard(log_dir, partial(log_dir.claim, mine), "write")

    def _settle_doubles(self) -> None:
        """Set aside the second of two directories of one partition: a move that a crash cut short left two copies."""
        seen: dict[TopicPartition, LogDir] = {}
        for log_dir in self._dirs:
            for partition in [p for p in log_dir.topic_ids if p in seen]:
                _logger.warning("%s is in %s too: the one in %s is set aside", partition, seen[partition], log_dir)
                self.guard(log_dir, partial(self.mark, log_dir, partition, STRAY_DIRECTORY), "rename in")
                log_dir.forget(partition)
            seen.update(dict.fromkeys(log_dir.topic_ids, log_dir))

    def guard(self, log_dir: LogDir, action: Callable[[], _T], what: str) -> _T | None:
        """Run `action`; a failure of the disk takes only this directory out of use."""
        try:
            return action()
        except OSError as exc:
            self.set_offline(log_dir, disk_error(exc, what, log_dir.path))
            return None

    def set_offline(self, log_dir: LogDir, error: DiskError) -> None:
        """Take a directory out of use, and say why."""
        log_dir.error = str(error)
        self._on_offline(log_dir, error)

    def note_failure(self, log_dir: LogDir, error: DiskError) -> None:
        """Take a directory out of use if it is its device that fails; of other failures whoever met them pays."""
        if error.is_device_failing and not log_dir.error:
            self.set_offline(log_dir, error)

    def failure(self, log_dir: LogDir, exc: OSError, what: str, path: Path) -> DiskError:
        """Return what is to be raised for a failure of the system in a directory; arguments as of `disk_error`."""
        error = disk_error(exc, what, path)
        self.note_failure(log_dir, error)
        return error

    def holder(self, path: Path) -> LogDir:
        """Return the directory that a file or directory lies in, or is."""
        return max((each for each in self._dirs if path.is_relative_to(each.path)), key=lambda each: len(each.name))

    def choose(self, wanted: str | None) -> LogDir:
        """Return the directory of a new log: the one that is wanted, or that with the fewest logs.

        A cordoned one is taken only where all are: who asked for the replica on this broker all the same gets it.

        Raises:
            StorageError: `log.dirs` does not have it, or none works.
        """
        if wanted is not None:
            for log_dir in self._dirs:
                if log_dir.name == str(Path(wanted)):
                    return log_dir
            raise StorageError(f"{wanted} is no directory of log.dirs")
        working = [log_dir for log_dir in self._dirs if not log_dir.error and not log_dir.is_reserved]
        if not working:
            raise StorageError("; ".join(log_dir.error for log_dir in self._dirs))
        free = [log_dir for log_dir in working if not self._context.is_cordoned(log_dir.name)]
        return min(free or working, key=lambda log_dir: len(log_dir.topic_ids))

    def mark(self, log_dir: LogDir, partition: TopicPartition, mark: str) -> Path:
        """Rename a log's directory out of the way, for good, to a name with a suffix; return its path.

        Raises:
            OSError: The disk fails.
        """
        target = self.rename_away(log_dir, partition, mark)
        log_dir.sync()
        return target

    def rename_away(self, log_dir: LogDir, partition: TopicPartition, mark: str) -> Path:
        """Do the same without waiting for the disk: a loss of power may undo it.

        Raises:
            OSError: The disk fails.
        """
        target = log_dir.path / marked_directory_name(partition, self._context.new_id(), mark)
        self._files.rename(log_dir.path / str(partition), target)
        return target

    def release(self) -> None:
        """Let go of the locks."""
        for log_dir in self._dirs:
            log_dir.release()


def _common_identity(metas: Mapping[str, MetaProperties], cluster_id: str, node_id: int) -> str:
    """Return the cluster's id that all directories agree on, empty when nothing tells it.

    Raises:
        StorageError: A directory belongs to another cluster or node, or two have one id.
    """
    seen: dict[uuid.UUID, str] = {}
    for path, meta in metas.items():
        if meta.node_id not in (-1, node_id):
            raise StorageError(
                f"log directory {path} belongs to node {meta.node_id}, this is node {node_id}: "
                "set node.id, or give the broker a directory of its own in log.dirs"
            )
        if meta.cluster_id and cluster_id and meta.cluster_id != cluster_id:
            raise StorageError(
                f"log directory {path} belongs to cluster {meta.cluster_id}, not to {cluster_id}: "
                "set odradek.cluster.id, or give the broker a directory of its own in log.dirs"
            )
        cluster_id = cluster_id or meta.cluster_id
        if meta.directory_id != ZERO_ID:
            if meta.directory_id in seen:
                other = seen[meta.directory_id]
                raise StorageError(
                    f"{path} and {other} both have directory.id {id_text(meta.directory_id)}: one is a copy"
                )
            seen[meta.directory_id] = path
    return cluster_id
