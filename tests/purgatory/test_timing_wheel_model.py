"""The wheel against a naive model: a list of deadlines."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.kernel.purgatory.timing_wheel import TimerEntry, TimingWheel

DELAYS = st.one_of(st.integers(-10, 40), st.integers(0, 5_000), st.integers(0, 10**7))


class WheelAgainstList(RuleBasedStateMachine):
    """Exactly once, never early, at most a tick late, in order."""

    @initialize(tick_ms=st.sampled_from([1, 1, 3, 10]), wheel_size=st.integers(2, 9), now_ms=st.integers(0, 1_000))
    def make(self, tick_ms: int, wheel_size: int, now_ms: int) -> None:
        self.tick_ms = tick_ms
        self.now_ms = now_ms
        self.wheel = TimingWheel(now_ms=now_ms, tick_ms=tick_ms, wheel_size=wheel_size)
        self.waiting: list[TimerEntry] = []
        self.due_ticks: dict[TimerEntry, int] = {}

    @rule(delay_ms=DELAYS)
    def add(self, delay_ms: int) -> None:
        entry = TimerEntry(self.now_ms + delay_ms)
        self.wheel.add(entry)
        self.waiting.append(entry)
        # What is due already counts as due now.
        self.due_ticks[entry] = max(-(-entry.deadline_ms // self.tick_ms), self.now_ms // self.tick_ms)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.waiting:
            entry = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))

            assert entry.cancel_timer()

    @rule(step_ms=DELAYS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += max(0, step_ms)
        self.take(self.wheel.advance(self.now_ms))

    @rule(step_ms=DELAYS, limit=st.integers(1, 3))
    def pass_time_in_parts(self, step_ms: int, limit: int) -> None:
        self.now_ms += max(0, step_ms)
        given: list[TimerEntry] = []
        while len(part := self.wheel.advance(self.now_ms, limit)) == limit:
            given.extend(part)
        self.take(given + part)

    @rule()
    def pass_time_until_the_next_expiry(self) -> None:
        next_ms = self.wheel.next_expiry_ms()
        if next_ms is not None:
            self.now_ms = max(self.now_ms, next_ms)
            self.take(self.wheel.advance(self.now_ms))

    def take(self, given: list[TimerEntry]) -> None:
        assert all(entry.deadline_ms <= self.now_ms for entry in given), "never early"
        late_ms = self.now_ms - self.now_ms % self.tick_ms
        left = [entry for entry in self.waiting if entry not in given]
        assert all(entry.deadline_ms > late_ms for entry in left), "at most a tick late"
        assert len(left) + len(given) == len(self.waiting), "exactly once"
        self.waiting = left
        due_ticks = [self.due_ticks.pop(entry) for entry in given]
        assert due_ticks == sorted(due_ticks), "in order"

    @invariant()
    def the_next_expiry_is_no_later_than_the_first_deadline(self) -> None:
        if not hasattr(self, "wheel"):
            return
        assert len(self.wheel) == len(self.waiting)
        next_ms = self.wheel.next_expiry_ms()
        if not self.waiting:
            assert next_ms is None
            return
        assert next_ms is not None
        assert next_ms <= min(self.due_ticks[entry] for entry in self.waiting) * self.tick_ms


TestWheelAgainstList = WheelAgainstList.TestCase
TestWheelAgainstList.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
