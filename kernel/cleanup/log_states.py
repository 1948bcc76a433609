"""Shell: describes a replica's log to cleanup policies and joins what they plan."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..contracts.cleanup import CleanupPlan, LogState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..contracts.cleanup import CleanupPolicy, CleanupSettings
    from ..partitions.replica import Replica

log = logging.getLogger(__name__)


def state_of(replica: Replica, settings: CleanupSettings, now_ms: int) -> LogState:
    """Return what policies see of a replica's log.

    Raises:
        StorageError: The log is offline.
    """
    partition_log, offsets = replica.log, replica.offsets
    return LogState(
        partition=replica.topic_partition,
        segments=partition_log.segments(),
        settings=settings,
        log_start_offset=offsets.log_start_offset,
        last_stable_offset=offsets.last_stable_offset,
        high_watermark=offsets.high_watermark,
        first_dirty_offset=max(partition_log.clean_end, offsets.log_start_offset),
        rewritable_end=partition_log.rewritable_end,
        now_ms=now_ms,
    )


class Policies:
    """The policies that plugins offer. Owned by the reactor's task."""

    def __init__(self, policies: Mapping[str, CleanupPolicy]) -> None:
        self._policies = policies
        self._missed: set[str] = set()

    def plan(self, state: LogState) -> CleanupPlan:
        """Ask the policies that the topic names; of two deletions the larger counts, of compactions the more urgent.

        A policy whose plugin is not active is left out, with one warning; the topic then keeps what it would clean.
        """
        plans = [policy.plan(state) for policy in map(self._find, state.settings.cleanup_policy) if policy is not None]
        deletions = [plan.deletion for plan in plans if plan.deletion is not None]
        compactions = [plan.compaction for plan in plans if plan.compaction is not None]
        return CleanupPlan(
            max(deletions, key=lambda deletion: deletion.below, default=None),
            max(compactions, key=lambda compaction: compaction.urgency, default=None),
        )

    def compacts(self, settings: CleanupSettings) -> bool:
        """Say whether one of a topic's policies ever plans a compaction."""
        return any(policy.compacts for policy in map(self._find, settings.cleanup_policy) if policy is not None)

    def _find(self, name: str) -> CleanupPolicy | None:
        policy = self._policies.get(name)
        if policy is None and name not in self._missed:
            self._missed.add(name)
            log.warning("no active plugin offers the cleanup policy %r: topics that name it keep everything", name)
        return policy
