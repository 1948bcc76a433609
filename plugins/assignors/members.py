"""Pure core: the order in which Kafka's assignors go through members, and who subscribed to a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic


def in_order(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Return members in Kafka's order: static ones by their instance ids, then the others by their member ids.

    A static member keeps its place when it restarts with a new member id, and so, more or less, its partitions.
    """
    return sorted(members, key=_place)


def subscribers_by_topic(
    members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
) -> dict[str, list[GroupMember]]:
    """Return who subscribed to each topic, in the members' order; topics by name, those without subscribers left out.

    Args:
        members: In order.
        topics: The topics that exist.
    """
    found: dict[str, list[GroupMember]] = {topic: [] for topic in sorted(topics, key=as_java_sorts)}
    for member in members:
        for topic in member.topics & topics.keys():
            found[topic].append(member)
    return {topic: subscribers for topic, subscribers in found.items() if subscribers}


def as_java_sorts(text: str) -> bytes:
    """Return a key that sorts strings as Java does: by UTF-16 units, where 😀 stands before the full-width letters."""
    return text.encode("utf-16-be", "surrogatepass")


def _place(member: GroupMember) -> tuple[bool, bytes]:
    if member.instance_id is not None:
        return False, as_java_sorts(member.instance_id)
    return True, as_java_sorts(member.member_id)
