from collections.abc import Callable
from typing import Any

import attrs
import pytest

from odradek.kernel.purgatory.delayed_operation import DelayedOperation, Outcome
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel


@attrs.define(eq=False)
class Waiting(DelayedOperation):
    """Waits for a switch; notes every call of `finish`."""

    ready: bool = False
    finished: list[Outcome] = attrs.field(factory=list)
    then: Callable[[], object] | None = None

    asked: list[object] = attrs.field(factory=list)

    def is_ready(self) -> bool:
        return self.ready

    def is_ready_for(self, key: object) -> bool:
        self.asked.append(key)
        return self.is_ready()

    def finish(self, outcome: Outcome) -> None:
        self.finished.append(outcome)
        if self.then is not None:
            self.then()


class Setting:
    def __init__(self) -> None:
        self.wheel = TimingWheel(now_ms=0)
        self.errors: list[tuple[DelayedOperation, str]] = []
        self.purgatory = Purgatory("Fetch", self.wheel, on_error=lambda op, error: self.errors.append((op, str(error))))

    def park(self, *keys: object, **facts: Any) -> Waiting:
        operation = Waiting(facts.pop("deadline_ms", 500), **facts)
        self.purgatory.watch(operation, keys)
        return operation

    def pass_time(self, now_ms: int) -> None:
        for entry in self.wheel.advance(now_ms):
            entry.expire()


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_a_check_completes_what_became_ready_under_its_key_only(setting: Setting) -> None:
    first, second, other = setting.park("p", "q"), setting.park("p"), setting.park("q")
    first.ready = other.ready = True

    assert setting.purgatory.check(["p"]) == 1
    assert first.finished == [Outcome.READY]
    assert second.finished == []
    assert other.finished == []
    assert setting.purgatory.check(["nothing waits here"]) == 0


def test_what_changed_together_is_asked_for_before_anything_ends(setting: Setting) -> None:
    first, second = setting.park("p", "q"), setting.park("q", "p")
    first.ready = second.ready = True
    first.then = lambda: first.asked.append("ended")

    assert setting.purgatory.check(["p", "q"]) == 2

    assert first.asked == ["p", "q", "ended"]
    assert second.asked == ["p", "q"]


def test_time_completes_what_no_condition_did(setting: Setting) -> None:
    operation = setting.park("p", deadline_ms=30)
    setting.pass_time(29)
    before = list(operation.finished)
    setting.pass_time(30)

    assert before == []
    assert operation.finished == [Outcome.EXPIRED]
    assert setting.purgatory.statistics().keys_count == 0


def test_completion_happens_once_whatever_comes_after(setting: Setting) -> None:
    operation = setting.park("p", owner="connection")
    operation.ready = True
    setting.purgatory.check(["p"])
    setting.purgatory.check(["p"])
    setting.purgatory.cancel_for("connection")
    setting.pass_time(10_000)

    assert not operation.end(Outcome.READY)
    assert operation.finished == [Outcome.READY]


def test_a_closed_connection_takes_its_operations_along(setting: Setting) -> None:
    mine, also_mine, yours = (setting.park("p", owner=owner) for owner in ("a", "a", "b"))

    assert setting.purgatory.cancel_for("a") == 2
    assert setting.purgatory.cancel_for("a") == 0
    assert mine.finished == also_mine.finished == [Outcome.CANCELLED]
    assert yours.finished == []
    assert setting.purgatory.delayed_count == 1


def test_a_completion_may_complete_another_and_park_a_third(setting: Setting) -> None:
    second = setting.park("p")
    parked: list[Waiting] = []

    def then() -> None:
        second.ready = True
        setting.purgatory.check(["p"])
        parked.append(setting.park("p"))

    first = Waiting(500, ready=False, then=then)
    setting.purgatory.watch(first, ["p"])
    first.ready = True

    assert setting.purgatory.check(["p"]) == 1
    assert first.finished == second.finished == [Outcome.READY]
    assert parked[0].finished == []
    assert setting.purgatory.delayed_count == 1


