"""Pure core: from members and what they owned to an assignment, by way of `balance`."""

from __future__ import annotations

from collections import defaultdict
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
    *,
    minds_racks: bool = True,
) -> Given:
    """Return who gets what: balanced, and then as it was before.

    Args:
        members: In any order.
        topics: The topics that exist.
        claim_of: What a member owned.
        may_have: Whether a partition may be given now (owners, topic, partition, the planned member's place in the
            claims); without it everything is.
        minds_racks: Whether members rather get what has a replica in their rack.
    """
    ordered = in_order(members)
    subscribers = subscribers_by_topic(ordered, topics)
    place = {member.member_id: number for number, member in enumerate(ordered)}
    owners = settle([claim_of(member) for member in ordered], topics)
    readers = balance(
        len(ordered),
        {topic: [place[member.member_id] for member in some] for topic, some in subscribers.items()},
        {topic: owners.by_topic[topic] for topic in subscribers},
        _near(ordered, {topic: topics[topic] for topic in subscribers}) if minds_racks else None,
    )
    given: list[dict[str, list[int]]] = [{} for _ in ordered]
    for topic in subscribers:
        shares: defaultdict[int, list[int]] = defaultdict(list)
        for partition, reader in enumerate(readers[topic]):
            if reader != NOBODY and (may_have is None or may_have(owners, topic, partition, reader)):
                shares[reader].append(partition)
        for reader, partitions in shares.items():
            given[reader][topic] = partitions
    return {member.member_id: partitions for member, partitions in zip(ordered, given, strict=True)}


def _near(
    members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
) -> dict[str, list[frozenset[int]]] | None:
    """Return by topic and partition who has a replica in its rack, or no rack; None when racks count for nothing.

    That is so when no member tells a rack in which some replica is, or when every partition is in every rack.

    *Source:* KIP-881; what Kafka's AbstractPartitionAssignor takes for a reason to look at racks.
    """
    asked = {member.rack for member in members if member.rack}
    if not asked:
        return None
    racks = {topic: each.racks or [frozenset[str]()] * each.partitions_count for topic, each in topics.items()}
    everywhere = frozenset[str]().union(*(replicas for many in racks.values() for replicas in many))
    if not asked & everywhere or all(replicas == everywhere for many in racks.values() for replicas in many):
        return None
    known: dict[frozenset[str], frozenset[int]] = {}

    def near(replicas: frozenset[str]) -> frozenset[int]:
        if replicas not in known:
            known[replicas] = frozenset(
                place for place, member in enumerate(members) if not member.rack or member.rack in replicas
            )
        return known[replicas]

    return {topic: [near(replicas) for replicas in many] for topic, many in racks.items()}
