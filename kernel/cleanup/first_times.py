"""Shell: when the first record of each dirty segment was written, which `max.compaction.lag.ms` counts from.

*Source:* Kafka 4.3: LogCleanerManager.maxCompactionDelay, LogSegment.getFirstBatchTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.cleanup import NO_LAG
from ..records.batch import HEADER_SIZE, read_header
from ..types import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..contracts.cleanup import LogState
    from ..contracts.rewriting import SegmentSource
    from ..contracts.storage import PartitionLog
    from ..machine.threads import Workers
    from ..types import TopicIdPartition


class FirstTimes:
    """Remembers what was read: a closed segment's first batch stays what it is. Owned by the compactor."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._known: dict[TopicIdPartition, dict[int, int]] = {}

    async def of(self, partition: TopicIdPartition, log: PartitionLog, state: LogState) -> Mapping[int, int]:
        """Return the times of the dirty segments that may be rewritten, by base offset; empty without a lag.

        Raises:
            StorageError: The log is offline.
            CorruptRecordsError: A segment is damaged.
            OSError: The disk fails.
        """
        if state.settings.max_compaction_lag_ms == NO_LAG:
            return {}
        before = self._known.get(partition, {})
        dirty = [
            segment.base_offset
            for segment in state.segments
            if segment.next_offset > state.first_dirty_offset and segment.next_offset <= state.rewritable_end
        ]
        known = {base_offset: before[base_offset] for base_offset in dirty if base_offset in before}
        missing = set(dirty) - known.keys()
        if missing:
            sources = [each for each in log.begin_rewrite(max(missing) + 1).sources if each.base_offset in missing]
            known |= await self._workers.run_sync(_read, sources)
        self._known[partition] = known
        return known

    def keep_only(self, is_present: Callable[[TopicIdPartition], bool]) -> None:
        """Forget the logs that are not there any more."""
        for partition in [partition for partition in self._known if not is_present(partition)]:
            del self._known[partition]


def _read(sources: Sequence[SegmentSource]) -> dict[int, int]:
    found = {}
    for source in sources:
        batch = next(iter(source.batches(source.base_offset, HEADER_SIZE)), None)
        found[source.base_offset] = NO_TIMESTAMP if batch is None else read_header(batch).max_timestamp
    return found
