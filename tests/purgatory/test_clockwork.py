import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.machine.clock import TrioClock
from odradek.kernel.purgatory import clockwork
from odradek.kernel.purgatory.timing_wheel import TimerEntry, TimingWheel


@attrs.define(eq=False)
class Noted(TimerEntry):
    """Notes when it expired."""

    notes: list[tuple[int, int]] = attrs.field(kw_only=True)

    def expire(self) -> None:
        self.notes.append((self.deadline_ms, TrioClock().monotonic_ms()))


def run_with_mock_clock(async_fn: object) -> None:
    trio.run(async_fn, clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]  # any test below


def test_timers_expire_at_their_time() -> None:
    async def main() -> None:
        clock = TrioClock()
        wheel = TimingWheel(now_ms=clock.monotonic_ms(), wheel_size=8)
        notes: list[tuple[int, int]] = []
        start_ms = clock.monotonic_ms()
        for delay_ms in (5, 700, 70, 90_000):
            wheel.add(Noted(start_ms + delay_ms, notes=notes))
        async with trio.open_nursery() as nursery:
            await nursery.start(clockwork.run, wheel, clock)
            await trio.sleep(100)
            nursery.cancel_scope.cancel()

        assert [deadline_ms - start_ms for deadline_ms, _ in notes] == [5, 70, 700, 90_000]
        assert all(deadline_ms <= at_ms <= deadline_ms + 1 for deadline_ms, at_ms in notes)

    run_with_mock_clock(main)


@pytest.mark.parametrize("first_delay_ms", [None, 60_000])
def test_an_earlier_timer_wakes_the_clockwork(first_delay_ms: int | None) -> None:
    async def main() -> None:
        clock = TrioClock()
        wheel = TimingWheel(now_ms=clock.monotonic_ms())
        notes: list[tuple[int, int]] = []
        if first_delay_ms is not None:
            wheel.add(Noted(clock.monotonic_ms() + first_delay_ms, notes=notes))
        async with trio.open_nursery() as nursery:
            await nursery.start(clockwork.run, wheel, clock)
            await trio.sleep(1)
            earlier = Noted(clock.monotonic_ms() + 20, notes=notes)
            wheel.add(earlier)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

        assert len(notes) == 1
        assert earlier.deadline_ms <= notes[0][1] <= earlier.deadline_ms + 1

    run_with_mock_clock(main)


def test_a_crowd_that_is_due_together_lets_other_tasks_run_in_between() -> None:
    async def main() -> None:
        clock = TrioClock()
        wheel = TimingWheel(now_ms=clock.monotonic_ms())
        notes: list[tuple[int, int]] = []
        seen: list[int] = []
        for _ in range(4 * clockwork.TURN_SIZE):
            wheel.add(Noted(clock.monotonic_ms(), notes=notes))

        async def look(nursery: trio.Nursery) -> None:
            while len(notes) < 4 * clockwork.TURN_SIZE:
                await trio.lowlevel.checkpoint()
                seen.append(len(notes))
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, nursery)
            await nursery.start(clockwork.run, wheel, clock)

        assert any(0 < count < 4 * clockwork.TURN_SIZE for count in seen)

    run_with_mock_clock(main)


def test_a_cancelled_clockwork_leaves_its_timers_in_the_wheel() -> None:
    async def main() -> None:
        clock = TrioClock()
        wheel = TimingWheel(now_ms=clock.monotonic_ms())
        wheel.add(Noted(clock.monotonic_ms() + 50, notes=[]))
        with trio.move_on_after(0.01):
            await clockwork.run(wheel, clock)

        assert len(wheel) == 1

    run_with_mock_clock(main)
