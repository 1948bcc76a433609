"""Pure core: `uniform`: what the group coordinator does by itself for members of the consumer protocol (KIP-848).

Balanced, and then as it was. The coordinator sees to it that nobody gets a partition before its owner released it, so
this plans the final state, and what members own is what the coordinator planned for them last.

*Source:* Kafka's UniformAssignor for the goals; where subscriptions differ its loads are never more uneven, and where
they do not it moves fewer partitions: the larger shares stay with those who have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import MemberAssignment

from .planning import claim_of_subscription, plan_sticky

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic


class UniformAssignor:
    """The strategy `uniform`."""

    name = "uniform"
    is_cooperative = False
    is_server_side = True

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Balance, and leave with its member what can be left."""
        given = plan_sticky(members, topics, claim_of_subscription, minds_racks=False)
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Tell nothing: the coordinator knows."""
        del topics, previous, generation
        return None
