"""What the topics of a group's failed records are called: always a topic's name, and two groups do not share one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.retry.names import TOPIC_NAME_LENGTH_MAX, may_be_retry_topic, retry_topics

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
GROUPS = st.text(min_size=1, max_size=400)


def test_names_that_fit_are_as_they_read() -> None:
    assert retry_topics("orders", "billing") == ("orders.billing.retry", "orders.billing.dlq")


def test_a_group_that_does_not_fit_a_topics_alphabet_is_escaped_and_hashed() -> None:
    retry, dead = retry_topics("orders", "équipe 7")

    assert re.fullmatch(r"orders\.-quipe-7-[0-9a-f]{16}\.retry", retry)
    assert dead == retry.removesuffix(".retry") + ".dlq"


@given(TOPICS, GROUPS)
def test_every_pair_gives_names_of_topics(topic: str, group: str) -> None:
    for name in retry_topics(topic, group):
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
        assert len(name) <= TOPIC_NAME_LENGTH_MAX


@given(TOPICS, st.lists(GROUPS, min_size=2, max_size=2, unique=True))
def test_two_groups_of_a_topic_do_not_share_names(topic: str, groups: list[str]) -> None:
    first, second = (retry_topics(topic, group) for group in groups)

    assert not set(first) & set(second)


@given(TOPICS, GROUPS)
def test_a_retry_topic_is_known_by_its_name(topic: str, group: str) -> None:
    assert may_be_retry_topic(retry_topics(topic, group).retry, group)
    assert not may_be_retry_topic(retry_topics(topic, group).dead, group)


def test_another_groups_retry_topic_is_none_of_this_one() -> None:
    assert not may_be_retry_topic("orders.billing.retry", "billin")
    assert not may_be_retry_topic("orders.billing.retry", "orders.billing")
    assert not may_be_retry_topic(retry_topics("orders", "équipe 7").retry, "équipe 8")
    assert not may_be_retry_topic("billing.retry", "billing")
