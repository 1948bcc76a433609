"""Pure core: the metrics of a broker, read from the counters that its rooms keep.

The list with its meanings is `docs/reference/metrics.md`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ..contracts.services import Metric
from .metrics import histogram_metrics, metric_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..dispatch.fetch_session import FetchSessionCache
    from ..dispatch.routes import Route
    from ..network.statistics import NetworkStatistics
    from ..partitions.replica import Replica
    from ..partitions.replica_manager import ReplicaManager
    from ..purgatory.purgatory import Purgatory

    Values = Mapping[tuple[str, ...], float]

TOPIC_COUNTERS: Final = (
    ("BytesInPerSec", "bytes_in", "Bytes of record batches taken from producers."),
    ("BytesOutPerSec", "bytes_out", "Bytes of record batches given to consumers."),
    ("MessagesInPerSec", "messages_in", "Records taken from producers."),
    ("TotalProduceRequestsPerSec", "produce_requests", "Produce requests, counted once for each partition."),
    ("TotalFetchRequestsPerSec", "fetch_requests", "Fetch requests, counted once for each topic."),
    ("FailedProduceRequestsPerSec", "failed_produce_requests", "Batches that were refused."),
    ("FailedFetchRequestsPerSec", "failed_fetch_requests", "Reads that were refused."),
)
"""(Kafka's name, attribute of a topic's counters, help)."""


class _Totals:
    """Sums a counter over all topics; what a deleted topic has counted stays in the sum."""

    def __init__(self, replicas: ReplicaManager, attribute: str) -> None:
        self._replicas = replicas
        self._read = attrgetter(attribute)
        self._total = 0
        self._seen: dict[object, int] = {}

    def __call__(self) -> Values:
        values: dict[tuple[str, ...], float] = {}
        seen: dict[object, int] = {}
        for topic in self._replicas.topics.values():
            count = values[topic.name,] = seen[topic.topic_id] = self._read(topic.counters)
            self._total += count - self._seen.get(topic.topic_id, 0)
        self._seen = seen
        return {("",): self._total, **values}


def topic_metrics(replicas: ReplicaManager) -> Iterator[Metric]:
    """Yield what a broker counts by topic; without a label, of all topics together."""
    for name, attribute, help_text in TOPIC_COUNTERS:
        full_name = metric_name("kafka.server", "BrokerTopicMetrics", name)
        yield Metric(full_name, help_text, "counter", _Totals(replicas, attribute), ("topic",))


def replica_metrics(replicas: ReplicaManager, *, has_late_transaction: Callable[[Replica], bool]) -> Iterator[Metric]:
    """Yield how many replicas there are, how they are, and how large their logs are."""

    def count(condition: Callable[[Replica], bool]) -> Callable[[], Values]:
        return lambda: {(): sum(map(condition, replicas.replicas()))}

    counts: tuple[tuple[str, str, Callable[[Replica], bool]], ...] = (
        ("PartitionCount", "Replicas on this broker.", lambda replica: True),
        ("LeaderCount", "Replicas that lead their partition.", lambda replica: replica.is_leader),
        ("OfflineReplicaCount", "Replicas whose log failed.", lambda replica: replica.offline_reason is not None),
        (
            "PartitionsWithLateTransactionsCount",
            "Replicas with a transaction that its coordinator should have ended long ago.",
            has_late_transaction,
        ),
    )
    for name, help_text, condition in counts:
        yield Metric(metric_name("kafka.server", "ReplicaManager", name), help_text, "gauge", count(condition))
    logs: tuple[tuple[str, str, Callable[[Replica], float]], ...] = (
        ("Size", "Bytes in all segments of a partition.", lambda replica: replica.log.size_bytes),
        ("LogStartOffset", "The first offset that can be read.", lambda replica: replica.log.log_start_offset),
        ("LogEndOffset", "The offset that the next record gets.", lambda replica: replica.log.log_end_offset),
        ("NumLogSegments", "Segments of a partition.", lambda replica: len(replica.log.segments())),
    )
    for name, help_text, read in logs:
        full_name = metric_name("kafka.log", "Log", name)
        yield Metric(full_name, help_text, "gauge", _by_partition(replicas, read), ("topic", "partition"))


def _by_partition(replicas: ReplicaManager, read: Callable[[Replica], float]) -> Callable[[], Values]:
    return lambda: {
        (replica.partition.topic, str(replica.partition.partition)): read(replica)
        for replica in replicas.replicas()
        if replica.offline_reason is None
    }


def request_metrics(routes: Mapping[int, Route]) -> Iterator[Metric]:
    """Yield rate, errors and latency by API."""

    def by_api(read: Callable[[Route], float]) -> Callable[[], Values]:
        return lambda: {(route.name,): read(route) for route in routes.values()}

    yield Metric(
        metric_name("kafka.network", "RequestMetrics", "RequestsPerSec"),
        "Requests answered.",
        "counter",
        by_api(lambda route: route.latency_ms.count),
        ("request",),
    )
    yield Metric(
        metric_name("kafka.network", "RequestMetrics", "ErrorsPerSec"),
        "Requests whose handler raised.",
        "counter",
        by_api(lambda route: route.errors_count),
        ("request",),
    )
    yield from histogram_metrics(
        metric_name("kafka.network", "RequestMetrics", "TotalTimeMs"),
        "Milliseconds from a request's last byte to its answer, waiting included.",
        lambda: {(route.name,): route.latency_ms for route in routes.values()},
        ("request",),
    )


def waiting_metrics(purgatories: Iterable[Purgatory], sessions: FetchSessionCache) -> Iterator[Metric]:
    """Yield what waits, and the fetch sessions."""
    purgatories = tuple(purgatories)
    for name, attribute, help_text in (
        ("NumDelayedOperations", "delayed_count", "Requests that wait."),
        ("PurgatorySize", "watched_count", "Requests that wait, counted once for each partition."),
    ):
        yield Metric(
            metric_name("kafka.server", "DelayedOperationPurgatory", name),
            help_text,
            "gauge",
            _by_purgatory(purgatories, attribute),
            ("delayedOperation",),
        )
    for name, attribute, kind, help_text in (
        ("NumIncrementalFetchSessions", "sessions_count", "gauge", "Fetch sessions."),
        ("NumIncrementalFetchPartitionsCached", "partitions_count", "gauge", "Partitions in fetch sessions."),
        ("IncrementalFetchSessionEvictionsPerSec", "evictions_count", "counter", "Fetch sessions that were evicted."),
    ):
        full_name = metric_name("kafka.server", "FetchSessionCache", name)
        yield Metric(full_name, help_text, kind, _of_statistics(sessions.statistics, attribute))


def _by_purgatory(purgatories: tuple[Purgatory, ...], attribute: str) -> Callable[[], Values]:
    return lambda: {(purgatory.name,): getattr(purgatory.statistics(), attribute) for purgatory in purgatories}


def _of_statistics(statistics: Callable[[], object | None], attribute: str) -> Callable[[], Values]:
    """Return a reader of one attribute; nothing is read while there are no statistics."""
    return lambda: {} if (found := statistics()) is None else {(): getattr(found, attribute)}


def network_metrics(statistics: Callable[[], NetworkStatistics | None]) -> Iterator[Metric]:
    """Yield what the network counts.

    Args:
        statistics: Returns the last sample, None before the first one.
    """
    help_text = "Share of the last seconds in which the reactor waited for work, 0 to 1."
    for name in (
        metric_name("kafka.network", "SocketServer", "NetworkProcessorAvgIdlePercent"),
        metric_name("kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent"),
    ):
        yield Metric(name, help_text, "gauge", _of_statistics(statistics, "idle_ratio"))
    for name, attribute, kind, help_text in (
        ("connection_count", "connections_count", "gauge", "Connections open now."),
        ("connection_creation_total", "connections_created_count", "counter", "Connections ever taken."),
        ("connection_close_total", "connections_closed_count", "counter", "Connections ever closed."),
        ("incoming_byte_total", "bytes_in", "counter", "Bytes received."),
        ("outgoing_byte_total", "bytes_out", "counter", "Bytes sent."),
        ("request_total", "requests_count", "counter", "Requests received."),
    ):
        full_name = f"kafka_server_socket_server_metrics_{name}"
        yield Metric(full_name, help_text, kind, _of_statistics(statistics, attribute))
