"""Every scenario keeps every promise: some seeds of each in the gate, many by `tox -e sweep`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping

import pytest

from odradek.lab.simulator.campaign import SCENARIOS, Campaign

GATE_SEEDS = {
    "append": [45],
    "transactions": [25, 25],
    "groups": [20, 20],
    "compaction": [40],
    "disks": [25],
    "replication": [48],
    "spread_transactions": [32],
    "delays": [12],
    "retry": [6],
    "quorum": [20, 20],
}
"""How many each test of a scenario runs; tests run beside each other. Two hundred in all, at least.

With twenty and more a test sees that what the scenario is for has come about."""
VOTED = {"odradek.election": "quorum", "odradek.internal.election": "quorum"}
VOTED_SEEDS = {
    "replication": range(5, 9),
    "spread_transactions": range(2, 4),
    "delays": range(9, 11),
    "retry": range(9, 10),
    "quorum": range(2, 3),
}
"""Where replicas vote. In some of these as many brokers lose their power at once as may."""
BY_LEVELS = {"odradek.delay.queue": "levels", "odradek.delay.levels": "20ms,100ms,1s,5s,15s"}
SWEEP_SEEDS = int(os.environ.get("ODRADEK_SWEEP_SEEDS", "200"))
"""Of each scenario."""


def run(name: str, seeds: range, settings: Mapping[str, str]) -> Campaign:
    """Run seeds, each of which must keep every promise."""
    campaign = Campaign(SCENARIOS[name], settings)
    campaign.run(seeds, lambda _outcome: None)

    assert [(outcome.seed, outcome.failure) for outcome in campaign.failed] == []
    return campaign


def keep_every_promise(name: str, seeds: range) -> None:
    """Run seeds; together they must exercise what the scenario is for."""
    assert run(name, seeds, {}).missing == []


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


@pytest.mark.parametrize("name", VOTED_SEEDS)
def test_seeds_keep_every_promise_where_replicas_vote(name: str) -> None:
    coverage = run(name, VOTED_SEEDS[name], VOTED).coverage

    if name == "spread_transactions":  # nothing of which is flushed: two at once might lose what was acknowledged
        assert not [what for what in coverage if what.startswith("2 brokers at once: power")]


def test_seeds_keep_every_promise_where_delayed_records_wait_by_levels() -> None:
    campaign = run("delays", range(1, 4), BY_LEVELS)

    assert campaign.coverage["delivered"] > 0


@pytest.mark.sweep
def test_many_seeds_keep_every_promise_where_delayed_records_wait_by_levels() -> None:
    assert run("delays", range(1, SWEEP_SEEDS + 1), BY_LEVELS).missing == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", GATE_SEEDS)
def test_many_seeds_keep_every_promise(name: str) -> None:
    keep_every_promise(name, range(1, SWEEP_SEEDS + 1))
