"""Shell: everything that watches one broker: its metrics, its idle monitor, and the HTTP service that shows them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .broker_metrics import network_metrics, replica_metrics, request_metrics, topic_metrics, waiting_metrics
from .hold_ups import watch_hold_ups
from .idle_monitor import IdleMonitor
from .metrics import MetricsRegistry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from ..contracts.services import Metric
    from ..dispatch.fetch_session import FetchSessionCache
    from ..dispatch.routes import Route
    from ..metadata.image import MetadataImage
    from ..network.statistics import NetworkStatistics
    from ..partitions.replica import Replica
    from ..partitions.replica_manager import ReplicaManager
    from ..purgatory.purgatory import Purgatory
    from .http import HttpService

log = logging.getLogger(__name__)


class Observer:
    """Life: made with the broker's parts, `bind`, then its services run until cancelled. Owned by the broker.

    Attributes:
        registry: All metrics, the plugins' too.
        idle: How busy the reactor is.
        http_address: Where HTTP is served, None when it is off.
    """

    def __init__(
        self,
        *,
        node_id: int,
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
        routes: Mapping[int, Route],
        purgatories: Iterable[Purgatory],
        sessions: FetchSessionCache,
        network_statistics: Callable[[], NetworkStatistics | None],
        plugin_metrics: Iterable[tuple[str, Metric]],
        http_listener: str,
        is_ready: Callable[[], bool],
        has_late_transaction: Callable[[Replica], bool],
    ) -> None:
        """Gather the metrics.

        Args:
            node_id: This broker.
            image: The current metadata, for the pages of topics.
            replicas: Topics, logs and their counters.
            routes: APIs and their counters.
            purgatories: What waits.
            sessions: Fetch sessions.
            network_statistics: The network's; nobody else may call it.
            plugin_metrics: The plugins' own, each with its plugin's name.
            http_listener: `odradek.http.listener`; empty for no HTTP.
            is_ready: Whether clients are served.
            has_late_transaction: Whether a replica holds a transaction that should have ended long ago.

        Raises:
            PluginError: A plugin's metric is doubled or wrong.
        """
        self.idle = IdleMonitor(network_statistics)
        self.registry = MetricsRegistry(on_error=_report_error)
        self.http_address: tuple[str, int] | None = None
        self._http_listener = http_listener
        self._node_id = node_id
        self._image = image
        self._replicas = replicas
        self._is_ready = is_ready
        self._http: HttpService | None = None
        for metrics in (
            topic_metrics(replicas),
            replica_metrics(replicas, has_late_transaction=has_late_transaction),
            request_metrics(routes),
            waiting_metrics(purgatories, sessions),
            network_metrics(lambda: self.idle.last),
        ):
            for metric in metrics:
                self.registry.add(metric)
        for plugin, metric in plugin_metrics:
            self.registry.add(metric, plugin)

    async def bind(self) -> None:
        """Take the HTTP port, if there is to be one.

        Raises:
            ConfigError: `odradek.http.listener` is wrong or its port taken.
        """
        if not self._http_listener:
            return
        # Most brokers serve no HTTP, and need not pay for h11 at their start.
        from .http import HttpService, parse_address
        from .pages import make_pages
        from .topic_pages import TopicPages

        topic_pages = TopicPages(node_id=self._node_id, replicas=self._replicas, image=self._image)
        pages = make_pages(self.registry, self._is_ready, topic_pages)
        self._http = HttpService(parse_address(self._http_listener), pages)
        self.http_address = await self._http.bind()

    def close(self) -> None:
        """Give back a port that was bound and never served."""
        if self._http is not None:
            self._http.close()

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what has to run while the broker serves, with names."""
        yield "idle monitor", self.idle.run
        yield "hold-up watch", watch_hold_ups
        if self._http is not None:
            yield "http", self._http.run


def _report_error(metric: Metric, error: Exception) -> None:
    log.error("a metric could not be read", extra={"metric": metric.name}, exc_info=error)
