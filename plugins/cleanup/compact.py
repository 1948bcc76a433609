"""Pure core: the policy `compact`: of each key one record stays: the newest, or as `odradek.compaction.strategy` says.

    first dirty offset            end
    |  clean: noted before  |  dirty  |  not yet: the last stable offset, the active segment, min.compaction.lag.ms

A log is compacted when more than `min.cleanable.dirty.ratio` of what could be is dirty, or when the first dirty record
of a segment has waited for `max.compaction.lag.ms`.

*Source:* Kafka 4.3: LogCleanerManager.cleanableOffsets, grabFilthiestCompactedLog, maxCompactionDelay.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupPlan, CleanupPolicy, Compaction, KeyTable, Winner

from .settings import HEADER_KEY, STRATEGY_KEY

if TYPE_CHECKING:
    from odradek.kernel.api import CleanupSettings, LogState, SelectionFactory


class CompactPolicy(CleanupPolicy):
    """Plans compactions; has no state."""

    compacts = True
    requires_keys = True

    def problem_with(self, settings: CleanupSettings) -> str:
        """See `CleanupPolicy.problem_with`."""
        if _winner(settings) is Winner.HEADER and not settings.text(HEADER_KEY):
            return f"{STRATEGY_KEY}=header needs {HEADER_KEY}: the name of the header whose number decides"
        return ""

    def plan(self, log: LogState) -> CleanupPlan:
        """See `CleanupPolicy.plan`."""
        first_dirty_offset = log.first_dirty_offset
        if first_dirty_offset > log.segments[-1].next_offset:
            first_dirty_offset = log.log_start_offset
        end_offset = _end_of(log, first_dirty_offset)
        clean_bytes = sum(s.size_bytes for s in log.segments if s.base_offset < first_dirty_offset)
        dirty = [s for s in log.segments if first_dirty_offset <= s.next_offset - 1 and s.base_offset < end_offset]
        dirty_bytes = sum(s.size_bytes for s in dirty if s.base_offset >= first_dirty_offset)
        if log.has_expired_records and log.segments[0].base_offset < end_offset:
            new_selection = _selection(log.settings)
            return CleanupPlan(
                compaction=Compaction(min(first_dirty_offset, end_offset), end_offset, 0.0, new_selection)
            )
        if not dirty:
            return NOTHING_TO_CLEAN
        if dirty[0].base_offset < first_dirty_offset:
            # A pass that ran out of memory ended within a segment: all of it counts as dirty.
            clean_bytes -= dirty[0].size_bytes
            dirty_bytes += dirty[0].size_bytes
        if not dirty_bytes:
            return NOTHING_TO_CLEAN
        ratio = dirty_bytes / (clean_bytes + dirty_bytes)
        late_ms = log.now_ms - log.settings.max_compaction_lag_ms
        is_late = any(0 < log.first_timestamps.get(s.base_offset, -1) < late_ms for s in dirty)
        if ratio > log.settings.min_cleanable_dirty_ratio or is_late:
            return CleanupPlan(compaction=Compaction(first_dirty_offset, end_offset, ratio, _selection(log.settings)))
        return NOTHING_TO_CLEAN


def _end_of(log: LogState, first_dirty_offset: int) -> int:
    """Return the base offset of the first segment that must not be touched."""
    lag_ms = log.settings.min_compaction_lag_ms
    for segment in log.segments:
        is_young = lag_ms > 0 and segment.max_timestamp > log.now_ms - lag_ms
        if (
            segment.is_active
            or segment.next_offset > min(log.last_stable_offset, log.rewritable_end)
            or (is_young and segment.next_offset > first_dirty_offset)
        ):
            return segment.base_offset
    raise AssertionError("the last segment is active")


def _winner(settings: CleanupSettings) -> Winner:
    return Winner(settings.text(STRATEGY_KEY) or Winner.OFFSET.value)


def _selection(settings: CleanupSettings) -> SelectionFactory:
    winner = _winner(settings)
    if winner is Winner.OFFSET:
        return KeyTable
    return partial(KeyTable, winner=winner, header=settings.text(HEADER_KEY))
