"""Shell: pytest fixtures with a real broker. Where Odradek is installed pytest finds them by itself.

| fixture | gives | lives for |
|---|---|---|
| `odradek_broker` | a broker that all tests of the session share: let each use topics of its own | the session |
| `odradek_tls_broker` | the same with a listener `SSL`, and `certificates` for its clients | the session |
| `fresh_odradek_broker` | an empty broker, to be stopped, killed and made to fail | one test |
| `odradek_cluster` | three brokers of one cluster, to be stopped, killed, paused and cut off | one test |
| `odradek_settings` | override it to give all of them other settings | the session |
| `odradek_virtual_time` | override it with True, and brokers have a time that can be advanced | the session |

All let nobody wait for further members of a new group (`running_broker.TEST_SETTINGS`).

Everybody's pytest loads this module: it imports pytest and nothing else. The entry point has the module's own name, so
that pytest knows it for the same plugin where a `conftest.py` or `-p` names it, too; `-p no:` and that name, and it is
not loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .running_broker import RunningBroker
    from .running_cluster import RunningCluster


@pytest.fixture(scope="session")
def odradek_settings() -> dict[str, object]:
    """Return the brokers' settings; override it in a `conftest.py`."""
    return {}


@pytest.fixture(scope="session")
def odradek_virtual_time() -> bool:
    """Return whether the brokers' time can be advanced; override it in a `conftest.py`, or beside fresh ones."""
    return False


@pytest.fixture(scope="session")
def odradek_broker(odradek_settings: dict[str, object], odradek_virtual_time: bool) -> Iterator[RunningBroker]:
    """Run one broker for the whole session."""
    from .running_broker import running_broker

    with running_broker(odradek_settings, virtual_time=odradek_virtual_time) as broker:
        yield broker


@pytest.fixture(scope="session")
def odradek_tls_broker(odradek_settings: dict[str, object], odradek_virtual_time: bool) -> Iterator[RunningBroker]:
    """Run one broker with TLS for the whole session."""
    from .running_broker import running_broker

    with running_broker(odradek_settings, tls=True, virtual_time=odradek_virtual_time) as broker:
        yield broker


@pytest.fixture
def fresh_odradek_broker(odradek_settings: dict[str, object], odradek_virtual_time: bool) -> Iterator[RunningBroker]:
    """Run an empty broker for one test."""
    from .running_broker import running_broker

    with running_broker(odradek_settings, virtual_time=odradek_virtual_time) as broker:
        yield broker


@pytest.fixture
def odradek_cluster(odradek_settings: dict[str, object], odradek_virtual_time: bool) -> Iterator[RunningCluster]:
    """Run three empty brokers of one cluster for one test."""
    from .running_cluster import running_cluster

    with running_cluster(odradek_settings, virtual_time=odradek_virtual_time) as cluster:
        yield cluster
