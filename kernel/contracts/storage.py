"""Pure core: the storage contract, one log of one partition, and the engine that opens such logs.

A log knows bytes, offsets, timestamps and leader epochs. It knows nothing of leaders, high watermarks, producers or
transactions: those are the replica's. Two halves:

* `StorageEngine`: one for each storage plugin and broker; owns directories, their locks and their failures;
* `PartitionLog`: one for each replica.

Both are owned by the reactor's task, so they need no lock: **every method belongs to that task**. What blocks for long
comes in two halves (`disk_work.py`): a `begin_...` method returns a `DiskWork`, whose `run` alone is for a worker
thread. Any number of works may be under way beside each other and beside every other call.

How an append travels::

    append(batch)     staged: offsets are taken, nothing is written, the caller's bytes are borrowed
    append(batch)     ...
    write_pending()   one gathered write: the bytes are in the page cache, they survive the death of the process
    begin_flush()     run: fsync, they survive the loss of power; finish: the recovery point moves

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from ..classes import frozen
from ..types import NO_EPOCH
from .rewriting import RewritableLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..types import Buffer, TopicIdPartition
    from .disk_work import DiskWork, LogMove
    from .log_values import EpochEnd, FoundLog, LogDirInfo, RecordsData, SegmentInfo

KnownEnd: TypeAlias = "Callable[[Path], int]"
"""Takes a log's directory and returns the offset below which its owner knows that all was flushed; 0 for nothing."""

NO_LIMIT: Final = (1 << 63) - 1
"""An end offset that limits nothing."""


