"""What the assignors give: Kafka's own answers, the well-known examples, and the promises of the sticky ones."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import Assignor, GroupMember, MemberAssignment, SubscribedTopic
from odradek.kernel.wire.messages.consumer_protocol import decode_subscription
from odradek.plugins.assignors import odradek_assignors

ASSIGNORS = dict(odradek_assignors())
ORDERS = frozenset({"orders"})
STICKY_NAMES = ("sticky", "cooperative-sticky", "uniform")

GOLDEN = Path(__file__).parent / "golden/kafka_4_3_1.jsonl"
"""Random groups and what RangeAssignor and RoundRobinAssignor of kafka-clients 4.3.1 gave them, on 2026-11-21."""

Given = dict[str, dict[str, list[int]]]


def plain(given: Mapping[str, MemberAssignment]) -> Given:
    return {member: {topic: list(some) for topic, some in one.partitions.items()} for member, one in given.items()}


def orders(assignor: Assignor, members: Sequence[str], count: int, before: Given | None = None) -> dict[str, list[int]]:
    """Return who gets which partitions of one topic."""
    group = [
        GroupMember(member, ORDERS, owned=(before or {}).get(member, {}), generation=1 if before else -1)
        for member in members
    ]
    given = assignor.assign(group, {"orders": SubscribedTopic(count)})
    return {member: list(one.partitions.get("orders", ())) for member, one in given.items()}


# -- Kafka's own -----------------------------------------------------------------------------------------------------


def golden_cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_range_and_roundrobin_give_what_kafkas_own_give(name: str) -> None:
    for case in golden_cases():
        members = [
            GroupMember(m["id"], frozenset(m["topics"]), instance_id=m.get("instance"), rack=m.get("rack"))
            for m in case["members"]
        ]
        topics = {
            topic: SubscribedTopic(len(racks), [frozenset(some) for some in racks])
            for topic, racks in case["topics"].items()
        }

        assert case["given"][name] == plain(ASSIGNORS[name].assign(members, topics)), case


def test_the_golden_groups_have_racks_that_matter_and_static_members() -> None:
    cases = golden_cases()
    changed_by_racks = 0
    for case in cases:
        members = [GroupMember(m["id"], frozenset(m["topics"]), instance_id=m.get("instance")) for m in case["members"]]
        topics = {topic: SubscribedTopic(len(racks)) for topic, racks in case["topics"].items()}
        changed_by_racks += case["given"]["range"] != plain(ASSIGNORS["range"].assign(members, topics))

    assert changed_by_racks > 10
    assert any("instance" in member for case in cases for member in case["members"])


# -- the well-known examples -------------------------------------------------------------------------------


def test_range_gives_ten_partitions_to_three_members_in_runs() -> None:
    given = orders(ASSIGNORS["range"], "abc", 10)

    assert given == {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}


@pytest.mark.parametrize("name", ["roundrobin", *STICKY_NAMES])
def test_the_others_give_ten_partitions_to_three_members_in_turn(name: str) -> None:
    given = orders(ASSIGNORS[name], "abc", 10)

    assert given == {"a": [0, 3, 6, 9], "b": [1, 4, 7], "c": [2, 5, 8]}


@pytest.mark.parametrize("name", STICKY_NAMES)
def test_when_the_third_leaves_the_sticky_ones_share_only_what_it_had(name: str) -> None:
    before = {"a": {"orders": [0, 3, 6, 9]}, "b": {"orders": [1, 4, 7]}}

    given = orders(ASSIGNORS[name], "ab", 10, before)

    assert given == {"a": [0, 3, 5, 6, 9], "b": [1, 2, 4, 7, 8]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("range", {"a": [0, 1, 2, 3, 4], "b": [5, 6, 7, 8, 9]}),
        ("roundrobin", {"a": [0, 2, 4, 6, 8], "b": [1, 3, 5, 7, 9]}),
    ],
)
def test_when_the_third_leaves_the_others_begin_anew(name: str, expected: dict[str, list[int]]) -> None:
    assert expected == orders(ASSIGNORS[name], "ab", 10)


@pytest.mark.parametrize("name", ASSIGNORS)
def test_twenty_members_get_five_of_a_hundred_partitions_each(name: str) -> None:
    given = orders(ASSIGNORS[name], [f"member-{number:02}" for number in range(20)], 100)

    assert {len(partitions) for partitions in given.values()} == {5}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize(("members", "loads"), [("a", [3]), ("abcd", [1, 1, 1, 0])])
def test_three_partitions_are_read_by_one_member_or_by_three_of_four(name: str, members: str, loads: list[int]) -> None:
    assert loads == [len(partitions) for partitions in orders(ASSIGNORS[name], members, 3).values()]


def test_a_fourth_member_of_three_partitions_gets_nothing_until_one_leaves() -> None:
    before = {"a": {"orders": [0]}, "b": {"orders": [1]}, "c": {"orders": [2]}}

    assert orders(ASSIGNORS["sticky"], "abcd", 3, before) == {"a": [0], "b": [1], "c": [2], "d": []}
    assert orders(ASSIGNORS["sticky"], "bcd", 3, before) == {"b": [1], "c": [2], "d": [0]}


def test_topics_that_are_joined_are_given_alike_by_range() -> None:
    members = [GroupMember(name, frozenset({"orders", "payments"})) for name in ("a", "b", "c")]
    given = plain(ASSIGNORS["range"].assign(members, {name: SubscribedTopic(7) for name in ("orders", "payments")}))

    assert all(one["orders"] == one["payments"] for one in given.values())


def test_a_static_member_that_restarts_keeps_its_run() -> None:
    def given_to(member_id: str) -> dict[str, list[int]]:
        members = [GroupMember(member_id, ORDERS, instance_id="i-1"), GroupMember("m", ORDERS, instance_id="i-2")]
        return plain(ASSIGNORS["range"].assign(members, {"orders": SubscribedTopic(5)}))[member_id]

    assert given_to("a") == given_to("z") == {"orders": [0, 1, 2]}


# -- claims ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STICKY_NAMES)
def test_of_two_that_claim_a_partition_the_newer_generation_is_believed(name: str) -> None:
    members = [
        GroupMember("a", ORDERS, owned={"orders": [0, 1]}, generation=3),
        GroupMember("b", ORDERS, owned={"orders": [1, 0]}, generation=4),
    ]
    given = plain(ASSIGNORS[name].assign(members, {"orders": SubscribedTopic(2)}))

    assert given["b"] == {"orders": [0]}


def test_what_two_claim_in_one_generation_is_given_to_nobody_until_both_let_go() -> None:
    members = [GroupMember(name, ORDERS, owned={"orders": [0]}, generation=4) for name in "ab"]
    given = plain(ASSIGNORS["cooperative-sticky"].assign(members, {"orders": SubscribedTopic(2)}))

    assert Counter(partition for one in given.values() for partition in one.get("orders", ())) == {1: 1}


def test_what_an_owner_reads_no_longer_is_held_back_until_it_let_go() -> None:
    members = [
        GroupMember("a", frozenset(), owned={"orders": [0]}, generation=4),
        GroupMember("b", ORDERS, owned={"orders": [1]}, generation=4),
    ]
    given = plain(ASSIGNORS["cooperative-sticky"].assign(members, {"orders": SubscribedTopic(2)}))

    assert given == {"a": {}, "b": {"orders": [1]}}


# -- user data -------------------------------------------------------------------------------------------------------

JAVA_STICKY = decode_subscription(
    bytes.fromhex(
        "0003000000020001610001620000002a000000020001610000000300000000000000010000000200016200000002000000000000000100"
        "000001000000000000000100027231"
    )
)
"""Of a Java member that had a-0 to a-2, b-0 and b-1 in generation 1; see tests/wire/test_consumer_protocol.py."""


def test_a_java_members_sticky_user_data_is_read_and_written_alike() -> None:
    topics = frozenset({"a", "b"})
    previous = MemberAssignment({"a": [0, 1, 2], "b": [0, 1]})
    members = [GroupMember("java", topics, user_data=JAVA_STICKY.user_data), GroupMember("a-new-one", topics)]
    given = plain(ASSIGNORS["sticky"].assign(members, {"a": SubscribedTopic(3), "b": SubscribedTopic(2)}))

    assert given == {"a-new-one": {"a": [2], "b": [1]}, "java": {"a": [0, 1], "b": [0]}}
    assert ASSIGNORS["sticky"].subscription_user_data(topics, previous, 1) == JAVA_STICKY.user_data


def test_sticky_user_data_without_a_generation_is_believed_least() -> None:
    data = JAVA_STICKY.user_data or b""
    members = [
        GroupMember("a", frozenset({"a"}), user_data=data[:-4]),  # version 0 lacks the last field
        GroupMember("b", frozenset({"a"}), user_data=data),
    ]
    given = plain(ASSIGNORS["sticky"].assign(members, {"a": SubscribedTopic(3)}))

    assert given == {"a": {"a": [2]}, "b": {"a": [0, 1]}}


def test_the_first_subscription_of_a_sticky_member_tells_nothing() -> None:
    assert ASSIGNORS["sticky"].subscription_user_data(ORDERS, None, -1) is None


def test_cooperative_user_data_is_the_generation_as_java_writes_it() -> None:
    assert ASSIGNORS["cooperative-sticky"].subscription_user_data(ORDERS, None, -1) == b"\xff" * 4


def test_an_older_cooperative_members_generation_stands_in_its_user_data() -> None:
    members = [
        GroupMember("a", ORDERS, owned={"orders": [0]}, user_data=b"\0\0\0\2"),
        GroupMember("b", ORDERS, owned={"orders": [0]}, user_data=b"\0\0\0\3"),
    ]
    given = plain(ASSIGNORS["cooperative-sticky"].assign(members, {"orders": SubscribedTopic(1)}))

    assert given == {"a": {}, "b": {"orders": [0]}}


# -- promises: balance first, then stickiness ------------------------------------------------------------------------

Group = tuple[list[GroupMember], dict[str, SubscribedTopic]]


@st.composite
def small_groups(draw: st.DrawFn, partitions_max: int = 3, topics_max: int = 3, members_max: int = 4) -> Group:
    """Groups small enough that every possible assignment can be looked at; what members owned never contradicts."""
    counts = draw(st.lists(st.integers(1, partitions_max), min_size=1, max_size=topics_max))
    topics = {f"t{number}": SubscribedTopic(count) for number, count in enumerate(counts)}
    names = "abcd"[: draw(st.integers(1, members_max))]
    wanted = {name: draw(st.frozensets(st.sampled_from(sorted(topics)))) for name in names}
    owned: dict[str, dict[str, list[int]]] = {name: {} for name in names}
    for topic, described in topics.items():
        for partition in range(described.partitions_count):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                owned[owner].setdefault(topic, []).append(partition)
    members = [GroupMember(name, wanted[name], owned=owned[name], generation=5) for name in names]
    read = frozenset[str]().union(*wanted.values())
    return members, {name: topic for name, topic in topics.items() if name in read}


def every_assignment(group: Group) -> list[dict[tuple[str, int], str]]:
    members, topics = group
    partitions = [(topic, p) for topic, described in topics.items() for p in range(described.partitions_count)]
    readers = [[member.member_id for member in members if topic in member.topics] for topic, _ in partitions]
    return [dict(zip(partitions, choice, strict=True)) for choice in itertools.product(*readers)]


def unevenness(group: Group, readers: Mapping[tuple[str, int], str]) -> list[int]:
    counts = Counter(readers.values())
    return sorted((counts[member.member_id] for member in group[0]), reverse=True)


def moves(group: Group, readers: Mapping[tuple[str, int], str]) -> int:
    """Count the partitions that are taken from somebody who could have kept them."""
    return sum(
        readers[topic, partition] != member.member_id
        for member in group[0]
        for topic, partitions in member.owned.items()
        if topic in member.topics
        for partition in partitions
    )


def readers_of(given: Mapping[str, MemberAssignment]) -> dict[tuple[str, int], str]:
    return {(t, p): member for member, one in given.items() for t, some in one.partitions.items() for p in some}


@given(small_groups())
def test_no_other_assignment_has_more_even_loads(group: Group) -> None:
    readers = readers_of(ASSIGNORS["uniform"].assign(*group))

    assert min(unevenness(group, every) for every in every_assignment(group)) == unevenness(group, readers)


@given(small_groups())
def test_of_the_most_even_assignments_one_that_moves_the_fewest_is_chosen(group: Group) -> None:
    readers = readers_of(ASSIGNORS["uniform"].assign(*group))
    loads = unevenness(group, readers)
    fewest = min(moves(group, every) for every in every_assignment(group) if unevenness(group, every) == loads)

    assert fewest == moves(group, readers)


@given(small_groups(9, 4))
def test_an_assignment_that_was_made_is_kept(group: Group) -> None:
    members, topics = group
    first = ASSIGNORS["sticky"].assign(members, topics)
    again = [GroupMember(m.member_id, m.topics, owned=first[m.member_id].partitions, generation=6) for m in members]

    assert first == ASSIGNORS["sticky"].assign(again, topics)


@given(small_groups(9, 4), st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_matter(group: Group, source: Any) -> None:
    members, topics = group
    shuffled, names = list(members), list(topics)
    source.shuffle(shuffled)
    source.shuffle(names)
    for assignor in ASSIGNORS.values():
        expected = assignor.assign(members, topics)

        assert expected == assignor.assign(shuffled, {name: topics[name] for name in names})


@given(small_groups(9, 4))
def test_cooperative_gives_what_sticky_gives_in_two_steps_and_nothing_that_another_has(group: Group) -> None:
    members, topics = group
    final = ASSIGNORS["sticky"].assign(members, topics)
    first = ASSIGNORS["cooperative-sticky"].assign(members, topics)
    owner = {(t, p): m.member_id for m in members for t, some in m.owned.items() for p in some}
    for key, reader in readers_of(first).items():
        assert readers_of(final)[key] == reader
        assert owner.get(key, reader) == reader

    again = [GroupMember(m.member_id, m.topics, owned=first[m.member_id].partitions, generation=6) for m in members]
    second = ASSIGNORS["cooperative-sticky"].assign(again, topics)

    assert readers_of(second).keys() == readers_of(final).keys()
    assert unevenness(group, readers_of(second)) == unevenness(group, readers_of(final))


def test_a_chain_of_overlapping_subscriptions_is_evened_out_over_several_members() -> None:
    members = [
        GroupMember("a", frozenset({"x"}), owned={"x": list(range(9))}, generation=1),
        GroupMember("b", frozenset({"x", "y"}), owned={"x": list(range(9, 19))}, generation=1),
        GroupMember("c", frozenset({"y"}), owned={"y": list(range(11))}, generation=1),
    ]
    given = ASSIGNORS["uniform"].assign(members, {"x": SubscribedTopic(19), "y": SubscribedTopic(11)})

    assert {member: sum(map(len, one.partitions.values())) for member, one in given.items()} == {
        "a": 10,
        "b": 10,
        "c": 10,
    }
