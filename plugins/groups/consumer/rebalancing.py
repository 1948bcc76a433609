"""Pure core: the three steps of a rebalance, each taken by whoever's request comes first.

1. `advance_epoch`: a subscription or a topic changed: the group has to be assigned anew, its epoch grows.
2. `update_target`: the target assignment is behind the group's epoch: compute it, unless it is too early. Of a large
   group it is computed beside (`assigning.py`), and until then the members follow the one that there is.
3. `reconcile`: the member that sent the request is behind the target: take it one step further.

*Source:* KIP-848; KIP-1263 for the interval between assignments; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode, KafkaError

from . import records
from .assigning import Assigning
from .reconciliation import Reconciliation
from .settings import ASSIGNMENT_INTERVAL
from .targets import compute_targets, topics_of
from .topics_hash import TopicHashes, existing_topics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from uuid import UUID

    from odradek.kernel.api import Assignor

    from ..group import Effects, ShardContext
    from .group import ConsumerGroup
    from .member import Member, Target, TopicPartitionsLike
    from .settings import Settings


class Rebalancing:
    """The steps, for the groups of a shard.

    Attributes:
        hashes: Of the topics that they read.
    """

    def __init__(self, context: ShardContext, settings: Settings) -> None:
        """Make it."""
        self._context = context
        self._cluster = context.broker.cluster
        self._settings = settings
        self.hashes = TopicHashes()
        self._assigning = Assigning(context)

    def hash_of(self, names: Iterable[str]) -> int:
        """Return the hash of topics as they are now."""
        return self.hashes.of_group(names, self._cluster)

    def is_stale(self, group: ConsumerGroup) -> bool:
        """Return whether a topic that the group reads may have changed since its metadata hash was computed."""
        hashes = self.hashes
        if group.changes_seen != hashes.changes_count:
            if hashes.has_changed_since(group.changes_seen, group.topic_names):
                group.is_metadata_stale = True
            group.changes_seen = hashes.changes_count
        return group.is_metadata_stale

    def advance_epoch(self, group: ConsumerGroup, old: Member, new: Member, effects: Effects, *, is_due: bool) -> int:
        """Look at the metadata, and begin the next epoch of the group if it has changed, or if one is due.

        Args:
            group: The group.
            old: The member whose request this is, as it is counted; one that is new is subscribed to nothing yet.
            new: The same member, as it will be.
            effects: Gets the records.
            is_due: Whether a new epoch is due anyway.

        Returns:
            The group's epoch.
        """
        gone = (old.regex,) if old.regex and old.regex != new.regex and group.regexes.get(old.regex) == 1 else ()
        names = group.topics_if((old,), (new,), gone)
        epoch = group.group_epoch
        changes_count = self.hashes.changes_count
        metadata_hash = self.hash_of(names)
        is_whole = self.hashes.changes_count == changes_count  # Else a later request looks again, at more topics.
        if is_due or (is_whole and metadata_hash != group.metadata_hash):
            epoch = self.begin_epoch(group, metadata_hash, effects)
        elif is_whole:
            group.is_metadata_stale = False
        if group.has_partition_metadata:
            effects.records.append(records.partition_metadata_tombstone(group.group_id))
        return epoch

    def begin_epoch(self, group: ConsumerGroup, metadata_hash: int, effects: Effects) -> int:
        """Begin the next epoch of a group, and return it; once that is written, the metadata was looked at."""
        epoch = group.group_epoch + 1
        effects.records.append(records.group(group.group_id, epoch, metadata_hash))
        if epoch > group.counted_epoch:  # one that was refused is decided again
            group.counted_epoch = epoch
            self._context.counters.consumer_rebalances += 1
        return epoch

    def update_target(
        self, group: ConsumerGroup, epoch: int, old: Member, new: Member, effects: Effects, now_ms: int
    ) -> tuple[int, Target]:
        """Compute the targets of all members if they are behind the group's epoch and it is not too early.

        Of a large group they are begun to be computed, and those of before are returned.

        Args:
            group: The group.
            epoch: Its epoch, perhaps begun just now.
            old: The member whose request this is, as it was counted.
            new: The same member, as it will be.
            effects: Gets the records of what changed.
            now_ms: The wall clock, to be written down.

        Returns:
            The epoch of the targets, and the member's.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: no plugin offers the assignor.
        """
        if group.assignment_epoch >= epoch or self._assigning.is_under_way(group) or not self._may_assign(group):
            return group.assignment_epoch, group.target_of(new)
        assignor = self._assignor(group.preferred_assignor(self._settings.assignors, old=old, new=new))
        if self._assigning.is_large(group, new):
            self._assigning.begin(group, assignor)
            return group.assignment_epoch, group.target_of(new)
        topics = topics_of(group.topic_names | group.topics_of(new), self._cluster)
        targets = compute_targets(assignor, self._members_with(group, new), topics)
        for member_id, target in targets.items():
            if target != group.targets.get(member_id):
                effects.records.append(records.target(group.group_id, member_id, target))
        effects.records.append(records.target_metadata(group.group_id, epoch, now_ms))
        return epoch, targets[new.member_id]

    def reconcile(
        self,
        group: ConsumerGroup,
        member: Member,
        target_epoch: int,
        target: Target,
        effects: Effects,
        *,
        is_subscription_new: bool,
        owned: Sequence[TopicPartitionsLike] | None,
    ) -> Member:
        """Take a member one step further towards its target; see `Reconciliation`."""
        if not is_subscription_new and member.is_reconciled_to(target_epoch):
            return member
        step = Reconciliation(
            target_epoch, target, self._topic_ids(group.topics_of(member)), is_subscription_new, group.owned_of, owned
        )
        updated = step.step(member)
        if updated is member or updated == member:
            return member
        effects.records.append(records.current(group.group_id, updated))
        return updated

    def _topic_ids(self, names: Collection[str]) -> set[UUID]:
        topics = (self._cluster.topic(name) for name in existing_topics(names, self._cluster))
        return {topic.topic_id for topic in topics if topic is not None}

    def _may_assign(self, group: ConsumerGroup) -> bool:
        interval_ms = self._settings.of_group(group.group_id, ASSIGNMENT_INTERVAL)
        since_ms = group.assigned_at_ms
        return since_ms is None or self._context.timers.monotonic_ms() >= since_ms + interval_ms

    def _assignor(self, name: str) -> Assignor:
        assignor = self._context.broker.assignors.get(name)
        if assignor is None or not assignor.is_server_side:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"group.consumer.assignors names {name!r}, which no active plugin offers to the group coordinator",
            )
        return assignor

    @staticmethod
    def _members_with(group: ConsumerGroup, new: Member) -> Iterator[tuple[Member, frozenset[str], Target]]:
        replaced = group.static_members.get(new.instance_id) if new.instance_id is not None else None
        for member_id, member in group.members.items():
            if member_id not in (new.member_id, replaced):
                yield member, group.topics_of(member), group.targets.get(member_id, {})
        yield new, group.topics_of(new), group.target_of(new)
