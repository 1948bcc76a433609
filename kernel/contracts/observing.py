"""Pure core: what a broker counts and how it stands: what a plugin reads that shows it, as a page, a metric or a log.

All of it is read on the broker's own task, when somebody asks, and nothing is counted for it beside what the broker
counts anyway. What is given are the broker's own objects, seen through these protocols: they change as it works, so
keep numbers and not objects; and they are to be read only.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence

    from ..types import TopicIdPartition
    from .log_values import SegmentInfo
    from .services import Metric


class TopicCounters(Protocol):
    """What a topic has taken and given since the start."""

    messages_in: int
    bytes_in: int
    bytes_out: int
    produce_requests: int
    fetch_requests: int
    failed_produce_requests: int
    failed_fetch_requests: int


class TopicFigures(Protocol):
    """A topic with a replica on this broker."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def topic_id(self) -> uuid.UUID:
        """Its id: a topic of the same name that is made anew counts from zero."""
        ...

    @property
    def counters(self) -> TopicCounters:
        """What was counted."""
        ...


class LogFigures(Protocol):
    """The log of a replica."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes in all segments."""
        ...

    def segments(self) -> Sequence[SegmentInfo]:
        """Return the segments, oldest first."""
        ...


class ReplicaFigures(Protocol):
    """A replica on this broker."""

    @property
    def partition(self) -> TopicIdPartition:
        """Of which partition."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        ...

    @property
    def offline_reason(self) -> str | None:
        """Why its log cannot be used; None when it can. While there is one, `log` is not to be asked."""
        ...

    @property
    def high_watermark(self) -> int:
        """Up to where records are committed."""
        ...

    @property
    def log(self) -> LogFigures:
        """Its log."""
        ...


class LatencyFigures(Protocol):
    """How long something took, each time since the start; in milliseconds."""

    @property
    def count(self) -> int:
        """How often."""
        ...

    def percentile(self, fraction: float) -> float:
        """Return what `fraction` (0 to 1) of all do not exceed; 0 without any."""
        ...


class RequestFigures(Protocol):
    """The requests of one API."""

    @property
    def name(self) -> str:
        """The API's name."""
        ...

    @property
    def errors_count(self) -> int:
        """Requests whose handler raised."""
        ...

    @property
    def latency_ms(self) -> LatencyFigures:
        """From a request's last byte to its answer, waiting included."""
        ...


@frozen
class WaitingFigures:
    """Requests of one API that wait.

    Attributes:
        name: The API's.
        delayed_count: Requests that wait.
        watched_count: The same, counted once for each partition.
    """

    name: str
    delayed_count: int
    watched_count: int


class FetchSessionFigures(Protocol):
    """Fetch sessions (KIP-227)."""

    @property
    def sessions_count(self) -> int:
        """Sessions there are."""
        ...

    @property
    def partitions_count(self) -> int:
        """Partitions in them."""
        ...

    @property
    def evictions_count(self) -> int:
        """Sessions that had to make room for others."""
        ...


class NetworkFigures(Protocol):
    """A picture of what the network has counted since it began to serve."""

    @property
    def bytes_in(self) -> int:
        """Bytes received."""
        ...

    @property
    def bytes_out(self) -> int:
        """Bytes sent."""
        ...

    @property
    def requests_count(self) -> int:
        """Requests received."""
        ...

    @property
    def connections_count(self) -> int:
        """Connections open now."""
        ...

    @property
    def connections_created_count(self) -> int:
        """Connections ever taken."""
        ...

    @property
    def connections_closed_count(self) -> int:
        """Connections ever closed."""
        ...

    @property
    def served_s(self) -> float:
        """For how long it has served, in seconds."""
        ...

    @property
    def busy_s(self) -> float:
        """For how much of that it did not wait for work; between two pictures: how busy the broker was."""
        ...


class BrokerFigures(Protocol):
    """All that can be read of a broker: `BrokerHandle.figures`."""

    @property
    def is_serving(self) -> bool:
        """Whether clients are served: not while it starts, and no more once it was asked to stop."""
        ...

    def topics(self) -> Iterable[TopicFigures]:
        """Return the topics with a replica here."""
        ...

    def replicas(self) -> Iterable[ReplicaFigures]:
        """Return all replicas here, those whose log failed too."""
        ...

    def replica(self, topic_id: uuid.UUID, partition: int) -> ReplicaFigures | None:
        """Return one of them, None when it is not here or was not opened."""
        ...

    def late_transactions_count(self) -> int:
        """Return how many replicas have a transaction that its coordinator should have ended long ago (KIP-664)."""
        ...

    def requests(self) -> Iterable[RequestFigures]:
        """Return the APIs that are answered here."""
        ...

    def waiting(self) -> Iterable[WaitingFigures]:
        """Return what waits, by API; walks over all partitions that are waited for."""
        ...

    def fetch_sessions(self) -> FetchSessionFigures:
        """Return a picture of the fetch sessions."""
        ...

    def network(self) -> NetworkFigures | None:
        """Return a picture of the network, None before it serves."""
        ...

    def metrics(self) -> Sequence[Metric]:
        """Return what all plugins and the kernel offer as metrics; complete before any service is prepared."""
        ...
