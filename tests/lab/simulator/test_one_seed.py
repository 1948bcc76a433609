"""One seed of every scenario keeps every promise: what there is of many more, where coverage is not measured."""

from __future__ import annotations

import pytest

from odradek.lab.simulator.campaign import SCENARIOS
from odradek.lab.simulator.runs import run_seed

SEED = 10


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_seed_keeps_every_promise(name: str) -> None:
    outcome = run_seed(SCENARIOS[name], SEED, {})

    assert not outcome.failure
    assert outcome.coverage
