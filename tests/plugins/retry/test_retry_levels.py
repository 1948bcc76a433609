"""The policy by levels keeps what the kit of retry policies asks, and says what its keys say."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from odradek.kernel.api import InvalidValueError, RetryPolicyFactory
from odradek.kernel.config.values import TEN_YEARS_MS
from odradek.kernel.retry.rewriting import DELAY_MS_MAX
from odradek.plugins.retry.levels import Levels
from odradek.plugins.retry.settings import ATTEMPTS_KEY, DURATIONS, KEYS, LEVELS_KEY
from odradek.testing.contracts.retry_policy import RetryPolicyContract


class TestLevels(RetryPolicyContract):
    def make_factory(self) -> RetryPolicyFactory:
        return Levels.of

    def settings(self) -> Mapping[str, object]:
        return {key.name: key.default for key in KEYS}


def test_each_attempt_waits_for_its_level_and_the_last_level_holds_for_the_others() -> None:
    policy = Levels.of({LEVELS_KEY: ("5s", "1m"), ATTEMPTS_KEY: 4})

    assert [policy.delay_ms(attempt, 0.5) for attempt in range(1, 6)] == [5_000, 60_000, 60_000, 60_000, None]


def test_without_attempts_every_failed_record_is_dead() -> None:
    assert Levels.of({ATTEMPTS_KEY: 0}).delay_ms(1, 0.5) is None


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("7ms", 7), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000), ("1d", 86_400_000)]
)
def test_durations_are_read_as_people_write_them(text: str, expected_ms: int) -> None:
    assert DURATIONS.ms_of(text) == expected_ms


@pytest.mark.parametrize("value", [(), ("5",), ("5 s",), ("-5s",), ("5s", ""), ("1w",), ("3653d",)])
def test_what_is_no_list_of_durations_is_refused(value: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValueError):
        DURATIONS.check(LEVELS_KEY, value)


def test_the_longest_level_is_what_the_kernel_lets_a_record_wait() -> None:
    DURATIONS.check(LEVELS_KEY, (f"{DELAY_MS_MAX}ms",))

    assert TEN_YEARS_MS == DELAY_MS_MAX
