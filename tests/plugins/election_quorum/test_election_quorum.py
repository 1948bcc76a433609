"""The majority vote keeps the contract of elections."""

from __future__ import annotations

from odradek.kernel.api import Election, ElectionFactory, ErrorCode, PartitionState, PeerMessage
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.plugins import election_quorum
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.election_quorum.messages import answer
from odradek.plugins.election_quorum.standing import Standing
from odradek.testing.contracts.election import PARTITION, ElectionContract
from odradek.testing.contracts.election_ensemble import EnsembleContract

LONG_MS = 2_000
"""Longer than any random election time-out."""


class TestQuorumElection(ElectionContract):
    is_chosen_by_controller = False
    commits_by_isr = False
    speaks_kraft = True
    changes_voters = True

    def make_factory(self) -> ElectionFactory:
        return QuorumElectionFactory()

    def win(self, election: Election, state: PartitionState) -> None:
        for now_ms in (0, LONG_MS):
            election.tick(now_ms)
        for _ in ("pre-votes", "votes"):
            self.drain(election)
            for broker_id in state.replicas[1:]:
                vote = answer(
                    VoteRequest(), PARTITION, Standing(election.leader_epoch), ErrorCode.NONE, vote_granted=True
                )
                election.step(PeerMessage(broker_id, vote))


class TestQuorumReplicas(EnsembleContract):
    def make_factory(self) -> ElectionFactory:
        return QuorumElectionFactory()


def test_the_plugin_offers_quorum() -> None:
    assert list(election_quorum.odradek_elections()) == ["quorum"]
