"""What a broker says of itself: metrics, health, pages, warnings. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from odradek.kernel.api import hookimpl

from .settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import BrokerHandle, ConfigKey, Metric, Service

    from .observer import Observer

_observers: WeakValueDictionary[int, Observer] = WeakValueDictionary()
"""By the identity of its broker, which it holds: the hooks below speak of the same observer."""


def _observer_of(broker: BrokerHandle) -> Observer:
    from .observer import Observer

    observer = _observers.get(id(broker))
    if observer is None:
        observer = _observers[id(broker)] = Observer(broker)
    return observer


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the key that says where HTTP is served."""
    return KEYS


@hookimpl
def odradek_metrics(broker: BrokerHandle) -> Sequence[Metric]:
    """Offer what the broker counts, under Kafka's names."""
    return tuple(_observer_of(broker).metrics())


@hookimpl
def odradek_services(broker: BrokerHandle) -> Sequence[Service]:
    """Watch the broker, and serve HTTP where that is wanted."""
    return tuple(_observer_of(broker).services())
