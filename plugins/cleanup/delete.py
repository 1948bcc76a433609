"""Pure core: the policy `delete`: whole segments go, oldest first, when they are too old or the log is too large.

    retention.ms       a segment's largest timestamp is longer ago; without a timestamp, its file's last change
    retention.bytes    the log is larger without it than it may be

The oldest segment that stays keeps all after it. A segment with records above the high watermark stays. When all may go
the active one goes too, unless it is empty.

*Source:* UnifiedLog.deleteOldSegments of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupPlan, CleanupPolicy, Deletion

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import LogState, SegmentInfo


class DeletePolicy(CleanupPolicy):
    """Plans by `retention.ms` and `retention.bytes`; has no state."""

    def plan(self, log: LogState) -> CleanupPlan:
        """See `CleanupPolicy.plan`."""
        by_size, by_age = _end_by_size(log), _end_by_age(log)
        if by_size is None and by_age is None:
            return NOTHING_TO_CLEAN
        if by_age is None or (by_size is not None and by_size >= by_age):
            assert by_size is not None
            return CleanupPlan(Deletion(by_size, f"larger than retention.bytes={log.settings.retention_bytes}"))
        return CleanupPlan(Deletion(by_age, f"older than retention.ms={log.settings.retention_ms}"))


def _end_by_age(log: LogState) -> int | None:
    retention_ms = log.settings.retention_ms
    if retention_ms < 0:
        return None
    return _end_of(log, lambda segment: log.now_ms - _last_change_ms(segment) > retention_ms)


def _last_change_ms(segment: SegmentInfo) -> int:
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms


def _end_by_size(log: LogState) -> int | None:
    retention_bytes = log.settings.retention_bytes
    surplus = sum(segment.size_bytes for segment in log.segments) - retention_bytes
    if retention_bytes < 0 or surplus <= 0:
        return None

    def goes(segment: SegmentInfo) -> bool:
        nonlocal surplus
        if segment.size_bytes > surplus:
            return False
        surplus -= segment.size_bytes
        return True

    return _end_of(log, goes)


def _end_of(log: LogState, goes: Callable[[SegmentInfo], bool]) -> int | None:
    """Return where the oldest segments end that may go; None when the first one stays."""
    end = None
    for segment in log.segments:
        is_empty_end = segment.is_active and not segment.size_bytes
        if is_empty_end or segment.next_offset > log.high_watermark or not goes(segment):
            break
        end = segment.next_offset
    return end
