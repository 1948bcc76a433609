"""Shell: the contract kit of assignors: subclass `AssignorContract` and give `make_assignor`.

Needs pytest. Each test's name is the promise it checks, tried with many small groups made from a fixed seed. Levels
that a plugin declares by class attributes:

* `gives_each_partition_once`: every partition that somebody may read is read by one member; without it partitions may
  be given to several or to nobody;
* `is_balanced`: members with equal topics differ by one partition at most;
* `is_sticky`: what balance allows stays where it was, when a member joins, leaves, or nothing happens.

What members owned is told as real members do: by the subscription's user data always; by what they own when the
assignor is cooperative or the group coordinator asks it.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import copy
import random
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import attrs

from odradek.kernel.contracts.assignor import NO_GENERATION, GroupMember, MemberAssignment, SubscribedTopic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.contracts.assignor import Assignor

GROUPS: int = 60
"""How many groups each promise is tried with."""

ROUNDS_MAX: int = 2
"""After how many rebalances a cooperative assignor has nothing left to hold back."""

Assignment = dict[str, dict[str, list[int]]]
"""Partitions by member id and topic."""


@attrs.define
class SimulatedGroup:
    """A group whose members remember what they were given.

    Attributes:
        subscriptions: By member id the topics.
        topics: The topics that exist.
        assignor: Who assigns.
        given: What each member has now.
        generation: Counts the rebalances.
    """

    subscriptions: dict[str, frozenset[str]]
    topics: dict[str, SubscribedTopic]
    assignor: Assignor
    given: dict[str, MemberAssignment] = attrs.field(factory=dict)
    generation: int = NO_GENERATION

    def members(self) -> list[GroupMember]:
        """Return the members as the assignor sees them."""
        tells_owned = self.assignor.is_cooperative or self.assignor.is_server_side
        found: list[GroupMember] = []
        for member_id, topics in self.subscriptions.items():
            previous = self.given.get(member_id)
            generation = NO_GENERATION if previous is None else self.generation
            data = self.assignor.subscription_user_data(topics, previous, generation)
            owned = previous.partitions if previous is not None and tells_owned else {}
            found.append(GroupMember(member_id, topics, owned=owned, generation=generation, user_data=data))
        return found

    def rebalance_once(self) -> Assignment:
        """Assign once, and let members take it over."""
        self.given = dict(self.assignor.assign(self.members(), self.topics))
        self.generation += 1
        return self.assignment()

    def rebalance(self) -> Assignment:
        """Assign until nothing changes, as members of a cooperative group do."""
        before = self.rebalance_once()
        while self.assignor.is_cooperative and self.rebalance_once() != before:
            before = self.assignment()
        return before

    def assignment(self) -> Assignment:
        """Return what everybody has; topics of which there is nothing are left out."""
        return {
            member_id: {topic: sorted(some) for topic, some in sorted(given.partitions.items()) if some}
            for member_id, given in self.given.items()
        }


class AssignorContract:
    """What every assignor promises."""

    gives_each_partition_once: ClassVar[bool] = True
    is_balanced: ClassVar[bool] = True
    is_sticky: ClassVar[bool] = True

    def make_assignor(self) -> Assignor:
        """Return an assignor."""
        raise NotImplementedError

    def groups(self, *, equal_topics: bool = False) -> Iterator[SimulatedGroup]:
        """Yield groups that were never assigned; the same ones every time."""
        source = random.Random(f"groups {equal_topics}")
        for _ in range(GROUPS):
            names = [f"topic-{number}" for number in range(source.randint(1, 4))]
            topics = {name: SubscribedTopic(source.randint(0, 9)) for name in names}
            members = [f"member-{source.randint(0, 999):03}" for _ in range(source.randint(1, 6))]
            wanted = {
                member: frozenset(names if equal_topics else source.sample(names, source.randint(0, len(names))))
                for member in members
            }
            read = frozenset[str]().union(*wanted.values())
            topics = {name: topics[name] for name in names if name in read}
            yield SimulatedGroup(wanted, topics, self.make_assignor())

    def changed_groups(self, *, equal_topics: bool = False) -> Iterator[tuple[SimulatedGroup, Assignment]]:
        """Yield groups that were assigned, and after that lost or won a member, or changed not at all.

        With each comes what its members had.
        """
        source = random.Random("changes")
        for group in self.groups(equal_topics=equal_topics):
            before = group.rebalance()
            topics = source.choice(list(group.subscriptions.values()))
            match source.randrange(3):
                case 0:
                    group.subscriptions[f"member-{source.randint(1000, 9999)}"] = topics
                case 1 if len(group.subscriptions) > 1:
                    gone = source.choice(list(group.subscriptions))
                    del group.subscriptions[gone]
                    group.given.pop(gone)
                    read = frozenset[str]().union(*group.subscriptions.values())
                    group.topics = {name: topic for name, topic in group.topics.items() if name in read}
                case _:
                    pass
            yield group, before

    # -- every assignor ------------------------------------------------------------------------------------------

    def test_it_has_a_name_that_a_setting_can_hold(self) -> None:
        name = self.make_assignor().name

        assert name
        assert not set(name) & set(" ,\t\n")

    def test_a_group_without_members_is_assigned_nothing(self) -> None:
        assert dict(self.make_assignor().assign([], {})) == {}

    def test_every_member_is_answered_and_nobody_else(self) -> None:
        for group in self.groups():
            group.rebalance_once()

            assert group.given.keys() == group.subscriptions.keys()

    def test_members_get_existing_partitions_of_their_own_topics_and_none_twice(self) -> None:
        for group, _before in self.changed_groups():
            for member_id, given in group.rebalance_once().items():
                assert given.keys() <= group.subscriptions[member_id] & group.topics.keys()
                for topic, partitions in given.items():
                    assert set(partitions) <= set(range(group.topics[topic].partitions_count))
                    assert len(partitions) == len(set(partitions))

    def test_the_order_of_members_and_topics_does_not_matter(self) -> None:
        source = random.Random(7)
        for group, _before in self.changed_groups():
            members, topics = group.members(), list(group.topics.items())
            expected = _plain(group.assignor.assign(members, group.topics))
            source.shuffle(members)
            source.shuffle(topics)

            assert expected == _plain(group.assignor.assign(members, dict(topics)))

    def test_the_same_arguments_give_the_same_assignment_and_stay_as_they_are(self) -> None:
        for group, _before in self.changed_groups():
            members = group.members()
            untouched = copy.deepcopy(members)
            first = _plain(group.assignor.assign(members, group.topics))

            assert first == _plain(self.make_assignor().assign(members, group.topics))
            assert first == _plain(group.assignor.assign(members, group.topics))
            assert untouched == members

    def test_user_data_of_somebody_else_does_no_harm(self) -> None:
        for group in self.groups():
            strange = [attrs.evolve(member, user_data=b"\x00\x7fstrange") for member in group.members()]

            assert group.assignor.assign(strange, group.topics).keys() == group.subscriptions.keys()

    # -- levels --------------------------------------------------------------------------------------------------

    def test_every_partition_with_a_subscriber_is_given_to_one_member(self) -> None:
        for group, _before in self.changed_groups():
            counts = _readers(group.rebalance())
            wanted = {
                (topic, partition): 1
                for topic, described in group.topics.items()
                for partition in range(described.partitions_count)
            }

            assert wanted == counts or not self.gives_each_partition_once

    def test_members_with_equal_topics_differ_by_one_partition_at_most(self) -> None:
        for group, _before in self.changed_groups(equal_topics=True):
            loads = _loads(group.rebalance())

            assert max(loads.values()) - min(loads.values()) <= 1 or not self.is_balanced

    def test_nothing_moves_while_nothing_changes(self) -> None:
        for group in self.groups():
            before = group.rebalance()

            assert before == group.rebalance() or not self.is_sticky

    def test_when_a_member_joins_or_leaves_only_its_partitions_move(self) -> None:
        for group, before in self.changed_groups(equal_topics=True):
            after = group.rebalance()
            stayed = before.keys() & after.keys()
            lost = sum(len(_flat(before[member]) - _flat(after[member])) for member in stayed)
            share = sum(len(_flat(after[member])) for member in after.keys() - before.keys())

            assert lost == share or not self.is_sticky

    def test_a_cooperative_assignor_gives_a_partition_only_after_its_owner_released_it(self) -> None:
        for group, before in self.changed_groups():
            after = group.rebalance_once()
            for member in after:
                of_others = [_flat(before[other]) for other in before.keys() & after.keys() - {member}]

                assert not (group.assignor.is_cooperative and _flat(after[member]) & set().union(*of_others))

    def test_a_cooperative_assignor_holds_nothing_back_for_long(self) -> None:
        for group, _before in self.changed_groups():
            rounds = [group.rebalance_once() for _ in range(ROUNDS_MAX + 1)]

            assert rounds[-1] == rounds[-2] or not group.assignor.is_cooperative


def _plain(given: Mapping[str, MemberAssignment]) -> dict[str, tuple[dict[str, list[int]], bytes | None]]:
    return {
        member: (
            {topic: list(some) for topic, some in sorted(one.partitions.items()) if some},
            one.user_data,
        )
        for member, one in sorted(given.items())
    }


def _flat(given: Mapping[str, list[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partitions in given.items() for partition in partitions}


def _loads(assignment: Assignment) -> dict[str, int]:
    return {member: sum(map(len, given.values())) for member, given in assignment.items()}


def _readers(assignment: Assignment) -> Counter[tuple[str, int]]:
    return Counter(
        (topic, partition)
        for given in assignment.values()
        for topic, partitions in given.items()
        for partition in partitions
    )
