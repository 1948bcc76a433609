"""Pure core: finding a group and a member for a request, and what a request says about them.

*Source:* KIP-848, KIP-345; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from odradek.kernel.api import ErrorCode, KafkaError

from ..classic.group import ClassicGroup
from . import records
from .group import ConsumerGroup
from .member import JOIN_EPOCH, NOTHING, STATIC_LEAVE_EPOCH, Member, is_owned_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..group import Effects, ShardContext
    from .member import TopicPartitionsLike
    from .settings import Settings


class Memberships:
    """Groups and members of a shard, looked up or made."""

    def __init__(self, context: ShardContext, settings: Settings) -> None:
        """Make it."""
        self._context = context
        self._settings = settings

    # --------------------------------------------------------------------------------------------------------- groups

    def group(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        detail = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, detail)

    def group_to_join(self, group_id: str, effects: Effects) -> ConsumerGroup | ClassicGroup:
        """Return the group that a member of the consumer protocol joins, made when it is not there.

        Args:
            group_id: Its id.
            effects: Gets the records that end a classic group without members. One that has some is returned: it
                becomes a consumer group, if it may (`Migration`).
        """
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if isinstance(group, ClassicGroup):
            if not group.is_empty:
                return group
            effects.records += group.deletion_records()
        return ConsumerGroup(group_id)

    def group_to_follow(self, group_id: str) -> ConsumerGroup:
        """Return the group of a request of a member that says it has joined.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        detail = (
            f"Consumer group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        )
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, detail)

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        """Check that a group takes one more member, if the sender is none.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED.
        """
        size_max = self._settings.size_max
        if len(group.members) >= size_max and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {size_max} members.",
            )

    # -------------------------------------------------------------------------------------------------------- members

    def dynamic_member(self, group: ConsumerGroup, member_id: str, *, may_be_new: bool) -> Member:
        """Return a member without an instance id.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        member = group.members.get(member_id)
        if member is not None:
            return member
        if may_be_new:
            return Member(member_id)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")

    def static_member(self, group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
        """Return the static member that says it has joined.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID: another one has its instance id now.
        """
        member = group.static_member(instance_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        check_instance(member, member_id, instance_id)
        return member

    def static_member_to_join(
        self, group: ConsumerGroup, member_id: str, instance_id: str, effects: Effects, *, is_classic: bool
    ) -> Member:
        """Return the static member that joins, in the place of the one who had its instance id before.

        Args:
            group: The group.
            member_id: The id under which it joins.
            instance_id: Its instance id.
            effects: Gets the records of the replacement.
            is_classic: Whether it joins with the classic protocol.

        Raises:
            KafkaError: UNRELEASED_INSTANCE_ID: both speak the consumer protocol, and the other one has not left.
        """
        existing = group.static_member(instance_id)
        if existing is None:
            return self.dynamic_member(group, member_id, may_be_new=True)
        if not is_classic and not existing.is_classic and existing.member_epoch != STATIC_LEAVE_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {existing.member_id} member.",
            )
        member = existing.replaced_by(member_id)
        effects.records += (
            *records.removal(group.group_id, existing.member_id),
            records.member(group.group_id, member),
            records.target(group.group_id, member_id, group.targets.get(existing.member_id, NOTHING)),
            records.current(group.group_id, member),
        )
        return member

    def check_metadata_record(self, group: ConsumerGroup, old: Member, new: Member, effects: Effects) -> bool:
        """Write down what a member is if that has changed; return whether the topics that it names have."""
        if new is old or new == old:
            return False
        effects.records.append(records.member(group.group_id, new))
        return new.topics != old.topics


def check_instance(member: Member, member_id: str, instance_id: str) -> None:
    """Check that a static member is who it says.

    Raises:
        KafkaError: FENCED_INSTANCE_ID.
    """
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )


def check_epoch(member: Member, epoch: int, owned: Sequence[TopicPartitionsLike] | None) -> None:
    """Check the epoch in which a member of the consumer protocol sends a request.

    Its previous epoch will do when it owns nothing but what it was assigned: then only the answer was lost.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch > member.member_epoch:
        compared = "greater"
    elif epoch == member.previous_epoch and is_owned_within(owned, member.assigned):
        return
    else:
        compared = "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def updated_member(member: Member, **changes: Any) -> Member:
    """Return the member with changes, itself when there are none."""
    different = {name: value for name, value in changes.items() if getattr(member, name) != value}
    return attrs.evolve(member, **different) if different else member
