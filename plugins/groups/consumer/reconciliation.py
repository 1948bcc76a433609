"""Pure core: how a member follows its target: first it lets go, then it moves to the epoch, then it gets what is free.

::

                       nothing to let go of
    STABLE ─────────────────────────────────────────────┐
      ▲ │ newer epoch                                   ▼
      │ └──> UNREVOKED_PARTITIONS ──────────────> the target's epoch ──> STABLE, if everything was free
      │        in its old epoch,    it no longer                    └──> UNRELEASED_PARTITIONS
      │        until it let go      tells them                                 │ tried again at each heartbeat
      └────────────────────────────────────────────────────────────────────────┘

A partition is given only while nobody owns it: `owned_of` knows what every member was given and has not yet given up.

*Source:* KIP-848, "Assignment & Reconciliation Process"; the behaviour of Kafka 4.3's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import ErrorCode, KafkaError

from .member import MemberState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Mapping, Sequence
    from uuid import UUID

    from .member import EpochsByPartition, Member, Target, TopicPartitionsLike


@attrs.frozen
class Reconciliation:
    """What one step of a member towards its target depends on, beside the member.

    Attributes:
        target_epoch: The epoch of the target.
        target: What the member shall have.
        topic_ids: The topics that it is subscribed to and that exist.
        is_subscription_new: Whether it has just changed its subscription: then what it no longer reads is taken back
            at once.
        owned_of: Which partitions some member owns, by topic id.
        owned: What the member says that it owns; None when it does not say.
    """

    target_epoch: int
    target: Target
    topic_ids: Collection[UUID]
    is_subscription_new: bool
    owned_of: Callable[[UUID], Container[int]]
    owned: Sequence[TopicPartitionsLike] | None

    def step(self, member: Member) -> Member:
        """Return the member as it is after this step, itself when nothing changes.

        Raises:
            KafkaError: FENCED_MEMBER_EPOCH: its state is not known here; it has to begin anew.
        """
        if member.state is MemberState.UNKNOWN:
            if self.owned is None or self.owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return self._moved(member, self.target_epoch)
        is_waiting = (member.state is MemberState.STABLE and member.member_epoch == self.target_epoch) or (
            member.state is MemberState.UNREVOKED_PARTITIONS and self._still_has(member.revoking)
        )
        if not is_waiting:
            return self._moved(member, member.member_epoch)
        return self._without_unread(member) if self.is_subscription_new else member

    def _still_has(self, partitions: EpochsByPartition) -> bool:
        if self.owned is None:
            return True
        return any(
            partition in partitions.get(topic.topic_id, ()) for topic in self.owned for partition in topic.partitions
        )

    def _without_unread(self, member: Member) -> Member:
        """Take back what belongs to topics that the member does not read any more; it stays in its epoch."""
        unread = [topic_id for topic_id in member.assigned if topic_id not in self.topic_ids]
        if not unread:
            return member
        assigned = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in self.topic_ids}
        revoking = dict(member.revoking)
        for topic_id in unread:
            revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
        if self._still_has(revoking):
            return member.moved_to(member.member_epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
        return member.moved_to(member.member_epoch, member.state, assigned, member.revoking)

    def _moved(self, member: Member, epoch: int) -> Member:
        kept: dict[UUID, Mapping[int, int]] = {}
        revoking: dict[UUID, Mapping[int, int]] = {}
        free: dict[UUID, list[int]] = {}
        is_waiting = False
        for topic_id in {**self.target, **member.assigned}:
            target = self.target.get(topic_id, ()) if topic_id in self.topic_ids else ()
            held = member.assigned.get(topic_id, {})
            wanted = set(target)
            if stays := {partition: held[partition] for partition in held if partition in wanted}:
                kept[topic_id] = stays
            if goes := {partition: held[partition] for partition in held if partition not in wanted}:
                revoking[topic_id] = goes
            missing = [partition for partition in target if partition not in held]
            # What the member itself is about to let go of is no hindrance: nobody else can have it meanwhile.
            own, owned = member.revoking.get(topic_id, {}), self.owned_of(topic_id)
            unowned = [part for part in missing if part in own or part not in owned]
            is_waiting = is_waiting or len(unowned) < len(missing)
            if unowned:
                free[topic_id] = unowned
        if revoking and self._still_has(revoking):
            return member.moved_to(epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        for topic_id, partitions in free.items():
            kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(partitions, self.target_epoch)}
        state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
        return member.moved_to(self.target_epoch, state, kept, {})
