"""Every scenario keeps every promise: some seeds of each in the gate, many by `tox -e sweep`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from odradek.lab.simulator.campaign import SCENARIOS, Campaign

GATE_SEEDS = {
    "append": [45],
    "transactions": [50],
    "groups": [40],
    "compaction": [40],
    "disks": [25],
    "replication": [6, 6],
    "spread_transactions": [6, 6],
    "delays": [3],
    "quorum": [4, 4],
}
"""How many each test of a scenario runs; tests run beside each other. Two hundred in all, at least."""
SWEEP_SEEDS = int(os.environ.get("ODRADEK_SWEEP_SEEDS", "200"))
"""Of each scenario."""


def keep_every_promise(name: str, seeds: range) -> None:
    """Run seeds; together they must exercise what the scenario is for."""
    campaign = Campaign(SCENARIOS[name], {})
    campaign.run(seeds, lambda _outcome: None)

    assert [(outcome.seed, outcome.failure) for outcome in campaign.failed] == []
    assert campaign.missing == []


def slices_of(name: str) -> Iterator[range]:
    """Iterate over what the tests of a scenario run, from seed 1 on."""
    ends = itertools.accumulate(GATE_SEEDS[name], initial=1)
    return itertools.starmap(range, itertools.pairwise(ends))


def test_every_scenario_is_in_the_gate() -> None:
    assert GATE_SEEDS.keys() == SCENARIOS.keys()
    assert sum(sum(counts) for counts in GATE_SEEDS.values()) >= 200


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        pytest.param(name, seeds, id=f"{name}-{seeds.start}-to-{seeds.stop - 1}")
        for name in GATE_SEEDS
        for seeds in slices_of(name)
    ],
)
def test_seeds_keep_every_promise(name: str, seeds: range) -> None:
    keep_every_promise(name, seeds)


@pytest.mark.sweep
@pytest.mark.parametrize("name", GATE_SEEDS)
def test_many_seeds_keep_every_promise(name: str) -> None:
    keep_every_promise(name, range(1, SWEEP_SEEDS + 1))
