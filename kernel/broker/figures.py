"""Shell: what a broker counts and how it stands, for plugins that show it: `BrokerFigures` over the broker's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.observing import WaitingFigures

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..contracts.services import Metric
    from ..dispatch.fetch_session import FetchSessionStatistics
    from ..dispatch.routes import Route
    from ..network.server import NetworkServer
    from ..network.statistics import NetworkStatistics
    from ..partitions.replica import Replica
    from ..partitions.topic_replicas import TopicReplicas
    from .parts import BrokerParts


class Figures:
    """Reads the parts of a broker; keeps nothing but the metrics that were offered."""

    def __init__(self, parts: BrokerParts, network: NetworkServer, is_serving: Callable[[], bool]) -> None:
        """Read these parts from now on."""
        self._parts = parts
        self._network = network
        self._is_serving = is_serving
        self.offered: Sequence[Metric] = ()

    @property
    def is_serving(self) -> bool:
        """Whether clients are served."""
        return self._is_serving()

    def topics(self) -> Collection[TopicReplicas]:
        """Return the topics with a replica here."""
        return self._parts.logs.replicas.topics.values()

    def replicas(self) -> Iterator[Replica]:
        """Return all replicas here."""
        return iter(self._parts.logs.replicas)

    def replica(self, topic_id: uuid.UUID, partition: int) -> Replica | None:
        """Return one of them, None when it is not here or was not opened."""
        topic = self._parts.logs.replicas.topics_by_id.get(topic_id)
        return topic.partitions.get(partition) if topic is not None else None

    def late_transactions_count(self) -> int:
        """Return how many replicas have a transaction that should have ended long ago."""
        now_ms = self._parts.machine.clock.now_ms()
        timeout_ms_max = self._parts.published.config.get_int("transaction.max.timeout.ms")
        return sum(replica.producers.has_late_transaction(now_ms, timeout_ms_max) for replica in self.replicas())

    def requests(self) -> Collection[Route]:
        """Return the APIs that are answered here."""
        return self._parts.requests.router.routes.values()

    def waiting(self) -> Iterator[WaitingFigures]:
        """Return what waits, by API."""
        for purgatory in (self._parts.requests.waiting.produce, self._parts.requests.waiting.fetch):
            statistics = purgatory.statistics()
            yield WaitingFigures(purgatory.name, statistics.delayed_count, statistics.watched_count)

    def fetch_sessions(self) -> FetchSessionStatistics:
        """Return a picture of the fetch sessions."""
        return self._parts.requests.sessions.statistics()

    def network(self) -> NetworkStatistics | None:
        """Return a picture of the network, None before it serves."""
        return self._network.statistics()

    def metrics(self) -> Sequence[Metric]:
        """Return what all plugins and the kernel offer as metrics."""
        return self.offered
