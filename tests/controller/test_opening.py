"""Which election a metadata log is opened with."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.contracts.culprits import note_plugin
from odradek.kernel.contracts.election import ElectionFactory
from odradek.kernel.controller.opening import choose_metadata_election
from odradek.kernel.errors import ConfigError, PluginError
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_quorum.factory import QuorumElectionFactory

ISR, QUORUM = IsrElectionFactory(), QuorumElectionFactory()
ELECTIONS: dict[str, ElectionFactory] = {"isr": ISR, "quorum": QUORUM}
THREE = {"controller.quorum.voters": "1@a:1,2@b:2,3@c:3"}


def config(**keys: str) -> BrokerConfig:
    return BrokerConfig(builtin_registry(), {name: Setting(text, "file, line 1") for name, text in keys.items()})


def test_one_node_keeps_the_log_by_its_in_sync_set_and_several_by_votes() -> None:
    assert choose_metadata_election(config(), ELECTIONS) is ISR
    assert choose_metadata_election(config(), ELECTIONS, is_founded=True) is QUORUM
    assert choose_metadata_election(config(**THREE), ELECTIONS) is QUORUM


@pytest.mark.parametrize("is_founded", [False, True])
def test_several_voters_are_refused_an_election_that_cannot_vote_by_the_name_of_its_plugin(is_founded: bool) -> None:
    note_plugin("election_isr", "odradek.plugins.election_isr")
    voters = {} if is_founded else THREE
    chosen = config(**voters, **{"odradek.metadata.election": "isr"})
    with pytest.raises(ConfigError, match=r"odradek\.metadata\.election is 'isr', of plugin 'election_isr'") as refusal:
        choose_metadata_election(chosen, ELECTIONS, is_founded=is_founded)

    assert refusal.value.where == "file, line 1"


def test_voters_without_a_plugin_that_votes_are_refused() -> None:
    with pytest.raises(PluginError, match="no active plugin offers the election 'quorum'"):
        choose_metadata_election(config(**THREE), {"isr": ISR})
