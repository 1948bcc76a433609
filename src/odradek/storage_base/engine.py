"""Shell: what an engine need not think about that has no directories to move logs between.

.. versionadded:: 0.1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.errors import StorageError
from odradek.kernel.types import id_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.contracts.disk_work import DiskWork, LogMove
    from odradek.kernel.contracts.log_values import FoundLog, LogDirInfo
    from odradek.kernel.contracts.storage import KnownEnd, LogConfig, PartitionLog
    from odradek.kernel.contracts.storage_context import StorageContext
    from odradek.kernel.machine.files import FileLock
    from odradek.kernel.types import TopicIdPartition

LogT = TypeVar("LogT", bound="PartitionLog")


class EngineBase(ABC, Generic[LogT]):
    """A `StorageEngine` over `open`, `forget`, `begin_checkpoint` and `high_watermarks`; with a disk also over others.

    What outlives the process is told by `start`, which calls this one's, and moved out of the way by `set_aside`.

    Attributes:
        context: What the kernel gave.
        cluster_id: The cluster, known after `start`.
        logs: Those that were opened.
    """

    def __init__(self, context: StorageContext) -> None:
        """Take the context; opens nothing."""
        self.context = context
        self.cluster_id = context.cluster_id
        self.logs: dict[TopicIdPartition, LogT] = {}
        self._lock: FileLock | None = None

    # ----------------------------------------------------------------------------------- what a storage has to give

    @abstractmethod
    def open(self, partition: TopicIdPartition, config: LogConfig) -> LogT:
        """Open a log, or make it when there is none.

        Raises:
            StorageError: It cannot be read, or a log of this topic and number but another topic id is there.
        """

    @abstractmethod
    def forget(self, partition: TopicIdPartition) -> None:
        """Delete a log that is closed, if there is one; see `StorageEngine.delete_log`."""

    @abstractmethod
    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork | None:
        """See `StorageEngine.begin_checkpoint`."""

    @abstractmethod
    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""

    # ------------------------------------------------------------------------------- what a storage with a disk adds

    def start(self) -> Sequence[FoundLog]:
        """See `StorageEngine.start`: makes up a cluster id where nothing told one, and finds no logs."""
        self.cluster_id = self.cluster_id or id_text(self.context.new_id())
        return ()

    def set_aside(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.set_aside`: nothing, for a storage that finds no logs at a start."""

    def begin_removal(self, now_ms: int) -> DiskWork | None:
        """See `StorageEngine.begin_removal`: by default nothing is left behind."""
        del now_ms
        return None

    def take_lock(self, path: Path) -> None:
        """Lock a file until `close`, so that no other broker takes the same data.

        Raises:
            StorageError: Another one holds it.
        """
        try:
            self._lock = self.context.files.lock(path)
        except OSError as error:
            raise StorageError(f"{path} is held by another broker, or cannot be written: {error}") from error

    def let_go(self) -> None:
        """Release the lock, at the end of `close` and of a start that is refused; a storage closes its own here too."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def join_cluster(self, cluster_id: str) -> None:
        """Take the cluster id that the data tells.

        Raises:
            StorageError: The configuration wants another one.
        """
        if self.cluster_id not in ("", cluster_id):
            self.let_go()
            raise StorageError(f"{self!r} belongs to cluster {cluster_id}, the configuration wants {self.cluster_id}")
        self.cluster_id = cluster_id

    # -------------------------------------------------------------------------------------------------------- the rest

    def open_log(
        self,
        partition: TopicIdPartition,
        config: LogConfig,
        *,
        log_dir: str | None = None,
        known_end: KnownEnd | None = None,
    ) -> PartitionLog:
        """See `StorageEngine.open_log`."""
        del log_dir, known_end  # there is one place, and nothing that was flushed is ever cut
        log = self.logs[partition] = self.open(partition, config)
        return log

    def delete_log(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.delete_log`."""
        log = self.logs.pop(partition, None)
        if log is not None:
            log.close()
        self.forget(partition)

    def checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.checkpoint`."""
        work = self.begin_checkpoint(high_watermarks)
        if work is not None:
            do_now(work)

    def close(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.close`."""
        for log in self.logs.values():
            log.close()
        self.checkpoint(high_watermarks)
        self.let_go()

    def log_dirs(self) -> Sequence[LogDirInfo]:
        """See `StorageEngine.log_dirs`: none of its own."""
        return ()

    def begin_move(self, partition: TopicIdPartition, log_dir: str) -> LogMove:
        """See `StorageEngine.begin_move`.

        Raises:
            StorageError: Always.
        """
        raise StorageError(f"{self!r} has no directories: {partition} cannot be moved to {log_dir}")

    def find_logs(self, directory: str) -> Sequence[FoundLog]:
        """See `StorageEngine.find_logs`.

        Raises:
            StorageError: Always.
        """
        raise StorageError(f"{self!r} cannot read {directory}: use odradek.storage=segment")

    def begin_adoption(self, partition: TopicIdPartition, directory: str) -> DiskWork:
        """See `StorageEngine.begin_adoption`.

        Raises:
            StorageError: Always.
        """
        raise StorageError(f"{self!r} cannot adopt {partition} of {directory}: use odradek.storage=segment")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.logs)} logs>"
