"""Shell: the engine of logs in memory: a dictionary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import StorageError
from odradek.storage_base import EngineBase, Work

from .log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import DiskWork, LogConfig, StorageContext, TopicIdPartition, TopicPartition


class MemoryEngine(EngineBase[MemoryLog]):
    """Logs that live as long as the engine, open or not. Owned by the reactor's task."""

    def __init__(self, context: StorageContext) -> None:
        super().__init__(context)
        self._kept: dict[TopicPartition, MemoryLog] = {}
        self._high_watermarks: dict[TopicIdPartition, int] = {}

    def open(self, partition: TopicIdPartition, config: LogConfig) -> MemoryLog:
        """See `EngineBase.open`."""
        log = self._kept.get(partition.topic_partition)
        if log is None:
            log = self._kept[partition.topic_partition] = MemoryLog(partition, config, self.context.now_ms)
        elif log.partition != partition:
            raise StorageError(f"{partition} is there with another topic id: delete it first")
        else:
            log.reopen(config)
        return log

    def forget(self, partition: TopicIdPartition) -> None:
        """See `EngineBase.forget`; the bytes go at once."""
        log = self._kept.get(partition.topic_partition)
        if log is not None and log.partition == partition:
            del self._kept[partition.topic_partition]
            self._high_watermarks.pop(partition, None)

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        return Work(partial(self._high_watermarks.update, dict(high_watermarks)))

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return dict(self._high_watermarks)
