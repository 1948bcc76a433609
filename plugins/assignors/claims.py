"""Pure core: who owned which partition before, when members tell the assignor.

Of two members that claim the same partition the one of the newer generation is believed: the other missed a rebalance.
Two of the same generation contradict each other, and neither is believed.

*Source:* KIP-341 (generations in the sticky assignor's user data), KIP-792 (in the subscription).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.api import Partitions, SubscribedTopic

NOBODY = -1
"""In place of a member where there is none."""


@frozen
class Claim:
    """What one member says that it owned, and when."""

    owned: Partitions
    generation: int


@frozen
class Owners:
    """Who owned what.

    Attributes:
        by_topic: By topic and partition the member's place among the claims, or `NOBODY`.
        disputed: By topic the partitions that two members of the same generation claim.
    """

    by_topic: Mapping[str, list[int]]
    disputed: Mapping[str, set[int]]


def settle(claims: list[Claim], topics: Mapping[str, SubscribedTopic]) -> Owners:
    """Return who is believed to own each partition that exists."""
    owners = {topic: [NOBODY] * described.partitions_count for topic, described in topics.items()}
    disputed: dict[str, set[int]] = {}
    for place, claim in enumerate(claims):
        for topic, partition in _existing(claim.owned, owners):
            other = owners[topic][partition]
            if other == NOBODY or claim.generation > claims[other].generation:
                owners[topic][partition] = place
                disputed.get(topic, set()).discard(partition)
            elif claim.generation == claims[other].generation and other != place:
                disputed.setdefault(topic, set()).add(partition)
    for topic, partitions in disputed.items():
        for partition in partitions:
            owners[topic][partition] = NOBODY
    return Owners(owners, disputed)


def _existing(owned: Partitions, topics: Mapping[str, list[int]]) -> Iterator[tuple[str, int]]:
    for topic, partitions in owned.items():
        known = topics.get(topic, ())
        for partition in partitions:
            if 0 <= partition < len(known):
                yield topic, partition
