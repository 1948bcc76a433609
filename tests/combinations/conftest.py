"""A broker for each storage, started when a test wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .house import House
from .table import COMBINATIONS, STORAGES, Combination, Storage


@pytest.fixture(scope="session")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, House]]:
    """Return the brokers that were started, by storage."""
    found: dict[str, House] = {}
    with ExitStack() as stack:
        for storage in STORAGES:
            found[storage.name] = House(storage, tmp_path_factory.mktemp(storage.name))
            stack.callback(found[storage.name].close)
        yield found


@pytest.fixture(params=COMBINATIONS, ids=str)
def combination(request: pytest.FixtureRequest) -> Combination:
    """Return each combination in turn."""
    found = request.param
    assert isinstance(found, Combination)
    return found


@pytest.fixture
def house(combination: Combination, houses: dict[str, House]) -> Iterator[House]:
    """Return a broker with the combination's storage."""
    house = opened(combination.storage, houses)
    yield house
    house.delete_topics()


def opened(storage: Storage, houses: dict[str, House]) -> House:
    house = houses[storage.name]
    if not hasattr(house, "broker"):
        house.open()
    return house
