"""The purgatory under any order of events, also those that an operation's end sets off: each ends once, and is gone."""

from collections.abc import Callable

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.kernel.purgatory.delayed_operation import DelayedOperation, Outcome
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel

KEYS = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=3, unique=True)
OWNERS = st.sampled_from(["one", "two", None])
SEQUELS = st.sampled_from(["nothing", "check", "cancel", "park", "raise"])


@attrs.define(eq=False)
class Waiting(DelayedOperation):
    """Notes how it ends, and then does something to the others."""

    sequel: Callable[[], object] = attrs.field(kw_only=True)
    ready: bool = False
    finished: list[Outcome] = attrs.field(factory=list)

    def is_ready(self) -> bool:
        return self.ready

    def finish(self, outcome: Outcome) -> None:
        self.finished.append(outcome)
        self.sequel()


class Events(RuleBasedStateMachine):
    """Operations are parked, become ready, are checked, cancelled and expired."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.wheel = TimingWheel(now_ms=0, wheel_size=4)
        self.errors: list[Exception] = []
        self.purgatory = Purgatory("Fetch", self.wheel, on_error=lambda _, error: self.errors.append(error))
        self.all: list[Waiting] = []
        self.raised = 0

    def waiting(self) -> list[Waiting]:
        return [each for each in self.all if not each.finished]

    def park_one(self, keys: list[str], owner: str | None, delay_ms: int, sequel: str) -> None:
        sequels: dict[str, Callable[[], object]] = {
            "nothing": lambda: None,
            "check": lambda: self.purgatory.check("pqrs"),
            "cancel": lambda: self.purgatory.cancel_for("one"),
            "park": lambda: self.park_one(["p", "q"], "two", 3, "nothing"),
            "raise": self.fail,
        }
        operation = Waiting(self.now_ms + delay_ms, owner=owner, sequel=sequels[sequel])
        self.all.append(operation)
        self.purgatory.watch(operation, keys)

    def fail(self) -> None:
        self.raised += 1
        raise ValueError("the answer could not be written")

    @rule(keys=KEYS, owner=OWNERS, delay_ms=st.integers(1, 40), sequel=SEQUELS)
    def park(self, keys: list[str], owner: str | None, delay_ms: int, sequel: str) -> None:
        self.park_one(keys, owner, delay_ms, sequel)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def become_ready(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.waiting())).ready = True

    @rule(keys=KEYS)
    def check(self, keys: list[str]) -> None:
        before = [each for each in self.waiting() if each.ready and set(keys) & set(each.keys)]
        self.purgatory.check(keys)

        assert all(each.finished for each in before)

    @rule(owner=st.sampled_from(["one", "two"]))
    def connection_ends(self, owner: str) -> None:
        before = [each for each in self.waiting() if each.owner == owner]
        self.purgatory.cancel_for(owner)

        assert all(each.finished for each in before)

    @rule(step_ms=st.integers(0, 30))
    def time_passes(self, step_ms: int) -> None:
        self.now_ms += step_ms
        before = [each for each in self.waiting() if each.deadline_ms <= self.now_ms]
        for entry in self.wheel.advance(self.now_ms):
            entry.expire()

        assert all(each.finished for each in before)

    @invariant()
    def each_ends_once_and_leaves_nothing_behind(self) -> None:
        waiting = self.waiting()
        ended = [each.finished for each in self.all if each.finished]
        told = self.purgatory.statistics()
        counts = [told.completed_count, told.expired_count, told.cancelled_count]

        assert all(len(outcomes) == 1 for outcomes in ended)
        assert all(each.outcome is None for each in waiting)
        assert told.delayed_count == len(self.wheel) == len(waiting)
        assert told.watched_count == sum(len(each.keys) for each in waiting)
        assert told.keys_count == len({key for each in waiting for key in each.keys})
        assert set(self.purgatory._owned) == {each.owner for each in waiting} - {None}
        assert counts == [ended.count([outcome]) for outcome in (Outcome.READY, Outcome.EXPIRED, Outcome.CANCELLED)]
        assert told.errors_count == len(self.errors) == self.raised

    @invariant()
    def nobody_is_ended_for_what_did_not_happen(self) -> None:
        for each in self.all:
            assert each.finished != [Outcome.READY] or each.ready
            assert each.finished != [Outcome.EXPIRED] or each.deadline_ms <= self.now_ms
            assert each.finished != [Outcome.CANCELLED] or each.owner is not None


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
