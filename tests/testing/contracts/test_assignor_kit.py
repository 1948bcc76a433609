"""The assignor kit itself: a broken assignor is found, and every test of the kit finds at least one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import attrs
import pytest

from odradek.kernel.api import Assignor, GroupMember, MemberAssignment, SubscribedTopic
from odradek.plugins.assignors.cooperative import CooperativeStickyAssignor
from odradek.plugins.assignors.sticky import StickyAssignor
from odradek.testing.contracts.assignor import AssignorContract

CONTRACT_TESTS = [name for name, _ in inspect.getmembers(AssignorContract, inspect.isfunction) if name[:5] == "test_"]

Members = Sequence[GroupMember]
Topics = Mapping[str, SubscribedTopic]
Assignment = Mapping[str, MemberAssignment]

ONCE = "test_every_partition_with_a_subscriber_is_given_to_one_member"
OWN_TOPICS = "test_members_get_existing_partitions_of_their_own_topics_and_none_twice"
BALANCED = "test_members_with_equal_topics_differ_by_one_partition_at_most"
UNMOVED = "test_when_a_member_joins_or_leaves_only_its_partitions_move"
PURE = "test_the_same_arguments_give_the_same_assignment_and_stay_as_they_are"


class Broken(StickyAssignor):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class HasNoName(Broken):
    expected = ("test_it_has_a_name_that_a_setting_can_hold",)
    name = ""


class HasTwoNames(Broken):
    expected = ("test_it_has_a_name_that_a_setting_can_hold",)
    name = "sticky, really"


class NeedsAMember(Broken):
    expected = ("test_a_group_without_members_is_assigned_nothing",)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {**super().assign(members, topics), members[0].member_id: MemberAssignment({})}


class LeavesOutTheIdle(Broken):
    expected = ("test_every_member_is_answered_and_nobody_else",)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {member: given for member, given in super().assign(members, topics).items() if given.partitions}


class AnswersStrangers(Broken):
    expected = ("test_every_member_is_answered_and_nobody_else", "test_a_group_without_members_is_assigned_nothing")

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {**super().assign(members, topics), "stranger": MemberAssignment({})}


class GivesWhatNobodyAskedFor(Broken):
    expected = (OWN_TOPICS,)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return super().assign([attrs.evolve(member, topics=frozenset(topics)) for member in members], topics)


class CountsFromOne(Broken):
    expected = (OWN_TOPICS, ONCE)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {
            member: MemberAssignment({topic: [p + 1 for p in some] for topic, some in given.partitions.items()})
            for member, given in super().assign(members, topics).items()
        }


class Stutters(Broken):
    expected = (OWN_TOPICS, ONCE)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {
            member: MemberAssignment({topic: [*some, some[0]] for topic, some in given.partitions.items()})
            for member, given in super().assign(members, topics).items()
        }


class FirstComeFirstServed(Broken):
    expected = ("test_the_order_of_members_and_topics_does_not_matter",)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        taken: dict[str, str] = {}
        for member in members:
            for topic in member.topics & topics.keys():
                taken.setdefault(topic, member.member_id)
        return {
            member.member_id: MemberAssignment(
                {t: range(topics[t].partitions_count) for t, owner in taken.items() if owner == member.member_id}
            )
            for member in members
        }


class Remembers(Broken):
    expected = (PURE,)

    def __init__(self) -> None:
        self._calls = 0

    def assign(self, members: Members, topics: Topics) -> Assignment:
        self._calls += 1
        given = super().assign(members, topics)
        return dict(zip(given, reversed(list(given.values())), strict=True)) if self._calls % 3 == 0 else given


class WritesIntoItsArguments(Broken):
    expected = (PURE,)
    is_server_side = True

    def assign(self, members: Members, topics: Topics) -> Assignment:
        for member in members:
            if isinstance(member.owned, dict):
                member.owned.clear()
        return super().assign(members, topics)


class TrustsUserData(Broken):
    expected = ("test_user_data_of_somebody_else_does_no_harm",)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        for member in members:
            assert len(member.user_data or b"") in (0, *range(8, 10_000, 2))
        return super().assign([attrs.evolve(m, user_data=m.user_data or b"") for m in members], topics)


class ForgetsTheLastPartition(Broken):
    expected = (ONCE,)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        fewer = {name: SubscribedTopic(max(0, topic.partitions_count - 1)) for name, topic in topics.items()}
        return super().assign(members, fewer)


class GivesTwice(Broken):
    expected = (ONCE,)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return {
            member.member_id: MemberAssignment(
                {topic: range(topics[topic].partitions_count) for topic in member.topics & topics.keys()}
            )
            for member in members
        }


class GivesAllToTheFirst(Broken):
    expected = (BALANCED,)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        first = min((member.member_id for member in members), default="")
        return {
            member.member_id: MemberAssignment(
                {t: range(topics[t].partitions_count if member.member_id == first else 0) for t in member.topics}
            )
            for member in members
        }


class TakesTurns(Broken):
    expected = ("test_nothing_moves_while_nothing_changes", UNMOVED)
    is_server_side = True

    def assign(self, members: Members, topics: Topics) -> Assignment:
        ids = sorted((member.member_id for member in members), reverse=any(m.generation % 2 for m in members))
        given = super().assign([GroupMember(member, frozenset(topics)) for member in ids], topics)
        return {member.member_id: given[ids[place]] for place, member in enumerate(members)}


class BeginsAnew(Broken):
    expected = (UNMOVED,)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        return super().assign([attrs.evolve(member, user_data=None) for member in members], topics)


class CooperativeInName(Broken):
    expected = ("test_a_cooperative_assignor_gives_a_partition_only_after_its_owner_released_it",)
    is_cooperative = True


class BrokenCooperative(CooperativeStickyAssignor):
    """A careless cooperative assignor."""

    expected: Sequence[str] = ()


class GivesOnePartitionATime(BrokenCooperative):
    expected = ("test_a_cooperative_assignor_holds_nothing_back_for_long",)

    def assign(self, members: Members, topics: Topics) -> Assignment:
        owned = {member.member_id: member.owned for member in members}
        given: dict[str, MemberAssignment] = {}
        for member, one in super().assign(members, topics).items():
            kept = {
                topic: [p for p in some if p in owned[member].get(topic, ())] for topic, some in one.partitions.items()
            }
            for topic, some in one.partitions.items():
                if new := [p for p in some if p not in kept[topic]]:
                    kept[topic].append(new[0])
                    break
            given[member] = MemberAssignment(kept)
        return given


BROKEN: list[type[Broken] | type[BrokenCooperative]] = [*Broken.__subclasses__(), *BrokenCooperative.__subclasses__()]


def fails(name: str, assignor_class: type[Assignor]) -> bool:
    """Say whether one test of the kit fails for an assignor."""

    class Kit(AssignorContract):
        def make_assignor(self) -> Assignor:
            return assignor_class()

    try:
        getattr(Kit(), name)()
    except Exception:
        return True
    return False


@pytest.mark.parametrize("assignor_class", BROKEN, ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_assignor(assignor_class: type[Broken] | type[BrokenCooperative]) -> None:
    missed = [name for name in assignor_class.expected if not fails(name, assignor_class)]

    assert missed == []


def test_every_test_of_the_assignor_kit_finds_something() -> None:
    finding = {name for each in BROKEN for name in each.expected}

    assert sorted(set(CONTRACT_TESTS) - finding) == []


def test_sound_assignors_pass_what_the_broken_ones_fail() -> None:
    for assignor_class in (StickyAssignor, CooperativeStickyAssignor):
        assert [name for name in CONTRACT_TESTS if fails(name, assignor_class)] == []


def test_promises_of_a_level_that_is_not_declared_are_not_asked_for() -> None:
    class Kit(AssignorContract):
        gives_each_partition_once = False
        is_balanced = False
        is_sticky = False

        def make_assignor(self) -> Assignor:
            return FirstComeFirstServed()

    for name in (ONCE, BALANCED, UNMOVED, "test_nothing_moves_while_nothing_changes"):
        getattr(Kit(), name)()
