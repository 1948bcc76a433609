"""Pure core: ConsumerGroupDescribe.

*Source:* KIP-848, KIP-1099 (member type); the behaviour of Kafka 4.3's ConsumerGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.wire.messages.api_69_consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from odradek.kernel.wire.messages.api_69_consumer_group_describe import Member as DescribedMember

from .member import NOTHING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.api import ClusterView

    from .group import ConsumerGroup
    from .member import Member, Target

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(group: ConsumerGroup, assignors: Sequence[str], cluster: ClusterView) -> DescribedGroup:
    """Return a group as it is; `assignors` as in `ConsumerGroup.preferred_assignor`."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(assignors),
        members=[
            _member(member, group.targets.get(member.member_id, NOTHING), cluster) for member in group.members.values()
        ],
    )


def _member(member: Member, target: Target, cluster: ClusterView) -> DescribedMember:
    # What a member still has to let go of is its own until it has.
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic_id, numbers in partitions.items():
            held.setdefault(topic_id, []).extend(numbers)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, cluster),
        target_assignment=_assignment(target, cluster),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Collection[int]], cluster: ClusterView) -> Assignment:
    topics = []
    for topic_id in sorted(partitions):
        topic = cluster.topic_by_id(topic_id)
        if topic is not None:
            numbers = sorted(partitions[topic_id])
            topics.append(TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers))
    return Assignment(topic_partitions=topics)
