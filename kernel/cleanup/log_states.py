"""Shell: describes a replica's log to cleanup policies and joins what they plan."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from ..classes import frozen
from ..contracts.cleanup import CleanupPlan, Compaction, Deletion, LogState
from ..contracts.signatures import place_of
from ..errors import PluginError
from ..plugin_system.offers import plugin_of_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..contracts.cleanup import CleanupPolicy, CleanupSettings, RecordDue
    from ..partitions.replica import Replica

log = logging.getLogger(__name__)


def state_of(replica: Replica, settings: CleanupSettings, now_ms: int) -> LogState:
    """Return what policies see of a replica's log; nothing yet of when its records are to go.

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


@frozen
class JoinedPlan:
    """What all policies of a topic want done with a log now.

    Attributes:
        deletion: The largest.
        compaction: The most urgent.
        expiries: All; a compaction applies them too.
        segments: Base offsets of those to look through for expired records; empty on topics that compact.
    """

    deletion: Deletion | None = None
    compaction: Compaction | None = None
    expiries: Sequence[RecordDue] = ()
    segments: Sequence[int] = ()


class Policies:
    """The policies that plugins offer. Owned by the reactor's task."""

    def __init__(self, policies: Mapping[str, CleanupPolicy]) -> None:
        self._policies = policies
        self._told: set[tuple[str, str]] = set()

    def plan(self, state: LogState) -> JoinedPlan:
        """Ask the policies that the topic names. One whose plugin is not active is left out: see `missing`."""
        found = self._of(state.settings)
        plans = [_plan_of(policy, state) for policy in found]
        compaction = _most_urgent(plans)
        due = sorted({base for plan in plans if plan.expiry is not None for base in plan.expiry.segments})
        if any(policy.compacts for policy in found):
            # What is above the first dirty offset is looked through when it is compacted.
            if compaction is None and any(base < state.first_dirty_offset for base in due):
                compaction = _most_urgent(
                    _plan_of(policy, attrs.evolve(state, has_expired_records=True))
                    for policy in found
                    if policy.compacts
                )
            due = []
        return JoinedPlan(
            deletion=max(
                (plan.deletion for plan in plans if plan.deletion is not None),
                key=lambda deletion: deletion.below,
                default=None,
            ),
            compaction=compaction,
            expiries=[plan.expiry.due_of for plan in plans if plan.expiry is not None],
            segments=due,
        )

    def rewrites(self, settings: CleanupSettings) -> bool:
        """Say whether one of a topic's policies ever has segments rewritten."""
        return any(policy.compacts or policy.expires for policy in self._of(settings))

    def expires(self, settings: CleanupSettings) -> bool:
        """Say whether one of a topic's policies drops single records."""
        return any(policy.expires for policy in self._of(settings))

    def missing(self, topic: str, settings: CleanupSettings) -> list[str]:
        """Return the policies that a topic names and no active plugin offers; each is logged once."""
        names = [name for name in settings.cleanup_policy if name not in self._policies]
        for name in names:
            if (topic, name) not in self._told:
                self._told.add((topic, name))
                log.error(
                    "topic %s: no active plugin offers the cleanup policy %r: what it would remove stays, and the "
                    "topic grows; enable the plugin, or set another cleanup.policy",
                    topic,
                    name,
                )
        return names

    def _of(self, settings: CleanupSettings) -> list[CleanupPolicy]:
        return [self._policies[name] for name in settings.cleanup_policy if name in self._policies]


def _plan_of(policy: CleanupPolicy, state: LogState) -> CleanupPlan:
    """Ask a policy.

    Raises:
        PluginError: What it gave is no plan.
        Exception: The policy raised it.
    """
    plan: object = policy.plan(state)
    if not isinstance(plan, CleanupPlan):
        told = f"the cleanup policy at {place_of(policy)} gave {plan!r}, not a CleanupPlan (NOTHING_TO_CLEAN is one)"
        raise PluginError(plugin_of_object(policy), told)
    return plan


def _most_urgent(plans: Iterable[CleanupPlan]) -> Compaction | None:
    compactions = (plan.compaction for plan in plans if plan.compaction is not None)
    return max(compactions, key=lambda compaction: compaction.urgency, default=None)
