"""Pure core: what a leader of a classic group does, between the bytes of the consumer protocol and an assignor.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.contracts.assignor import (
    NO_GENERATION,
    GroupMember,
    MemberAssignment,
    SubscribedTopic,
    checked_assignment,
)
from odradek.kernel.wire.messages.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    new_assignment,
    new_subscription,
    partitions_by_topic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.kernel.contracts.assignor import Assignor

    from ..cluster import Cluster


def subscription_bytes(
    assignor: Assignor,
    topics: frozenset[str],
    owned: Mapping[str, Sequence[int]],
    generation_id: int,
    rack: str | None,
    previous: tuple[MemberAssignment, int] | None,
) -> bytes:
    """Return what a member puts into JoinGroup for one assignor.

    Args:
        assignor: Whom it is for.
        topics: What the member subscribes to.
        owned: What it owns, partitions by topic.
        generation_id: In which generation.
        rack: Its `client.rack`.
        previous: What this assignor gave it last, and in which generation.
    """
    given, generation = previous or (None, NO_GENERATION)
    user_data = assignor.subscription_user_data(topics, given, generation)
    subscription = new_subscription(
        topics, owned=owned, generation_id=generation_id, rack_id=rack or None, user_data=user_data
    )
    return encode_subscription(subscription)


def group_members(joined: Iterable[tuple[str, str | None, bytes]]) -> list[GroupMember]:
    """Return the members that a leader is told of, by member id, instance id and subscription bytes.

    Raises:
        DecodeError: A member's bytes are no subscription.
    """
    members = []
    for member_id, instance_id, data in joined:
        subscription = decode_subscription(data)
        members.append(
            GroupMember(
                member_id,
                frozenset(subscription.topics),
                instance_id,
                subscription.rack_id,
                partitions_by_topic(subscription),
                subscription.generation_id,
                subscription.user_data,
            )
        )
    return members


def assign(
    assignor: Assignor, members: Sequence[GroupMember], topics: frozenset[str], cluster: Cluster
) -> tuple[Mapping[str, MemberAssignment], dict[str, int]]:
    """Have an assignor distribute what is known of the topics.

    Returns:
        Every member's assignment, and how many partitions each topic has; 0 for one that does not exist.
    """
    counts = dict.fromkeys(sorted(topics), 0)
    described: dict[str, SubscribedTopic] = {}
    for topic in counts:
        info = cluster.topics.get(topic)
        if info is None or not info.partitions:
            continue
        counts[topic] = len(info.partitions)
        racks = [
            frozenset(rack for node in each.replicas if node in cluster.nodes and (rack := cluster.nodes[node].rack))
            for each in info.partitions.values()
        ]
        described[topic] = SubscribedTopic(len(info.partitions), racks if any(racks) else ())
    existing = [
        GroupMember(
            member.member_id,
            member.topics & described.keys(),
            member.instance_id,
            member.rack,
            member.owned,
            member.generation,
            member.user_data,
        )
        for member in members
    ]
    return checked_assignment(assignor, existing, described), counts


def encode_given(given: MemberAssignment) -> bytes:
    """Return what a leader puts into SyncGroup for one member."""
    partitions = {topic: sorted(many) for topic, many in sorted(given.partitions.items())}
    return encode_assignment(new_assignment(partitions, user_data=given.user_data))


def decode_given(data: bytes) -> MemberAssignment:
    """Return what a member was given; nothing where the coordinator keeps nothing for it.

    Raises:
        DecodeError: The bytes are no assignment.
    """
    if not data:
        return MemberAssignment({})
    assignment = decode_assignment(data)
    return MemberAssignment(partitions_by_topic(assignment), assignment.user_data)
