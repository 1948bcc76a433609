import pytest

from odradek.kernel.purgatory.timing_wheel import TimerEntry, TimingWheel


def wheel_with(*deadlines_ms: int, now_ms: int = 100, tick_ms: int = 1, wheel_size: int = 4) -> TimingWheel:
    wheel = TimingWheel(now_ms=now_ms, tick_ms=tick_ms, wheel_size=wheel_size)
    for deadline_ms in deadlines_ms:
        wheel.add(TimerEntry(deadline_ms))
    return wheel


def deadlines(entries: list[TimerEntry]) -> list[int]:
    return [entry.deadline_ms for entry in entries]


def test_the_worked_example_of_the_docstring_runs_as_told() -> None:
    wheel = wheel_with(102, 109, 130)

    assert sorted(first_tick for first_tick, _, _ in wheel._queue) == [102, 108, 128]
    assert deadlines(wheel.advance(101)) == []
    assert deadlines(wheel.advance(102)) == [102]
    assert deadlines(wheel.advance(108)) == []
    assert wheel.next_expiry_ms() == 109
    assert deadlines(wheel.advance(109)) == [109]
    assert deadlines(wheel.advance(128)) == []
    assert wheel.next_expiry_ms() == 130
    assert deadlines(wheel.advance(130)) == [130]
    assert wheel.next_expiry_ms() is None


def test_a_jump_of_time_gives_everything_in_the_order_of_deadlines() -> None:
    wheel = wheel_with(5_000, 101, 117, 100, 113, 900)

    assert deadlines(wheel.advance(1_000_000)) == [100, 101, 113, 117, 900, 5_000]
    assert len(wheel) == 0


def test_a_timer_that_comes_down_waits_in_line_with_one_that_was_added_directly() -> None:
    wheel = wheel_with(107)
    wheel.advance(105)
    wheel.add(TimerEntry(106))

    assert deadlines(wheel.advance(107)) == [106, 107]


def test_a_timer_that_is_due_already_comes_with_the_next_advance() -> None:
    wheel = wheel_with(100, 99, -5)

    assert wheel.next_expiry_ms() == 100
    assert sorted(deadlines(wheel.advance(100))) == [-5, 99, 100]


def test_a_deadline_is_rounded_up_to_a_tick_and_a_tick_is_sorted() -> None:
    wheel = wheel_with(119, 111, 120, tick_ms=10)

    assert deadlines(wheel.advance(119)) == []
    assert deadlines(wheel.advance(120)) == [111, 119, 120]


def test_a_cancelled_timer_is_gone_from_every_wheel() -> None:
    wheel = TimingWheel(now_ms=0, wheel_size=4)
    entries = [TimerEntry(deadline_ms) for deadline_ms in (1, 10, 50, 300)]
    for entry in entries:
        wheel.add(entry)

    assert all(entry.cancel_timer() for entry in entries)
    assert not any(entry.cancel_timer() for entry in entries)
    assert wheel.next_expiry_ms() is None
    assert wheel.advance(1_000) == []
    assert wheel.statistics().timers_count == 0


def test_a_slot_that_was_emptied_by_cancelling_serves_again() -> None:
    wheel = TimingWheel(now_ms=0, wheel_size=4)
    for _ in range(3):
        entry = TimerEntry(2)
        wheel.add(entry)
        entry.cancel_timer()
    wheel.add(TimerEntry(2))

    assert wheel.next_expiry_ms() == 2
    assert deadlines(wheel.advance(2)) == [2]


def test_an_entry_may_be_added_again_after_it_expired() -> None:
    wheel = wheel_with(101)
    (entry,) = wheel.advance(101)
    entry.deadline_ms = 150
    wheel.add(entry)

    assert wheel.advance(150) == [entry]


def test_an_entry_cannot_be_in_a_wheel_twice() -> None:
    wheel = TimingWheel(now_ms=0)
    entry = TimerEntry(3)
    wheel.add(entry)

    with pytest.raises(AssertionError, match="one wheel at a time"):
        wheel.add(entry)


def test_a_limit_hands_a_crowd_out_in_parts_and_loses_none() -> None:
    wheel = wheel_with(*[103] * 10, *[104] * 3)
    parts = [len(wheel.advance(110, 4)) for _ in range(5)]

    assert parts == [4, 4, 4, 1, 0]
    assert len(wheel) == 0


def test_time_does_not_pass_what_a_limit_left_behind() -> None:
    wheel = wheel_with(101, 102, 103)
    first = wheel.advance(200, 1)
    wheel.add(TimerEntry(101))

    assert deadlines(first) == [101]
    assert wheel.next_expiry_ms() == 101
    assert deadlines(wheel.advance(200)) == [101, 102, 103]


def test_time_that_goes_back_changes_nothing() -> None:
    wheel = wheel_with(110, now_ms=100)
    wheel.advance(105)

    assert wheel.advance(50) == []
    assert deadlines(wheel.advance(110)) == [110]


def test_the_alarm_rings_once_for_an_earlier_timer_only() -> None:
    wheel = wheel_with(150)
    rung: list[str] = []
    wheel.set_alarm(wheel.next_expiry_ms(), lambda: rung.append("ring"))
    wheel.add(TimerEntry(400))
    later = list(rung)
    wheel.add(TimerEntry(120))
    wheel.add(TimerEntry(110))

    assert later == []
    assert rung == ["ring"]


def test_the_alarm_of_an_empty_wheel_rings_for_any_timer() -> None:
    wheel = wheel_with()
    rung: list[str] = []
    wheel.set_alarm(wheel.next_expiry_ms(), lambda: rung.append("ring"))
    wheel.add(TimerEntry(10**9))

    assert rung == ["ring"]


def test_a_wheel_says_what_it_holds() -> None:
    wheel = wheel_with(101, 102, 1_000)

    assert repr(wheel) == "<TimingWheel at 100 ms, 3 timers>"
    assert wheel.statistics().timers_count == 3
    assert wheel.statistics().wheels_count == 5


def test_thirty_seven_hours_need_three_wheels_of_the_default_size() -> None:
    wheel = TimingWheel(now_ms=0)
    wheel.add(TimerEntry(37 * 3_600_000))

    assert wheel.statistics().wheels_count == 3


@pytest.mark.sweep
@pytest.mark.parametrize("cancel_every", [0, 3])
def test_a_million_timers_come_in_order_and_in_time(cancel_every: int) -> None:
    wheel = TimingWheel(now_ms=0, wheel_size=64)
    count = 1_000_000
    entries = [TimerEntry(number * 7_919 % 3_600_000) for number in range(count)]
    for entry in entries:
        wheel.add(entry)
    cancelled_count = 0
    if cancel_every:
        for entry in entries[::cancel_every]:
            cancelled_count += entry.cancel_timer()
    given: list[int] = []
    now_ms = 0
    while (next_ms := wheel.next_expiry_ms()) is not None:
        assert next_ms >= now_ms
        now_ms = next_ms
        due = wheel.advance(now_ms)
        assert all(entry.deadline_ms == now_ms for entry in due)
        given.extend(deadlines(due))

    assert len(given) == count - cancelled_count
    assert given == sorted(given)
