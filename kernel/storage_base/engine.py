"""Pure core: what an engine of logs need not think about that has no directories to move them between.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.disk_work import do_now
from ..errors import StorageError
from ..ids import id_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..contracts.disk_work import DiskWork, LogMove
    from ..contracts.log_values import FoundLog, LogDirInfo
    from ..contracts.storage import StorageContext
    from ..types import TopicIdPartition


class EngineBase:
    """A `StorageEngine` without directories to move logs between; the subclass opens, deletes and keeps logs.

    It gives `open_log`, `delete_log`, `begin_checkpoint`, `high_watermarks` and `close`; with a disk also `start`,
    which calls this one's, and `set_aside`.
    """

    def __init__(self, context: StorageContext) -> None:
        """Take the context; opens nothing."""
        self.context = context
        self.cluster_id = context.cluster_id

    def start(self) -> Sequence[FoundLog]:
        """See `StorageEngine.start`: makes up a cluster id where nothing told one, and finds no logs."""
        self.cluster_id = self.cluster_id or id_text(self.context.new_id())
        return ()

    def set_aside(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.set_aside`: nothing, for a storage that finds no logs at a start."""

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        raise NotImplementedError

    def checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.checkpoint`."""
        do_now(self.begin_checkpoint(high_watermarks))

    def begin_removal(self, now_ms: int) -> DiskWork | None:
        """See `StorageEngine.begin_removal`: by default nothing is left behind."""
        del now_ms
        return None

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
