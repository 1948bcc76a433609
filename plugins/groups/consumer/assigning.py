"""Pure core: the targets of groups that are too large for one operation: computed beside, written in portions.

::

    a member's request      the group is large, its targets are behind: `begin`; the member goes on with what it has
    operations of their own gather the topics, some at a time
    a worker thread         the assignor decides, for members, targets and topics as they were
    operations of their own write what changed, some members at a time, and the epoch of the targets last
    later requests          take each member towards its target, as ever

The targets are those of the epoch in which they were begun, even if the group has a newer one by then: else a group in
which somebody always comes or goes would never be assigned. Who came meanwhile has no target yet, who went is passed
over, and whoever took a static member's place gets what that one was to have. So no two targets overlap once the epoch
is written.

Before that they may: some members have their new target and others the old one, for good if the broker dies in
between. Nothing rests on that. A partition is given to a member only while nobody owns it, whatever the targets say
(`reconciliation.py`); and as the epoch of the targets is behind the group's, whoever loads the group has them computed
anew.

*Source:* KIP-848, KIP-1263; the behaviour of Kafka 4.3's TargetAssignmentBuilder.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..group import Effects
from . import records
from .group import ConsumerGroup, topics_read_by
from .member import NOTHING
from .targets import compute_targets
from .topics_hash import existing_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import Assignor, CoordinatorResult, TimerKey, TopicView

    from ..group import ShardContext
    from ..records import GroupRecord
    from .member import Member, Target

    Result = CoordinatorResult[GroupRecord, None]

AT_ONCE_MAX: Final = 2_000
"""So many subscriptions and partitions together are assigned within one operation: some milliseconds."""
TOPICS_A_STEP: Final = 1_000
ENTRIES_A_STEP: Final = 400
"""So many members and topics of their targets are written at once, or those of one member: some milliseconds."""
REFUSED_PAUSE_MS: Final = 500
"""How long after a portion was refused the next one waits: too few replicas are in sync."""


class _Assignment:
    """An assignment under way.

    Attributes:
        group: The group.
        epoch: Of the group, when this was begun.
        assignor: Decides.
        members: All of them, by id.
        topics: What they read, by name.
        changed: Computed: the ids of members whose targets change, each with its new one.
        written_count: How many of them have it already.
        tried_count: How many had when the last portion was written, -1 before the first.
    """

    def __init__(self, group: ConsumerGroup, assignor: Assignor, names: Iterator[str]) -> None:
        """Take a group as it is now; `names` are its topics'."""
        self.group = group
        self.epoch = group.group_epoch
        self.assignor = assignor
        self.members = dict(group.members)
        self._resolved = dict(group.resolved)
        self._targets = dict(group.targets)
        self.names = names
        self.topics: dict[str, TopicView] = {}
        self.changed: list[tuple[str, Target]] = []
        self.written_count = 0
        self.tried_count = -1

    def compute(self) -> list[tuple[str, Target]]:
        """Return whose targets change, and to what; may be called on any thread."""
        before = self._targets
        members = (
            (one, topics_read_by(one, self._resolved), before.get(one.member_id, NOTHING))
            for one in self.members.values()
        )
        targets = compute_targets(self.assignor, members, self.topics)
        return [(member_id, target) for member_id, target in targets.items() if target != before.get(member_id)]

    def is_in_place(self, member_id: str, target: Target) -> bool:
        """Return whether a target is that of its member by now, or its member is no more."""
        holder = self.holder(member_id)
        return holder is None or self.group.targets.get(holder) == target

    def holder(self, member_id: str) -> str | None:
        """Return who is to have a member's target: itself, or who took its place; None when it has gone."""
        group = self.group
        if member_id in group.members:
            return member_id
        holder = group.static_members.get(self.members[member_id].instance_id or "")
        return None if holder in self.members else holder


class Assigning:
    """The assignments of a shard's large groups."""

    def __init__(self, context: ShardContext) -> None:
        """Make it; nothing is under way."""
        self._context = context
        self._timers = context.timers
        self._cluster = context.broker.cluster

    def is_under_way(self, group: ConsumerGroup) -> bool:
        """Return whether the group's targets are being computed or written."""
        return self._timers.is_scheduled(_timer_key(group.group_id))

    def is_large(self, group: ConsumerGroup, new: Member) -> bool:
        """Return whether a group, with a member as it is to be, is too large to be assigned at once."""
        by_regex = (
            len(group.resolved[regex].topics) * count
            for regex, count in group.regexes.items()
            if regex in group.resolved
        )
        size = len(group.members) + len(new.topics) + sum(group.topics_by_name.values()) + sum(by_regex)
        if size > AT_ONCE_MAX:
            return True
        topics = (self._cluster.topic(name) for name in group.topic_names | new.topics)
        return size + sum(topic.partitions_count for topic in topics if topic is not None) > AT_ONCE_MAX

    def begin(self, group: ConsumerGroup, assignor: Assignor) -> None:
        """Have the group's targets computed, as it is when what is being decided now is written."""
        step = partial(self._begin, group.group_id, assignor)
        self._timers.schedule(_timer_key(group.group_id), 0, step)

    def _begin(self, group_id: str, assignor: Assignor, now_ms: int) -> Result:
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or group.assignment_epoch >= group.group_epoch:
            return Effects().result(None)
        names = iter(tuple(existing_topics(group.topic_names, self._cluster)))
        return self._gather(_Assignment(group, assignor, names), now_ms)

    def _gather(self, assignment: _Assignment, now_ms: int) -> Result:
        """Look some topics up, and have the assignment computed once all are there."""
        names = list(islice(assignment.names, TOPICS_A_STEP))
        views = ((name, self._cluster.topic(name)) for name in names)
        assignment.topics.update((name, view) for name, view in views if view is not None)
        key = _timer_key(assignment.group.group_id)
        if len(names) == TOPICS_A_STEP:
            self._timers.schedule(key, 0, partial(self._gather, assignment))
        else:
            take = partial(self._take, assignment)
            self._timers.compute(key, assignment.compute, take, asked=assignment.assignor)
        return Effects().result(None)

    def _take(self, assignment: _Assignment, changed: Any, now_ms: int) -> Result:
        assignment.changed = changed
        return self._write(assignment, now_ms)

    def _write(self, assignment: _Assignment, now_ms: int) -> Result:
        """Write some more of the targets that are not in place yet, after the last of them their epoch.

        What the last portion wrote may have been refused: that shows by what is in place.
        """
        group, effects = assignment.group, Effects()
        if self._context.groups.get(group.group_id) is not group:
            return effects.result(None)  # It is another one by now.
        changed = assignment.changed
        while assignment.written_count < len(changed) and assignment.is_in_place(*changed[assignment.written_count]):
            assignment.written_count += 1
        entries_count = 0
        for member_id, target in islice(changed, assignment.written_count, None):
            if assignment.is_in_place(member_id, target):
                continue
            if entries_count >= ENTRIES_A_STEP:
                was_refused = assignment.written_count == assignment.tried_count
                assignment.tried_count = assignment.written_count
                pause_ms = REFUSED_PAUSE_MS if was_refused else 0
                self._timers.schedule(_timer_key(group.group_id), pause_ms, partial(self._write, assignment))
                break
            holder = assignment.holder(member_id)
            assert holder is not None, "else it would be in place"
            effects.records.append(records.target(group.group_id, holder, target))
            entries_count += 1 + len(target)
        else:
            effects.records.append(records.target_metadata(group.group_id, assignment.epoch, now_ms))
        return effects.result(None, is_atomic=False)


def _timer_key(group_id: str) -> TimerKey:
    return "consumer targets", group_id
