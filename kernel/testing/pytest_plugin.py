"""Shell: pytest fixtures with a real broker: `pytest_plugins = ["odradek.kernel.testing.pytest_plugin"]`.

| fixture | gives | lives for |
|---|---|---|
| `odradek_broker` | a broker that all tests of the session share: let each use topics of its own | the session |
| `fresh_odradek_broker` | an empty broker | one test |
| `odradek_settings` | override it to give both other settings | the session |

Both let nobody wait for further members of a new group (`running_broker.TEST_SETTINGS`).

It is never loaded by itself: `pytest -p odradek.kernel.testing.pytest_plugin`, or the line above in a `conftest.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .running_broker import RunningBroker, running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def odradek_settings() -> dict[str, object]:
    """Return the brokers' settings; override it in a `conftest.py`."""
    return {}


@pytest.fixture(scope="session")
def odradek_broker(odradek_settings: dict[str, object]) -> Iterator[RunningBroker]:
    """Run one broker for the whole session."""
    with running_broker(odradek_settings) as broker:
        yield broker


@pytest.fixture
def fresh_odradek_broker(odradek_settings: dict[str, object]) -> Iterator[RunningBroker]:
    """Run an empty broker for one test."""
    with running_broker(odradek_settings) as broker:
        yield broker
