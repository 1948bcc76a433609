"""Shell: the contract kit of elections, second part: what several replicas promise together, whatever crashes.

Subclass `EnsembleContract` and give `make_factory`, as for `ElectionContract`. Needs pytest::

    class TestMyReplicas(EnsembleContract):
        def make_factory(self) -> ElectionFactory:
            return MyFactory()

Three replicas, a controller and a producer run under a hostile scheduler, all chance from one seed: messages are late,
lost and doubled, links are cut, metadata is old, clocks go differently, processes end at any step. Crashes are of two
kinds (`Crash`): a **process** is killed and finds its whole log again, any number of them at a time; or a **machine**
loses its power, and with it any part of the end of its log, one at a time: the next one not before the last one has
caught up. What was kept of votes is kept in both.

*Safety* is looked at after every step, *liveness* when the accidents are over:

| promise | in one sentence |
| --- | --- |
| one leader | an epoch has one leader, ever |
| prefix | what was committed once stays at its offset for ever: what producers were told of, and readers were given |
| complete leader | who begins to lead has all that was committed under those before it |
| matching logs | two logs with the same epoch at an offset are the same up to there |
| enough copies | what is committed is in more logs than may lose their power at once |
| leads again | when all are back and hear each other, somebody leads and takes records |
| all have it | and a new record comes to be committed, and to be known as that, on all of them |
| goes on | and when the leader then dies for good, the others commit without it |

*Source:* the safety and liveness properties of KIP-966 and of Jack Vanlightly's specifications of it, in our words.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from .election_accidents import Broken, Crash, Promise, broken_promise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.contracts.election import ElectionFactory

__all__ = ["Crash", "EnsembleContract", "Promise"]


class EnsembleContract:
    """What replicas promise together, under both kinds of crash.

    Attributes:
        settings: Values of the topic keys that the plugin registered.
        runs: How many seeds are tried, for each kind.
        goes_on_without_one: Whether records are committed while one replica of three is away.
    """

    settings: ClassVar[Mapping[str, object]] = {}
    runs: ClassVar[int] = 30
    goes_on_without_one: ClassVar[bool] = True

    def make_factory(self) -> ElectionFactory:
        """Return a new factory."""
        raise NotImplementedError

    def holds(self, promise: Promise, crash: Crash) -> None:
        """Fail with the first run that broke a promise."""
        told = next((str(each) for each in _broken(self, crash) if each.promise is promise), "")
        assert not told, told

    # -- safety --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("crash", Crash)
    def test_an_epoch_has_one_leader(self, crash: Crash) -> None:
        self.holds(Promise.ONE_LEADER, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_what_is_committed_stays_as_it_is(self, crash: Crash) -> None:
        self.holds(Promise.PREFIX, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_who_begins_to_lead_has_all_that_was_committed(self, crash: Crash) -> None:
        self.holds(Promise.COMPLETE_LEADER, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_logs_that_agree_on_a_record_agree_on_all_before_it(self, crash: Crash) -> None:
        self.holds(Promise.MATCHING_LOGS, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_what_is_committed_is_in_more_logs_than_may_lose_their_power(self, crash: Crash) -> None:
        self.holds(Promise.ENOUGH_COPIES, crash)

    # -- liveness ------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("crash", Crash)
    def test_somebody_leads_and_takes_records_when_all_are_back(self, crash: Crash) -> None:
        self.holds(Promise.LEADS_AGAIN, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_a_record_comes_to_all_and_all_know_that_it_is_committed(self, crash: Crash) -> None:
        self.holds(Promise.ALL_HAVE_IT, crash)

    @pytest.mark.parametrize("crash", Crash)
    def test_two_of_three_go_on_when_their_leader_dies_for_good(self, crash: Crash) -> None:
        if not self.goes_on_without_one:
            pytest.skip("asked only where goes_on_without_one is True")
        self.holds(Promise.GOES_ON, crash)


_RUNS: Final[dict[tuple[type, Crash], tuple[Broken, ...]]] = {}
"""By kit and kind of crash: the runs are made once, and each test looks for its promise."""


def _broken(kit: EnsembleContract, crash: Crash) -> tuple[Broken, ...]:
    """Return what broke in all runs of a kind."""
    key = (type(kit), crash)
    if key not in _RUNS:
        runs = (
            broken_promise(kit.make_factory(), kit.settings, crash, seed, goes_on_without_one=kit.goes_on_without_one)
            for seed in range(kit.runs)
        )
        _RUNS[key] = tuple(each for each in runs if each is not None)
    return _RUNS[key]
