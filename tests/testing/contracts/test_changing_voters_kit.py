"""The part of the election kit about voters that change: a broken election is found, and every promise finds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from odradek.kernel.api import Election, ElectionContext, ElectionFactory, MetadataChanged
from odradek.kernel.contracts.election import ElectionInput
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.voters import Voters
from odradek.testing.contracts.election_changing import ChangingVotersPromises
from tests.plugins.election_quorum.test_election_quorum import TestQuorumElection as SoundKit

PROMISES = sorted(name for name in vars(ChangingVotersPromises) if name.startswith("test_"))
SAYS_SO = "test_a_factory_says_whether_voters_change"


class Broken(QuorumElection):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class LetsAllReplicasVote(Broken):
    expected = ("test_who_has_no_vote_follows_whom_the_metadata_names_and_never_stands",)

    def step(self, event: ElectionInput) -> None:
        if isinstance(event, MetadataChanged):
            event = attrs.evolve(event, state=attrs.evolve(event.state, voters=()))
        super().step(event)


class CountsAtOnce(Broken):
    expected = ("test_a_leader_counts_by_those_who_elected_it_until_newer_voters_elect_it_in_a_later_epoch",)

    def _take_replicas(self, event: MetadataChanged) -> None:
        super()._take_replicas(event)
        if self._replica.leadership is not None:
            self._replica.leadership.change_voters(Voters.of_replicas(event.state.replicas[-2:]))


class CountsWhoeverFetches(Broken):
    expected = ("test_a_replica_that_has_no_vote_yet_counts_for_nothing",)

    def follower_fetch(self, broker_id: int, *arguments: Any, **more: Any) -> int:
        return super().follower_fetch(2 + broker_id % 2, *arguments, **more)


class TakesAnybodyForCaughtUp(Broken):
    expected = ("test_a_leader_tells_who_elected_it_and_who_has_caught_up",)

    def _tell_controller(self, now_ms: int) -> None:
        leadership: Any = self._replica.leadership
        for known in leadership.observers.values() if leadership is not None else ():
            known.end = 1 << 20
        super()._tell_controller(now_ms)


class TellsBeforeItHasCommitted(Broken):
    expected = ("test_a_leader_tells_nothing_of_its_voters_before_it_has_committed_a_record_of_its_epoch",)

    def _tell_controller(self, now_ms: int) -> None:
        high_watermark = self._replica.high_watermark
        self._replica.high_watermark = 1 << 20
        super()._tell_controller(now_ms)
        self._replica.high_watermark = high_watermark


class StandsWhateverOthersHave(Broken):
    expected = (
        "test_a_leader_leads_on_where_newer_voters_could_not_elect_it",
        "test_a_leader_without_a_vote_makes_way_once_the_others_have_all_and_not_before",
    )

    def tick(self, now_ms: int) -> None:
        leadership: Any = self._replica.leadership
        if leadership is not None and self._replica.voters.epoch > leadership.voters.epoch:
            self._replica.resign()
        super().tick(now_ms)


class VotesByAnyVoters(Broken):
    expected = (
        "test_a_replica_that_remembers_nothing_votes_by_no_older_voters_than_those_that_are_named",
        "test_who_has_voted_by_newer_voters_votes_by_no_older_ones_in_this_life_or_the_next",
        "test_who_has_voted_by_newer_voters_than_the_metadata_names_waits_for_them",
    )

    def _vote(self, part: Any) -> bool:
        part.voters_epoch = self._replica.voters_epoch
        return super()._vote(part)


def fails(name: str, made_by: ElectionFactory) -> bool:
    """Say whether one promise of the kit fails for an election."""

    class Kit(SoundKit):
        def make_factory(self) -> ElectionFactory:
            return made_by

    try:
        getattr(Kit(), name)()
    except Exception:
        return True
    return False


def factory_of(election_class: type[QuorumElection]) -> ElectionFactory:
    class Factory(QuorumElectionFactory):
        def new_election(self, context: ElectionContext) -> Election:
            return election_class(context)

    return Factory()


@pytest.mark.parametrize("election_class", Broken.__subclasses__(), ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_election_whose_voters_change(election_class: type[Broken]) -> None:
    missed = [name for name in election_class.expected if not fails(name, factory_of(election_class))]

    assert missed == []


def test_the_kit_finds_a_factory_that_does_not_say_so() -> None:
    class Factory(QuorumElectionFactory):
        changes_voters = False

    assert fails(SAYS_SO, Factory())


def test_every_promise_about_voters_that_change_finds_something() -> None:
    finding = {name for each in Broken.__subclasses__() for name in each.expected} | {SAYS_SO}

    assert sorted(set(PROMISES) - finding) == []


def test_a_sound_election_passes_what_the_broken_ones_fail() -> None:
    assert [name for name in PROMISES if fails(name, QuorumElectionFactory())] == []
