"""Racks in the sticky assignors (KIP-881): balance first, then replicas near their readers, then what was before."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import GroupMember, MemberAssignment, SubscribedTopic
from odradek.plugins.assignors import odradek_assignors

ASSIGNORS = dict(odradek_assignors())
RACKS = ("r1", "r2", "r3")
STICKY = pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
TOPICS = st.dictionaries(
    st.sampled_from(["t", "u"]),
    st.lists(st.frozensets(st.sampled_from(RACKS), max_size=2), min_size=1, max_size=8),
    min_size=1,
)
MEMBER_RACKS = st.lists(st.none() | st.sampled_from(RACKS), min_size=1, max_size=5)


def settled(
    name: str,
    racks: Sequence[str | None],
    topics: Mapping[str, Sequence[frozenset[str]]],
    before: Mapping[str, MemberAssignment] | None = None,
    subscriptions: Sequence[frozenset[str]] | None = None,
) -> dict[str, MemberAssignment]:
    """Assign until a cooperative group has nothing more to hand over."""
    assignor = ASSIGNORS[name]
    described = {topic: SubscribedTopic(len(many), many) for topic, many in topics.items()}
    given: Mapping[str, MemberAssignment] = before or {}
    for generation in range(1, 4):
        members = []
        for number, rack in enumerate(racks):
            member_id = f"m{number}"
            previous = given.get(member_id)
            told: dict[str, Any] = {"owned": previous.partitions, "generation": generation} if previous else {}
            if name == "sticky":
                user_data = assignor.subscription_user_data(frozenset(topics), previous, generation)
                told = {"user_data": user_data}
            wanted = frozenset(topics) if subscriptions is None else subscriptions[number] & topics.keys()
            members.append(GroupMember(member_id, wanted, rack=rack, **told))
        given = assignor.assign(members, described)
    return dict(given)


def flat(given: Mapping[str, MemberAssignment]) -> dict[str, set[tuple[str, int]]]:
    return {
        member: {(topic, number) for topic, many in one.partitions.items() for number in many}
        for member, one in given.items()
    }


@STICKY
def test_who_is_near_gets_a_partition(name: str) -> None:
    racks = ["r1", "r2", "r3"]
    topics = {"t": [frozenset({rack}) for rack in ("r3", "r3", "r1", "r2", "r1", "r2")]}

    assert flat(settled(name, racks, topics)) == {
        "m0": {("t", 2), ("t", 4)},
        "m1": {("t", 3), ("t", 5)},
        "m2": {("t", 0), ("t", 1)},
    }


@STICKY
def test_nearness_goes_before_stickiness_and_balance_before_both(name: str) -> None:
    far = {"m0": MemberAssignment({"t": [0, 1]}), "m1": MemberAssignment({"t": [2, 3]})}
    topics = {"t": [frozenset({"r2"}), frozenset({"r2"}), frozenset({"r1"}), frozenset({"r2"})]}
    given = flat(settled(name, ["r1", "r2"], topics, far))

    assert ("t", 2) in given["m0"]
    assert {len(many) for many in given.values()} == {2}


@STICKY
def test_racks_that_are_the_same_everywhere_count_for_nothing(name: str) -> None:
    before = {"m0": MemberAssignment({"t": [0, 1]}), "m1": MemberAssignment({"t": [2, 3]})}

    several: list[list[str | None]] = [["r1", "r2"], ["r1", None], ["r9", "r9"]]
    for racks, replicas in itertools.product(several, (("r1", "r2"), ())):
        topics = {"t": [frozenset[str](replicas)] * 4}
        assert flat(settled(name, racks, topics, before)) == flat(before)


@STICKY
@given(racks=MEMBER_RACKS, topics=TOPICS)
def test_racks_leave_the_balance_alone_and_what_is_planned_stays(
    name: str, racks: list[str | None], topics: dict[str, list[frozenset[str]]]
) -> None:
    given = settled(name, racks, topics)
    loads = [len(many) for many in flat(given).values()]

    assert max(loads) - min(loads) <= 1
    assert sorted(itertools.chain(*flat(given).values())) == sorted(
        (topic, number) for topic, many in topics.items() for number in range(len(many))
    )
    assert flat(settled(name, racks, topics, given)) == flat(given)


@STICKY
@given(racks=MEMBER_RACKS, topics=TOPICS, others=MEMBER_RACKS)
def test_when_racks_change_the_plan_settles_again(
    name: str, racks: list[str | None], topics: dict[str, list[frozenset[str]]], others: list[str | None]
) -> None:
    given = settled(name, racks, topics, settled(name, others, topics))
    loads = [len(many) for many in flat(given).values()]

    assert max(loads) - min(loads) <= 1
    assert flat(settled(name, racks, topics, given)) == flat(given)


@STICKY
@given(data=st.data(), racks=MEMBER_RACKS, topics=TOPICS)
def test_with_different_subscriptions_loads_are_as_even_as_without_racks(
    name: str, data: st.DataObject, racks: list[str | None], topics: dict[str, list[frozenset[str]]]
) -> None:
    some = st.frozensets(st.sampled_from(["t", "u"]), min_size=1)
    subscriptions = [data.draw(some) for _ in racks]
    given = settled(name, racks, topics, subscriptions=subscriptions)
    plain = settled("uniform", racks, topics, subscriptions=subscriptions)

    assert sorted(map(len, flat(given).values())) == sorted(map(len, flat(plain).values()))
    assert flat(settled(name, racks, topics, given, subscriptions)) == flat(given)


def test_the_coordinators_uniform_does_not_look_at_racks() -> None:
    before = {"m0": MemberAssignment({"t": [0]}), "m1": MemberAssignment({"t": [1]})}
    topics = {"t": [frozenset({"r2"}), frozenset({"r1"})]}

    assert flat(settled("uniform", ["r1", "r2"], topics, before)) == flat(before)


@STICKY
def test_who_is_near_and_not_subscribed_gets_nothing(name: str) -> None:
    topics = {"u": [frozenset[str](), frozenset({"r1"})]}
    given = settled(name, [None, "r1"], topics, subscriptions=[frozenset({"gone"}), frozenset({"u"})])

    assert flat(given) == {"m0": set(), "m1": {("u", 0), ("u", 1)}}
