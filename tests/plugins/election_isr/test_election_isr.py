"""The in-sync set election keeps the contract, and what is its own."""

import attrs

from odradek.kernel.api import ElectionFactory, ElectionReason, IsrChangeEnded, MetadataChanged, PartitionState
from odradek.plugins import election_isr
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.testing.contracts.election import ElectionContract
from odradek.testing.contracts.election_base import LAG_MS
from odradek.testing.contracts.election_ensemble import EnsembleContract

THREE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2, 3))


class TestIsrElection(ElectionContract):
    def make_factory(self) -> ElectionFactory:
        return IsrElectionFactory()

    def test_the_high_watermark_stands_still_below_min_insync_replicas(self) -> None:
        state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2), isr=(1,))
        election = self.leading(state, min_isr=2)

        assert (election.local_append(5), election.can_acknowledge()) == (0, False)

    def test_a_truncation_takes_the_high_watermark_along(self) -> None:
        election = self.new_election(broker_id=2, log_end_offset=9, high_watermark=7)
        election.step(MetadataChanged(THREE, 1))

        assert election.local_append(4) == 4

    def test_time_and_strange_events_change_nothing(self) -> None:
        election = self.leading(THREE)
        election.tick(10**9)

        assert election.ready() is None
        assert repr(election) == "<IsrElection leader of epoch 0, isr [1, 2, 3], high watermark 0 of 0>"

    def test_effects_that_gather_before_they_are_done_are_joined(self) -> None:
        election = self.new_election(log_end_offset=5)
        election.step(MetadataChanged(THREE, 1))
        stale = election.ready()
        assert stale is not None
        alone = PartitionState(leader=1, leader_epoch=0, partition_epoch=1, replicas=(1, 2, 3), isr=(1,))
        election.step(MetadataChanged(alone, 1))
        election.advance(stale)
        ready = election.ready()
        assert ready is not None

        assert (ready.role, ready.high_watermark) == (stale.role, 5)

    def test_settings_that_come_with_older_metadata_commit_and_tell_it(self) -> None:
        election = self.leading(THREE, min_isr=3)
        election.local_append(5)
        self.fetch(election, 2, 5)
        election.tick(0)
        self.fetch(election, 2, 5, now_ms=LAG_MS + 1)
        election.tick(LAG_MS + 1)
        (change,) = self.asked(election)
        election.step(IsrChangeEnded(change, isr=(1, 2), leader_epoch=0, partition_epoch=2))
        told_before = self.drain(election)
        election.step(MetadataChanged(attrs.evolve(THREE, partition_epoch=1), 2))
        told = [ready.high_watermark for ready in self.drain(election)]

        assert (told_before, election.high_watermark, told) == ([], 5, [5])

    def test_a_leader_that_lives_and_is_in_sync_stays(self) -> None:
        state = PartitionState(leader=2, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2))

        assert self.choose(state, {1, 2}, ElectionReason.OFFLINE) == (2, 1, 2)


class TestIsrReplicas(EnsembleContract):
    def make_factory(self) -> ElectionFactory:
        return IsrElectionFactory()


def test_the_plugin_offers_isr() -> None:
    assert list(election_isr.odradek_elections()) == ["isr"]
