"""For which version of Kafka clients take the broker, by the APIs that it advertises: for an old one they do less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop


def test_kafka_python_takes_the_broker_for_what_it_takes_apache_kafka_for(driver_of: Callable[[str], Driver]) -> None:
    assert driver_of("kafka-python").do("broker_version") == [4, 3]


def test_franz_go_takes_the_broker_for_the_newest_that_it_knows(driver_of: Callable[[str], Driver]) -> None:
    """As Apache Kafka 4.3.1, which has share groups' keys too, kept or not."""
    assert driver_of("franz-go").do("broker_version") == "at least v4.1"
