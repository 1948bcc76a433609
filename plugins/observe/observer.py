"""Shell: everything that watches one broker: its metrics, its idle monitor, and the HTTP service that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import Service

from .broker_metrics import broker_metrics
from .idle_monitor import IdleMonitor
from .settings import HTTP_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import BrokerHandle, Metric


class Observer:
    """Life: made when the broker's parts are there, then its services run. Held by its metrics and services.

    Attributes:
        idle: How busy the reactor is.
    """

    def __init__(self, broker: BrokerHandle) -> None:
        """Watch this broker."""
        self._broker = broker
        self.idle = IdleMonitor(broker.figures.network)

    def metrics(self) -> Iterator[Metric]:
        """Iterate over what the broker counts."""
        return broker_metrics(self._broker.figures, lambda: self.idle.idle_ratio)

    def services(self) -> Iterator[Service]:
        """Iterate over what is to run while the broker serves.

        Raises:
            ConfigError: `odradek.http.listener` is no address.
        """
        yield Service("idle monitor", self.idle.run)
        listener = self._broker.config.get_text(HTTP_KEY)
        if listener:
            # Most brokers serve no HTTP, and need not pay for h11 at their start.
            from .http import HttpService, parse_address
            from .pages import make_pages

            http = HttpService(parse_address(listener), make_pages(self._broker), self._broker.machine.network)
            yield Service("http", http.run, prepare=http.bind, close=http.close, address=http.address)
