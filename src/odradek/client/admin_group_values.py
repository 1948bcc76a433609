"""Pure core: what an admin client tells of groups.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.errors import DecodeError
from odradek.kernel.wire.messages.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    partitions_by_topic,
)

from .errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.wire.messages import api_15_describe_groups as classic
    from odradek.kernel.wire.messages import api_69_consumer_group_describe as consumer

DEAD: Final = "Dead"
"""The state of a group that is not there, as brokers older than KIP-1043 tell it."""

STATES_WITHOUT_MEMBERS: Final = frozenset({"empty", "dead"})


@attrs.frozen
class GroupListing:
    """A group, as a list of groups tells it.

    Attributes:
        group_id: Its id.
        protocol_type: `consumer` for consumers of both protocols; empty for groups that only ever committed offsets.
        state: `Stable`, `Empty`, ...; empty when the broker is too old to tell.
        type: `Classic`, `Consumer`, `Share`, ...; empty when the broker is too old to tell.
        coordinator_id: The broker that told.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator_id: int


@attrs.frozen
class GroupMemberDescription:
    """A member of a group.

    Attributes:
        member_id: Its id.
        instance_id: The `group.instance.id` of a static member.
        client_id: The `client.id` of its client.
        client_host: Where it connects from.
        partitions: What it reads, by topic; empty for a member whose protocol this client does not know.
        target: What it shall read (consumer protocol), if that is told.
        topics: What it subscribed to by name.
        topics_regex: What it subscribed to by pattern (consumer protocol).
        epoch: Its member epoch (consumer protocol), -1 without.
        rack: Its `client.rack`, when it is told.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    partitions: Mapping[str, Sequence[int]]
    target: Mapping[str, Sequence[int]] | None = None
    topics: Sequence[str] = ()
    topics_regex: str | None = None
    epoch: int = -1
    rack: str | None = None


@attrs.frozen
class GroupDescription:
    """A group.

    Attributes:
        group_id: Its id.
        type: `Classic` or `Consumer`.
        state: `Stable`, `Empty`, `PreparingRebalance`, `Assigning`, ...
        protocol_type: `consumer` for consumers.
        assignor: The strategy in use; empty when there is none.
        epoch: The group epoch of the consumer protocol, -1 for a classic group.
        assignment_epoch: The epoch of its target assignment, -1 for a classic group.
        members: Its members, by id.
        coordinator_id: The broker that coordinates it.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int
    assignment_epoch: int
    members: tuple[GroupMemberDescription, ...]
    coordinator_id: int

    @property
    def is_active(self) -> bool:
        """Whether it has members, so that its offsets are theirs."""
        return self.state.lower() not in STATES_WITHOUT_MEMBERS


def no_such_group(group_id: str, detail: str | None = None) -> BrokerError:
    """Return the error of a group that is not there."""
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, detail or f"there is no group {group_id!r}")


def classic_description(group: classic.DescribedGroup, coordinator_id: int) -> GroupDescription:
    """Return what DescribeGroups told of a group."""
    return GroupDescription(
        group_id=group.group_id,
        type="Classic",
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        epoch=-1,
        assignment_epoch=-1,
        members=tuple(sorted((_classic_member(group, each) for each in group.members), key=lambda m: m.member_id)),
        coordinator_id=coordinator_id,
    )


def _classic_member(group: classic.DescribedGroup, member: classic.DescribedGroupMember) -> GroupMemberDescription:
    partitions: Mapping[str, Sequence[int]] = {}
    topics: Sequence[str] = ()
    rack = None
    if group.protocol_type == PROTOCOL_TYPE:
        try:  # a group that rebalances tells neither, and who knows what other libraries put there
            subscription = decode_subscription(member.member_metadata)
            topics, rack = subscription.topics, subscription.rack_id
            partitions = partitions_by_topic(decode_assignment(member.member_assignment))
        except DecodeError:
            pass
    return GroupMemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        partitions=partitions,
        topics=topics,
        rack=rack or None,
    )


def consumer_description(group: consumer.DescribedGroup, coordinator_id: int) -> GroupDescription:
    """Return what ConsumerGroupDescribe told of a group."""
    return GroupDescription(
        group_id=group.group_id,
        type="Consumer",
        state=group.group_state,
        protocol_type=PROTOCOL_TYPE,
        assignor=group.assignor_name,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(sorted(map(_consumer_member, group.members), key=lambda m: m.member_id)),
        coordinator_id=coordinator_id,
    )


def _consumer_member(member: consumer.Member) -> GroupMemberDescription:
    return GroupMemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        partitions=_assigned(member.assignment),
        target=_assigned(member.target_assignment),
        topics=member.subscribed_topic_names,
        topics_regex=member.subscribed_topic_regex or None,
        epoch=member.member_epoch,
        rack=member.rack_id,
    )


def _assigned(assignment: consumer.Assignment) -> dict[str, list[int]]:
    return {item.topic_name: sorted(item.partitions) for item in assignment.topic_partitions}
