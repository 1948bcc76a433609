"""Pure core: the assignor contract: which member of a group reads which partitions.

One contract for both sides: the group coordinator asks it for members of the consumer protocol (KIP-848), our client
asks it when its member leads a group of the classic protocol, and `odradek assign simulate` compares them all.

An assignor is a pure function of its arguments: the same arguments give the same assignment, whatever the order of
members and topics. It keeps nothing between two calls: one object serves every group of a broker and every client of
a process, those of large groups on worker threads, several at once.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from ..classes import frozen
from ..errors import PluginError
from .culprits import plugin_of
from .signatures import module_of, place_of

Partitions = Mapping[str, Sequence[int]]
"""Partitions by topic, ascending."""

NO_GENERATION = -1


@frozen
class GroupMember:
    """What an assignor knows of a member.

    Attributes:
        member_id: Its id.
        topics: What it subscribed to; topics that do not exist are left out by the caller.
        instance_id: The `group.instance.id` of a static member.
        rack: Its `client.rack`. None when racks shall not count: Kafka's group coordinator gives none to its assignors.
        owned: What it owned until now, as its subscription says or as the group coordinator knows.
        generation: In which generation or epoch it owned that; `NO_GENERATION` when it does not say. Of two members
            that claim a partition the one of the newer generation is believed.
        user_data: What its own assignor put into the subscription (classic protocol only).
    """

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    rack: str | None = None
    owned: Partitions = attrs.field(factory=dict)
    generation: int = NO_GENERATION
    user_data: bytes | None = None


@frozen
class SubscribedTopic:
    """What an assignor knows of a topic.

    Attributes:
        partitions_count: How many partitions it has.
        racks: By partition, the racks of its replicas; empty when racks are not known.
    """

    partitions_count: int
    racks: Sequence[frozenset[str]] = ()


@frozen
class MemberAssignment:
    """What a member shall read.

    Attributes:
        partitions: By topic.
        user_data: For the member's own assignor (classic protocol only).
    """

    partitions: Partitions
    user_data: bytes | None = None


class Assignor(Protocol):
    """One strategy. To be inherited from: what is not said otherwise is so.

    Attributes:
        name: As `partition.assignment.strategy` and `group.remote.assignor` name it: `range`, `cooperative-sticky`.
        is_cooperative: Whether members of the classic protocol keep what they own during a rebalance (KIP-429). Its
            assignments then never give a partition to one member before another has released it.
        is_server_side: Whether the group coordinator offers it to members of the consumer protocol.
    """

    name: str
    is_cooperative: bool = False
    is_server_side: bool = False

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Return every member's assignment, by member id.

        Args:
            members: All members of the group, ids distinct.
            topics: Every topic that some member subscribed to and that exists.
        """
        ...

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Return what a member of our client puts into its subscription for this assignor; None, as here, for nothing.

        Args:
            topics: What the member subscribes to.
            previous: What the leader gave it last; None before the first time and after it lost everything.
            generation: The generation in which it was given that; `NO_GENERATION` with no `previous`.
        """
        return None


def checked_assignment(
    assignor: Assignor, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
) -> Mapping[str, MemberAssignment]:
    """Ask an assignor, and see that its answer can be used; who asks counts on no plugin.

    Raises:
        PluginError: The answer is none, or gives what there is not; it names the plugin, and where the assignor stands.
        Exception: The assignor raised it.
    """
    given = assignor.assign(members, topics)
    problem = _problem_with_assignment(given, members, topics)
    if problem:
        told = f"assignor {assignor.name!r} at {place_of(assignor)} cannot be used: {problem}"
        raise PluginError(plugin_of(module_of(assignor)), told)
    return given


def _problem_with_assignment(given: Any, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]) -> str:
    if not isinstance(given, Mapping):
        return f"it gave {given!r}, not a mapping of member ids"
    if unknown := given.keys() - {member.member_id for member in members}:
        return f"it gave something to {min(map(str, unknown))!r}, which is no member"
    for member_id, assignment in given.items():
        if not isinstance(getattr(assignment, "partitions", None), Mapping):
            return f"it gave {member_id!r} {assignment!r}, which is no MemberAssignment of partitions by topic"
        for topic, partitions in assignment.partitions.items():
            if topic not in topics:
                return f"it gave {member_id!r} the topic {topic!r}, which nobody subscribed to"
            count = topics[topic].partitions_count
            if not isinstance(partitions, Sequence) or set(map(type, partitions)) - {int}:
                return f"it gave {member_id!r} as partitions of {topic!r} {partitions!r}, which are no numbers"
            if partitions and not 0 <= min(partitions) <= max(partitions) < count:
                return f"it gave {member_id!r} of {topic!r}, which has {count} partitions, these: {partitions!r}"
    return ""
