"""The scenario `replication`: some seeds of it."""

from __future__ import annotations

import pytest

from odradek.lab.simulator.replication import REPLICATION
from odradek.lab.simulator.runs import run_seed


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_with_one_of_three_brokers(seed: int) -> None:
    outcome = run_seed(REPLICATION, seed, {})

    assert outcome.failure == ""
    assert outcome.coverage["agreements"] >= 2
