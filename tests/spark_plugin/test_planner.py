"""Which partitions a query reads."""

from __future__ import annotations

import pytest

from odradek.spark_plugin.errors import AssignmentError
from odradek.spark_plugin.ranges import TopicPartition
from odradek.spark_plugin.reading.planner import Assigned, Pattern, Subscription, Topics, assign, topics_to_describe

CLUSTER = {"orders": (1, 0), "orders-eu": (0,), "users": (0,), "__consumer_offsets": (0, 1)}


def names(partitions: tuple[TopicPartition, ...]) -> list[str]:
    return [str(one) for one in partitions]


def partition(topic: str, number: int) -> TopicPartition:
    return TopicPartition(topic, number)


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Topics(("users", "orders")), ["orders-0", "orders-1", "users-0"]),
        (Topics(("__consumer_offsets",)), ["__consumer_offsets-0", "__consumer_offsets-1"]),
        (Pattern("orders"), ["orders-0", "orders-1", "orders-eu-0"]),
        (Pattern("^orders$"), ["orders-0", "orders-1"]),
        (Pattern(".*"), ["orders-0", "orders-1", "orders-eu-0", "users-0"]),
        (Pattern("nothing"), []),
        (Assigned((partition("users", 0), partition("orders", 1))), ["orders-1", "users-0"]),
    ],
)
def test_a_subscription_becomes_partitions(subscription: Subscription, expected: list[str]) -> None:
    assert names(assign(subscription, CLUSTER)) == expected


@pytest.mark.parametrize(
    ("subscription", "expected", "shown"),
    [
        (Topics(("b", "a")), ("b", "a"), "Subscribe[b, a]"),
        (Pattern("x.*"), None, "SubscribePattern[x.*]"),
        (Assigned((partition("b", 1), partition("a", 0), partition("b", 0))), ("a", "b"), "Assign[b-1, a-0, b-0]"),
    ],
)
def test_brokers_are_asked_for_the_topics_that_count(
    subscription: Subscription, expected: tuple[str, ...] | None, shown: str
) -> None:
    assert topics_to_describe(subscription) == expected
    assert str(subscription) == shown


def test_a_topic_that_is_not_there_is_told_with_similar_ones() -> None:
    with pytest.raises(AssignmentError) as refused:
        assign(Topics(("ordres", "zzz")), {}, others=CLUSTER)

    assert "no such topic: 'ordres' (similar: orders, orders-eu), 'zzz'." in str(refused.value)
    assert "__consumer" not in str(refused.value)


def test_an_assigned_topic_or_partition_that_is_not_there_is_told() -> None:
    with pytest.raises(AssignmentError, match="no such topic: 'x'"):
        assign(Assigned((partition("x", 0),)), CLUSTER)
    with pytest.raises(AssignmentError, match=r"no such partition: orders-2, orders-9; 'orders' has 2, counted from 0"):
        assign(Assigned((partition("orders", 0), partition("orders", 2), partition("orders", 9))), CLUSTER)


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Topics(("gone", "users")), ["users-0"]),
        (Assigned((partition("gone", 0), partition("users", 0))), ["users-0"]),
        (Assigned((partition("orders", 7),)), []),
    ],
)
def test_a_topic_that_was_read_before_may_be_gone(subscription: Subscription, expected: list[str]) -> None:
    assert names(assign(subscription, CLUSTER, may_lack={"gone", "orders"})) == expected