def test_an_operation_that_was_ended_by_one_before_it_is_not_asked_again(setting: Setting) -> None:
    first, second = setting.park("p"), setting.park("p")
    first.ready = True
    first.then = lambda: second.end(Outcome.CANCELLED)
    second.ready = True

    assert setting.purgatory.check(["p"]) == 1
    assert second.finished == [Outcome.CANCELLED]


@attrs.define(eq=False)
class Broken(Waiting):
    """Raises where it is told to."""

    where: str = "finish"

    def is_ready(self) -> bool:
        if self.where == "is_ready" and self.ready:
            raise ValueError("condition broke")
        return self.ready

    def finish(self, outcome: Outcome) -> None:
        self.finished.append(outcome)
        if self.where == "finish":
            raise ValueError("finish broke")


@pytest.mark.parametrize("where", ["is_ready", "finish"])
def test_a_broken_operation_is_reported_and_hurts_no_other(setting: Setting, where: str) -> None:
    broken, sound = Broken(500, where=where), Waiting(500)
    setting.purgatory.watch(broken, ["p"])
    setting.purgatory.watch(sound, ["p"])
    broken.ready = sound.ready = True
    setting.purgatory.check(["p"])

    assert sound.finished == [Outcome.READY]
    assert [(broken, f"{'condition' if where == 'is_ready' else 'finish'} broke")] == setting.errors
    assert setting.purgatory.statistics().errors_count == 1

    setting.pass_time(500)

    assert broken.finished == [Outcome.EXPIRED if where == "is_ready" else Outcome.READY]


def test_a_key_with_many_completed_fetches_keeps_nothing(setting: Setting) -> None:
    for number in range(20_000):
        operation = setting.park("hot", "cold", owner=number % 8)
        operation.ready = True
        setting.purgatory.check(["hot"])
    statistics = setting.purgatory.statistics()

    assert (statistics.delayed_count, statistics.watched_count, statistics.keys_count) == (0, 0, 0)
    assert statistics.completed_count == 20_000
    assert not setting.purgatory._owned
    assert len(setting.wheel) == 0


def test_a_purgatory_says_what_it_holds(setting: Setting) -> None:
    setting.park("p", "q", deadline_ms=10)
    setting.park("p", owner="a")
    setting.park("r").end(Outcome.READY)
    setting.pass_time(10)
    setting.purgatory.cancel_for("a")
    setting.park("p")
    statistics = setting.purgatory.statistics()

    assert repr(setting.purgatory) == "<Purgatory Fetch: 1 wait under 1 keys>"
    assert (statistics.completed_count, statistics.expired_count, statistics.cancelled_count) == (1, 1, 1)


def test_an_operation_that_was_never_parked_can_be_ended(setting: Setting) -> None:
    operation = Waiting(500)

    assert operation.end(Outcome.CANCELLED)
    assert operation.finished == [Outcome.CANCELLED]


def test_an_operation_is_parked_once(setting: Setting) -> None:
    operation = setting.park("p")

    with pytest.raises(AssertionError, match="parked once"):
        setting.purgatory.watch(operation, ["q"])


def test_the_base_class_leaves_condition_and_answer_to_its_subclasses() -> None:
    operation = DelayedOperation(1)

    with pytest.raises(NotImplementedError):
        operation.is_ready()
    with pytest.raises(NotImplementedError):
        operation.finish(Outcome.READY)


def test_everything_can_be_ended_at_once_as_if_its_time_were_over(setting: Setting) -> None:
    operations = [setting.park("a", "b"), setting.park("b")]

    setting.purgatory.expire_all()

    assert [operation.finished for operation in operations] == [[Outcome.EXPIRED], [Outcome.EXPIRED]]
    assert setting.purgatory.delayed_count == 0
