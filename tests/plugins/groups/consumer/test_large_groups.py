"""Large groups: targets are computed beside and written in portions, while members come, go and ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from odradek.kernel.api import Assignor, ErrorCode, KafkaError
from odradek.plugins.groups.consumer import assigning

from ..driven import GROUP
from .driven_consumers import DrivenConsumers, hard_state
from .test_consumer_model import ConsumerGroupModel

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = ("consumer targets", GROUP)
MEMBERS = ["a", "b", "c", "d"]


class CountingAssignor(Assignor):
    """Counts how often another one is asked."""

    is_server_side = True

    def __init__(self, assignor: Assignor) -> None:
        self.assignor = assignor
        self.name = assignor.name
        self.asked_count = 0

    def assign(self, members: Any, topics: Any) -> Any:
        self.asked_count += 1
        return self.assignor.assign(members, topics)


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch) -> DrivenConsumers:
    """A group of four members, each with one of four partitions, for which every group is large."""
    driven = DrivenConsumers({}, {"t": 4})
    for name in MEMBERS:
        driven.enter(name, "t", instance_id=f"i{name}" if name == "a" else None)
    settle(driven)
    monkeypatch.setattr(assigning, "AT_ONCE_MAX", 0)
    monkeypatch.setattr(assigning, "TOPICS_A_STEP", 1)
    monkeypatch.setattr(assigning, "ENTRIES_A_STEP", 1)
    in_steps(driven)
    return driven


def in_steps(driven: DrivenConsumers) -> None:
    """Have an operation that follows at once wait a millisecond: `advance(1)` runs one."""
    schedule = driven.harness.schedule
    driven.harness.schedule = lambda key, delay_ms, operation: schedule(key, max(delay_ms, 1), operation)  # type: ignore[method-assign] # a test's own


def beat(driven: DrivenConsumers, name: str) -> Any:
    """Send a member's heartbeat that tells all it was given and not asked to give up; return the answer."""
    member = driven.group.members[driven.member_ids.get(name, name)]
    owned = {"t": [part for parts in member.assigned.values() for part in parts]}
    waiter = driven.beat(
        name, member.member_epoch, topic_partitions=driven.partitions(owned), instance_id=member.instance_id
    )
    return waiter.response


def settle(driven: DrivenConsumers) -> None:
    for _ in range(6):
        for name in list(driven.group.members):
            beat(driven, name)
        driven.harness.advance(20)

    assert driven.group.state_name == "Stable"


def step_until(driven: DrivenConsumers, is_so: Callable[[], bool]) -> int:
    """Run one operation after the other until something is so; return how many."""
    for count in range(50):
        if is_so():
            return count
        driven.harness.advance(1)
    raise AssertionError("it never was")


def targets(driven: DrivenConsumers) -> dict[str, list[int]]:
    return {
        member_id: sorted(part for parts in target.values() for part in parts)
        for member_id, target in driven.group.targets.items()
    }


def test_members_keep_what_they_have_until_the_targets_are_there_and_get_them_with_a_heartbeat(
    driven: DrivenConsumers,
) -> None:
    before = targets(driven)
    epoch = driven.group.assignment_epoch
    joined = driven.enter("e", "t").response

    assert joined.member_epoch == epoch
    assert joined.assignment.topic_partitions == []
    assert before == targets(driven)

    driven.create_topic("t", 5)
    assert beat(driven, "a").member_epoch == epoch

    step_until(driven, lambda: driven.group.assignment_epoch > epoch)
    settle(driven)

    assert sorted(part for parts in targets(driven).values() for part in parts) == [0, 1, 2, 3, 4]
    assert all(len(parts) == 1 for parts in targets(driven).values())


def test_the_epoch_of_the_targets_is_written_last_and_nothing_twice(driven: DrivenConsumers) -> None:
    driven.beat("d", -1)
    driven.beat("c", -1)
    beat(driven, "a")
    written = len(driven.harness.log)
    steps = step_until(driven, lambda: driven.group.assignment_epoch == driven.group.group_epoch)
    kinds = [type(record.key).__name__ for record in driven.harness.records[written:]]

    assert kinds == [*["ConsumerGroupTargetAssignmentMemberKey"] * 2, "ConsumerGroupTargetAssignmentMetadataKey"]
    assert steps > 3
    assert KEY not in driven.harness.armed


def test_one_assignment_is_under_way_however_many_ask(driven: DrivenConsumers) -> None:
    counting = CountingAssignor(driven.broker.assignors["uniform"])
    driven.broker.assignors = {**driven.broker.assignors, "uniform": counting}
    driven.harness.computing_ms = 100
    driven.beat("d", -1)
    for _ in range(10):
        beat(driven, "a")
        driven.harness.advance(5)

    assert counting.asked_count == 1


def test_a_group_in_which_somebody_always_comes_or_goes_is_assigned(driven: DrivenConsumers) -> None:
    driven.harness.computing_ms = 20
    begun = driven.group.assignment_epoch
    for number in range(10):
        driven.enter(f"new{number}", "t")
        driven.harness.advance(5)

    assert begun < driven.group.assignment_epoch < driven.group.group_epoch


@pytest.mark.parametrize("entries_a_step", [1, 100])
def test_who_went_meanwhile_gets_no_target(
    driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch, entries_a_step: int
) -> None:
    monkeypatch.setattr(assigning, "ENTRIES_A_STEP", entries_a_step)
    driven.harness.computing_ms = 10
    driven.enter("e", "t")
    driven.create_topic("t", 12)
    beat(driven, "a")
    driven.harness.advance(5)
    driven.beat("b", -1)
    step_until(driven, lambda: KEY not in driven.harness.armed)

    assert "b" not in driven.group.targets

    settle(driven)

    assert sorted(part for parts in targets(driven).values() for part in parts) == [*range(12)]


