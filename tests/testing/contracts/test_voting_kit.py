"""The part of the election kit about votes: a broken election among voters is found, and every promise finds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ElectionContext,
    ElectionFactory,
    FetchEnded,
    LeadershipGivenUp,
    PeerMessage,
    Ready,
)
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.standing import Standing
from odradek.testing.contracts.election_voting import VotingPromises
from tests.plugins.election_quorum.test_election_quorum import TestQuorumElection as SoundKit

PROMISES = sorted(name for name in vars(VotingPromises) if name.startswith("test_"))


class Broken(QuorumElection):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class KeepsNothing(Broken):
    expected = (
        "test_a_vote_is_kept_before_it_is_told_and_answers_who_asked",
        "test_a_vote_binds_the_next_life",
    )

    def ready(self) -> Ready | None:
        self._replica.effects._kept = self._replica.effects._standing
        return super().ready()


class VotesForTheLast(Broken):
    expected = ("test_a_vote_is_given_once_in_an_epoch_and_again_to_whom_it_was_given",)

    def _vote(self, part: Any) -> bool:
        standing = self._replica.standing
        self._replica.standing = Standing(standing.epoch, standing.leader_id)
        return super()._vote(part)


class LooksAtNoLog(Broken):
    expected = ("test_a_candidate_whose_log_is_behind_gets_no_vote",)

    def _vote(self, part: Any) -> bool:
        part.last_offset_epoch = 1 << 20
        return super()._vote(part)


class ComparesLengths(Broken):
    expected = ("test_a_candidate_whose_log_is_behind_gets_no_vote",)

    def _vote(self, part: Any) -> bool:
        part.last_offset_epoch = self._replica.last_record().epoch
        return super()._vote(part)


class TakesAnyRequestForItsOwn(Broken):
    expected = ("test_a_request_that_means_another_directory_is_refused",)

    def _is_meant(self, voter_id: int, directory_id: UUID) -> bool:
        return True


class TakesPreVotesForVotes(Broken):
    expected = ("test_a_pre_vote_binds_nobody", "test_who_hears_its_leader_gives_no_pre_vote")

    def _vote(self, part: Any) -> bool:
        part.pre_vote = False
        return super()._vote(part)


class ForgetsItsLeader(Broken):
    expected = ("test_who_hears_its_leader_gives_no_pre_vote",)

    def _take_fetch_ended(self, event: FetchEnded) -> None:
        """Do nothing."""


class BeginsWithoutARecord(Broken):
    expected = ("test_an_epoch_begins_with_a_record_of_its_leader",)

    def ready(self) -> Ready | None:
        self._replica.effects._append = ()
        return super().ready()


class CommitsEarlierEpochs(Broken):
    expected = ("test_what_earlier_epochs_left_is_committed_no_sooner_than_a_record_of_this_one",)

    def _count(self) -> None:
        assert self._replica.leadership is not None
        self._replica.leadership.epoch_start = -1
        super()._count()


class LeadsAlone(Broken):
    expected = ("test_a_leader_that_no_majority_fetches_from_leads_no_more",)

    def tick(self, now_ms: int) -> None:
        self._replica.checking.stop()
        super().tick(now_ms)


class HearsOfNoLargerEpoch(Broken):
    expected = ("test_a_leader_that_hears_of_a_larger_epoch_leads_no_more",)

    def _on_vote_request(self, asked: PeerMessage, request: Any, part: Any) -> None:
        if self._replica.leadership is None:
            super()._on_vote_request(asked, request, part)


class ClingsToItsLead(Broken):
    expected = ("test_a_leader_that_gives_up_tells_the_others",)

    def _take_given_up(self, _event: LeadershipGivenUp) -> None:
        """Do nothing."""


class CountsAnyDirectory(Broken):
    expected = ("test_a_voter_in_another_directory_does_not_count",)

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: UUID = ZERO_ID,
    ) -> int:
        return super().follower_fetch(broker_id, broker_epoch, fetch_offset, log_start_offset, now_ms)


class TellsNobodyWhoLeads(Broken):
    expected = ("test_who_follows_is_told_whom",)

    def _answer(self, asked: Any, *arguments: Any, **more: Any) -> None:
        standing = self._replica.standing
        self._replica.standing = Standing(standing.epoch)
        super()._answer(asked, *arguments, **more)
        self._replica.standing = standing


def fails(name: str, election_class: type[QuorumElection]) -> bool:
    """Say whether one promise of the kit fails for an election."""

    class Factory(QuorumElectionFactory):
        def new_election(self, context: ElectionContext) -> Election:
            return election_class(context)

    class Kit(SoundKit):
        def make_factory(self) -> ElectionFactory:
            return Factory()

    try:
        getattr(Kit(), name)()
    except Exception:
        return True
    return False


@pytest.mark.parametrize("election_class", Broken.__subclasses__(), ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_election_among_voters(election_class: type[Broken]) -> None:
    missed = [name for name in election_class.expected if not fails(name, election_class)]

    assert missed == []


def test_every_promise_about_votes_finds_something() -> None:
    finding = {name for each in Broken.__subclasses__() for name in each.expected}

    assert sorted(set(PROMISES) - finding) == []


def test_a_sound_election_among_voters_passes_what_the_broken_ones_fail() -> None:
    assert [name for name in PROMISES if fails(name, QuorumElection)] == []
