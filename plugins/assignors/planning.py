"""Pure core: from members and what they owned to an assignment, by way of `balance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .balance import balance
from .claims import NOBODY, Claim, Owners, settle
from .members import in_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic

Given = dict[str, dict[str, list[int]]]
"""Partitions by member id and topic, ascending."""


def claim_of_subscription(member: GroupMember) -> Claim:
    """Return what a member owned as its subscription, or the group coordinator, says."""
    return Claim(member.owned, member.generation)


def plan_sticky(
    members: Sequence[GroupMember],
    topics: Mapping[str, SubscribedTopic],
    claim_of: Callable[[GroupMember], Claim],
    may_have: Callable[[Owners, str, int, int], bool] | None = None,
) -> Given:
    """Return who gets what: balanced, and then as it was before.

    Args:
        members: In any order.
        topics: The topics that exist.
        claim_of: What a member owned.
        may_have: Whether a partition may be given now (owners, topic, partition, the planned member's place in the
            claims); without it everything is.
    """
    ordered = in_order(members)
    subscribers = subscribers_by_topic(ordered, topics)
    place = {member.member_id: number for number, member in enumerate(ordered)}
    owners = settle([claim_of(member) for member in ordered], topics)
    readers = balance(
        len(ordered),
        {topic: [place[member.member_id] for member in some] for topic, some in subscribers.items()},
        {topic: owners.by_topic[topic] for topic in subscribers},
    )
    given: list[dict[str, list[int]]] = [{} for _ in ordered]
    for topic in subscribers:
        for partition, reader in enumerate(readers[topic]):
            if reader != NOBODY and (may_have is None or may_have(owners, topic, partition, reader)):
                given[reader].setdefault(topic, []).append(partition)
    return {member.member_id: partitions for member, partitions in zip(ordered, given, strict=True)}
