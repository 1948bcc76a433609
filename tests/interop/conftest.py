"""One broker for all clients, and a driver for each, started when first asked for."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from ..broker.broker_process import broker_process
from .brokers import SETTINGS
from .clients import CLIENTS, MissingClientError, java_driver, skip_or_fail
from .driver import Driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..broker.broker_process import BrokerProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Run the broker that the clients share."""
    with broker_process(tmp_path_factory.mktemp("interop") / "data", *SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest) -> str:
    """Return the broker's address: ours, or the one that `ODRADEK_INTEROP_ADDRESS` names, to see what Kafka does."""
    other = os.environ.get("ODRADEK_INTEROP_ADDRESS")
    if other:
        return other
    broker: BrokerProcess = request.getfixturevalue("broker")
    return broker.address


@pytest.fixture(scope="session")
def driver_of(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """Return a function from a client's name to its driver."""
    drivers: dict[str, Driver] = {}
    missing: dict[str, str] = {}
    folder = tmp_path_factory.mktemp("drivers")

    def driver(name: str) -> Driver:
        if name not in drivers and name not in missing:
            try:
                command = CLIENTS[name].command()
            except MissingClientError as error:
                missing[name] = f"{name} is not on this machine; needs {error}"
            else:
                drivers[name] = Driver(name, [*command, address], folder / f"{name}.log")
        if name in missing:
            skip_or_fail(missing[name])
        return drivers[name]

    yield driver
    for started in drivers.values():
        started.close()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Start the JVM that Kafka's tools run in."""
    try:
        command = java_driver("4.3.1", "Tools")()
    except MissingClientError as error:
        skip_or_fail(f"Apache Kafka's tools are not on this machine; need {error}")
        raise
    driver = Driver("Kafka's tools", command, tmp_path_factory.mktemp("tools") / "tools.log")
    yield driver
    driver.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a topic's name that no other test uses."""
    plain = "".join(char if char.isalnum() else "-" for char in request.node.name)
    return f"{plain[:200]}-{next(_numbers)}"


_numbers = itertools.count()