@frozen
class LogConfig:
    """A topic's settings as far as its log needs them; Kafka's keys with dots as underscores."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False
    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT
    file_delete_delay_ms: int = 60_000

    @property
    def wants_flushes(self) -> bool:
        """Whether records count only once they are flushed: `flush.messages` or `flush.ms` is set."""
        return self.flush_messages != NO_LIMIT or self.flush_ms != NO_LIMIT


class LogRead(NamedTuple):
    """The answer of `PartitionLog.read`: a run of whole batches, the first of which holds the offset asked for.

    `next_offset` is where a reader that takes all of it goes on: past the last offset of the run, at most the first
    offset of the batch after it (compaction leaves gaps).
    """

    data: RecordsData
    size_bytes: int
    next_offset: int


EMPTY_READ: Final = LogRead(b"", 0, -1)


class PartitionLog(RewritableLog, Protocol):
    """One log of one partition.

    Owned by the task that owns the replica. Invariants between two calls:
    `log_start_offset <= log_end_offset`, offsets in the log only grow, an epoch's start offsets only grow.

    Every method may raise `StorageError`: the log is then offline, and its partition with it.
    """

    @property
    def partition(self) -> TopicIdPartition:
        """Whose log this is."""
        ...

    @property
    def directory(self) -> Path | None:
        """Where it lives; None for a log without a disk."""
        ...

    @property
    def log_dir(self) -> str:
        """The log directory it belongs to, as DescribeLogDirs names it."""
        ...

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The next offset to be given out; counts what is staged."""
        ...

    @property
    def recovery_point(self) -> int:
        """The first offset that a loss of power could take."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes in all segments."""
        ...

    @property
    def active_base_offset(self) -> int:
        """Base offset of the segment that grows. Who sees it change knows that a segment was rolled.

        That is the moment for a producer snapshot at this offset, and, as long as it is larger than
        `recovery_point`, for `begin_flush(closed_only=True)` in the background, as Kafka flushes what it rolled.
        """
        ...

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch that the log has a record of, or had before all were deleted; -1 when none."""
        ...

    def append(self, batches: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Stage one batch, or a run of batches of one epoch, whose offsets and epoch are already in the bytes.

        Args:
            batches: Whole batches. Borrowed until `write_pending` returns.
            base_offset: The first offset in them; must be at least `log_end_offset` (gaps are legal: compaction).
            last_offset: The last offset in them.
            max_timestamp: The largest timestamp in them, milliseconds, -1 when they have none.
        """
        ...

    def write_pending(self) -> bool:
        """Write what is staged, in one gathered write a segment. With nothing staged it only answers.

        Returns:
            Whether `flush.messages` or `flush.ms` now asks for a flush: the caller then begins one, and answers
            those who wait for these records when it is finished.

        Raises:
            StorageError: Disk full, or failing. Nothing of the staged bytes counts: the log end offset is back where
                the written bytes end, and the log is offline until it is opened again.
        """
        ...

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Note that records from `start_offset` on are of `leader_epoch`; does nothing when it is not newer."""
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """Return the largest epoch at most `leader_epoch` that the log knows, with its end offset.

        Returns:
            `(-1, -1)` when the epoch is newer than all known ones, and when nothing is known; an epoch older than
            all known ones gives `(leader_epoch, first known start offset)`.

        Source: KIP-101, KIP-279; LeaderEpochFileCache.endOffsetFor.
        """
        ...

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """Return all known (epoch, start offset), oldest first."""
        ...

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """Return whole batches from the one that holds `offset` on.

        Args:
            offset: In `[log_start_offset, log_end_offset]`; checked by the caller.
            max_bytes: At most so many bytes, cut at a batch's end; >= 0.
            end_offset: Only batches that lie wholly below it. `NO_LIMIT` or the log end offset costs nothing.
            at_least_one: Give the first batch even when it is larger than `max_bytes` (KIP-74).

        Returns:
            `EMPTY_READ` when there is nothing to give. A run never crosses a segment.

        Raises:
            CorruptionError: The bytes there are no batches.
        """
        ...

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """Return the first batch at or after `start_offset` whose max timestamp is at least `timestamp`.

        The caller looks inside it for the record. None when there is none.
        """
        ...

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """Begin to bring into memory what a look-up of a time reads; None when that would not wait for a disk.

        Whether the work ran changes no answer, only how long `batch_for_timestamp` and `max_timestamp` take; `finish`
        does not raise.

        Args:
            timestamp: The time to be looked for, `NO_LIMIT` for the largest one.
        """
        ...

    def max_timestamp(self) -> tuple[int, int]:
        """Return (timestamp, last offset of the batch that has it), the largest in the log; (-1, -1) when empty."""
        ...

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """Iterate over whole batches from the one that holds `start_offset` on; for recovery, replay and cleanup.

        A view is good until the next step.
        """
        ...

    def truncate_to(self, offset: int) -> None:
        """Drop batches and epochs at or above `offset`, and small files above the new end; durable on return."""
        ...

    def truncate_fully(self, start_offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Drop all, with small files above `start_offset`, and go on there, in that epoch if any; durable on return."""
        ...

    def advance_log_start(self, offset: int) -> None:
        """Hide every record below `offset`, at most the log end offset; drops epochs below.

        Whole segments below are given up by `delete_segments_below`. Durable once `StorageEngine.checkpoint` ran.
        """
        ...

    def segments(self) -> Sequence[SegmentInfo]:
        """Return all segments, oldest first; never empty."""
        ...

    def roll(self) -> None:
        """Begin a new segment now, unless the active one is empty."""
        ...

    def delete_segments_below(self, offset: int) -> int:
        """Give up the segments that lie wholly below `offset`, never the active one; return how many."""
        ...

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """Keep a small file beside the log under (offset, kind), for example a producer snapshot; durable on return.

        Args:
            offset: The log end offset it was taken at.
            kind: The file's extension without the dot: `snapshot`.
            data: All of it.
        """
        ...

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> DiskWork:
        """Begin `write_sidecar`; the file is there when it is finished, and survives the loss of power after a flush.

        Where `run` fails, or the log was truncated meanwhile, `finish` raises and nothing is kept, the log is whole.
        """
        ...

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """Append to a small file, which is made if it is not there; survives the loss of power after a flush.

        For what grows with the log, as the transaction index of a segment. A crash may leave a part of `data`.
        """
        ...

    def sidecars(self, kind: str) -> Sequence[int]:
        """Return the offsets that have a file of this kind, ascending."""
        ...

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """Return what `write_sidecar` kept."""
        ...

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """Remove it; nothing happens when it is not there."""
        ...

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        """Begin to make durable all that is written by now; `finish` moves the recovery point.

        Appends, reads, deletions and a `close` go on meanwhile. If the log was truncated before `finish`, the recovery
        point stays where the truncation left it. A failure takes the log offline in `finish`.

        Args:
            closed_only: Leave the active segment out: for flushes that nobody waits for.
        """
        ...

    def flush(self) -> int:
        """Begin, run and finish a flush; return the recovery point. Blocks the owner's task."""
        ...

    @property
    def was_clean(self) -> bool:
        """Whether the log was opened after a clean shutdown, so that sidecars may be trusted."""
        ...

    def reconfigure(self, config: LogConfig) -> None:
        """Take new settings; the next roll and index entry follow them."""
        ...

    def begin_close(self) -> DiskWork:
        """Write what is staged and serve nothing from now on; `run` flushes, and with `finish` the log is closed.

        Until `finish` the log counts as offline; if `run` fails it stays so, and is not closed.
        """
        ...

    def close(self) -> None:
        """Begin, run and finish a close. Blocks the owner's task. Nothing may be called afterwards."""
        ...


