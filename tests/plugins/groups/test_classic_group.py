"""A classic group, where no script of a life looks: time-outs of several members, replaced ones, who may commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from odradek.kernel.api import ErrorCode, ProducerIdentity
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.consumer_protocol import encode_assignment, new_assignment
from odradek.plugins.groups.classic import rebalance
from odradek.plugins.groups.classic.states import COMPLETING, PREPARING, STABLE
from odradek.plugins.groups.group import Caller
from odradek.testing.shard_harness import RecordingWaiter

from .driven import CLIENT, GROUP, DrivenGroups, code_of, subscription

if TYPE_CHECKING:
    from odradek.plugins.groups.classic.group import ClassicGroup

AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
PRODUCER = ProducerIdentity(7, 0)


def group_of(driven: DrivenGroups) -> ClassicGroup:
    group = driven.shard.classic.get(GROUP)
    assert group is not None
    return group


def joined(driven: DrivenGroups, **rebalance_ms: int) -> None:
    """Have members join a generation, each with its rebalance time-out; the first leads. Sessions are long."""
    waiters = {
        name: driven.join(name, version=3, rebalance_ms=duration_ms, session_ms=300_000)
        for name, duration_ms in rebalance_ms.items()
    }
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)


def synced(driven: DrivenGroups, *names: str) -> None:
    """Have the leader assign, and others ask for what they have."""
    for name in names:
        driven.sync(name, group_of(driven).generation_id, dict.fromkeys(names, b"some") if name == "a" else None)


# ------------------------------------------------------------------------------------------------------------ time-outs


def test_a_rebalance_waits_as_long_as_the_slowest_member_may_take() -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000, b=90_000)
    synced(driven, "a", "b")
    driven.join("a", version=3, rebalance_ms=20_000, session_ms=300_000)
    driven.harness.advance(89_999)
    assert group_of(driven).state is PREPARING
    driven.harness.advance(1)

    assert group_of(driven).state is COMPLETING
    assert list(group_of(driven).members) == [driven.member_ids["a"]]


def test_a_member_that_joins_again_says_anew_how_long_it_may_take() -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000, b=20_000)
    synced(driven, "a", "b")
    driven.join("a", version=3, rebalance_ms=90_000, session_ms=300_000)
    again = driven.join("b", version=3, rebalance_ms=20_000, session_ms=300_000)
    assert again.is_done
    generation = group_of(driven).generation_id
    driven.harness.advance(89_999)  # nobody syncs
    assert group_of(driven).generation_id == generation
    assert group_of(driven).state is COMPLETING
    driven.harness.advance(1)

    assert not group_of(driven).members


# -------------------------------------------------------------------------------------------------------- large groups


def crowd(driven: DrivenGroups) -> None:
    """Form a group of four members, each with a session of ten seconds."""
    waiters = {name: driven.join(name, version=3, session_ms=10_000) for name in "abcd"}
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)


def test_sessions_of_a_large_group_begin_anew_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "SEEN_AT_ONCE", 1)
    driven = DrivenGroups(AT_ONCE)
    crowd(driven)
    for name in "bcd":
        driven.sync(name, 1)
    driven.harness.advance(9_999)
    begun = driven.harness.now_ms
    driven.sync("a", 1, {})
    assert list(group_of(driven).unseen) == [driven.member_ids[name] for name in "bcd"]
    driven.harness.advance(10_000 - 1)
    assert driven.harness.now_ms == begun + 9_999
    assert not group_of(driven).unseen
    assert len(group_of(driven).members) == 4
    driven.harness.advance(1)

    assert not group_of(driven).members


def test_whose_session_is_about_to_begin_anew_does_not_run_out_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "SEEN_AT_ONCE", 1)
    driven = DrivenGroups(AT_ONCE)
    crowd(driven)
    for name in "bcd":
        driven.sync(name, 1)
    schedule = driven.harness.schedule
    # the wheel is late, as on a busy machine: the old sessions end before the next portion comes
    driven.harness.schedule = lambda key, delay_ms, operation: schedule(key, max(delay_ms, 5), operation)  # type: ignore[method-assign] # a test's own
    driven.harness.advance(9_999)
    driven.sync("a", 1, {})
    driven.harness.advance(100)

    assert len(group_of(driven).members) == 4
    assert group_of(driven).state is STABLE


def test_who_leaves_before_its_session_began_anew_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "SEEN_AT_ONCE", 1)
    driven = DrivenGroups(AT_ONCE)
    crowd(driven)
    for name in "bcd":
        driven.sync(name, 1)
    driven.sync("a", 1, {})
    driven.leave((driven.member_ids["c"], None))
    driven.harness.advance(1)

    assert driven.member_ids["c"] not in group_of(driven).members
    assert ("session", GROUP, driven.member_ids["c"]) not in driven.harness.armed


# ------------------------------------------------------------------------------------------------------- static members


def test_a_static_member_that_is_replaced_between_join_and_sync_is_not_waited_for() -> None:
    driven = DrivenGroups(AT_ONCE)
    waiters = {
        name: driven.join(name, version=5, member_id="", instance_id=name, rebalance_ms=20_000, session_ms=300_000)
        for name in ("a", "b")
    }
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)
    driven.sync("a", 1, {"a": b"one", "b": b"two"}, instance_id="a")
    assert group_of(driven).state is STABLE
    driven.learn(
        "b",
        driven.join("b", version=5, member_id="", instance_id="b", rebalance_ms=20_000, session_ms=300_000).response,
    )
    assert driven.sync("b", 1, instance_id="b").response.assignment == b"two"
    driven.harness.advance(20_000)

    assert (group_of(driven).state, group_of(driven).generation_id) == (STABLE, 1)
    assert driven.heartbeat("b", 1, instance_id="b") is ErrorCode.NONE


def test_a_static_member_that_is_replaced_before_its_session_began_anew_costs_nobody_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebalance, "SEEN_AT_ONCE", 2)
    driven = DrivenGroups(AT_ONCE)

    def joins(names: str) -> dict[str, RecordingWaiter]:
        return {name: driven.join(name, instance_id=name) for name in names}

    first = joins("abcdef")
    driven.harness.advance(0)
    for name, waiter in first.items():
        driven.learn(name, waiter.response)
    driven.sync("a", 1, {}, instance_id="a")
    second = joins("abcdef")
    assert [waiter.response.generation_id for waiter in second.values()] == [2] * 6
    assert list(group_of(driven).unseen) == [driven.member_ids[name] for name in "cdef"]
    syncs = [driven.sync(name, 2, instance_id=name) for name in "ef"]
    driven.join("c", member_id="", instance_id="c")

    assert [code_of(waiter) for waiter in syncs] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert driven.member_ids["c"] not in group_of(driven).unseen


COOPERATIVE: Final = {"cooperative-sticky": ["t"]}


def share(*partitions: int) -> bytes:
    return encode_assignment(new_assignment({"t": partitions}))


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("is_reloaded", [True, False])
def test_a_static_member_that_dies_before_it_has_given_up_a_partition_has_the_group_go_on_with_the_rebalance(
    leads: bool, is_reloaded: bool
) -> None:
    """Given to nobody in this generation, the partition would be read by nobody until the next rebalance."""
    driven = DrivenGroups(AT_ONCE)

    def join(name: str, *owned: int) -> RecordingWaiter:
        is_back = name not in driven.member_ids
        member_id = "" if is_back else None
        return driven.join(
            name, instance_id=name, member_id=member_id, version=9, protocols=COOPERATIVE, owned={"t": owned}
        )

    first, second = ("giver", "taker") if leads else ("taker", "giver")
    waiters = {first: join(first, *(range(4) if first == "giver" else ()))}
    driven.harness.advance(0)
    driven.learn(first, waiters[first].response)
    waiters[second] = join(second, *(range(4) if second == "giver" else ()))
    waiters[first] = join(first, *(range(4) if first == "giver" else ()))
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)
    generation = group_of(driven).generation_id
    driven.sync(first, generation, {"giver": share(0, 1), "taker": share()}, instance_id=first)
    driven.sync(second, generation, instance_id=second)
    assert group_of(driven).state is STABLE
    if is_reloaded:
        driven.harness.reload()
    del driven.member_ids["giver"]
    back = join("giver")

    assert group_of(driven).state is PREPARING
    assert driven.heartbeat("taker", generation, instance_id="taker") is ErrorCode.REBALANCE_IN_PROGRESS
    again = join("taker")
    assert {back.response.generation_id, again.response.generation_id} == {generation + 1}


def test_a_static_member_that_has_nothing_to_give_up_comes_back_without_a_rebalance() -> None:
    driven = DrivenGroups(AT_ONCE)
    waiter = driven.join("a", instance_id="a", version=9, protocols=COOPERATIVE, owned={"t": (0, 1)})
    driven.harness.advance(0)
    driven.learn("a", waiter.response)
    driven.sync("a", 1, {"a": share(0, 1, 2, 3)}, instance_id="a")
    back = driven.join("a", member_id="", instance_id="a", version=9, protocols=COOPERATIVE, owned={})

    assert (group_of(driven).state, back.response.generation_id, back.response.skip_assignment) == (STABLE, 1, True)


# -------------------------------------------------------------------------------------------------------- protocols


def join_by(driven: DrivenGroups, name: str, *protocols: str) -> RecordingWaiter:
    """Have a member join, offering protocols, which may be named twice."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=20_000,
        member_id=driven.member_ids.get(name, ""),
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=protocol, metadata=subscription(["t"])) for protocol in protocols],
    )
    waiter = RecordingWaiter()
    caller = Caller(CLIENT, "/127.0.0.1", 3)
    driven.harness.submit(lambda shard, now_ms: shard.join(request, caller, waiter, now_ms), waiter)
    return waiter


