"""The election kit itself: a broken election is found, and every test of the kit finds at least one."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Collection, Sequence

import attrs
import pytest

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionInput,
    ElectionReason,
    ErrorCode,
    IsrChangeEnded,
    LeadershipGivenUp,
    MetadataChanged,
    PartitionState,
    Ready,
    Role,
)
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_isr.followers import Follower
from odradek.plugins.election_isr.machine import IsrElection
from odradek.testing.contracts.election import ElectionContract
from odradek.testing.contracts.election_changing import ChangingVotersPromises
from odradek.testing.contracts.election_voting import VotingPromises

CONTRACT_TESTS = [name for name, _ in inspect.getmembers(ElectionContract, inspect.isfunction) if name[:5] == "test_"]
VOTING_TESTS = {
    name for promises in (VotingPromises, ChangingVotersPromises) for name in vars(promises) if name.startswith("test_")
}
"""What `test_voting_kit` and `test_changing_voters_kit` are about."""
AMONG_REPLICAS = "test_an_election_among_replicas_chooses_nobody_for_the_controller"


class Broken(IsrElection):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class LeadsFromTheStart(Broken):
    expected = ("test_nobody_leads_before_the_metadata_says_so",)

    def __init__(self, context: ElectionContext) -> None:
        super().__init__(context)
        self.role = Role.LEADER


class NeverLeads(Broken):
    expected = (
        "test_a_lone_replica_leads",
        "test_who_the_metadata_names_leads_in_the_epoch_that_it_names",
        "test_a_new_role_stands_in_ready_with_its_leader_and_epoch",
    )

    def _role_in(self, state: PartitionState) -> Role:
        del state
        return Role.FOLLOWER


class ForgetsEffects(Broken):
    expected = ("test_effects_stay_until_they_are_done",)

    def ready(self) -> Ready | None:
        found, self._ready = self._ready, None
        return found


class ListensToVotes(Broken):
    expected = ("test_news_of_votes_changes_nothing_where_the_controller_chooses",)

    def step(self, event: ElectionInput) -> None:
        super().step(event)
        if isinstance(event, LeadershipGivenUp):
            self.role = Role.FOLLOWER


class NeverDone(Broken):
    expected = ("test_effects_stay_until_they_are_done", "test_a_role_that_stays_is_told_once")

    def advance(self, ready: Ready) -> None:
        del ready


class TellsItsRoleAgain(Broken):
    expected = ("test_a_role_that_stays_is_told_once",)

    def step(self, event: ElectionInput) -> None:
        super().step(event)
        self._ready = Ready(role=self.role, leader_epoch=self.leader_epoch)


class TakesOldMetadata(Broken):
    expected = ("test_old_metadata_changes_nothing",)

    def step(self, event: ElectionInput) -> None:
        self._partition_epoch = -1
        super().step(event)


class LeadsForEver(Broken):
    expected = ("test_another_leader_makes_a_follower", "test_a_partition_without_a_leader_is_offline")

    def _role_in(self, state: PartitionState) -> Role:
        return Role.LEADER if self.role is Role.LEADER else super()._role_in(state)


class CommitsNothing(Broken):
    expected = (
        "test_a_lone_replica_commits_what_it_appends",
        "test_a_lone_replica_commits_what_its_log_already_holds",
        "test_a_lone_replica_commits_what_its_log_holds_with_its_first_record",
        "test_what_everybody_has_is_committed",
        "test_a_record_is_committed_when_the_in_sync_set_has_it",
        "test_a_smaller_in_sync_set_commits_what_waited_for_the_others",
    )

    def _recount(self) -> None:
        super()._recount()
        self._has_enough = False
        self.high_watermark = 0


class TrustsItsCheckpoint(Broken):
    expected = ("test_a_checkpoint_is_never_beyond_the_log",)

    def __init__(self, context: ElectionContext) -> None:
        super().__init__(context)
        self.high_watermark = context.high_watermark


class CommitsAlone(Broken):
    expected = (
        "test_what_the_leader_alone_has_is_not_committed",
        "test_a_fetch_of_a_stranger_changes_nothing",
        "test_a_follower_commits_nothing_by_itself",
    )

    def local_append(self, log_end_offset: int) -> int:
        self.high_watermark = self._log_end_offset = log_end_offset
        return log_end_offset


class CommitsTheFastest(Broken):
    expected = (
        "test_a_record_is_committed_when_the_in_sync_set_has_it",
        "test_the_high_watermark_only_grows_and_stays_below_what_all_have",
        "test_a_new_leader_waits_for_fetches_of_its_own_epoch",
    )

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        super().follower_fetch(broker_id, broker_epoch, fetch_offset, log_start_offset, now_ms)
        if broker_id in self._followers:
            self.high_watermark = max(self.high_watermark, fetch_offset)
        return self.high_watermark


class CommitsForStrangers(Broken):
    expected = ("test_a_fetch_of_a_stranger_changes_nothing",)

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        if broker_id not in self._followers:
            self.high_watermark = fetch_offset
        return super().follower_fetch(broker_id, broker_epoch, fetch_offset, log_start_offset, now_ms)


class RemembersFetchesOfOldEpochs(Broken):
    expected = ("test_a_new_leader_waits_for_fetches_of_its_own_epoch",)

    def step(self, event: ElectionInput) -> None:
        known = dict(self._followers)
        super().step(event)
        self._followers.update(known)
        self._recount()


class ForgetsFetches(Broken):
    expected = ("test_a_smaller_in_sync_set_commits_what_waited_for_the_others",)

    def step(self, event: ElectionInput) -> None:
        self._followers = {}
        super().step(event)


class ListensToTheDead(Broken):
    expected = ("test_a_fetch_of_an_earlier_incarnation_changes_nothing",)

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        return super().follower_fetch(broker_id, max(broker_epoch, 10), fetch_offset, log_start_offset, now_ms)


class LetsNobodyIn(Broken):
    expected = (
        "test_a_follower_that_has_caught_up_is_to_come_in",
        "test_who_has_caught_up_outside_the_in_sync_set_is_waited_for",
    )

    def _may_join(self, broker_id: int, follower: Follower) -> bool:
        return False


class LetsAnybodyIn(Broken):
    expected = ("test_who_is_fenced_stops_or_is_another_incarnation_stays_out",)

    def _may_join(self, broker_id: int, follower: Follower) -> bool:
        return True


class LetsInWhoIsBehind(Broken):
    expected = ("test_a_follower_below_the_high_watermark_or_the_begin_of_the_epoch_stays_out",)

    def step(self, event: ElectionInput) -> None:
        super().step(event)
        self._epoch_begin = 0


class DoesNotCountWhomItAsksIn(Broken):
    expected = ("test_who_is_asked_in_counts_at_once",)

    def _recount(self) -> None:
        asked, self._asked = self._asked, None
        super()._recount()
        self._asked = asked


class DoesNotWaitForTheNext(Broken):
    expected = ("test_who_has_caught_up_outside_the_in_sync_set_is_waited_for",)

    def _count(self) -> None:
        self._outside = ()
        super()._count()


class AsksForEveryChange(Broken):
    expected = ("test_one_change_is_asked_at_a_time",)

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        self._asked = None
        return super().follower_fetch(broker_id, broker_epoch, fetch_offset, log_start_offset, now_ms)


class IsPatient(Broken):
    expected = ("test_who_lags_too_long_is_to_leave_and_counts_until_it_has",)

    def tick(self, now_ms: int) -> None:
        """Do nothing."""


class WaitsForTheMetadata(Broken):
    expected = (
        "test_an_accepted_change_counts_before_the_metadata_comes",
        "test_a_change_that_was_not_tried_is_taken_back_and_asked_again_later",
        "test_a_failure_of_the_way_to_the_controller_has_the_change_asked_again",
    )

    def _end_change(self, ended: IsrChangeEnded) -> None:
        """Do nothing."""


class CountsWhatIsAskedAsCommitted(Broken):
    expected = ("test_min_insync_replicas_is_judged_by_the_committed_set",)

    def _ask(self, isr: tuple[int, ...]) -> None:
        self.isr = isr
        super()._ask(isr)


class TakesBackWhatMayHaveHappened(Broken):
    expected = ("test_after_a_refusal_that_leaves_open_what_is_the_metadata_is_waited_for",)

    def _end_change(self, ended: IsrChangeEnded) -> None:
        super()._end_change(attrs.evolve(ended, error=ErrorCode.OPERATION_NOT_ATTEMPTED))


class BelievesTheLeader(Broken):
    expected = ("test_a_follower_takes_the_leaders_high_watermark_as_far_as_its_log_goes",)

    def leader_high_watermark(self, offset: int) -> int:
        return offset


class ForgetsWhatTheLeaderDoesNotKnow(Broken):
    expected = ("test_what_a_follower_knows_to_be_committed_stays_so",)

    def leader_high_watermark(self, offset: int) -> int:
        self.high_watermark = min(offset, self._log_end_offset)
        return self.high_watermark


class DeletesForItselfAlone(Broken):
    expected = ("test_the_low_watermark_is_the_lowest_start_of_a_log_that_lives",)

    def low_watermark(self, log_start_offset: int) -> int:
        return log_start_offset


class GoesBack(Broken):
    expected = ("test_the_high_watermark_only_grows_and_stays_below_what_all_have",)

    def local_append(self, log_end_offset: int) -> int:
        if self.high_watermark > 1:
            self.high_watermark -= 1
            return self.high_watermark
        return super().local_append(log_end_offset)


class ForgetsWhatIsCommitted(Broken):
    expected = ("test_what_was_committed_stays_so_under_another_leader",)

    def step(self, event: ElectionInput) -> None:
        if self.role is Role.LEADER:
            self.high_watermark = 0
        super().step(event)


class TellsTheWrongLeader(Broken):
    expected = ("test_a_follower_is_told_whom_to_follow",)

    def _gather(self, before: tuple[Role, int], leader_id: int) -> None:
        del leader_id
        super()._gather(before, self._broker_id)


class AcknowledgesAlways(Broken):
    expected = ("test_acks_all_needs_min_insync_replicas", "test_who_does_not_lead_acknowledges_nothing")

    def can_acknowledge(self) -> bool:
        return True


class CountsReplicasThatAreNotThere(Broken):
    expected = ("test_min_insync_replicas_is_at_most_the_number_of_replicas",)

    def step(self, event: ElectionInput) -> None:
        super().step(event)
        if isinstance(event, MetadataChanged):
            self._has_enough = len(event.state.isr) >= event.min_insync_replicas


class BrokenFactory(IsrElectionFactory):
    """A careless factory; each subclass is one mistake."""

    expected: Sequence[str] = ()


class ChoosesTheDead(BrokenFactory):
    expected = (
        "test_the_first_in_sync_replica_that_lives_takes_over",
        "test_nobody_leads_when_nobody_lives",
    )

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        return super().choose_leader(state, state.replicas, reason)


class ChoosesFromTheInSyncSetInItsOrder(BrokenFactory):
    expected = ("test_the_first_in_sync_replica_that_lives_takes_over",)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        return super().choose_leader(attrs.evolve(state, replicas=state.isr), live_brokers, reason)


class KnowsNobodyEligible(BrokenFactory):
    expected = (
        "test_an_eligible_replica_takes_over_when_nobody_is_in_sync",
        "test_the_last_leader_takes_over_when_nobody_is_in_sync_or_eligible",
    )

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        blind = attrs.evolve(state, eligible_leader_replicas=(), last_known_elr=())
        return super().choose_leader(blind, live_brokers, reason)


class AlwaysUnclean(BrokenFactory):
    expected = (
        "test_a_replica_out_of_sync_takes_over_only_uncleanly",
        "test_nobody_takes_over_while_those_who_are_eligible_are_away",
    )

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        del reason
        return super().choose_leader(state, live_brokers, ElectionReason.UNCLEAN)


class PrefersAnybody(BrokenFactory):
    expected = (
        "test_the_preferred_leader_is_the_first_replica_if_it_is_in_sync",
        "test_a_replica_that_is_removed_leads_no_more",
    )

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        del reason
        return super().choose_leader(state, live_brokers, ElectionReason.OFFLINE)


class BeginsWithEverybody(BrokenFactory):
    expected = ("test_a_new_partition_is_led_by_its_first_replica_that_lives",)

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        del live_brokers
        return super().initial_state(replicas, replicas)


def fails(name: str, made_by: ElectionFactory, *, is_chosen: bool = True) -> bool:
    """Say whether one test of the kit fails for an election."""

    class Kit(ElectionContract):
        is_chosen_by_controller = is_chosen

        def make_factory(self) -> ElectionFactory:
            return made_by

    try:
        getattr(Kit(), name)()
    except pytest.skip.Exception:
        return False
    except Exception:
        return True
    return False


def factory_of(election_class: type[Broken]) -> ElectionFactory:
    class Factory(IsrElectionFactory):
        def new_election(self, context: ElectionContext) -> Election:
            return election_class(context)

    return Factory()


@pytest.mark.parametrize("election_class", Broken.__subclasses__(), ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_election(election_class: type[Broken]) -> None:
    missed = [name for name in election_class.expected if not fails(name, factory_of(election_class))]

    assert missed == []


@pytest.mark.parametrize("factory_class", BrokenFactory.__subclasses__(), ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_choice_of_leaders(factory_class: type[BrokenFactory]) -> None:
    missed = [name for name in factory_class.expected if not fails(name, factory_class())]

    assert missed == []


def test_the_kit_finds_an_election_among_replicas_that_chooses_for_the_controller() -> None:
    assert fails(AMONG_REPLICAS, IsrElectionFactory(), is_chosen=False)


def test_every_test_of_the_election_kit_finds_something() -> None:
    broken: list[type[Broken] | type[BrokenFactory]] = [*Broken.__subclasses__(), *BrokenFactory.__subclasses__()]
    finding = {name for each in broken for name in each.expected} | {AMONG_REPLICAS}

    assert sorted(set(CONTRACT_TESTS) - finding - VOTING_TESTS) == []


def test_a_sound_election_passes_what_the_broken_ones_fail() -> None:
    assert [name for name in CONTRACT_TESTS if fails(name, IsrElectionFactory())] == []


def test_promises_of_a_level_that_is_not_declared_are_skipped_and_do_not_pass() -> None:
    class Kit(ElectionContract):
        is_chosen_by_controller = False
        commits_by_isr = False

        def make_factory(self) -> ElectionFactory:
            return factory_of(AcknowledgesAlways)

    for name in AcknowledgesAlways.expected:
        with pytest.raises(pytest.skip.Exception, match="asked only where"):
            getattr(Kit(), name)()