class StorageEngine(Protocol):
    """Opens, finds and deletes the logs of one broker.

    Life: made by the plugin's factory, `start`, any of the others, `close`. One engine serves one broker.
    """

    @property
    def cluster_id(self) -> str:
        """The cluster its directories belong to: known after `start`, made up there when nothing told it."""
        ...

    def start(self) -> Sequence[FoundLog]:
        """Take the directories (lock, `meta.properties`) and return what logs are there, without opening them.

        The metadata log is one of them: where others are found without it, the broker does not begin anew.

        Raises:
            StorageError: No directory can be used, another broker holds one, or one belongs to another cluster or
                node. A single failing directory among several only goes offline.
        """
        ...

    def open_log(
        self,
        partition: TopicIdPartition,
        config: LogConfig,
        *,
        log_dir: str | None = None,
        known_end: KnownEnd | None = None,
    ) -> PartitionLog:
        """Open the partition's log, after recovery if the shutdown was not clean; begin it when there is none.

        A log that was begun need not be on a disk before its first `write_pending`, small file or `truncate_fully`.
        An engine that makes logs so late tells how many there are by an attribute `unmade_logs_count`.

        Recovery may read much. An engine that has `begin_opening(partition, config)`, which returns a `DiskWork` or
        None, does that on a thread for logs that are opened while the broker serves; `open_log` follows in the step
        in which it has finished, and is brief.

        Recovery cuts a log before the first batch that is not sound, as Kafka does. An owner who cannot spare a record
        gives `known_end`: then only what a crash tears off is cut, which is the end, and nothing that was flushed.

        Args:
            partition: Whose.
            config: Its settings.
            log_dir: Where one goes that is not on a disk; by default the directory with the fewest logs.
            known_end: Asked with the log's directory for the offset below which its owner knows that all was flushed.

        Raises:
            StorageError: The directory is offline, or the log cannot be read.
            CorruptionError: More than a torn tail would have to be cut, with `known_end` given. Nothing was changed.
        """
        ...

    def delete_log(self, partition: TopicIdPartition) -> None:
        """Close the log if open and mark it deleted, at once gone for `open_log`; its bytes go in the background.

        Waits for no disk: the mark survives the loss of power once a removal has run. Without it the log is there
        again, under the id of a topic that nobody knows.
        """
        ...

    def set_aside(self, partition: TopicIdPartition) -> None:
        """Take a log that `start` found out of the way without losing a byte; nobody knows its topic any more.

        Raises:
            StorageError: The disk fails.
        """
        ...

    def begin_move(self, partition: TopicIdPartition, log_dir: str) -> LogMove:
        """Begin to move a log to another log directory (KIP-113), while it goes on.

        From then on until the move is over or given up, `start` tells of it after the end of the process; the loss of
        power may forget it. What was copied before counts for nothing.

        Raises:
            StorageError: There is no such log or directory, it is there already, or a disk failed.
        """
        ...

    def find_logs(self, directory: str) -> Sequence[FoundLog]:
        """Return the logs that lie in any directory, also one that another broker wrote; topic ids may be zero.

        Raises:
            StorageError: It cannot be read.
        """
        ...

    def begin_adoption(self, partition: TopicIdPartition, directory: str) -> DiskWork:
        """Begin to copy the log of this name and number, found by `find_logs`, into a log directory if it is in none.

        It is checked as after a crash when it is opened, but that gaps between segments stay; the original stays, too.

        Raises:
            StorageError: The partition is elsewhere here, or open; so does `finish`, also when a disk fails.
        """
        ...

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> DiskWork | None:
        """Begin to write recovery points, log start offsets and high watermarks, as they are now.

        Args:
            high_watermarks: Those that have changed; of other partitions the last ones stay.

        Returns:
            None when all of it stands there already.

        A directory whose device fails goes offline in `finish`, which does not raise. A checkpoint that a truncation
        made stale meanwhile is not kept. The loss of power may bring the one before it back.
        """
        ...

    def checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """Begin, run and finish a checkpoint. Blocks the owner's task; durable on return."""
        ...

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        """Return the high watermarks that the last checkpoint kept."""
        ...

    def begin_removal(self, now_ms: int) -> DiskWork | None:
        """Begin to remove files of deleted logs and segments whose `file.delete.delay.ms` is over; None for nothing.

        Makes the marks of deleted logs durable as well.

        Args:
            now_ms: The monotonic clock, `StorageContext.monotonic_ms`.

        What cannot be removed is tried again at the next start; `finish` never raises.
        """
        ...

    def log_dirs(self) -> Sequence[LogDirInfo]:
        """Return all log directories; one that tells the ids of failed ones, `failed_log_dirs`, may have votes kept."""
        ...

    def close(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        """Close every log, checkpoint, and mark the shutdown as clean."""
        ...
