"""Pure core: the cleanup contract: what of a log may go, by age, by size, by key, or record by record.

A policy is a planner: a description of the log in, a plan out; it touches nothing. The kernel's cleaner
(`kernel/cleanup/`) carries plans out through the storage contract, beside the reactor, and asks again later: a plan is
never kept.

    state of the log ──> policy.plan ──> Deletion(below, why)              segments go, whole and oldest first
                                         Compaction(from, to, urgency)     segments are rewritten
                                           └─ new_selection() ──> RecordSelection: which records of a key stay
                                         Expiry(due_of, segments)          single records go when their time has come

A topic's `cleanup.policy` may name several policies: each is asked, and each may take something away. Where one
compacts and one expires, expiry happens in compaction's passes: an expired record still beats the older ones of its
key, so that none of them comes back. *Source:* Kafka 4.3, UnifiedLog.deleteOldSegments and LogCleanerManager.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import attrs

from ..classes import frozen

if TYPE_CHECKING:
    from ..records.record_view import RecordView
    from ..types import TopicPartition
    from .log_values import SegmentInfo

FOR_EVER: Final = -1
"""As `retention_ms` or `retention_bytes`: no limit."""
NO_LAG: Final = (1 << 63) - 1
"""As `max_compaction_lag_ms`: no limit."""


@frozen
class CleanupSettings:
    """A topic's settings as far as cleanup needs them; Kafka's keys with dots as underscores.

    Attributes:
        values: Plugins' topic keys, by name.
    """

    cleanup_policy: tuple[str, ...] = ("delete",)
    retention_ms: int = FOR_EVER
    retention_bytes: int = FOR_EVER
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LAG
    min_cleanable_dirty_ratio: float = 0.5
    values: Mapping[str, object] = attrs.field(factory=dict)

    def text(self, key: str) -> str:
        """Return a plugin's topic key that is a text; empty where it has no value."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        """Return a plugin's topic key that is a number; 0 where it has no value."""
        value = self.values.get(key)
        return value if isinstance(value, int) else 0


@frozen
class LogState:
    """What a policy sees of a log.

    Attributes:
        partition: Whose log.
        segments: All, oldest first, the active one last.
        settings: The topic's.
        log_start_offset: The first offset that may be read.
        last_stable_offset: No transaction is open below it; at most the high watermark.
        high_watermark: What is below is committed.
        first_dirty_offset: Up to where the log was compacted; the log start when it never was.
        rewritable_end: Segments that end at or below it may be rewritten.
        now_ms: The wall clock.
        due_ms: Of closed segments that were looked through since the broker started, by base offset: when the first of
            their records is to go, `NEVER_DUE` without one. What is missing is not known.
        first_timestamps: Of the first batch of closed dirty segments, by base offset, -1 without one; only where the
            topic has a `max_compaction_lag_ms`.
        has_expired_records: A compaction is wanted, however little is dirty: records have expired that only a
            compaction may drop.
    """

    partition: TopicPartition
    segments: Sequence[SegmentInfo]
    settings: CleanupSettings
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    first_dirty_offset: int
    rewritable_end: int
    now_ms: int
    due_ms: Mapping[int, int] = attrs.field(factory=dict)
    first_timestamps: Mapping[int, int] = attrs.field(factory=dict)
    has_expired_records: bool = False


@frozen
class Deletion:
    """Segments that wholly lie below an offset go; where that is the log's end, a new segment is begun before.

    Attributes:
        below: At most the high watermark, at a segment's end.
        reason: For the log: why.
    """

    below: int
    reason: str


class RecordSelection(Protocol):
    """Decides which records of a key stay. One is made for each pass, in the process that rewrites.

    Told, in the order of their offsets, of records that have a key and belong to no aborted transaction:

    1. `note`: those of `[first_dirty_offset, end_offset)`, until it says no. That ends the pass: what follows is dirty.
    2. `weigh`, of a `WeighingSelection`: those below `first_dirty_offset`, which an earlier pass has left.
    3. `keeps`: every one below the first that was not noted, once.

    Each record is handed over whole: that costs about a microsecond. `KeyTable`, which the usual strategies choose, is
    told of whole batches instead.

    Records without a key go. Offsets never change. Whatever it says: the last batch of each producer stays, without
    records if need be, and tombstones that it keeps go after `delete.retention.ms`.
    """

    def note(self, key: bytes, record: RecordView) -> bool:
        """Take note of a record; return False when there is no more room: the pass then ends before it."""
        ...

    def keeps(self, key: bytes, record: RecordView) -> bool:
        """Say whether a record stays."""
        ...


@runtime_checkable
class WeighingSelection(RecordSelection, Protocol):
    """A selection that must know what stayed earlier: a new record may lose to an old one, or they count together."""

    def weigh(self, key: bytes, record: RecordView) -> None:
        """Take note of a record that stayed earlier. Keys that were not noted need no room: all of theirs may stay."""
        ...


class SelectionFactory(Protocol):
    """Makes selections. Pickled on its way to the process that rewrites: a module's function or class, or a partial."""

    def __call__(self, memory_bytes: int, records_max: int, load_factor: float) -> RecordSelection:
        """Make one; a `WeighingSelection` is told more.

        Args:
            memory_bytes: What it may take, `log.cleaner.dedupe.buffer.size` divided among the workers.
            records_max: How many records it will be told of at most.
            load_factor: `log.cleaner.io.buffer.load.factor`: how full a hash table may get, above 0, at most 1.
        """
        ...


