"""Voters that a controller changes, under a hostile scheduler: what is promised holds, and mistakes are found."""

from __future__ import annotations

import pytest

from tests.plugins.election_quorum.changing_replicas import MISTAKES, broken_promise

SEEDS = (*range(25), 109, 128, 677)
"""The last ones have found a mistake of ours."""
MISTAKE_SEEDS = range(600)
KNOWN_TO_FIND = {
    "a vote goes to a candidate of older voters": 128,
    "a leader counts by newer voters in its epoch": 70,
    "the next step does not wait": 30,
    "a step that is given up counts as safe": 121,
    "by whom one has voted is forgotten": 122,
    "a replica begins without a number": 128,
    "all voters change at once": 11,
    "a disk that was replaced votes": 75,
}
"""A seed that finds each: it is tried first."""


@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_holds_while_voters_change(seed: int) -> None:
    assert broken_promise(seed) == ""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_with_voters_that_change_is_found(name: str) -> None:
    with MISTAKES[name]():
        found = any(broken_promise(seed) for seed in (KNOWN_TO_FIND[name], *MISTAKE_SEEDS))

    assert found
