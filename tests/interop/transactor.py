"""Transactional producers, each a client in a process of its own, and what readers make of their transactions."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .clients import CLIENTS, MissingClientError, skip_or_fail
from .driver import Driver
from .drivers.json_lines import to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRANSACTORS: Final = [name for name, client in CLIENTS.items() if client.transactor is not None]


def transactor_command(name: str) -> list[str]:
    """Return how a client's transactional producer is run; skips the test where the client is missing."""
    make = CLIENTS[name].transactor
    assert make is not None
    try:
        return make()
    except MissingClientError as error:
        skip_or_fail(f"{name} is not on this machine; needs {error}")
        raise


@contextmanager
def transactor_at(name: str, address: str, transactional_id: str, folder: Path) -> Iterator[Driver]:
    """Run a client's transactional producer."""
    log = folder / f"transactor-{name}-{transactional_id}.log"
    driver = Driver(name, [*transactor_command(name), address, transactional_id], log)
    try:
        yield driver
    finally:
        driver.close()


@contextmanager
def reader_at(name: str, address: str, folder: Path) -> Iterator[Driver]:
    """Run a client's driver against another broker than the shared one."""
    driver = Driver(name, [*CLIENTS[name].command(), address], folder / f"reader-{name}.log")
    try:
        yield driver
    finally:
        driver.close()


def values_of(records: list[dict[str, Any]]) -> list[str]:
    """Return the texts of records that a driver read."""
    return [(to_bytes(each["value"]) or b"").decode() for each in records]


def read(driver: Driver, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    """Return the first so many values that a consumer gets."""
    return values_of(driver.do("consume", topic=topic, position="beginning", count=count, isolation=isolation))
