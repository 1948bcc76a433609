"""Shell: what can be asked of replication and of the controller, under the names that Kafka's metrics commonly get.

All of it was counted as it happened: to be asked costs the same with thousands of partitions. What there is not on a
node, as a controller or fetchers, has no value there. The list with its meanings is `docs/reference/metrics.md`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from ..contracts.services import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..metadata.partition_counts import PartitionCounts
    from ..metadata.quorum_figures import ControllerFigures, QuorumFigures
    from ..purgatory.histogram import Histogram
    from ..replication.replication import Replication

    Read = Callable[[], float | None]

QUANTILES: Final = (("0.50", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999))

_REPLICAS: Final = "kafka_server_replicamanager_"
_BYTES: Final = "kafka_server_brokertopicmetrics_"
_FETCHERS: Final = "kafka_server_replicafetchermanager_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_TIMES: Final = "kafka_controller_"
_RAFT: Final = "kafka_server_raftmetrics_"


class Keeping(Protocol):
    """How the node has the metadata, as far as it counts."""

    @property
    def partition_counts(self) -> PartitionCounts:
        """Partitions that are not as they should be."""
        ...

    @property
    def figures(self) -> ControllerFigures | None:
        """What is counted of the controller, where there is one here, active or not."""
        ...

    def quorum_figures(self) -> QuorumFigures | None:
        """Return how this node stands in the metadata quorum; None for one that is none of its controllers."""
        ...


class Calls(Protocol):
    """Knows how the node has the metadata, once it has read it."""

    @property
    def keeping(self) -> Keeping | None:
        """How; None before."""
        ...


def _controller(calls: Calls) -> ControllerFigures | None:
    return None if calls.keeping is None else calls.keeping.figures


def cluster_metrics(calls: Calls, replication: Replication | None) -> Iterator[tuple[str, Metric]]:
    """Yield all of them, each with the name of who offers it.

    Args:
        calls: Where the controller is, or who follows it.
        replication: What follows the leaders of other brokers, where there are any.
    """
    rooms = (
        _replica_metrics(calls, replication),
        _copying_metrics(replication),
        _controller_metrics(calls),
        _quorum_metrics(calls),
    )
    for metric in chain.from_iterable(rooms):
        yield "cluster", metric


def _replica_metrics(calls: Calls, replication: Replication | None) -> Iterator[Metric]:
    def counted(read: Callable[[PartitionCounts], int]) -> Read:
        def count() -> float | None:
            return None if calls.keeping is None else read(calls.keeping.partition_counts)

        return count

    rows: tuple[tuple[str, str, str, Read], ...] = (
        (
            "underreplicatedpartitions",
            "gauge",
            "Partitions that this broker leads of which a replica is not in sync.",
            counted(lambda counts: counts.under_replicated),
        ),
        (
            "underminisrpartitioncount",
            "gauge",
            "Partitions that this broker leads with fewer replicas in sync than min.insync.replicas.",
            counted(lambda counts: counts.under_min_isr),
        ),
        (
            "atminisrpartitioncount",
            "gauge",
            "Partitions that this broker leads with as many replicas in sync as min.insync.replicas.",
            counted(lambda counts: counts.at_min_isr),
        ),
        (
            "reassigningpartitions",
            "gauge",
            "Partitions that this broker leads whose replicas are being added or removed.",
            counted(lambda counts: counts.reassigning),
        ),
        (
            "isrshrinks_total",
            "counter",
            "In-sync sets of partitions that this broker leads from which a replica was taken.",
            lambda: 0 if replication is None else replication.reports.shrinks_count,
        ),
        (
            "isrexpands_total",
            "counter",
            "In-sync sets of partitions that this broker leads to which a replica came.",
            lambda: 0 if replication is None else replication.reports.expands_count,
        ),
    )
    for name, kind, text, read in rows:
        yield Metric(_REPLICAS + name, text, kind, _unlabelled(read))
    yield Metric(
        f"{_FETCHERS}maxlag",
        "Records that the follower here that is farthest behind lacks of what its leader has committed.",
        "gauge",
        lambda: {("Replica",): 0 if replication is None else replication.fetchers.lag_max()},
        ("clientId",),
    )


def _copying_metrics(replication: Replication | None) -> Iterator[Metric]:
    def read(of: Callable[[Replication], float]) -> Read:
        return lambda: 0 if replication is None else of(replication)

    rows: tuple[tuple[str, str, str, Read], ...] = (
        (
            f"{_BYTES}replicationbytesin_total",
            "counter",
            "Bytes of record batches taken from leaders.",
            read(lambda copying: copying.traffic.bytes_in),
        ),
        (
            f"{_BYTES}replicationbytesout_total",
            "counter",
            "Bytes of record batches given to followers.",
            read(lambda copying: copying.traffic.bytes_out),
        ),
        (
            f"{_BYTES}reassignmentbytesin_total",
            "counter",
            "Those of them taken for replicas that a reassignment adds here.",
            read(lambda copying: copying.traffic.reassigned_in),
        ),
        (
            f"{_BYTES}reassignmentbytesout_total",
            "counter",
            "Those of them given to replicas that a reassignment adds elsewhere.",
            read(lambda copying: copying.traffic.reassigned_out),
        ),
        (
            "kafka_server_leaderreplication_byte_rate",
            "gauge",
            "Bytes a second lately given to followers that are throttled here, while a rate is set.",
            read(lambda copying: copying.leader_quota.bytes_a_second()),
        ),
        (
            "kafka_server_followerreplication_byte_rate",
            "gauge",
            "Bytes a second lately taken for replicas here that are throttled, while a rate is set.",
            read(lambda copying: copying.follower_quota.bytes_a_second()),
        ),
    )
    for name, kind, text, value in rows:
        yield Metric(name, text, kind, _unlabelled(value))


def _controller_metrics(calls: Calls) -> Iterator[Metric]:
    def asked(read: Callable[[ControllerFigures], int]) -> Read:
        def value() -> float | None:
            log = _controller(calls)
            return None if log is None else read(log)

        return value

    rows: tuple[tuple[str, str, Callable[[ControllerFigures], int]], ...] = (
        ("activecontrollercount", "1 where the controller is, and takes changes.", lambda log: int(log.is_active)),
        (
            "activebrokercount",
            "Registered brokers that are not fenced.",
            lambda log: sum(not broker.is_fenced for broker in log.image.brokers.values()),
        ),
        (
            "fencedbrokercount",
            "Registered brokers that are fenced.",
            lambda log: sum(broker.is_fenced for broker in log.image.brokers.values()),
        ),
        (
            "offlinepartitionscount",
            "Partitions of the cluster that nobody leads.",
            lambda log: log.partition_counts.offline,
        ),
    )
    for name, text, read in rows:
        yield Metric(_CONTROLLER + name, text, "gauge", _unlabelled(asked(read)))
    times: tuple[tuple[str, str, Callable[[ControllerFigures], Histogram]], ...] = (
        (
            "controllerstats_leaderelectionrateandtimems",
            "Milliseconds that changes took in which partitions got other leaders, until they were committed.",
            lambda log: log.election_ms,
        ),
        (
            "controllereventmanager_eventqueuetimems",
            "Milliseconds that changes waited for their turn.",
            lambda log: log.queue_ms,
        ),
    )
    for name, text, of in times:
        yield from _timed(_TIMES + name, text, calls, of)


def _quorum_of(calls: Calls) -> QuorumFigures | None:
    return None if calls.keeping is None else calls.keeping.quorum_figures()


def _quorum_metrics(calls: Calls) -> Iterator[Metric]:
    rows: tuple[tuple[str, str, Callable[[QuorumFigures], float]], ...] = (
        (
            "current_leader",
            "The node that leads the metadata quorum, -1 when unknown.",
            lambda figures: figures.leader_id,
        ),
        ("current_epoch", "The epoch of the metadata quorum.", lambda figures: figures.leader_epoch),
        ("high_watermark", "Where the committed metadata ends, as known here.", lambda figures: figures.high_watermark),
        ("log_end_offset", "Where the metadata log ends here.", lambda figures: figures.log_end_offset),
        ("number_of_voters", "Controllers that elect the leader.", lambda figures: figures.voters_count),
        (
            "election_latency_avg",
            "Milliseconds that elections took in which this node stood, on average.",
            lambda figures: figures.election_ms_mean,
        ),
        ("election_latency_max", "The longest of them.", lambda figures: figures.election_ms_max),
        (
            "commit_latency_avg",
            "Milliseconds until what this leader appended was committed, on average.",
            lambda figures: figures.commit_ms_mean,
        ),
        ("commit_latency_max", "The longest of them.", lambda figures: figures.commit_ms_max),
    )
    for name, text, read in rows:
        yield Metric(_RAFT + name, text, "gauge", _of_quorum(calls, read))

    def state() -> Mapping[tuple[str, ...], float]:
        figures = _quorum_of(calls)
        return {} if figures is None else {(figures.state,): 1}

    text = "What this node is in the metadata quorum: 1 beside the state that it has."
    yield Metric(f"{_RAFT}current_state", text, "gauge", state, ("current_state",))


def _of_quorum(calls: Calls, read: Callable[[QuorumFigures], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
    def value() -> float | None:
        figures = _quorum_of(calls)
        return None if figures is None else read(figures)

    return _unlabelled(value)


def _timed(name: str, text: str, calls: Calls, of: Callable[[ControllerFigures], Histogram]) -> Iterator[Metric]:
    def quantiles() -> Mapping[tuple[str, ...], float]:
        log = _controller(calls)
        return {} if log is None else {(label,): of(log).percentile(fraction) for label, fraction in QUANTILES}

    yield Metric(name, text, "gauge", quantiles, ("quantile",))

    def counted() -> Mapping[tuple[str, ...], float]:
        log = _controller(calls)
        return {} if log is None else {(): of(log).count}

    yield Metric(f"{name}_count", text, "counter", counted)


def _unlabelled(read: Read) -> Callable[[], Mapping[tuple[str, ...], float]]:
    def values() -> Mapping[tuple[str, ...], float]:
        value = read()
        return {} if value is None else {(): value}

    return values
