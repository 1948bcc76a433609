"""Transactions: who may write within one, and how it ends everywhere. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from odradek.kernel.api import Service, hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from odradek.kernel.api import BrokerHandle, Coordinator

    from .coordinator import TransactionCoordinator

_coordinators: WeakValueDictionary[int, TransactionCoordinator] = WeakValueDictionary()
"""By the identity of its broker, which it holds: the hooks below speak of the same coordinator."""


def _coordinator_of(broker: BrokerHandle) -> TransactionCoordinator:
    from .coordinator import TransactionCoordinator

    coordinator = _coordinators.get(id(broker))
    if coordinator is None:
        coordinator = _coordinators[id(broker)] = TransactionCoordinator(broker)
    return coordinator


@hookimpl
def odradek_coordinators(broker: BrokerHandle) -> Sequence[Coordinator[Any, Any]]:
    """Offer the transaction coordinator."""
    return (_coordinator_of(broker),)


@hookimpl
def odradek_services(broker: BrokerHandle) -> Sequence[Service]:
    """Keep producer ids at hand for it."""
    return (Service("producer ids of transactions", _coordinator_of(broker).keep_producer_ids),)
