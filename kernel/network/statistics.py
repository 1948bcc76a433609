"""Pure core: what the network counts, as frozen values for metrics.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class NetworkStatistics:
    """A snapshot of the counters of one loop; counts are since its start.

    Attributes:
        bytes_in: Bytes received (of TLS: after decryption).
        bytes_out: Bytes sent (of TLS: before encryption).
        requests_count: Frames taken.
        turns_count: Turns in which frames were taken.
        connections_count: Connections open now.
        connections_created_count: Connections ever taken.
        connections_closed_count: Connections ever closed.
        connections_refused_count: Connections closed at once, because of a limit.
        connections_idle_closed_count: Connections closed for being idle or stalled.
        connections_by_listener: Listener to connections open now.
        malformed_count: Connections closed because the client broke the protocol.
        failures_count: Connections closed because of a failure of ours.
        accept_failures_count: Failed accepts, such as for want of file descriptors.
        block_bytes: Memory that large requests hold while they arrive.
        served_s: How long the loop has run, in seconds.
        busy_s: For how much of that it did not wait for sockets. The rest, between two snapshots and as a share of the
            time between them, is Kafka's `NetworkProcessorAvgIdlePercent` and `RequestHandlerAvgIdlePercent` at once,
            as one loop does both.
    """

    bytes_in: int
    bytes_out: int
    requests_count: int
    turns_count: int
    connections_count: int
    connections_created_count: int
    connections_closed_count: int
    connections_refused_count: int
    connections_idle_closed_count: int
    connections_by_listener: Mapping[str, int]
    malformed_count: int
    failures_count: int
    accept_failures_count: int
    block_bytes: int
    served_s: float
    busy_s: float
