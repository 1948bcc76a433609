"""Pure core: the tiering contract: a log whose old segments lie in a remote store, under the log of any storage.

A topic with `remote.storage.enable` keeps its storage. The kernel opens the storage's log as ever and has the tier wrap
it; what it then holds is a `PartitionLog` in every respect, with one difference: what is below
`local_log_start_offset` may have to be brought near before it can be read.

    Fetch ─> TieredLog.read ── at hand ──> records
                   └── raises RecordsAreRemoteError ─> begin_cold_read(..., done) ─> the request waits
                                                              │ worker threads, read-ahead, cache
                          the request reads again <─ done() ──┘

Who leads sends segments and removes them from the store. A follower does neither, and does not copy what its leader
has there alone: it begins where the store's part ends.

Nothing here waits for the store: a broker starts, leads, appends and serves what is local while it cannot be reached.

*Source:* KIP-405 for names and meaning of settings and offsets.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen
from ..errors import ErrorCode, KafkaError
from .storage import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..types import TopicIdPartition
    from .cleanup import CleanupSettings
    from .disk_work import DiskWork


class RecordsAreRemoteError(KafkaError):
    """What was to be read lies in the remote store and is not at hand: `TieredLog.begin_cold_read` brings it near."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, "the records are in the remote store")


@frozen
class TierSettings:
    """A topic's settings as far as tiering needs them; Kafka's keys with dots as underscores.

    Attributes:
        local_retention_ms: How long segments stay local after their upload; -2 as long as `retention.ms`; -1 for ever.
        local_retention_bytes: How much of the log stays local; in the same way.
        remote_log_copy_disable: Nothing more is uploaded; what is remote can be read and expires.
        cleanup: The topic's settings for cleanup, of both tiers together.
    """

    local_retention_ms: int
    local_retention_bytes: int
    remote_log_copy_disable: bool
    cleanup: CleanupSettings


class TierStart(Protocol):
    """A follower's log on its way to begin where the store's part ends. Life: `run`, `begin_keeping`, `apply`, or less.

    Owned by the reactor's task but for `run`. Before `apply` the log and what is known of it are as they were.
    """

    def run(self) -> None:
        """Get what the store has. Blocks; for a worker thread.

        Raises:
            OdradekError: It cannot be had, or is not there; to be tried again later.
        """
        ...

    def begin_keeping(self) -> Sequence[DiskWork]:
        """Begin to keep what stands beside the log: to be done in order, each of it, before `apply`."""
        ...

    def apply(self) -> None:
        """Give up what is local, and begin empty at a segment's end in the store; durable on return.

        Producers' snapshot, transaction indexes and epochs are those of the store up to there.

        Raises:
            StorageError: The log is offline.
        """
        ...


class TieredLog(PartitionLog, Protocol):
    """The log of a storage, wrapped. Owned by the reactor's task.

    `log_start_offset`, `segments`, `advance_log_start`, `delete_segments_below`, `batch_for_timestamp` and the epochs
    speak of both tiers; `size_bytes` and `directory` of the local one, as Kafka's DescribeLogDirs does, and
    `max_timestamp` too, as Kafka's ListOffsets does: `begin_time_lookup(NO_LIMIT)` never waits for the store, because
    retention asks for it of every log, every few minutes. `begin_time_lookup` of a time may; its `run` then ends within
    the store's own limits.

    `batches` gives what is local, and no more: a start replays from there. Of the sidecars of the far part stays what a
    start needs (`txnindex`), and above the border a snapshot of producers that a loss of power cannot take.

    Life: made by `Tier.wrap`, ended by `unwrap` or `close`, or left behind when the broker stops: the engine then
    closes the wrapped log. `Tier.delete` comes before the engine deletes the wrapped log.
    """

    @property
    def local_log_start_offset(self) -> int:
        """The first offset that the wrapped log can give: ListOffsets' earliest-local."""
        ...

    @property
    def tiered_end_offset(self) -> int:
        """The first offset that is not in the remote store; 0 when nothing is. Latest-tiered is the one before."""
        ...

    def begin_cold_read(self, offset: int, max_bytes: int, done: Callable[[], None]) -> None:
        """Begin to bring near what `read(offset, max_bytes)` would give. Asked again for what is on its way, it joins.

        Args:
            offset: Below `local_log_start_offset`.
            max_bytes: How much the reader wants; more may be brought.
            done: Called once, on the reactor's task and never before this returns: the same read then gives records,
                or raises a `KafkaError` with a retriable code that says why they cannot be had, for a while.
        """
        ...

    def begin_at_store(self, offset: int, *, is_exact: bool) -> TierStart:
        """Begin to have a follower's log begin at `offset`, or behind it unless `is_exact`: what is below is far."""
        ...

    def hold_uploads(self, end_offset: int | None) -> None:
        """Send no segment that ends at or above this, where producers' snapshot is being taken; None lets all go."""
        ...

    def hold_segments(self, *, are_read: bool) -> None:
        """Let no segment leave the disk or the store while a pass of compaction reads them; after it all may go."""
        ...

    def reconfigure_tier(self, settings: TierSettings) -> None:
        """Take new settings."""
        ...

    def unwrap(self) -> PartitionLog:
        """Return the wrapped log, which goes on alone: what is only remote is not part of it. This one is dead then."""
        ...


class Tier(Protocol):
    """What a plugin offers in `odradek_tier`. One for each broker, owned by the reactor's task."""

    def wrap(self, partition_log: PartitionLog, settings: TierSettings, *, is_new: bool) -> TieredLog:
        """Wrap a log that was just opened or, `is_new`, whose topic begins to be tiered: what was kept is outdated.

        Raises:
            StorageError: What is kept locally about the remote part cannot be read.
        """
        ...

    def delete(self, partition: TopicIdPartition) -> None:
        """Have everything of a partition of a deleted topic removed from the store, also when that is away now."""
        ...

    def switch_off(self, partition: TopicIdPartition) -> None:
        """Have its leader remove what was sent so far: its topic is not tiered any more, and may be again."""
        ...
