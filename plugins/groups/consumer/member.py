"""Pure core: a member of a consumer group, as the log has it.

Members are values: a change makes a new one, so that an operation can look at the old and the new side by side.

*Source:* KIP-848; the form of Kafka's ConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from uuid import UUID

import attrs

if TYPE_CHECKING:
    from odradek.kernel.wire.messages.data_consumer_group_records import (
        ClassicMemberMetadata,
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
    )

JOIN_EPOCH: Final = 0
"""The member epoch of a request that joins, or joins again."""

LEAVE_EPOCH: Final = -1
"""The member epoch of a request that leaves."""

STATIC_LEAVE_EPOCH: Final = -2
"""The member epoch of a static member that is away for a while: what it owns is kept for whoever comes in its name."""

EpochsByPartition: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""By topic id and partition, the epoch in which the member was given the partition."""

Target: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Partitions by topic id, ascending."""

NOTHING: Final[Target] = {}


class TopicPartitionsLike(Protocol):
    """A topic and partitions, in whichever message they stand."""

    topic_id: UUID
    partitions: list[int]


class _TopicEpochs(TopicPartitionsLike, Protocol):
    assignment_epochs: list[int] | None


class MemberState(IntEnum):
    """How far a member is on its way to its target; the numbers stand in the log."""

    STABLE = 0
    """It has what the target of its epoch gives it."""
    UNREVOKED_PARTITIONS = 1
    """It still has to let go of partitions before it can move to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch and waits for partitions that others still hold."""
    UNKNOWN = 127
    """A later version wrote a state that this one does not know."""


_STATES: Final = {int(state): state for state in MemberState}


@attrs.frozen
class Member:
    """A member.

    Attributes:
        member_id: Its id.
        member_epoch: The epoch that it is in; `STATIC_LEAVE_EPOCH` while a static member is away.
        previous_epoch: The epoch that it came from: an answer may have been lost, so requests in it are taken.
        state: How far it is.
        instance_id: What makes it a static member.
        rack_id: Its rack.
        rebalance_timeout_ms: How long it may take to let go of partitions.
        client_id: As in its requests.
        client_host: `/` and the address.
        topics: The names that it subscribed to.
        regex: The regular expression that it subscribed to, empty or None for none.
        assignor: The server-side assignor that it prefers.
        assigned: What it may read.
        revoking: What it still has to let go of.
        classic: What it needs to be served by the classic protocol; None for members of the consumer protocol.
    """

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    assigned: EpochsByPartition = attrs.field(factory=dict)
    revoking: EpochsByPartition = attrs.field(factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether there is nothing left to do for it in this epoch."""
        return self.member_epoch == epoch and self.state is MemberState.STABLE

    def moved_to(
        self, epoch: int, state: MemberState, assigned: EpochsByPartition, revoking: EpochsByPartition
    ) -> Member:
        """Return the member in an epoch, perhaps the same, with its present epoch as the one that it came from."""
        return attrs.evolve(
            self,
            member_epoch=epoch,
            previous_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def away(self) -> Member:
        """Return the static member as it is while it is away; when it is back, what it owns was given in epoch 0."""
        assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned.items()}
        return attrs.evolve(self, member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking={})

    def gone(self) -> Member:
        """Return the member after the tombstone of its current assignment: it owns nothing."""
        return attrs.evolve(self, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})

    def replaced_by(self, member_id: str) -> Member:
        """Return the static member that takes this one's place under a new id."""
        return attrs.evolve(self, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> Member:
        """Return the member as a record of its metadata says."""
        return attrs.evolve(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        """Return the member as a record of its current assignment says."""
        return attrs.evolve(
            self,
            member_epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=_epochs_of(value.assigned_partitions, value.member_epoch),
            revoking=_epochs_of(value.partitions_pending_revocation, value.member_epoch),
        )


def _epochs_of(topics: Sequence[_TopicEpochs], member_epoch: int) -> EpochsByPartition:
    """Return the epochs of partitions. Records of before Kafka 4.3 do not tell them: then the member's epoch counts."""
    default = max(member_epoch, 0)
    epochs = {}
    for topic in topics:
        known = topic.assignment_epochs
        if known is not None and len(known) == len(topic.partitions):
            epochs[topic.topic_id] = dict(zip(topic.partitions, known, strict=True))
        else:
            epochs[topic.topic_id] = dict.fromkeys(topic.partitions, default)
    return epochs


def is_owned_within(owned: Sequence[TopicPartitionsLike] | None, assigned: EpochsByPartition) -> bool:
    """Return whether a member tells what it owns, and all of it was assigned to it."""
    if owned is None:
        return False
    return all(
        topic.topic_id in assigned and assigned[topic.topic_id].keys() >= set(topic.partitions) for topic in owned
    )
