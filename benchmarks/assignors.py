"""How long every assignor takes for a large group; run by hand: `python -m benchmarks.assignors`.

1,000 members, 10,000 partitions of 10 topics, all members reading all of them or each one six of the ten. A group that
is new, one that a member left, one that a member joined, and the worst for a sticky assignor: one member had everything
and 999 join. Prints the best of three rounds in milliseconds; target: at most 2 seconds.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from odradek.kernel.api import Assignor, GroupMember, SubscribedTopic
from odradek.plugins.assignors import odradek_assignors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import MemberAssignment

MEMBERS = 1_000
TOPICS = {f"topic-{number}": SubscribedTopic(1_000) for number in range(10)}
ROUNDS = 3


def new_group(topics_each: int) -> list[GroupMember]:
    """Return members that own nothing."""
    source = random.Random(7)
    return [
        GroupMember(f"member-{number:04}", frozenset(source.sample(list(TOPICS), topics_each)))
        for number in range(MEMBERS)
    ]


def owning(group: list[GroupMember], given: Mapping[str, MemberAssignment]) -> list[GroupMember]:
    """Return the members with what they were given."""
    return [GroupMember(m.member_id, m.topics, owned=given[m.member_id].partitions, generation=1) for m in group]


def cases(group: list[GroupMember], assignor: Assignor) -> dict[str, list[GroupMember]]:
    """Return the groups to assign, by what happened to them."""
    settled = owning(group, assignor.assign(group, TOPICS))
    joined = owning(group[1:], assignor.assign(group[1:], TOPICS))
    everything = {topic: range(described.partitions_count) for topic, described in TOPICS.items()}
    first = GroupMember("member-0000", frozenset(TOPICS), owned=everything, generation=1)
    return {
        "new": group,
        "unchanged": settled,
        "one left": settled[1:],
        "one joined": [group[0], *joined],
        "999 joined": [first, *group[1:]],
    }


def best_ms(assignor: Assignor, group: list[GroupMember]) -> float:
    """Return the milliseconds of the best round."""
    best_ns = 1 << 62
    for _ in range(ROUNDS):
        start_ns = time.perf_counter_ns()
        assignor.assign(group, TOPICS)
        best_ns = min(best_ns, time.perf_counter_ns() - start_ns)
    return best_ns / 1e6


def main() -> None:
    """Print the table."""
    for title, topics_each in (("all members read all topics", len(TOPICS)), ("each reads six of ten topics", 6)):
        group = new_group(topics_each)
        print(f"{title + ', ms':<30}" + "".join(f"{name:>12}" for name in cases(group, odradek_assignors()["range"])))
        for name, assignor in odradek_assignors().items():
            figures = [best_ms(assignor, some) for some in cases(group, assignor).values()]
            print(f"  {name:<28}" + "".join(f"{figure:>12.0f}" for figure in figures))


if __name__ == "__main__":
    main()
