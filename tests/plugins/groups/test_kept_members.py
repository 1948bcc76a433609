"""Members count as having just spoken while a test lets time pass: sessions, and what they have still to do."""

from __future__ import annotations

from odradek.kernel.api import ErrorCode
from odradek.plugins.groups.consumer.member import MemberState

from .consumer.driven_consumers import DrivenConsumers
from .driven import GROUP, DrivenGroups, code_of

HALF_AN_HOUR_MS = 1_800_000
STEP_MS = 5_000
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}


def pass_half_an_hour(driven: DrivenGroups | DrivenConsumers, *names: str) -> None:
    """Let it pass in steps, after each of which these members have just spoken."""
    for _ in range(HALF_AN_HOUR_MS // STEP_MS):
        driven.harness.advance(STEP_MS)
        driven.shard.keep_members({GROUP: [driven.member_ids.get(name, name) for name in names], "gone": ["x"]})


def pair() -> DrivenGroups:
    """Return a stable classic group of `a`, who leads, and `b`."""
    driven = DrivenGroups(AT_ONCE)
    waiters = {name: driven.join(name, version=3) for name in ("a", "b")}
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)
    driven.sync("a", 1, {"a": b"one", "b": b"other"})
    driven.sync("b", 1)
    return driven


def test_who_is_kept_stays_and_who_is_not_goes() -> None:
    driven = pair()
    pass_half_an_hour(driven, "a", "b")
    assert driven.heartbeat("a", 1) is driven.heartbeat("b", 1) is ErrorCode.NONE
    pass_half_an_hour(driven, "a")

    assert driven.heartbeat("a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driven.heartbeat("b", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_kept_may_join_again_later() -> None:
    driven = pair()
    waiting = driven.join("a", version=3)  # the leader, that wants to assign anew
    pass_half_an_hour(driven, "a", "b")
    assert not waiting.is_done
    driven.join("b", version=3)

    assert code_of(waiting) is ErrorCode.NONE


def test_whoever_is_not_kept_is_waited_for_as_long_as_ever() -> None:
    driven = pair()
    waiting = driven.join("a", version=3)
    pass_half_an_hour(driven, "a")

    assert code_of(waiting) is ErrorCode.NONE
    assert driven.heartbeat("b", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_kept_may_sync_later() -> None:
    driven = pair()
    for name in ("a", "b"):
        driven.join(name, version=3)
    pass_half_an_hour(driven, "a", "b")
    synced = driven.sync("b", 2)
    driven.sync("a", 2, {"b": b"all"})

    assert synced.response.assignment == b"all"


def test_who_was_told_its_id_may_come_back_with_it_later() -> None:
    driven = pair()
    driven.learn("c", driven.join("c").response)
    pass_half_an_hour(driven, "a", "b", "c")
    coming_back = driven.join("c")
    for name in ("a", "b"):
        driven.join(name, version=3)

    assert code_of(coming_back) is ErrorCode.NONE


def test_who_waits_for_its_first_answer_waits_on() -> None:
    driven = pair()
    newcomer = driven.join("c", version=3)
    pass_half_an_hour(driven, "a", "b")
    assert not newcomer.is_done
    driven.join("a", version=3)
    driven.join("b", version=3)

    assert code_of(newcomer) is ErrorCode.NONE


# ------------------------------------------------------------------------------------------------ the consumer protocol


def test_a_member_of_the_consumer_protocol_that_is_kept_stays() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.enter("b", "t")
    pass_half_an_hour(driven, "a")

    assert set(driven.group.members) == {"a"}


def test_who_is_kept_may_let_go_of_partitions_later() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    driven.enter("a", "t", rebalance_timeout_ms=10_000)
    driven.enter("b", "t")
    driven.beat("a", driven.epoch_of("a"))
    assert driven.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    pass_half_an_hour(driven, "a", "b")
    assert "a" in driven.group.members
    driven.harness.advance(10_000)

    assert "a" not in driven.group.members


def test_a_member_of_the_classic_protocol_among_consumers_may_join_and_sync_later() -> None:
    driven = DrivenConsumers({"group.consumer.migration.policy": "bidirectional"})
    driven.enter("a", "t")
    for _ in range(2):
        driven.join_classic("x", ["t"])
    pass_half_an_hour(driven, "a", "x")
    assert code_of(driven.sync("x", driven.epoch_of("x"))) is ErrorCode.NONE
    driven.enter("b", "t")
    assert driven.heartbeat("x", driven.epoch_of("x")) is ErrorCode.REBALANCE_IN_PROGRESS
    pass_half_an_hour(driven, "a", "b", "x")
    driven.join_classic("x", ["t"])

    assert driven.member_ids["x"] in driven.group.members
