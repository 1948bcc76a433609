"""How members go: sessions, and the other times that they are given, by a clock that does not jump."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.api import ErrorCode, KafkaError
from odradek.plugins.groups.consumer.member import MemberState

from ..driven import GROUP, code_of
from .driven_consumers import DrivenConsumers

HOUR_MS = 3_600_000
SESSION_MS = 45_000
"""`group.consumer.session.timeout.ms`."""
REBALANCE_MS = 10_000


# ------------------------------------------------------------------------------------------------------- the wall clock


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
def test_a_session_lasts_as_long_as_ever_when_the_wall_clock_jumps(jump_ms: int) -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.beat("a", driven.epoch_of("a"))
    driven.harness.now_ms += jump_ms
    driven.harness.advance(SESSION_MS - 1)
    assert "a" in driven.group.members
    driven.harness.advance(1)

    assert "a" not in driven.group.members


def test_a_heartbeat_after_the_wall_clock_went_back_begins_a_whole_session() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.harness.advance(SESSION_MS - 1)
    driven.harness.now_ms -= HOUR_MS
    driven.beat("a", driven.epoch_of("a"))
    driven.harness.advance(SESSION_MS - 1)
    assert "a" in driven.group.members
    driven.harness.advance(1)

    assert "a" not in driven.group.members


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_new_expression_is_looked_up_after_ten_seconds_when_the_wall_clock_went_back(is_reloaded: bool) -> None:
    driven = DrivenConsumers(topics={"t": 1, "u": 1})
    driven.enter("a", subscribed_topic_names=None, subscribed_topic_regex="t")
    driven.harness.advance(0)
    driven.harness.now_ms -= HOUR_MS
    if is_reloaded:
        driven.harness.reload()
    driven.harness.advance(10_001)
    driven.enter("b", subscribed_topic_names=None, subscribed_topic_regex="u")
    driven.harness.advance(0)

    assert set(driven.group.resolved) == {"t", "u"}


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_group_is_assigned_anew_after_its_interval_when_the_wall_clock_went_back(is_reloaded: bool) -> None:
    driven = DrivenConsumers({"group.consumer.assignment.interval.ms": 1_000})
    driven.enter("a", "t")
    driven.harness.now_ms -= HOUR_MS
    if is_reloaded:
        driven.harness.reload()
    driven.harness.advance(999)
    driven.enter("b", "t")
    assert driven.group.assignment_epoch < driven.group.group_epoch
    driven.harness.advance(1)
    driven.beat("b", driven.epoch_of("b"))

    assert driven.group.assignment_epoch == driven.group.group_epoch


# ----------------------------------------------------------------------------------------------------------- timer keys


def test_members_whose_groups_and_ids_look_alike_when_joined_have_each_their_own_session() -> None:
    driven = DrivenConsumers()
    driven.enter("y50:m", "t", group_id="x")
    driven.enter("m", "t", group_id="x:y50")
    driven.harness.advance(SESSION_MS)

    groups = driven.shard.context.groups
    assert groups["x"].is_empty
    assert groups["x:y50"].is_empty


def test_a_member_whose_leaving_was_refused_is_out_when_its_session_ends() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert code_of(driven.beat("a", -1)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None
    assert "a" in driven.group.members
    driven.harness.advance(SESSION_MS)

    assert "a" not in driven.group.members


def test_a_member_whose_letting_go_was_refused_is_out_when_its_rebalance_time_is_over() -> None:
    driven = DrivenConsumers({"group.consumer.assignment.interval.ms": 0}, topics={"t": 2})
    driven.enter("a", "t", rebalance_timeout_ms=REBALANCE_MS)
    driven.enter("b", "t")
    told = driven.beat("a", driven.epoch_of("a")).response
    kept = driven.partitions(driven.names(told.assignment.topic_partitions))
    driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    lets_go = driven.beat("a", driven.epoch_of("a"), topic_partitions=kept)
    assert code_of(lets_go) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None
    assert driven.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    driven.harness.advance(REBALANCE_MS)

    assert "a" not in driven.group.members


def test_a_member_that_has_let_go_in_time_stays() -> None:
    driven = DrivenConsumers({"group.consumer.assignment.interval.ms": 0}, topics={"t": 2})
    driven.enter("a", "t", rebalance_timeout_ms=REBALANCE_MS)
    driven.enter("b", "t")
    told = driven.beat("a", driven.epoch_of("a")).response
    driven.beat(
        "a", driven.epoch_of("a"), topic_partitions=driven.partitions(driven.names(told.assignment.topic_partitions))
    )
    driven.harness.advance(REBALANCE_MS)

    assert "a" in driven.group.members


# -------------------------------------------------------------------------------------- members of the classic protocol


def mixed(**settings: Any) -> DrivenConsumers:
    """Return a group of `a`, by the consumer protocol, and `x`, by the classic one, that has synced."""
    driven = DrivenConsumers({"group.consumer.migration.policy": "bidirectional", **settings})
    driven.enter("a", "t")
    driven.join_classic("x", ["t"])  # is given an id, and comes back with it
    driven.join_classic("x", ["t"])
    driven.sync("x", driven.epoch_of("x"))
    return driven


def has_to_join_again(driven: DrivenConsumers) -> None:
    """Have a third member come, so that `x` is told to join again."""
    driven.enter("b", "t")
    assert driven.heartbeat("x", driven.epoch_of("x")) is ErrorCode.REBALANCE_IN_PROGRESS


def beat_if_there(driven: DrivenConsumers) -> None:
    """Send a heartbeat of `x`, as it does while it is a member."""
    if driven.member_ids["x"] in driven.group.members:
        driven.heartbeat("x", driven.epoch_of("x"))


def test_what_a_consumer_group_waited_for_is_not_held_against_a_member_after_a_downgrade_and_an_upgrade() -> None:
    driven = mixed()
    has_to_join_again(driven)  # within the 20 s of its rebalance time
    for name in ("a", "b"):
        driven.beat(name, -1)
    classic = driven.shard.classic.get(GROUP)
    assert classic is not None
    driven.join("x", version=9, protocols={"cooperative-sticky": ["t"]})
    driven.harness.advance(0)
    driven.sync("x", classic.generation_id, {"x": b"\0\0\0\0\0\0\0\0\0\0"})
    driven.enter("c", "t")
    generation = driven.epoch_of("x")
    for _ in range(5):
        driven.harness.advance(5_000)
        driven.heartbeat("x", generation)

    assert driven.member_ids["x"] in driven.group.members


def test_members_of_a_classic_group_that_was_upgraded_have_the_sessions_they_asked_for() -> None:
    driven = DrivenConsumers({"group.consumer.migration.policy": "bidirectional"})
    for _ in range(2):
        driven.join_classic("x", ["t"])  # with a session of 10 s
        driven.harness.advance(0)
    classic = driven.shard.classic.get(GROUP)
    assert classic is not None
    (driven.member_ids["x"],) = classic.members
    driven.sync("x", classic.generation_id, {"x": b"\0\0\0\0\0\0\0\0\0\0"})
    driven.enter("a", "t")
    assert driven.group.classic_count == 1
    driven.harness.advance(9_999)
    assert driven.member_ids["x"] in driven.group.members
    driven.harness.advance(1)

    assert set(driven.group.members) == {"a"}


def test_a_member_of_the_classic_protocol_is_out_when_it_was_silent_for_the_session_it_asked_for() -> None:
    driven = mixed()
    driven.heartbeat("x", driven.epoch_of("x"))
    driven.harness.advance(9_999)
    assert driven.member_ids["x"] in driven.group.members
    driven.harness.advance(1)

    assert set(driven.group.members) == {"a"}


@pytest.mark.parametrize("does_sync", [False, True])
def test_a_member_of_the_classic_protocol_has_its_rebalance_time_to_sync(does_sync: bool) -> None:
    driven = DrivenConsumers({"group.consumer.migration.policy": "upgrade"})
    driven.enter("a", "t")
    for _ in range(2):
        driven.join_classic("x", ["t"])  # and 20 s to sync
    if does_sync:
        driven.sync("x", driven.epoch_of("x"))
    for _ in range(4):
        driven.harness.advance(5_000)
        beat_if_there(driven)

    assert (driven.member_ids["x"] in driven.group.members) is does_sync


@pytest.mark.parametrize("does_join", [False, True])
def test_a_member_of_the_classic_protocol_has_its_rebalance_time_to_join_again(does_join: bool) -> None:
    driven = mixed()
    has_to_join_again(driven)
    if does_join:
        driven.join_classic("x", ["t"], owned={"t": [0]})
        driven.sync("x", driven.epoch_of("x"))
    for _ in range(4):
        driven.harness.advance(5_000)
        beat_if_there(driven)

    assert (driven.member_ids["x"] in driven.group.members) is does_join
