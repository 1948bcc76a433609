"""Pure core: the cleanup contract: what of a log may go, by age, by size, or because a key has a newer value.

A policy is a planner: a description of the log in, a plan out; it touches nothing. The kernel's cleaner
(`kernel/cleanup/`) carries plans out through the storage contract, beside the reactor, and asks again later: a plan is
never kept.

    state of the log ──> policy.plan ──> Deletion(below, why)              segments go, whole and oldest first
                                         Compaction(from, to, urgency)     segments are rewritten
                                                  └─ new_selection() ──> RecordSelection: which records stay

A topic's `cleanup.policy` may name several policies: each is asked. *Source:* Kafka 4.3, UnifiedLog.deleteOldSegments
and LogCleanerManager.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from ..types import TopicPartition
    from .log_values import SegmentInfo

FOR_EVER = -1
"""As `retention_ms` or `retention_bytes`: no limit."""


@attrs.frozen
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
    max_compaction_lag_ms: int = (1 << 63) - 1
    min_cleanable_dirty_ratio: float = 0.5
    values: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
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


@attrs.frozen
class Deletion:
    """Segments that wholly lie below an offset go; where that is the log's end, a new segment is begun before.

    Attributes:
        below: At most the high watermark, at a segment's end.
        reason: For the log: why.
    """

    below: int
    reason: str


class RecordSelection(Protocol):
    """Decides which records of keys stay. One is made for each pass, in the process that rewrites.

    First `note` is called for the records of `[first_dirty_offset, end_offset)` in their order, without those of
    aborted transactions, until it says no; then `keeps` for every record below the last offset noted.
    """

    def note(self, key: bytes, offset: int) -> bool:
        """Take note of a record; return False when there is no more room: the pass then ends before it."""
        ...

    def keeps(self, key: bytes, offset: int) -> bool:
        """Say whether a record stays. Tombstones that may stay go all the same after `delete.retention.ms`."""
        ...


class SelectionFactory(Protocol):
    """Makes selections. Pickled on its way to the process that rewrites: a module's function or class, or a partial."""

    def __call__(self, memory_bytes: int, records_max: int, load_factor: float) -> RecordSelection:
        """Make one.

        Args:
            memory_bytes: What it may take, `log.cleaner.dedupe.buffer.size` divided among the workers.
            records_max: How many records it will be told of at most.
            load_factor: `log.cleaner.io.buffer.load.factor`: how full a hash table may get, above 0, at most 1.
        """
        ...


@attrs.frozen
class Compaction:
    """A pass over the segments below `end_offset`.

    Attributes:
        first_dirty_offset: From where on records are noted.
        end_offset: A segment's base offset, at most the last stable offset.
        urgency: Which log comes first: the largest.
        new_selection: Decides which records stay.
    """

    first_dirty_offset: int
    end_offset: int
    urgency: float
    new_selection: SelectionFactory


@attrs.frozen
class CleanupPlan:
    """What is to be done now; by default nothing."""

    deletion: Deletion | None = None
    compaction: Compaction | None = None


NOTHING_TO_CLEAN = CleanupPlan()


class CleanupPolicy(Protocol):
    """What a plugin offers in `odradek_cleanup_policies`. Called by the reactor's task: must not block."""

    @property
    def compacts(self) -> bool:
        """Whether it ever plans a compaction; only such policies are asked every `log.cleaner.backoff.ms`."""
        ...

    def plan(self, log: LogState) -> CleanupPlan:
        """Return what is to be done with a log now. Pure: the same state gives the same plan."""
        ...
