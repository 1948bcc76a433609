"""A cleanup policy of one's own, as a plugin in one file: a log keeps its three newest full segments."""

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupPlan, CleanupPolicy, Deletion, LogState, hookimpl


class LastSegments(CleanupPolicy):
    """The policy `last_segments`: a planner, which looks at a description of a log and touches nothing."""

    def plan(self, log: LogState) -> CleanupPlan:
        """Have older segments deleted, as far as they are full and committed."""
        full = [each for each in log.segments if not each.is_active and each.next_offset <= log.high_watermark]
        if len(full) <= 3:
            return NOTHING_TO_CLEAN
        return CleanupPlan(deletion=Deletion(full[-4].next_offset, "three full segments stay"))


@hookimpl
def odradek_cleanup_policies() -> dict[str, CleanupPolicy]:
    """Offer `cleanup.policy=last_segments`."""
    return {"last_segments": LastSegments()}
