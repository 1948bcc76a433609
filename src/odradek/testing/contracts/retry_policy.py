"""Shell: the contract kit of retry policies: subclass `RetryPolicyContract` and give `make_factory`.

Needs pytest. Each test's name is the promise it checks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.kernel.contracts.retry_policy import RetryPolicy, RetryPolicyFactory

_DRAWN: Final = (0.0, 0.25, 0.5, 0.999_999)
ATTEMPTS_MAX: Final = 100_000
"""By then every record is dead."""


class RetryPolicyContract:
    """What every retry policy promises."""

    def make_factory(self) -> RetryPolicyFactory:
        """Return the factory that the plugin offers."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, object]:
        """Return a topic's settings: the defaults of the plugin's keys, or what a topic may set."""
        return {}

    def _policy(self) -> RetryPolicy:
        return self.make_factory()(self.settings())

    def _last_attempt(self, policy: RetryPolicy) -> int:
        attempt = 0
        while attempt < ATTEMPTS_MAX and policy.delay_ms(attempt + 1, 0.5) is not None:
            attempt += 1
        return attempt

    def test_a_delay_is_a_whole_number_of_milliseconds_and_not_negative(self) -> None:
        policy = self._policy()
        for attempt in range(1, min(self._last_attempt(policy), 100) + 1):
            for drawn in _DRAWN:
                delay_ms = policy.delay_ms(attempt, drawn)

                assert delay_ms is None or (type(delay_ms) is int and delay_ms >= 0)

    def test_no_record_goes_round_for_ever(self) -> None:
        assert self._last_attempt(self._policy()) < ATTEMPTS_MAX

    def test_whether_a_record_is_dead_is_not_left_to_chance(self) -> None:
        policy = self._policy()
        last = self._last_attempt(policy)
        for drawn in _DRAWN:
            assert policy.delay_ms(last + 1, drawn) is None
            for attempt in {*range(1, min(last, 100) + 1), last} - {0}:
                assert policy.delay_ms(attempt, drawn) is not None

    def test_what_is_dead_stays_dead(self) -> None:
        policy = self._policy()
        last = self._last_attempt(policy)
        for beyond in (1, 2, 10, 1_000_000, 2**31):
            for drawn in _DRAWN:
                assert policy.delay_ms(last + beyond, drawn) is None

    def test_it_keeps_nothing_between_two_records(self) -> None:
        policy = self._policy()
        first = [policy.delay_ms(attempt, drawn) for attempt in range(1, 20) for drawn in _DRAWN]
        again = [policy.delay_ms(attempt, drawn) for attempt in range(1, 20) for drawn in _DRAWN]

        assert first == again
