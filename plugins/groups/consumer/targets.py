"""Pure core: who of a group shall read what, computed by an assignor.

*Source:* the behaviour of Kafka 4.3's TargetAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import GroupMember, SubscribedTopic, checked_assignment

from .member import NOTHING
from .topics_hash import existing_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.kernel.api import Assignor, ClusterView, Partitions, TopicView

    from .member import Member, Target


def compute_targets(
    assignor: Assignor,
    members: Iterable[tuple[Member, frozenset[str], Target]],
    cluster: ClusterView,
) -> dict[str, Target]:
    """Return what every member shall have, by member id.

    Racks are not told: the assignors of Kafka's coordinator look at none (those of its clients do).

    Args:
        assignor: Decides.
        members: Each with the names of the topics that it reads, and what it should have had until now.
        cluster: The metadata. Topics that are not in it are assigned to nobody.
    """
    topics: dict[str, TopicView | None] = {}
    names_of: dict[frozenset[str], frozenset[str]] = {}
    group_members = []
    for member, names, target in members:
        known = names_of.get(names)
        if known is None:
            some = existing_topics(names, cluster)
            for name in some:
                if name not in topics:
                    topics[name] = cluster.topic(name)
            known = names_of[names] = frozenset(name for name in some if topics[name] is not None)
        group_members.append(
            GroupMember(
                member_id=member.member_id,
                topics=known,
                instance_id=member.instance_id,
                owned=_by_name(target, cluster),
            )
        )
    existing = {name: topic for name, topic in topics.items() if topic is not None}
    assignment = checked_assignment(
        assignor,
        group_members,
        {name: SubscribedTopic(topic.partitions_count) for name, topic in existing.items()},
    )
    return {
        one.member_id: (
            _by_id(assignment[one.member_id].partitions, existing) if one.member_id in assignment else NOTHING
        )
        for one in group_members
    }


def _by_name(target: Target, cluster: ClusterView) -> Partitions:
    owned = {}
    for topic_id, partitions in target.items():
        topic = cluster.topic_by_id(topic_id)
        if topic is not None:
            owned[topic.name] = partitions
    return owned


def _by_id(partitions: Partitions, topics: Mapping[str, TopicView]) -> Target:
    return {topics[name].topic_id: tuple(sorted(numbers)) for name, numbers in partitions.items() if numbers}
