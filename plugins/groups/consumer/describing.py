"""Pure core: ConsumerGroupDescribe.

*Source:* KIP-848, KIP-1099 (member type); the behaviour of Kafka 4.3's ConsumerGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.wire.messages.api_69_consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from odradek.kernel.wire.messages.api_69_consumer_group_describe import Member as DescribedMember

from .member import NOTHING
from .records import NUMBER_OF

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.api import ClusterView

    from .group import ConsumerGroup
    from .member import Member, Target

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


@attrs.frozen
class GroupMoment:
    """A group as it is at one moment: what it holds are values, so that it can be told of a little at a time.

    Attributes:
        told: What is told of it, but for its members; or why nothing is.
        members: They.
        targets: By member id what each shall have.
    """

    told: DescribedGroup
    members: Sequence[Member] = ()
    targets: Mapping[str, Target] = attrs.field(factory=dict)

    @classmethod
    def of(cls, group: ConsumerGroup, assignors: Sequence[str]) -> GroupMoment:
        """Take a group as it is; `assignors` as in `ConsumerGroup.preferred_assignor`."""
        told = DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor(assignors),
        )
        return cls(told, tuple(group.members.values()), dict(group.targets))

    def told_in_steps(self, cluster: ClusterView) -> Generator[None, None, DescribedGroup]:
        """Return what is told of it, in steps of a member or a topic."""
        for member in self.members:
            yield
            target = self.targets.get(member.member_id, NOTHING)
            self.told.members.append((yield from _member_in_steps(member, target, cluster)))
        return self.told


def sizes_of(group: ConsumerGroup) -> Iterator[int]:
    """Iterate over how much is told of each member."""
    for member in group.members.values():
        yield 1 + len(member.topics) + len(member.assigned) + len(group.targets.get(member.member_id, NOTHING))


def _member_in_steps(member: Member, target: Target, cluster: ClusterView) -> Generator[None, None, DescribedMember]:
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
        assignment=(yield from _assignment_in_steps(held, cluster)),
        target_assignment=(yield from _assignment_in_steps(target, cluster)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment_in_steps(
    partitions: Mapping[UUID, Collection[int]], cluster: ClusterView
) -> Generator[None, None, Assignment]:
    topics = []
    for topic_id in sorted(partitions, key=NUMBER_OF):
        yield
        topic = cluster.topic_by_id(topic_id)
        if topic is not None:
            numbers = sorted(partitions[topic_id])
            topics.append(TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers))
    return Assignment(topic_partitions=topics)
