"""Shell: the leader epochs of a metadata log that begins behind a snapshot: where each ends, and who went another way.

A leader compares what a follower has with its own log before a fetch counts:

| the follower's end | means |
| --- | --- |
| before this log's start, or of an epoch older than what stands before it | it needs a snapshot |
| in an epoch that this log does not have, or behind its end here | it diverges: told where to go back to |
| else | it has what this log has below |

*Source:* KIP-595, KIP-630; `ReplicatedLog.validateOffsetAndEpoch`, `KafkaMetadataLog.endOffsetForEpoch` of Kafka 4.3.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from ..contracts.log_values import EpochEnd
from ..controller.snapshots import SnapshotId

if TYPE_CHECKING:
    from ..contracts.storage import PartitionLog

NO_SNAPSHOT: Final = SnapshotId(0, 0)
"""What stands before a log that begins at offset 0: epoch 0 has no leader, and so no records."""


class LogEpochs:
    """Owned by the log's task.

    Attributes:
        start: What stands before the log's first record: a snapshot's end and the epoch of its last record.
    """

    def __init__(self, log: PartitionLog, start: SnapshotId = NO_SNAPSHOT) -> None:
        """Take a log and what stands before it."""
        self._log = log
        self.start = start

    def __repr__(self) -> str:
        return f"LogEpochs({self.start}, {self.end})"

    @property
    def end(self) -> EpochEnd:
        """The largest epoch, -1 where there has been no record yet, and the log's end."""
        epoch = max(self._log.latest_epoch, self.start.epoch if self.start.end_offset else -1)
        return EpochEnd(epoch, self._log.log_end_offset)

    def at(self, offset: int) -> int:
        """Return the epoch of the record before an offset of the log."""
        entries = self._log.epoch_entries()
        count = bisect_right(entries, offset - 1, key=lambda entry: entry[1])
        return entries[count - 1][0] if count else self.start.epoch

    def end_of(self, epoch: int) -> EpochEnd:
        """Return the largest epoch at most `epoch` that is known, and where its records end."""
        found = self._log.end_offset_for_epoch(epoch)
        if found.leader_epoch < 0:  # newer than all, or nothing is known
            return EpochEnd(max(self.end.leader_epoch, 0), self._log.log_end_offset)
        if found.end_offset <= self.start.end_offset:
            return EpochEnd(self.start.epoch, self.start.end_offset)
        return found

    def needs_snapshot(self, last_fetched_epoch: int, fetch_offset: int) -> bool:
        """Return whether a follower cannot go on from this log."""
        start = self.start
        if start.end_offset == 0:
            return False
        is_at_start = fetch_offset == start.end_offset and last_fetched_epoch != start.epoch
        return fetch_offset < start.end_offset or is_at_start or last_fetched_epoch < start.epoch

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Return where a follower's log is to go back to, None for one that has what this log has.

        Args:
            last_fetched_epoch: Of the follower's last record, 0 where it has none.
            fetch_offset: Where the follower's log ends.
        """
        if fetch_offset == last_fetched_epoch == self.start.end_offset == 0:
            return None
        end = self.end_of(last_fetched_epoch)
        return end if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset else None
