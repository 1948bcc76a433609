"""Pure core: `roundrobin`: all partitions of all topics in one line, dealt out to the members in turn.

Equals Kafka's RoundRobinAssignor partition for partition, so members of any client may lead the group.

*Source:* Kafka's RoundRobinAssignor.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from odradek.kernel.api import MemberAssignment

from .members import in_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic


class RoundRobinAssignor:
    """The strategy `roundrobin`."""

    name = "roundrobin"
    is_cooperative = False
    is_server_side = False

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Deal partitions out, topics by name, to members in order; who did not subscribe to a topic is passed over."""
        ordered = in_order(members)
        position = {member.member_id: place for place, member in enumerate(ordered)}
        given: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in ordered}
        turn = 0  # the place whose turn it is
        for topic, subscribers in subscribers_by_topic(ordered, topics).items():
            count = topics[topic].partitions_count
            if not count:
                continue
            places = [position[member.member_id] for member in subscribers]
            first = bisect_left(places, turn) % len(places)
            for offset in range(min(count, len(places))):
                member = subscribers[(first + offset) % len(places)]
                given[member.member_id][topic] = list(range(offset, count, len(places)))
            turn = places[(first + count - 1) % len(places)] + 1
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Tell nothing: what a member owned does not count."""
        del topics, previous, generation
        return None
