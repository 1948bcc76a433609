"""Pure core: `cooperative-sticky`: as sticky, but members read on, and a partition changes hands in two rebalances.

First its owner is given everything but that partition, and lets go of it; whoever let go joins again, and in that
second rebalance the partition is free and goes to whom it was planned for. So nobody ever reads what another still has
(KIP-429). A partition that nobody owned is given at once.

The user data is the generation (int32): older members than KIP-792 tell it nowhere else.

*Source:* Kafka's CooperativeStickyAssignor; KIP-429.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from odradek.kernel.api import NO_GENERATION, MemberAssignment

from .claims import NOBODY, Claim, Owners
from .planning import plan_sticky

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic

_GENERATION = struct.Struct(">i")


class CooperativeStickyAssignor:
    """The strategy `cooperative-sticky`."""

    name = "cooperative-sticky"
    is_cooperative = True
    is_server_side = False

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Balance, leave with its member what can be left, and hold back what another still has."""
        given = plan_sticky(members, topics, _claim, _is_released)
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Tell the generation."""
        del topics, previous
        return _GENERATION.pack(generation)


def _claim(member: GroupMember) -> Claim:
    generation = member.generation
    if generation == NO_GENERATION and member.user_data is not None and len(member.user_data) >= _GENERATION.size:
        (generation,) = _GENERATION.unpack_from(member.user_data)
    return Claim(member.owned, generation)


def _is_released(owners: Owners, topic: str, partition: int, reader: int) -> bool:
    """Return whether nobody has the partition but perhaps the reader itself."""
    return owners.by_topic[topic][partition] in (NOBODY, reader) and partition not in owners.disputed.get(topic, ())
