"""For which version of Kafka clients take the broker, by the APIs that it advertises: for an old one they do less."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop

SHARE_GROUPS: Final = (76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92)
"""What brokers have since 4.1: the groups, their state, their offsets."""


def test_kafka_python_takes_the_broker_for_what_it_takes_apache_kafka_for(driver_of: Callable[[str], Driver]) -> None:
    assert driver_of("kafka-python").do("broker_version") == [4, 3]


def test_franz_go_takes_the_broker_for_the_last_one_without_share_groups(
    driver_of: Callable[[str], Driver],
) -> None:
    """Apache Kafka 4.3.1 it takes for 4.1, the newest that it knows."""
    guess = driver_of("franz-go").do("broker_version")

    assert guess == ("at least v4.1" if "ODRADEK_INTEROP_ADDRESS" in os.environ else "at least v3.9")


def test_franz_go_misses_share_groups_and_nothing_else(driver_of: Callable[[str], Driver]) -> None:
    assert driver_of("franz-go").do("broker_version", api_keys=[*SHARE_GROUPS]) == "at least v4.1"
