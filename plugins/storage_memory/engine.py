"""Shell: the engine of logs in memory: a dictionary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import StorageError, do_now, id_text

from .log import MemoryLog
from .work import NoWork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import (
        DiskWork,
        FoundLog,
        KnownEnd,
        LogConfig,
        LogDirInfo,
        LogMove,
        PartitionLog,
        StorageContext,
        TopicIdPartition,
        TopicPartition,
    )


class MemoryEngine:
    """Logs that live as long as the engine. Owned by the reactor's task."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._logs: dict[TopicPartition, MemoryLog] = {}
        self._high_watermarks: dict[TopicIdPartition, int] = {}
        self.cluster_id = context.cluster_id

    def start(self) -> Sequence[FoundLog]:
        """See `StorageEngine.start`: there is never anything."""
        self.cluster_id = self.cluster_id or id_text(self._context.new_id())
        return ()

    def open_log(
        self,
        partition: TopicIdPartition,
        config: LogConfig,
        *,
        log_dir: str | None = None,
        known_end: KnownEnd | None = None,
    ) -> PartitionLog:
        """See `StorageEngine.open_log`."""
        log = self._logs.get(partition.topic_partition)
        if log is None:
            log = self._logs[partition.topic_partition] = MemoryLog(partition, config, self._context.now_ms)
        elif log.partition != partition:
            raise StorageError(f"{partition} is there with another topic id: delete it first")
        else:
            assert log.is_closed, f"{partition} is open already"
            log.reopen()
            log.reconfigure(config)
        return log

    def delete_log(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.delete_log`; the bytes go at once."""
        log = self._logs.get(partition.topic_partition)
        if log is not None and log.partition == partition:
            log.close()
            del self._logs[partition.topic_partition]
            self._high_watermarks.pop(partition, None)

    def set_aside(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.set_aside`; nothing outlives the process, so there is nothing to find."""

    def begin_move(self, partition: TopicIdPartition, log_dir: str) -> LogMove:
        """See `StorageEngine.begin_move`.

        Raises:
            StorageError: Always: there are no directories.
        """
        raise StorageError(f"{partition} is in memory: it cannot be moved to {log_dir}")

    def find_logs(self, directory: str) -> Sequence[FoundLog]:
        """See `StorageEngine.find_logs`.

        Raises:
            StorageError: Always: memory reads no directories.
        """
        raise StorageError(f"storage in memory cannot read {directory}: use odradek.storage=segment")

    def begin_adoption(self, partition: TopicIdPartition, directory: str) -> DiskWork:
        """See `StorageEngine.begin_adoption`.

        Raises:
            StorageError: Always: memory reads no directories.
        """
        raise StorageError(f"storage in memory cannot adopt {partition} of {directory}: use odradek.storage=segment")

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        return NoWork(partial(self._high_watermarks.update, dict(high_watermarks)))

    def checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.checkpoint`."""
        do_now(self.begin_checkpoint(high_watermarks))

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return dict(self._high_watermarks)

    def begin_removal(self, now_ms: int) -> DiskWork | None:
        """See `StorageEngine.begin_removal`."""
        return None

    def log_dirs(self) -> Sequence[LogDirInfo]:
        """See `StorageEngine.log_dirs`."""
        return ()

    def close(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.close`."""
        for log in self._logs.values():
            log.close()
        self.checkpoint(high_watermarks)

    def __repr__(self) -> str:
        return f"<MemoryEngine of {len(self._logs)} logs>"