def test_a_protocol_that_a_member_names_twice_counts_once() -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000, b=20_000)
    synced(driven, "a", "b")
    waiters = [join_by(driven, "b", "range", "range"), join_by(driven, "a", "range")]
    driven.harness.advance(0)

    assert [(waiter.response.error_code, waiter.response.generation_id) for waiter in waiters] == [(0, 2), (0, 2)]
    assert waiters[1].response.protocol_name == "range"


def test_protocols_that_nobody_offers_any_more_are_forgotten() -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000)
    group = group_of(driven)
    synced(driven, "a")
    for number in range(5):
        join_by(driven, "a", "range", *(f"{number}-{each}" for each in range(10)))
        driven.harness.advance(0)

    assert group._protocol_counts == {"range": 1, **{f"4-{each}": 1 for each in range(10)}}

    driven.leave((driven.member_ids["a"], None))

    assert group._protocol_counts == {}


# ---------------------------------------------------------------------------------------------------- who may commit


@pytest.mark.parametrize(
    ("sender", "expected"),
    [
        ({}, ErrorCode.NONE),  # as clients before KIP-447 do
        ({"generation": 0}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"name": "a"}, ErrorCode.ILLEGAL_GENERATION),
        ({"name": "a", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"name": "a", "generation": 1}, ErrorCode.NONE),
        ({"name": "stranger", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=repr,
)
def test_a_transactional_commit_is_checked_by_whatever_it_says_of_its_sender(
    sender: dict[str, object], expected: ErrorCode
) -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000)
    synced(driven, "a")
    waiter = driven.commit({"t": {0: 5}}, producer=PRODUCER, **sender)  # type: ignore[arg-type] # named as there

    assert waiter.error_code is expected


def test_a_plain_commit_without_a_member_is_refused_while_the_group_has_members() -> None:
    driven = DrivenGroups(AT_ONCE)
    joined(driven, a=20_000)
    synced(driven, "a")

    assert driven.commit({"t": {0: 5}}).error_code is ErrorCode.UNKNOWN_MEMBER_ID