@pytest.mark.parametrize("steps", range(6))
def test_who_takes_a_static_members_place_gets_its_target(driven: DrivenConsumers, steps: int) -> None:
    """No new epoch comes of it: else nobody would ever tell the two apart whose targets overlap."""
    driven.create_topic("t", 8)
    beat(driven, "b")
    driven.harness.advance(steps)
    driven.beat("a", -2, instance_id="ia")
    driven.member_ids["a"] = "a2"
    driven.enter("a", "t", instance_id="ia")
    epoch = driven.group.group_epoch
    step_until(driven, lambda: KEY not in driven.harness.armed)

    assert epoch == driven.group.group_epoch == driven.group.assignment_epoch
    assert sorted(part for parts in targets(driven).values() for part in parts) == [*range(8)]
    assert "a" not in driven.group.targets

    settle(driven)


def test_who_is_there_already_keeps_its_own_target_when_it_takes_a_static_members_place(
    driven: DrivenConsumers,
) -> None:
    driven.create_topic("t", 5)
    driven.enter("e", "t", instance_id="ie")
    driven.harness.advance(50)
    settle(driven)
    before = targets(driven)["b"]
    driven.harness.computing_ms = 10
    driven.create_topic("t", 15)
    beat(driven, "b")
    driven.harness.advance(5)
    driven.beat("e", -1, instance_id="ie")
    driven.enter("b", "t", instance_id="ie")
    step_until(driven, lambda: KEY not in driven.harness.armed)

    assert driven.group.static_members == {"ia": "a", "ie": "b"}
    assert set(before) < set(targets(driven)["b"])


def test_a_request_that_was_refused_has_nothing_computed(driven: DrivenConsumers) -> None:
    counting = CountingAssignor(driven.broker.assignors["uniform"])
    driven.broker.assignors = {**driven.broker.assignors, "uniform": counting}
    driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    driven.enter("e", "t")
    driven.harness.refusal = None
    written = len(driven.harness.log)
    driven.harness.advance(20)

    assert (counting.asked_count, len(driven.harness.log)) == (0, written)


@pytest.mark.parametrize("steps", range(7))
def test_whoever_loads_the_group_in_the_middle_assigns_it_anew(driven: DrivenConsumers, steps: int) -> None:
    driven.beat("d", -1)
    driven.beat("c", -1)
    beat(driven, "a")
    driven.harness.advance(steps)
    driven.harness.reload()

    assert KEY not in driven.harness.armed

    settle(driven)

    assert sorted(part for parts in targets(driven).values() for part in parts) == [0, 1, 2, 3]
    assert driven.group.assignment_epoch == driven.group.group_epoch


def test_a_portion_that_is_refused_is_written_later_not_passed_over(driven: DrivenConsumers) -> None:
    driven.create_topic("t", 12)
    beat(driven, "a")
    driven.harness.advance(4)
    before = hard_state(driven.shard)
    driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    armed = driven.harness.armed[KEY]
    driven.harness.advance(armed)
    refusals = 1
    while driven.harness.armed[KEY] < 100:
        driven.harness.advance(driven.harness.armed[KEY])
        refusals += 1
    driven.harness.refusal = None

    assert refusals <= 3, "it waits before it tries again"
    assert before == hard_state(driven.shard)

    driven.harness.advance(2_000)

    assert sorted(part for parts in targets(driven).values() for part in parts) == [*range(12)]
    settle(driven)


def test_a_group_that_is_another_by_then_is_left_alone(driven: DrivenConsumers) -> None:
    driven.harness.computing_ms = 10
    driven.create_topic("t", 8)
    beat(driven, "b")
    driven.harness.advance(5)
    for name in MEMBERS:
        driven.beat(name, -1, instance_id="ia" if name == "a" else None)
    driven.harness.run(lambda shard, _now_ms: shard.delete_groups([GROUP]))
    written = len(driven.harness.log)
    driven.harness.advance(50)

    assert written == len(driven.harness.log)
    assert GROUP not in driven.shard.context.groups


def test_an_assignor_that_nobody_offers_is_told_at_once(driven: DrivenConsumers) -> None:
    driven.broker.assignors = {}

    assert driven.enter("e", "t").error_code is ErrorCode.UNKNOWN_SERVER_ERROR


class LargeGroupModel(ConsumerGroupModel):
    """The same clients and the same laws; every group is large, and every step of an assignment may be the last."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name, number in (("AT_ONCE_MAX", 0), ("TOPICS_A_STEP", 1), ("ENTRIES_A_STEP", 1)):
            self.patch.setattr(assigning, name, number)
        in_steps(self.driven)

    @initialize(computing_ms=st.sampled_from([0, 3, 1500]))
    def take_time(self, computing_ms: int) -> None:
        self.driven.harness.computing_ms = computing_ms

    @rule(duration_ms=st.sampled_from([1, 2, 600]))
    def nothing_can_be_written_for_a_while(self, duration_ms: int) -> None:
        self.driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.driven.harness.advance(duration_ms)
        self.driven.harness.refusal = None

    def teardown(self) -> None:
        self.driven.harness.computing_ms = 0
        try:
            super().teardown()
        finally:
            self.patch.undo()


TestLargeGroupModel = LargeGroupModel.TestCase
TestLargeGroupModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