@frozen
class Compaction:
    """A pass over the segments below `end_offset`.

    Attributes:
        first_dirty_offset: From where on records are noted; `end_offset` where nothing is dirty.
        end_offset: A segment's base offset, at most the last stable offset.
        urgency: Which log comes first: the largest.
        new_selection: Decides which records stay.
    """

    first_dirty_offset: int
    end_offset: int
    urgency: float
    new_selection: SelectionFactory


class RecordDue(Protocol):
    """Says when records are to go. Pickled like a `SelectionFactory`; pure: the same record, the same time."""

    def __call__(self, record: RecordView) -> int:
        """Return the time in epoch milliseconds, `NEVER_DUE` for a record that stays."""
        ...


@frozen
class Expiry:
    """Single records go when their time has come, whatever their key, those without one too.

    The cleaner looks through segments one by one and rewrites those that have such records; it remembers of each when
    the next is due (`LogState.due_ms`). Transactions and tombstones are left as they are.

    Attributes:
        due_of: Says of a record when it is to go.
        segments: Base offsets of the closed segments to look through now; empty when there is nothing to do yet.
    """

    due_of: RecordDue
    segments: Sequence[int] = ()


@frozen
class CleanupPlan:
    """What is to be done now; by default nothing."""

    deletion: Deletion | None = None
    compaction: Compaction | None = None
    expiry: Expiry | None = None


NOTHING_TO_CLEAN: Final = CleanupPlan()


class CleanupPolicy(Protocol):
    """What a plugin offers in `odradek_cleanup_policies`. Called by the reactor's task: must not block.

    To be inherited from: what is not said otherwise is so.

    Attributes:
        compacts: Whether it ever plans a `Compaction`. Only policies that compact or expire are asked every
            `log.cleaner.backoff.ms`.
        expires: Whether it plans an `Expiry`: then always, as other policies' passes apply it too.
        requires_keys: Whether records without a key are refused when they are produced, as on compacted topics;
            segments then close after `max.compaction.lag.ms` at the latest.
    """

    compacts: bool = False
    expires: bool = False
    requires_keys: bool = False

    def plan(self, log: LogState) -> CleanupPlan:
        """Return what is to be done with a log now. Pure: the same state gives the same plan."""
        ...

    def problem_with(self, settings: CleanupSettings) -> str:
        """Say why a topic that names this policy must not have such settings: the text of INVALID_CONFIG; else ""."""
        return ""
