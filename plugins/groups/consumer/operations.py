"""Pure core: the consumer groups of a shard: what is asked of them, their records, the changes of the metadata.

*Source:* KIP-848; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import odradek.kernel.wire.messages.data_consumer_group_records as messages
from odradek.kernel.api import KafkaError, run_at_once
from odradek.kernel.wire.messages.api_69_consumer_group_describe import DescribedGroup

from ..group import Effects
from .classic_members import ClassicMembers
from .describing import GroupMoment
from .fencing import Fencing
from .group import NEVER_MS, ConsumerGroup
from .heartbeats import Heartbeats
from .memberships import Memberships
from .migration import Migration
from .rebalancing import Rebalancing
from .settings import Settings
from .subscriptions import RegexSubscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from odradek.kernel.api import CoordinatorResult, Message, MetadataChange, ProducerIdentity, Waiter
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
    from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest
    from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

    from ..classic.operations import ClassicGroups
    from ..group import Caller, Decided, ReplayMethod, ShardContext
    from ..records import GroupRecord

    Result = CoordinatorResult[GroupRecord, object]
    Apply: TypeAlias = Callable[[ConsumerGroup, Any, Any], None]


def _apply_member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        group.apply_member(key.member_id, value)


def _apply_partition_metadata(group: ConsumerGroup, _key: Any, value: Any) -> None:
    group.has_partition_metadata = value is not None


APPLIED: Final[Mapping[type[Message], Apply]] = {
    messages.ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    messages.ConsumerGroupMemberMetadataKey: _apply_member,
    messages.ConsumerGroupTargetAssignmentMemberKey: lambda group, key, value: group.apply_target(key.member_id, value),
    messages.ConsumerGroupCurrentMemberAssignmentKey: lambda group, key, value: group.apply_current(
        key.member_id, value
    ),
}
"""By class of key, what a record changes in its group, if time does not matter; a value of None is a tombstone."""


class ConsumerGroups:
    """The consumer groups of a shard: a part of it, and the operations of both protocols on them."""

    def __init__(self, context: ShardContext, classic: ClassicGroups) -> None:
        """Make it, without groups; `classic` has those that may become consumer groups."""
        self._context = context
        self._settings = Settings(context.broker)
        self._rebalancing = Rebalancing(context, self._settings)
        self._regexes = RegexSubscriptions(context, self._settings, self._rebalancing)
        migration = Migration(context, self._settings, self._rebalancing, classic)
        self._memberships = Memberships(context, self._settings)
        self._fencing = Fencing(context, self._settings, self._rebalancing, migration)
        parts = (self._memberships, self._rebalancing, self._regexes, self._fencing, migration)
        self._heartbeats = Heartbeats(context, self._settings, *parts)
        self._classic_members = ClassicMembers(context, self._settings, *parts)

    def groups(self) -> Iterator[ConsumerGroup]:
        """Iterate over the consumer groups."""
        return (group for group in self._context.groups.values() if isinstance(group, ConsumerGroup))

    # ------------------------------------------------------------------------------------------- the consumer protocol

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer ConsumerGroupHeartbeat; see `Heartbeats.answer`."""
        return self._heartbeats.answer(request, caller, now_ms)

    def keep(self, group_id: str, member_ids: Collection[str]) -> None:
        """Take it that members have just spoken; see `GroupShard.keep_members`."""
        members = self._group(group_id).members
        for member_id in member_ids:
            if member_id in members:
                self._fencing.keep(group_id, members[member_id])

    def describe(self, group_ids: Sequence[str]) -> CoordinatorResult[GroupRecord, list[DescribedGroup]]:
        """Answer ConsumerGroupDescribe, for groups of this shard."""
        cluster = self._context.broker.cluster
        return Effects().result([run_at_once(self._moment(each).told_in_steps(cluster)) for each in group_ids])

    def moment(self, group_id: str) -> CoordinatorResult[GroupRecord, GroupMoment]:
        """Return what ConsumerGroupDescribe tells of a group, to be told a little at a time."""
        return Effects().result(self._moment(group_id))

    def _moment(self, group_id: str) -> GroupMoment:
        try:
            group = self._memberships.group(group_id)
        except KafkaError as error:
            told = DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
            return GroupMoment(told)
        return GroupMoment.of(group, self._settings.assignors)

    # -------------------------------------------------------------------------------------------- the classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller, waiter: Waiter, now_ms: int) -> Decided:
        """Answer JoinGroup in a group that has members; see `ClassicMembers`."""
        return self._classic_members.join(self._group(request.group_id), request, caller, now_ms)

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> Result:
        """Answer SyncGroup; see `ClassicMembers`."""
        return self._classic_members.sync(self._group(request.group_id), request)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Result:
        """Answer Heartbeat; see `ClassicMembers`."""
        return self._classic_members.heartbeat(self._group(request.group_id), request)

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer LeaveGroup; see `ClassicMembers`."""
        return self._classic_members.leave(self._group(request.group_id), request, now_ms)

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._context.groups[group_id]
        assert isinstance(group, ConsumerGroup), f"{group!r} was sent to the wrong part"
        return group

    # ---------------------------------------------------------------------------------------------- a part of a shard

    @property
    def replays(self) -> Mapping[type[Message], ReplayMethod]:
        """By class of key, what applies a record."""
        applied: dict[type[Message], Apply] = {
            messages.ConsumerGroupMetadataKey: self._apply_metadata,
            messages.ConsumerGroupTargetAssignmentMetadataKey: self._apply_target_metadata,
            messages.ConsumerGroupRegularExpressionKey: self._apply_regex,
        }
        applied.update(APPLIED)
        return {kind: self._replaying(apply) for kind, apply in applied.items()}

    def loaded(self, now_ms: int) -> Iterator[None]:
        """Everything is replayed: sessions begin."""
        self._regexes.loaded()
        for group in self.groups():
            yield from self._fencing.loaded(group)
            group.begin_to_time(now_ms, self._context.timers.monotonic_ms())
            yield

    def metadata_changed(self, change: MetadataChange) -> None:
        """Have the groups that read a topic look at it when their next member sends a heartbeat."""
        names = {topic.name for topic in change.deleted_topics} | change.created_topics | change.changed_topics
        if names:
            self._rebalancing.hashes.topics_changed(names)
        if change.created_topics:
            self._regexes.topics_created()

    # --------------------------------------------------------------------------------------------------------- records

    def _replayed(self, group_id: str, *, may_be_new: bool) -> ConsumerGroup | None:
        """Return the group of a record. A tombstone makes none.

        While a log is loaded offsets may have made a classic group before. Later a classic group is here only when this
        very operation makes the consumer group one: what is left of the consumer group's records is history.
        """
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not may_be_new or (group is not None and self._context.is_loaded):
            return None
        new = self._context.groups[group_id] = ConsumerGroup(group_id)
        return new

    def _replaying(self, apply: Apply) -> ReplayMethod:
        """Return what applies a record to its group."""

        def replay(key: Any, value: Any, offset: int, producer: ProducerIdentity) -> None:
            group = self._replayed(key.group_id, may_be_new=value is not None)
            if group is not None:
                apply(group, key, value)

        return replay

    def _apply_metadata(
        self, group: ConsumerGroup, _key: Any, value: messages.ConsumerGroupMetadataValue | None
    ) -> None:
        if value is None:
            del self._context.groups[group.group_id]
            if group.successor is not None:
                self._context.groups[group.group_id] = group.successor
        else:
            group.apply_metadata(value)
            # A group that is loaded has to look: topics may have changed while nobody coordinated it.
            group.is_metadata_stale = group.is_metadata_stale and not self._context.is_loaded

    def _apply_target_metadata(
        self, group: ConsumerGroup, _key: Any, value: messages.ConsumerGroupTargetAssignmentMetadataValue | None
    ) -> None:
        group.apply_target_metadata(value)
        if self._context.is_loaded and group.assignment_timestamp_ms != NEVER_MS:
            group.assigned_at_ms = self._context.timers.monotonic_ms()

    def _apply_regex(
        self, group: ConsumerGroup, key: Any, value: messages.ConsumerGroupRegularExpressionValue | None
    ) -> None:
        group.apply_regex(key.regular_expression, value)
        if self._context.is_loaded and value is not None:
            group.looked_up_at_ms = self._context.timers.monotonic_ms()
