"""Shell: the contract kit of elections: subclass `ElectionContract` and give `make_factory`.

Needs pytest. Each test's name is the promise it checks. Levels that a plugin declares by class attributes:

* `is_chosen_by_controller`: leaders come from `choose_leader`; without it that method answers None always, and `win`
  says how broker 1 comes to lead;
* `commits_by_isr`: a record is committed when every replica of the in-sync set has it; without it a leader commits what
  earlier leaders left no later than with the first record of its own;
* `speaks_kraft`: replicas vote by the messages of Kafka's quorums (`election_voting`);
* `changes_voters`: beside that, voters change one at a time while it serves (`election_changing`), as the factory says.

What belongs to a level that is not declared is skipped. An election that reads its plugin's keys is made with
`settings`.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import random

import attrs

from odradek.kernel.contracts.election import (
    ElectionReason,
    FetchEnded,
    LeadershipGivenUp,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    PeerRefused,
    Role,
    VotersChanged,
)
from odradek.kernel.wire.messages.api_52_vote import VoteRequest

from .election_base import ALONE, PARTITION, THREE
from .election_changing import ChangingVotersPromises
from .election_in_sync import InSyncPromises
from .election_voting import VotingPromises, voters
from .levels import needs_level

__all__ = ["PARTITION", "ElectionContract"]


class ElectionContract(InSyncPromises, VotingPromises, ChangingVotersPromises):
    """What every election promises."""

    # -- roles ---------------------------------------------------------------------------------------------------

    def test_nobody_leads_before_the_metadata_says_so(self) -> None:
        election = self.new_election()

        assert (election.role is Role.LEADER, election.leader_epoch) == (False, -1)

    def test_a_lone_replica_leads(self) -> None:
        election = self.leading(ALONE)

        assert election.role is Role.LEADER

    def test_who_the_metadata_names_leads_in_the_epoch_that_it_names(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.leading(attrs.evolve(THREE, leader_epoch=4))

        assert (election.role, election.leader_epoch) == (Role.LEADER, 4)

    def test_a_new_role_stands_in_ready_with_its_leader_and_epoch(self) -> None:
        election = self.new_election()
        told = [ready for ready in self.lead(election, ALONE) if ready.role is not None]

        assert [(each.role, each.leader_id, each.leader_epoch) for each in told[-1:]] == [
            (Role.LEADER, 1, election.leader_epoch)
        ]

    def test_a_follower_is_told_whom_to_follow(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.new_election(broker_id=2)
        election.step(MetadataChanged(attrs.evolve(THREE, leader=3, leader_epoch=4), 1))
        ready = election.ready()
        assert ready is not None

        assert (ready.role, ready.leader_id, ready.leader_epoch) == (Role.FOLLOWER, 3, 4)

    def test_effects_stay_until_they_are_done(self) -> None:
        election = self.new_election()
        election.step(MetadataChanged(ALONE, 1))
        if election.ready() is None:
            self.win(election, ALONE)
        first = election.ready()
        assert first is not None
        assert election.ready() == first
        election.advance(first)

        assert election.ready() is None if self.is_chosen_by_controller else election.ready() != first

    def test_a_role_that_stays_is_told_once(self) -> None:
        election = self.leading(ALONE)
        election.step(MetadataChanged(attrs.evolve(ALONE, partition_epoch=1), 1))
        ready = election.ready()

        assert ready is None or ready.role is None

    def test_old_metadata_changes_nothing(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.leading(attrs.evolve(THREE, leader_epoch=3, partition_epoch=5))
        election.step(MetadataChanged(attrs.evolve(THREE, leader=2, leader_epoch=2, partition_epoch=4), 1))

        assert (election.role, election.leader_epoch) == (Role.LEADER, 3)

    def test_another_leader_makes_a_follower(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.leading(THREE)
        election.step(MetadataChanged(attrs.evolve(THREE, leader=2, leader_epoch=1, partition_epoch=1), 1))

        assert (election.role, election.leader_epoch) == (Role.FOLLOWER, 1)

    def test_a_partition_without_a_leader_is_offline(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.leading(THREE)
        election.step(MetadataChanged(attrs.evolve(THREE, leader=-1, leader_epoch=1, partition_epoch=1), 1))

        assert election.role is Role.OFFLINE

    def test_news_of_votes_changes_nothing_where_the_controller_chooses(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.leading(THREE)
        for event in (
            FetchEnded(2, leader_id=2, leader_epoch=9),
            PeerRefused(2),
            VotersChanged(voters(2, 3), 4),
            LeadershipGivenUp(),
            PeerMessage(2, VoteRequest()),
        ):
            election.step(event)

        assert (election.ready(), election.role, election.leader_epoch) == (None, Role.LEADER, 0)

    # -- commitment ----------------------------------------------------------------------------------------------

    def test_a_lone_replica_commits_what_it_appends(self) -> None:
        election = self.leading(ALONE)

        assert (election.local_append(5), election.high_watermark) == (5, 5)

    def test_a_lone_replica_commits_what_its_log_already_holds(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(ALONE, log_end_offset=9)

        assert election.high_watermark == 9

    def test_a_lone_replica_commits_what_its_log_holds_with_its_first_record(self) -> None:
        election = self.leading(ALONE, log_end_offset=9)

        assert election.local_append(10) == 10

    def test_a_checkpoint_is_never_beyond_the_log(self) -> None:
        election = self.new_election(log_end_offset=4, high_watermark=8)

        assert election.high_watermark <= 4

    def test_what_the_leader_alone_has_is_not_committed(self) -> None:
        election = self.leading(THREE)

        assert election.local_append(5) == 0

    def test_a_follower_commits_nothing_by_itself(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.new_election(broker_id=2)
        election.step(MetadataChanged(THREE, 1))

        assert (election.local_append(5), self.fetch(election, 3, 5)) == (0, 0)

    def test_a_record_is_committed_when_the_in_sync_set_has_it(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(attrs.evolve(THREE, isr=(1, 2)))
        election.local_append(5)

        assert [self.fetch(election, 3, 5), self.fetch(election, 2, 3)] == [0, 3]

    def test_a_new_leader_waits_for_fetches_of_its_own_epoch(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(THREE)
        election.local_append(5)
        self.fetch(election, 2, 5)
        election.step(MetadataChanged(attrs.evolve(THREE, leader_epoch=1, partition_epoch=1), 1))

        assert self.fetch(election, 3, 5) == 0

    def test_a_smaller_in_sync_set_commits_what_waited_for_the_others(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(THREE)
        election.local_append(5)
        self.fetch(election, 2, 5)
        election.step(MetadataChanged(attrs.evolve(THREE, partition_epoch=1, isr=(1, 2)), 1))
        ready = election.ready()
        assert ready is not None

        assert (ready.high_watermark, election.high_watermark) == (5, 5)

    def test_a_fetch_of_a_stranger_changes_nothing(self) -> None:
        election = self.leading(THREE)
        election.local_append(5)
        before = self.fetch(election, 9, 5)
        committed = self.fetch(election, 2, 3)

        assert (before, self.fetch(election, 9, 5)) == (0, committed)

    def test_acks_all_needs_min_insync_replicas(self) -> None:
        needs_level(self, "commits_by_isr")
        refused = self.leading(attrs.evolve(THREE, isr=(1,)), min_isr=2)
        taken = self.leading(attrs.evolve(THREE, isr=(1, 2)), min_isr=2)

        assert (refused.can_acknowledge(), taken.can_acknowledge()) == (False, True)

    def test_min_insync_replicas_is_at_most_the_number_of_replicas(self) -> None:
        assert self.leading(ALONE, min_isr=2).can_acknowledge()

    def test_who_does_not_lead_acknowledges_nothing(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        election = self.new_election(broker_id=2)
        election.step(MetadataChanged(THREE, 1))

        assert not election.can_acknowledge()

    def test_the_high_watermark_only_grows_and_stays_below_what_all_have(self) -> None:
        needs_level(self, "commits_by_isr")
        for seed in range(20):
            self._check_high_watermark(random.Random(seed))

    def _check_high_watermark(self, source: random.Random) -> None:
        election = self.leading(THREE)
        ends = {1: 0, 2: 0, 3: 0}
        high_watermark = 0
        for _ in range(60):
            broker = source.choice((1, 2, 3))
            if broker == 1:
                ends[1] += source.randrange(4)
                found = election.local_append(ends[1])
            else:
                ends[broker] = source.randrange(ends[broker], ends[1] + 1)
                found = self.fetch(election, broker, ends[broker])
            assert found >= high_watermark, "the high watermark went back"
            assert found <= min(ends.values()), f"committed {found} with logs that end at {ends}"
            high_watermark = found

    def test_what_everybody_has_is_committed(self) -> None:
        election = self.leading(THREE)
        election.local_append(7)
        self.fetch(election, 2, 7)

        assert self.fetch(election, 3, 7) == 7

    def test_what_was_committed_stays_so_under_another_leader(self) -> None:
        election = self.leading(THREE)
        election.local_append(7)
        self.fetch(election, 2, 7)
        self.fetch(election, 3, 7)
        election.step(MetadataChanged(attrs.evolve(THREE, leader=2, leader_epoch=1, partition_epoch=1), 1))

        assert election.high_watermark == 7

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, state: PartitionState, live: set[int], reason: ElectionReason) -> tuple[int, ...]:
        """Return (leader, in-sync replicas...) that the factory chooses, () for nobody."""
        chosen = self.make_factory().choose_leader(state, live, reason)
        return (chosen.leader, *chosen.isr) if chosen is not None else ()

    def test_an_election_among_replicas_chooses_nobody_for_the_controller(self) -> None:
        needs_level(self, "is_chosen_by_controller", value=False)
        assert all(self.choose(THREE, {1, 2, 3}, reason) == () for reason in ElectionReason)

    def test_the_first_in_sync_replica_that_lives_takes_over(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, isr=(3, 2, 1))

        assert self.choose(state, {2, 3}, ElectionReason.OFFLINE) == (2, 3, 2)

    def test_a_replica_out_of_sync_takes_over_only_uncleanly(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, isr=(1,))
        found = [self.choose(state, {2, 3}, r) for r in (ElectionReason.OFFLINE, ElectionReason.UNCLEAN)]

        assert found == [(), (2, 2)]

    def test_an_eligible_replica_takes_over_when_nobody_is_in_sync(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, leader=-1, isr=(), eligible_leader_replicas=(3, 2), last_known_elr=(1,))
        chosen = self.make_factory().choose_leader(state, {1, 3}, ElectionReason.OFFLINE)

        assert chosen is not None
        assert (chosen.leader, chosen.isr, chosen.eligible_leader_replicas) == (3, (3,), (2,))

    def test_nobody_takes_over_while_those_who_are_eligible_are_away(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, leader=-1, isr=(), eligible_leader_replicas=(3, 2), last_known_elr=(1,))

        assert self.choose(state, {1}, ElectionReason.OFFLINE) == ()

    def test_the_last_leader_takes_over_when_nobody_is_in_sync_or_eligible(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, leader=-1, isr=(), last_known_elr=(2,))
        found = [self.choose(state, live, ElectionReason.OFFLINE) for live in ({1, 3}, {1, 2, 3})]

        assert found == [(), (2, 2)]

    def test_the_preferred_leader_is_the_first_replica_if_it_is_in_sync(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, leader=2)
        behind = attrs.evolve(state, isr=(2, 3))
        found = [self.choose(s, {1, 2, 3}, ElectionReason.PREFERRED) for s in (state, behind)]

        assert found == [(1, 1, 2, 3), ()]

    def test_a_replica_that_is_removed_leads_no_more(self) -> None:
        needs_level(self, "is_chosen_by_controller")
        state = attrs.evolve(THREE, removing_replicas=(1,))

        assert self.choose(state, {1, 2, 3}, ElectionReason.REASSIGNMENT)[0] == 2

    def test_nobody_leads_when_nobody_lives(self) -> None:
        assert [self.choose(THREE, set(), reason) for reason in ElectionReason] == [()] * len(ElectionReason)

    def test_a_new_partition_is_led_by_its_first_replica_that_lives(self) -> None:
        state = self.make_factory().initial_state((3, 1, 2), {1, 2})
        found = (state.replicas, state.isr, state.leader_epoch, state.partition_epoch)

        assert found == ((3, 1, 2), (1, 2), 0, 0)
        assert state.leader == 1 or not self.is_chosen_by_controller
