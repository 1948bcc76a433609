"""Shell: the engine of logs in memory: a dictionary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import EngineBase, StorageError, Work

from .log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import (
        DiskWork,
        KnownEnd,
        LogConfig,
        PartitionLog,
        StorageContext,
        TopicIdPartition,
        TopicPartition,
    )


class MemoryEngine(EngineBase):
    """Logs that live as long as the engine. Owned by the reactor's task."""

    def __init__(self, context: StorageContext) -> None:
        super().__init__(context)
        self._logs: dict[TopicPartition, MemoryLog] = {}
        self._high_watermarks: dict[TopicIdPartition, int] = {}

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
            log = self._logs[partition.topic_partition] = MemoryLog(partition, config, self.context.now_ms)
        elif log.partition != partition:
            raise StorageError(f"{partition} is there with another topic id: delete it first")
        else:
            assert log.is_closed, f"{partition} is open already"
            log.reopen(config)
        return log

    def delete_log(self, partition: TopicIdPartition) -> None:
        """See `StorageEngine.delete_log`; the bytes go at once."""
        log = self._logs.get(partition.topic_partition)
        if log is not None and log.partition == partition:
            log.close()
            del self._logs[partition.topic_partition]
            self._high_watermarks.pop(partition, None)

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        return Work(partial(self._high_watermarks.update, dict(high_watermarks)))

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return dict(self._high_watermarks)

    def close(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """See `StorageEngine.close`."""
        for log in self._logs.values():
            log.close()
        self.checkpoint(high_watermarks)

    def __repr__(self) -> str:
        return f"<MemoryEngine of {len(self._logs)} logs>"
