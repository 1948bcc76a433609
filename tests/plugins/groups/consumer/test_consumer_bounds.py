"""What the kernel lets a group set, and says of what is beyond it, is what the coordinator goes by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.group_bounds import broken_bound
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import Registry
from odradek.plugins.groups.consumer.settings import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    Settings,
)

KEYS = (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
CONFIG = BrokerConfig(Registry.of())
BEYOND = (-1, 2**31 - 1)


def counted(key: str, value: int) -> int:
    """Return what counts for a group that has set a number."""
    cluster = SimpleNamespace(group_configs=lambda group_id: {key: str(value)})
    broker: Any = SimpleNamespace(config=CONFIG, cluster=cluster)
    return Settings(broker).of_group("g", key)


def test_a_consumer_group_can_set_no_other_number_that_has_bounds() -> None:
    bounded = {
        key
        for key in CONFIG.registry.keys[Scope.GROUP]
        if key.startswith("consumer.") and any(broken_bound(CONFIG, key, value) for value in BEYOND)
    }

    assert bounded == {*KEYS}


@pytest.mark.parametrize("value", BEYOND)
@pytest.mark.parametrize("key", KEYS)
def test_in_the_place_of_what_is_refused_the_bound_counts_that_refuses_it(key: str, value: int) -> None:
    bound = broken_bound(CONFIG, key, value)

    assert bound is not None
    assert counted(key, value) == bound.limit


@pytest.mark.parametrize("key", KEYS)
def test_a_bound_itself_may_be_set_and_counts(key: str) -> None:
    bounds = [bound.limit for value in BEYOND if (bound := broken_bound(CONFIG, key, value)) is not None]

    assert len(bounds) == 2
    assert [broken_bound(CONFIG, key, limit) for limit in bounds] == [None, None]
    assert [counted(key, limit) for limit in bounds] == bounds
