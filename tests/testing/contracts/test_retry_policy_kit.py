"""The kit of retry policies: a plain one passes, and each promise finds one that breaks it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import pytest

from odradek.kernel.api import RetryPolicyFactory
from odradek.testing.contracts.retry_policy import RetryPolicyContract

Delay = Callable[[int, float], object]


class Policy:
    """Whatever a function says."""

    def __init__(self, delay: Delay) -> None:
        self._delay = delay

    def delay_ms(self, attempt: int, drawn: float) -> int | None:
        return self._delay(attempt, drawn)  # type: ignore[return-value] # broken on purpose


def kit(make_delay: Callable[[], Delay]) -> RetryPolicyContract:
    class Kit(RetryPolicyContract):
        def make_factory(self) -> RetryPolicyFactory:
            return make

    def make(settings: Mapping[str, object]) -> Policy:
        return Policy(make_delay())

    return Kit()


def scattered(attempt: int, drawn: float) -> int | None:
    return None if attempt > 5 else int(100 * attempt * (1 + drawn))


def by_chance(attempt: int, drawn: float) -> int | None:
    return 1 if attempt < 3 or (attempt < 9 and drawn < 0.3) else None


def counting() -> Delay:
    asked: list[int] = []

    def delay(attempt: int, _drawn: float) -> int | None:
        asked.append(attempt)
        return len(asked) if attempt <= 3 else None

    return delay


BROKEN: Mapping[str, Callable[[], Delay]] = {
    "test_a_delay_is_a_whole_number_of_milliseconds_and_not_negative": lambda: lambda n, _: -1 if n < 3 else None,
    "test_no_record_goes_round_for_ever": lambda: lambda _n, _: 1,
    "test_whether_a_record_is_dead_is_not_left_to_chance": lambda: by_chance,
    "test_what_is_dead_stays_dead": lambda: lambda n, _: None if n == 4 else 1,
    "test_it_keeps_nothing_between_two_records": counting,
}


def promises() -> list[str]:
    return [name for name, _ in inspect.getmembers(RetryPolicyContract) if name.startswith("test_")]


@pytest.mark.parametrize("promise", promises())
def test_a_policy_that_scatters_keeps_the_promise(promise: str) -> None:
    getattr(kit(lambda: scattered), promise)()


@pytest.mark.parametrize("promise", promises())
def test_a_broken_policy_is_found(promise: str) -> None:
    with pytest.raises(AssertionError):
        getattr(kit(BROKEN[promise]), promise)()


@pytest.mark.parametrize("attempt", [1, 3, 4])
def test_a_policy_that_leaves_death_to_chance_on_the_way_is_found(attempt: int) -> None:
    def delay(asked: int, drawn: float) -> int | None:
        return None if asked > 5 or (asked == attempt and drawn < 0.3) else 1

    with pytest.raises(AssertionError):
        kit(lambda: delay).test_whether_a_record_is_dead_is_not_left_to_chance()


def test_a_policy_that_revives_by_chance_is_found() -> None:
    def delay(asked: int, drawn: float) -> int | None:
        return None if asked > 5 and not (asked == 7 and drawn < 0.3) else 1

    with pytest.raises(AssertionError):
        kit(lambda: delay).test_what_is_dead_stays_dead()
