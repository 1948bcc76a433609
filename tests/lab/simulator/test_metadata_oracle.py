"""The oracle of a cluster's metadata: each of its rules is broken once, and found."""

import uuid
from collections.abc import Callable

import pytest

from odradek.lab.simulator.metadata_oracle import MetadataOracle, SeenTopic, check_same
from odradek.lab.simulator.oracle import PromiseBrokenError

FIRST, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


def told(topic_id: uuid.UUID | None = FIRST) -> MetadataOracle:
    """An oracle that knows of `t`, with 2 partitions and setting 5, all answered."""
    oracle = MetadataOracle()
    oracle.creation_asked("t", 2)
    oracle.created("t", topic_id)
    oracle.setting_asked("t", 5)
    oracle.setting_answered("t")
    return oracle


def test_what_was_answered_is_there() -> None:
    oracle = told()
    oracle.growth_asked("t", 4)
    oracle.check("one", {"t": SeenTopic(FIRST, 2, 5)})
    oracle.check("other", {"t": SeenTopic(FIRST, 4, 5)})
    assert oracle.answered_count == 2


def test_what_was_not_answered_may_be_there_or_not() -> None:
    oracle = told()
    oracle.creation_asked("u", 1)
    oracle.setting_asked("t", 6)
    for setting, also in ((5, {}), (6, {"u": SeenTopic(OTHER, 1)})):
        oracle.check("one", {"t": SeenTopic(FIRST, 2, setting), **also})
    oracle.deletion_asked("t")
    oracle.check("one", {"t": SeenTopic(FIRST, 2, 5)})
    oracle.check("one", {})


@pytest.mark.parametrize("topic_id", [FIRST, None])
def test_a_try_to_make_a_topic_may_come_when_it_is_deleted_already(topic_id: uuid.UUID | None) -> None:
    oracle = deleted(topic_id)
    oracle.check("one", {"t": SeenTopic(OTHER, 2)})


def deleted(topic_id: uuid.UUID | None = FIRST) -> MetadataOracle:
    oracle = told(topic_id)
    oracle.deletion_asked("t")
    oracle.deleted("t")
    return oracle


def grown() -> MetadataOracle:
    oracle = told()
    oracle.growth_asked("t", 3)
    oracle.grown("t")
    return oracle


def seen_before() -> MetadataOracle:
    oracle = told(None)
    oracle.check("one", {"t": SeenTopic(FIRST, 2, 5)})
    return oracle


@pytest.mark.parametrize(
    ("rule", "made", "seen"),
    [
        ("created", told, {}),
        ("created", told, {"t": SeenTopic(OTHER, 2, 5)}),
        ("created", seen_before, {"t": SeenTopic(OTHER, 2, 5)}),
        ("deleted", deleted, {"t": SeenTopic(FIRST, 2, 5)}),
        ("grown", grown, {"t": SeenTopic(FIRST, 2, 5)}),
        ("grown", told, {"t": SeenTopic(FIRST, 3, 5)}),
        ("configured", told, {"t": SeenTopic(FIRST, 2, 4)}),
        ("configured", told, {"t": SeenTopic(FIRST, 2, 6)}),
        ("asked", told, {"t": SeenTopic(FIRST, 2, 5), "u": SeenTopic(OTHER, 1)}),
    ],
)
def test_a_broken_rule_is_found(rule: str, made: Callable[[], MetadataOracle], seen: dict[str, SeenTopic]) -> None:
    with pytest.raises(PromiseBrokenError) as broken:
        made().check("one", seen)
    assert broken.value.rule == rule


def test_two_nodes_that_disagree_are_found() -> None:
    check_same("agree", "images at 5", "a", "a")
    with pytest.raises(PromiseBrokenError) as broken:
        check_same("agree", "images at 5", "a", "b")
    assert broken.value.rule == "agree"
