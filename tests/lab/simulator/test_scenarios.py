"""Every scenario keeps every promise: some seeds of each in the gate, many by `tox -e sweep`."""

from __future__ import annotations

import os

import pytest

from odradek.lab.simulator.campaign import SCENARIOS, Campaign

GATE_SEEDS = {
    "append": 45,
    "transactions": 50,
    "groups": 40,
    "compaction": 40,
    "disks": 25,
    "replication": 4,
    "spread_transactions": 4,
    "quorum": 4,
}
"""Two hundred in all, at least."""
SWEEP_SEEDS = int(os.environ.get("ODRADEK_SWEEP_SEEDS", "200"))
"""Of each scenario."""


def keep_every_promise(name: str, seeds: range) -> None:
    """Run seeds; together they must exercise what the scenario is for."""
    campaign = Campaign(SCENARIOS[name], {})
    campaign.run(seeds, lambda _outcome: None)

    assert [(outcome.seed, outcome.failure) for outcome in campaign.failed] == []
    assert campaign.missing == []


def test_every_scenario_is_in_the_gate() -> None:
    assert GATE_SEEDS.keys() == SCENARIOS.keys()
    assert sum(GATE_SEEDS.values()) >= 200


@pytest.mark.parametrize("name", GATE_SEEDS)
def test_seeds_keep_every_promise(name: str) -> None:
    keep_every_promise(name, range(1, GATE_SEEDS[name] + 1))


@pytest.mark.sweep
@pytest.mark.parametrize("name", GATE_SEEDS)
def test_many_seeds_keep_every_promise(name: str) -> None:
    keep_every_promise(name, range(1, SWEEP_SEEDS + 1))
