"""Shell: the part of the contract kit of elections about in-sync replicas: who is in, what a follower is told.

Its promises are those of the level `commits_by_isr`.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import attrs

from odradek.kernel.contracts.election import IsrChangeEnded, MetadataChanged
from odradek.kernel.errors import ErrorCode

from .election_base import BROKERS, LAG_MS, THREE, TWO_IN_SYNC, Broker, ElectionKit
from .levels import needs_level


class InSyncPromises(ElectionKit):
    """What an election of in-sync replicas promises."""

    # -- on a follower -------------------------------------------------------------------------------------------

    def test_a_follower_takes_the_leaders_high_watermark_as_far_as_its_log_goes(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.new_election(broker_id=2, log_end_offset=5)
        election.step(MetadataChanged(THREE, 1))
        self.drain(election)

        assert [election.leader_high_watermark(3), election.leader_high_watermark(9)] == [3, 5]

    def test_what_a_follower_knows_to_be_committed_stays_so(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.new_election(broker_id=2, log_end_offset=5)
        election.step(MetadataChanged(THREE, 1))
        election.leader_high_watermark(4)

        assert election.leader_high_watermark(2) == 4

    # -- who is in sync ------------------------------------------------------------------------------------------

    def test_a_fetch_of_an_earlier_incarnation_changes_nothing(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        election.local_append(5)

        assert [self.fetch(election, 2, 5, broker_epoch=epoch) for epoch in (-1, 9, 10)] == [0, 0, 5]

    def test_a_follower_that_has_caught_up_is_to_come_in(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(attrs.evolve(TWO_IN_SYNC, partition_epoch=4))
        self.fetch(election, 3, 0)
        (change,) = self.asked(election)

        assert (change.isr, change.leader_epoch, change.partition_epoch) == ((1, 2, 3), 0, 4)
        assert change.broker_epochs == (10, -1, 10)

    def test_a_follower_below_the_high_watermark_or_the_begin_of_the_epoch_stays_out(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC, log_end_offset=4)
        self.fetch(election, 3, 3)
        before_the_begin = self.asked(election)
        election.local_append(6)
        self.fetch(election, 2, 6)
        self.fetch(election, 3, 5)

        assert (before_the_begin, self.asked(election)) == ([], [])

    def test_who_is_fenced_stops_or_is_another_incarnation_stays_out(self) -> None:
        needs_level(self, "commits_by_isr")
        for broker in (Broker(is_fenced=True, is_live=False), Broker(is_live=False), Broker(broker_epoch=9)):
            election = self.leading(TWO_IN_SYNC, brokers={**BROKERS, 3: broker})
            self.fetch(election, 3, 0)

            assert self.asked(election) == [], f"asked in: {broker}"

    def test_who_is_asked_in_counts_at_once(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        self.fetch(election, 3, 0)
        self.drain(election)
        election.local_append(5)
        election.tick(2 * LAG_MS)

        assert self.fetch(election, 2, 5, now_ms=2 * LAG_MS) == 0

    def test_who_has_caught_up_outside_the_in_sync_set_is_waited_for(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        self.fetch(election, 3, 0)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, ErrorCode.INELIGIBLE_REPLICA))
        election.local_append(5)
        waiting = self.fetch(election, 2, 5)
        election.tick(LAG_MS + 1)

        assert (waiting, election.high_watermark) == (0, 5)

    def test_one_change_is_asked_at_a_time(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(attrs.evolve(TWO_IN_SYNC, isr=(1,)))
        self.fetch(election, 2, 0)
        self.fetch(election, 3, 0)
        election.tick(10 * LAG_MS)

        assert [change.isr for change in self.asked(election)] == [(1, 2)]

    def test_who_lags_too_long_is_to_leave_and_counts_until_it_has(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(THREE)
        election.local_append(5)
        election.tick(0)
        self.fetch(election, 2, 5, now_ms=LAG_MS)
        election.tick(LAG_MS)
        in_time = self.asked(election)
        election.tick(LAG_MS + 1)
        changes = self.asked(election)

        assert (in_time, [change.isr for change in changes], election.high_watermark) == ([], [(1, 2)], 0)

    def test_an_accepted_change_counts_before_the_metadata_comes(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(THREE)
        election.local_append(5)
        self.fetch(election, 2, 5)
        election.tick(0)
        self.fetch(election, 2, 5, now_ms=LAG_MS + 1)
        election.tick(LAG_MS + 1)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, isr=(1, 2), leader_epoch=0, partition_epoch=1))
        told = [ready.high_watermark for ready in self.drain(election)]

        assert (tuple(election.isr), election.high_watermark, told) == ((1, 2), 5, [5])

    def test_min_insync_replicas_is_judged_by_the_committed_set(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(attrs.evolve(TWO_IN_SYNC, isr=(1,)), min_isr=2)
        election.local_append(5)
        asked_for = self.fetch(election, 2, 5)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, isr=(1, 2), leader_epoch=0, partition_epoch=1))

        assert (asked_for, election.high_watermark, election.can_acknowledge()) == (0, 5, True)

    def test_a_change_that_was_not_tried_is_taken_back_and_asked_again_later(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        self.fetch(election, 3, 0)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, ErrorCode.OPERATION_NOT_ATTEMPTED))
        at_once = self.asked(election)
        self.fetch(election, 3, 0)

        assert (at_once, self.asked(election)) == ([], [change])

    def test_after_a_refusal_that_leaves_open_what_is_the_metadata_is_waited_for(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        self.fetch(election, 3, 0)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, ErrorCode.INVALID_UPDATE_VERSION))
        election.local_append(5)
        committed = self.fetch(election, 2, 5)
        self.fetch(election, 3, 0)
        waits = self.asked(election)
        election.step(MetadataChanged(attrs.evolve(TWO_IN_SYNC, partition_epoch=1, isr=(1, 2, 3)), 1))

        assert (committed, waits, self.fetch(election, 3, 5)) == (0, [], 5)

    def test_a_failure_of_the_way_to_the_controller_has_the_change_asked_again(self) -> None:
        needs_level(self, "commits_by_isr")
        election = self.leading(TWO_IN_SYNC)
        self.fetch(election, 3, 0)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, ErrorCode.UNKNOWN_SERVER_ERROR))

        assert self.asked(election) == [change]

    def test_the_low_watermark_is_the_lowest_start_of_a_log_that_lives(self) -> None:
        needs_level(self, "commits_by_isr")
        brokers = {**BROKERS, 3: Broker(is_fenced=True, is_live=False)}
        election = self.leading(THREE, brokers=brokers)
        unknown = election.low_watermark(7)
        election.follower_fetch(2, 10, 0, 4, 0)

        assert (unknown, election.low_watermark(7), election.low_watermark(2)) == (-1, 4, 2)
