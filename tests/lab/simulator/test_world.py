"""Virtual time: what happens when."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import MILLISECOND, SECOND, WALL_START_MS, World, nanoseconds_at


@pytest.fixture
def world() -> World:
    return World(Seeds(1))


def test_events_happen_in_the_order_of_their_times_and_those_of_one_moment_as_asked_for(world: World) -> None:
    seen: list[str] = []
    world.after(2, seen.append, "c")
    world.after(1, seen.append, "a")
    world.after(1, seen.append, "b")

    while world.advance(None):
        pass

    assert seen == ["a", "b", "c"]
    assert world.elapsed_ns == 2


def test_time_stops_at_a_deadline_before_the_next_event(world: World) -> None:
    seen: list[str] = []
    world.after(10, seen.append, "late")

    assert world.advance(world.now_ns + 4)
    assert (world.elapsed_ns, seen) == (4, [])


def test_an_event_of_the_deadlines_moment_happens(world: World) -> None:
    seen: list[str] = []
    world.after(4, seen.append, "now")

    assert world.advance(world.now_ns + 4)
    assert seen == ["now"]


def test_a_cancelled_event_does_not_happen_and_is_not_waited_for(world: World) -> None:
    seen: list[str] = []
    event = world.after(10, seen.append, "never")
    event.cancel()

    assert not event.is_pending
    assert not world.advance(None)
    assert (world.elapsed_ns, seen) == (0, [])


def test_an_event_asks_for_another_one_of_the_same_moment(world: World) -> None:
    seen: list[int] = []
    world.after(1, lambda: world.after(0, lambda: seen.append(world.elapsed_ns)))

    assert world.advance(None)
    assert seen == [1]


def test_who_puts_in_faults_is_told_of_each_event_before_it_happens(world: World) -> None:
    seen: list[object] = []
    world.before_event = lambda: seen.append("next")
    world.after(1, seen.append, "first")
    world.after(2, seen.append, "second")

    while world.advance(None):
        pass

    assert seen == ["next", "first", "next", "second"]


def test_who_looks_is_told_before_time_passes_and_before_what_happens_then(world: World) -> None:
    seen: list[object] = []
    world.before_time = lambda: seen.append(world.elapsed_ns)
    world.after(2, seen.append, "a")
    world.after(2, seen.append, "b")

    world.advance(1)
    world.advance(nanoseconds_at(world.seconds + 1))

    assert seen == [0, 0, "a", "b"]


def test_the_wall_clock_goes_with_the_monotonic_one(world: World) -> None:
    world.advance(world.now_ns + 3 * SECOND + 5 * MILLISECOND)

    assert world.wall_ms() == WALL_START_MS + 3005


def test_who_has_found_something_wrong_does_not_look_again(world: World) -> None:
    def look() -> None:
        raise ValueError("wrong")

    world.before_time = look
    with pytest.raises(ValueError, match="wrong"):
        world.advance(1)

    assert not world.advance(None)


@given(st.floats(min_value=0, max_value=1e8))
def test_a_deadline_has_passed_at_the_moment_it_is_turned_into(seconds: float) -> None:
    time_ns = nanoseconds_at(seconds)

    assert time_ns is not None
    assert time_ns / SECOND >= seconds
    assert time_ns / SECOND - seconds < 1e-6


def test_no_deadline_is_no_moment() -> None:
    assert nanoseconds_at(math.inf) is None


def test_a_trace_differs_when_an_event_does(world: World) -> None:
    other = World(Seeds(1))
    world.note("sent", "a", 1)
    other.note("sent", "a", 2)

    assert world.trace.digest != other.trace.digest
    assert world.trace.counts == {"sent": 1}
    assert world.trace.last_lines() == ["      0.000000s  sent         a 1"]
