"""Pure core: `sticky`: balanced, and then as much as possible stays where it was; members stop reading meanwhile.

Members of this strategy give everything up before they join (eager), so their subscriptions own nothing: what they had
stands in the user data, in the form of Kafka's StickyAssignor, and so survives a leader of any library::

    previous assignment (array of topic, array of partition) | generation (int32)       version 1
    previous assignment                                                                 version 0, before Kafka 2.3

There is no version in front: bytes that end before the generation are version 0.

*Source:* Kafka's StickyAssignor; KIP-54, KIP-341.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import (
    NO_GENERATION,
    DecodeError,
    MemberAssignment,
    Message,
    decode,
    encode_bytes,
    fields,
)

from .claims import Claim
from .planning import claim_of_subscription, plan_sticky

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic


class PreviousTopic(Message):
    """An item of `StickyUserData.previous_assignment`."""

    topic: str = fields.string()
    partitions: list[int] = fields.int32s()


class StickyUserData(Message, versions="0-1"):
    """What a member of the sticky strategy puts into its subscription."""

    previous_assignment: list[PreviousTopic] = fields.array(PreviousTopic)
    generation: int = fields.int32("1+", default=NO_GENERATION, ignorable=True)


class StickyAssignor:
    """The strategy `sticky`."""

    name = "sticky"
    is_cooperative = False
    is_server_side = False

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Balance, and leave with its member what can be left."""
        given = plan_sticky(members, topics, claim_of_user_data)
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Tell what the member was given last, and in which generation."""
        del topics
        if previous is None:
            return None
        items = [PreviousTopic(topic=topic, partitions=list(given)) for topic, given in previous.partitions.items()]
        return encode_bytes(StickyUserData(previous_assignment=items, generation=generation), 1)


def claim_of_user_data(member: GroupMember) -> Claim:
    """Return what a member owned as its user data says; without, or with bytes of somebody else's, its subscription."""
    for version in (1, 0):
        try:
            told = decode(StickyUserData, member.user_data or b"", version)
        except DecodeError:
            continue
        return Claim({item.topic: item.partitions for item in told.previous_assignment}, told.generation)
    return claim_of_subscription(member)
