"""Pure core: the metrics of a broker, read from the counters that its rooms keep.

The list with its meanings is `docs/reference/metrics.md`.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import Metric

from .metrics import histogram_metrics, metric_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.kernel.api import BrokerFigures, ReplicaFigures, RequestFigures

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


def broker_metrics(figures: BrokerFigures, idle_ratio: Callable[[], float | None]) -> Iterator[Metric]:
    """Return all metrics of a broker; the arguments are those of `network_metrics`."""
    return chain(
        topic_metrics(figures),
        replica_metrics(figures),
        request_metrics(figures),
        waiting_metrics(figures),
        network_metrics(figures, idle_ratio),
    )


class _Totals:
    """Sums a counter over all topics; what a deleted topic has counted stays in the sum."""

    def __init__(self, figures: BrokerFigures, attribute: str) -> None:
        self._figures = figures
        self._read = attrgetter(attribute)
        self._total = 0
        self._seen: dict[object, int] = {}

    def __call__(self) -> Values:
        values: dict[tuple[str, ...], float] = {}
        seen: dict[object, int] = {}
        for topic in self._figures.topics():
            count = values[topic.name,] = seen[topic.topic_id] = self._read(topic.counters)
            self._total += count - self._seen.get(topic.topic_id, 0)
        self._seen = seen
        return {("",): self._total, **values}


def topic_metrics(figures: BrokerFigures) -> Iterator[Metric]:
    """Yield what a broker counts by topic; without a label, of all topics together."""
    for name, attribute, help_text in TOPIC_COUNTERS:
        full_name = metric_name("kafka.server", "BrokerTopicMetrics", name)
        yield Metric(full_name, help_text, "counter", _Totals(figures, attribute), ("topic",))


def replica_metrics(figures: BrokerFigures) -> Iterator[Metric]:
    """Yield how many replicas there are, how they are, and how large their logs are."""

    def count(condition: Callable[[ReplicaFigures], bool]) -> Callable[[], Values]:
        return lambda: {(): sum(map(condition, figures.replicas()))}

    counts: tuple[tuple[str, str, Callable[[ReplicaFigures], bool]], ...] = (
        ("PartitionCount", "Replicas on this broker.", lambda replica: True),
        ("LeaderCount", "Replicas that lead their partition.", lambda replica: replica.is_leader),
        ("OfflineReplicaCount", "Replicas whose log failed.", lambda replica: replica.offline_reason is not None),
    )
    for name, help_text, condition in counts:
        yield Metric(metric_name("kafka.server", "ReplicaManager", name), help_text, "gauge", count(condition))
    yield Metric(
        metric_name("kafka.server", "ReplicaManager", "PartitionsWithLateTransactionsCount"),
        "Replicas with a transaction that its coordinator should have ended long ago.",
        "gauge",
        lambda: {(): figures.late_transactions_count()},
    )
    logs: tuple[tuple[str, str, Callable[[ReplicaFigures], float]], ...] = (
        ("Size", "Bytes in all segments of a partition.", lambda replica: replica.log.size_bytes),
        ("LogStartOffset", "The first offset that can be read.", lambda replica: replica.log.log_start_offset),
        ("LogEndOffset", "The offset that the next record gets.", lambda replica: replica.log.log_end_offset),
        ("NumLogSegments", "Segments of a partition.", lambda replica: len(replica.log.segments())),
    )
    for name, help_text, read in logs:
        full_name = metric_name("kafka.log", "Log", name)
        yield Metric(full_name, help_text, "gauge", _by_partition(figures, read), ("topic", "partition"))


def _by_partition(figures: BrokerFigures, read: Callable[[ReplicaFigures], float]) -> Callable[[], Values]:
    return lambda: {
        (replica.partition.topic, str(replica.partition.partition)): read(replica)
        for replica in figures.replicas()
        if replica.offline_reason is None
    }


def request_metrics(figures: BrokerFigures) -> Iterator[Metric]:
    """Yield rate, errors and latency by API."""

    def by_api(read: Callable[[RequestFigures], float]) -> Callable[[], Values]:
        return lambda: {(route.name,): read(route) for route in figures.requests()}

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
        lambda: {(route.name,): route.latency_ms for route in figures.requests()},
        ("request",),
    )


def waiting_metrics(figures: BrokerFigures) -> Iterator[Metric]:
    """Yield what waits, and the fetch sessions."""
    for name, attribute, help_text in (
        ("NumDelayedOperations", "delayed_count", "Requests that wait."),
        ("PurgatorySize", "watched_count", "Requests that wait, counted once for each partition."),
    ):
        full_name = metric_name("kafka.server", "DelayedOperationPurgatory", name)
        yield Metric(full_name, help_text, "gauge", _by_purgatory(figures, attribute), ("delayedOperation",))
    for name, attribute, kind, help_text in (
        ("NumIncrementalFetchSessions", "sessions_count", "gauge", "Fetch sessions."),
        ("NumIncrementalFetchPartitionsCached", "partitions_count", "gauge", "Partitions in fetch sessions."),
        ("IncrementalFetchSessionEvictionsPerSec", "evictions_count", "counter", "Fetch sessions that were evicted."),
    ):
        full_name = metric_name("kafka.server", "FetchSessionCache", name)
        yield Metric(full_name, help_text, kind, _of_picture(figures.fetch_sessions, attribute))


def _by_purgatory(figures: BrokerFigures, attribute: str) -> Callable[[], Values]:
    return lambda: {(waiting.name,): getattr(waiting, attribute) for waiting in figures.waiting()}


def _of_picture(picture: Callable[[], object | None], attribute: str) -> Callable[[], Values]:
    """Return a reader of one attribute; nothing is read while there is no picture."""
    return lambda: {} if (found := picture()) is None else {(): getattr(found, attribute)}


def network_metrics(figures: BrokerFigures, idle_ratio: Callable[[], float | None]) -> Iterator[Metric]:
    """Yield what the network counts.

    Args:
        figures: The broker's.
        idle_ratio: Returns how idle it was lately, None while nobody knows.
    """

    def idle() -> Values:
        ratio = idle_ratio()
        return {} if ratio is None else {(): ratio}

    help_text = "Share of the last seconds in which the reactor waited for work, 0 to 1."
    for name in (
        metric_name("kafka.network", "SocketServer", "NetworkProcessorAvgIdlePercent"),
        metric_name("kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent"),
    ):
        yield Metric(name, help_text, "gauge", idle)
    for name, attribute, kind, help_text in (
        ("connection_count", "connections_count", "gauge", "Connections open now."),
        ("connection_creation_total", "connections_created_count", "counter", "Connections ever taken."),
        ("connection_close_total", "connections_closed_count", "counter", "Connections ever closed."),
        ("incoming_byte_total", "bytes_in", "counter", "Bytes received."),
        ("outgoing_byte_total", "bytes_out", "counter", "Bytes sent."),
        ("request_total", "requests_count", "counter", "Requests received."),
    ):
        full_name = f"kafka_server_socket_server_metrics_{name}"
        yield Metric(full_name, help_text, kind, _of_picture(figures.network, attribute))
