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


def topics_of(names: Iterable[str], cluster: ClusterView) -> dict[str, TopicView]:
    """Return those topics that exist, by name."""
    views = ((name, cluster.topic(name)) for name in existing_topics(names, cluster))
    return {name: view for name, view in views if view is not None}


def compute_targets(
    assignor: Assignor,
    members: Iterable[tuple[Member, frozenset[str], Target]],
    topics: Mapping[str, TopicView],
) -> dict[str, Target]:
    """Return what every member shall have, by member id.

    Racks are not told: the assignors of Kafka's coordinator look at none (those of its clients do).

    Args:
        assignor: Decides.
        members: Each with the names of the topics that it reads, and what it should have had until now.
        topics: By name, all that exist of those that somebody reads; more do not matter.
    """
    name_of = {topic.topic_id: name for name, topic in topics.items()}
    known_of: dict[frozenset[str], frozenset[str]] = {}
    group_members = []
    for member, names, target in members:
        known = known_of.get(names)
        if known is None:
            known = known_of[names] = names & topics.keys()
        owned = {name_of[topic_id]: partitions for topic_id, partitions in target.items() if topic_id in name_of}
        group_members.append(
            GroupMember(member_id=member.member_id, topics=known, instance_id=member.instance_id, owned=owned)
        )
    read = frozenset().union(*known_of.values())
    assignment = checked_assignment(
        assignor,
        group_members,
        {name: SubscribedTopic(topic.partitions_count) for name, topic in topics.items() if name in read},
    )
    return {
        one.member_id: (
            _by_id(assignment[one.member_id].partitions, topics) if one.member_id in assignment else NOTHING
        )
        for one in group_members
    }


def _by_id(partitions: Partitions, topics: Mapping[str, TopicView]) -> Target:
    return {topics[name].topic_id: tuple(sorted(numbers)) for name, numbers in partitions.items() if numbers}
