"""Pure core: a group under one assignor, step by step: who reads what, and what moved.

Members behave as real ones do: they tell what they had in the form that the assignor's protocol has for it, and members
of a cooperative assignor rebalance again until nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.contracts.assignor import NO_GENERATION, GroupMember, MemberAssignment, checked_assignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.contracts.assignor import Assignor

    from .assign_script import World

REBALANCES_MAX: Final = 10
"""More than any cooperative assignor needs; one that goes on is stopped here."""

Assignment = dict[str, dict[str, list[int]]]
"""Partitions by member and topic, ascending."""


@attrs.frozen
class Move:
    """A partition that was read by one member and is read by another, or by nobody, although its reader stayed."""

    topic: str
    partition: int
    giver: str
    taker: str | None


@attrs.frozen
class Outcome:
    """What a step came to.

    Attributes:
        assignment: Who reads what after it.
        gained: What members that were there before read now and did not before.
        moves: What was taken from members that stayed; what the members that left had is not among it.
        loads: By member how many partitions it reads.
        rebalances: How many it took.
    """

    assignment: Assignment
    gained: Assignment
    moves: list[Move]
    loads: dict[str, int]
    rebalances: int

    @property
    def spread(self) -> int:
        """How many partitions more the most loaded member has than the least loaded."""
        return max(self.loads.values(), default=0) - min(self.loads.values(), default=0)


class SimulatedGroup:
    """The members of one group, and the assignor they use."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor = assignor
        self._given: dict[str, MemberAssignment] = {}
        self._generation = NO_GENERATION

    def rebalance(self, world: World) -> Outcome:
        """Assign anew what the script made of the world."""
        before = _plain(self._given)
        self._given = {member: given for member, given in self._given.items() if member in world.members}
        rebalances = 0
        while rebalances < REBALANCES_MAX:
            latest = _plain(self._given)
            self._assign(world)
            rebalances += 1
            if not self._assignor.is_cooperative or (rebalances > 1 and _plain(self._given) == latest):
                break
        if self._assignor.is_cooperative and rebalances > 1:
            rebalances -= 1  # the last one only showed that there was nothing more to do
        after = _plain(self._given)
        stayed = {member: before[member] for member in before if member in after}
        return Outcome(
            assignment=after,
            gained={member: _without(after[member], had) for member, had in stayed.items()},
            moves=_moves(stayed, after, world),
            loads={member: sum(map(len, given.values())) for member, given in after.items()},
            rebalances=rebalances,
        )

    def _assign(self, world: World) -> None:
        tells_owned = self._assignor.is_cooperative or self._assignor.is_server_side
        members: list[GroupMember] = []
        for member_id, member in world.members.items():
            topics = world.wanted(member_id)
            previous = self._given.get(member_id)
            generation = NO_GENERATION if previous is None else self._generation
            members.append(
                GroupMember(
                    member_id,
                    topics,
                    rack=member.rack,
                    owned=previous.partitions if previous is not None and tells_owned else {},
                    generation=generation,
                    user_data=self._assignor.subscription_user_data(topics, previous, generation),
                )
            )
        read = frozenset[str]().union(*(member.topics for member in members))
        described = {name: topic for name, topic in world.topics.items() if name in read}
        given = checked_assignment(self._assignor, members, described)
        self._given = {member_id: given[member_id] for member_id in world.members}
        self._generation += 1


def _plain(given: Mapping[str, MemberAssignment]) -> Assignment:
    return {
        member: {topic: sorted(some) for topic, some in sorted(one.partitions.items()) if some}
        for member, one in given.items()
    }


def _without(given: Mapping[str, list[int]], had: Mapping[str, list[int]]) -> dict[str, list[int]]:
    left = {topic: sorted(set(some) - set(had.get(topic, ()))) for topic, some in given.items()}
    return {topic: some for topic, some in left.items() if some}


def _moves(before: Assignment, after: Assignment, world: World) -> list[Move]:
    takers = {
        (topic, partition): member
        for member, given in after.items()
        for topic, some in given.items()
        for partition in some
    }
    return [
        Move(topic, partition, giver, takers.get((topic, partition)))
        for giver, had in before.items()
        for topic, lost in _without(had, after[giver]).items()
        if topic in world.topics
        for partition in lost
    ]
