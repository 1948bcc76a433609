"""A broker for each storage, started when a test wants it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .house import House
from .table import COMBINATIONS, ELECTIONS, STORAGES, Combination, Election, Storage

Houses = dict[tuple[str, str], House]


@pytest.fixture(scope="session")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    """Return the brokers that were started, by election and storage."""
    found: Houses = {}
    with ExitStack() as stack:
        for election, storage in itertools.product(ELECTIONS, STORAGES):
            house = House(election, storage, tmp_path_factory.mktemp(f"{election.name}-{storage.name}"))
            found[election.name, storage.name] = house
            stack.callback(house.close)
        yield found


@pytest.fixture(params=[each for each in COMBINATIONS if each.is_served], ids=str)
def combination(request: pytest.FixtureRequest) -> Combination:
    """Return each combination that can be had in turn."""
    found = request.param
    assert isinstance(found, Combination)
    return found


@pytest.fixture
def house(combination: Combination, houses: Houses) -> Iterator[House]:
    """Return brokers with the combination's election and storage."""
    house = opened(combination.election, combination.storage, houses)
    yield house
    house.delete_topics()


def opened(election: Election, storage: Storage, houses: Houses) -> House:
    house = houses[election.name, storage.name]
    if not hasattr(house, "brokers"):
        house.open()
    return house
